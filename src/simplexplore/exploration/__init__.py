"""One run of one problem: plan, arrays, engine, stopping rules, intervals, Explorer."""
