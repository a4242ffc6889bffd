"""Error rates at fixed budgets: `python benchmarks/budget.py [RUNS]`.

Writes benchmarks/budget.md.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

import simplexplore as sx

BUDGETS = {
    "star": (300, 1000, 2000),
    "eight-arms": (300, 1000, 2000),
    "triangle": (1000, 3000, 6000),
}
HALVING = Path(__file__).resolve().parent.parent / "examples" / "samplers" / "halving.py"
SAMPLERS = {"uniform": "uniform", "halving": str(HALVING), "oracle": "oracle", "top-two": "top-two"}
SEED = 20261116
OUT = Path(__file__).with_suffix(".md")

INTRODUCTION = """# Error rates at fixed budgets

Share of {runs} runs, end-of-time, whose answer is not the best mix after N samples, in percent;
seed {seed}, by `benchmarks/budget.py`. One standard error of a share p is sqrt(p (1 - p) / {runs}).
The oracle has the best allocation; adaptive samplers may be better at small N, since the
allocation is best for large N only.

"""


def main(runs: int) -> None:
    """Simulate, and write the table."""
    heads = [f"{name} {n}" for name, budgets in BUDGETS.items() for n in budgets]
    rows = {name: [] for name in SAMPLERS}
    for name, budgets in BUDGETS.items():
        problem = sx.catalog.instance(name).problem.replace(scenario="end-of-time")
        for budget in budgets:
            goal = {"budget": budget}
            for sampler, given in SAMPLERS.items():
                results = sx.simulate(problem, sampler=given, stop_when=goal, runs=runs, seed=SEED)
                rows[sampler].append(1 - results.correct.mean())
                print(name, budget, sampler, rows[sampler][-1], flush=True)
    table = [f"| | {' | '.join(heads)} |", f"|---|{'---|' * len(heads)}"]
    for name, rates in rows.items():
        table.append(f"| {name} | {' | '.join(f'{100 * rate:.2f}' for rate in rates)} |")
    OUT.write_text(INTRODUCTION.format(runs=runs, seed=SEED) + "\n".join(table) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4000)
