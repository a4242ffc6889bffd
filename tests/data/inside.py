def allocate(config, table, run, scratch):  # noqa: ARG001
    for a in range(config.size):
        run.w[a] = config.interior_allocation[a]
