"""Steps a second on a GPU, beside one core and all cores of the same machine.

    python addons/gpu/benchmark.py [--runs N] [--only TEXT]

Each case is simulated on the GPU with many runs, and with a few on the processor; the share of runs
that are equal counts those few. Prints the table that benchmark.md shows.
"""

import argparse
import os
import time

import numpy as np

import simplexplore as sx

# Instance, sampler, scenario, and runs on the GPU and on the processor.
CASES = (
    ("star", "top-two", "end-of-time", 10_000_000, 2_000),
    ("star", "uniform", "end-of-time", 10_000_000, 2_000),
    ("star", "ctns", "anytime", 1_000_000, 500),
    ("movies", "top-two", "end-of-time", 3_000_000, 1_000),
    ("movies", "cge", "end-of-time", 1_000_000, 300),
    ("movies", "ctns", "end-of-time", 1_000_000, 300),
    ("bernoulli-1", "top-two", "end-of-time", 2_000_000, 500),
)


def simulated(case, runs, **place):
    name, sampler, scenario, *_ = case
    found = sx.catalog.instance(name)
    return sx.simulate(
        *(found.problem, found.means, sampler), threshold="gk16", delta=0.1, runs=runs, seed=5,
        scenario=scenario, **place,
    )  # fmt: skip


def speed(results):
    return results.stopping_times.sum() / results.seconds


def on_processor(case):
    """A few runs by one core, and steps a second of all cores."""
    few, cores = case[-1], os.cpu_count() or 1
    simulated(case, 8)  # compiles
    return simulated(case, few, workers=1), speed(simulated(case, few * cores, workers=cores))


def on_gpu(case):
    """Many runs, and seconds until the first result."""
    began = time.perf_counter()
    simulated(case, 64, device="gpu")
    first = time.perf_counter() - began
    return simulated(case, case[-2], device="gpu"), first


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="cases with this text in them")
    chosen = parser.parse_args().only
    cases = [case for case in CASES if chosen in " ".join(map(str, case))]
    processor = [on_processor(case) for case in cases]
    print("| case | runs | steps/s | x one core | x all cores | equal runs | first result |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for case, (one, all_cores) in zip(cases, processor, strict=True):
        name, sampler, scenario, many, few = case
        found, first = on_gpu(case)
        rate = speed(found)
        equal = np.mean(found.stopping_times[:few] == one.stopping_times)
        print(
            f"| {name}, {sampler}, {scenario} | {many:,} | {rate:.2g} | {rate / speed(one):.0f} | "
            f"{rate / all_cores:.0f} | {100 * equal:.1f}% of {few:,} | {first:.0f} s |",
            flush=True,
        )


if __name__ == "__main__":
    main()
