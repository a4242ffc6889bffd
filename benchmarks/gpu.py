"""Steps a second on a GPU, beside one core and all cores of the same machine.

    python benchmarks/gpu.py [--runs N] [--only TEXT]

Each case is simulated on the GPU with many runs, and with a few on the processor; the share of runs
that are equal counts those few. Prints the table that benchmarks/gpu.md shows.
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


def speed(results):
    return results.stopping_times.sum() / results.seconds


def measured(name, sampler, scenario, many, few):
    found = sx.catalog.instance(name)

    def simulated(runs, **place):
        return sx.simulate(
            *(found.problem, found.means, sampler), threshold="gk16", delta=0.1, runs=runs, seed=5,
            scenario=scenario, **place,
        )  # fmt: skip

    began = time.perf_counter()
    simulated(64, device="gpu")
    first = time.perf_counter() - began
    simulated(8)  # compiles
    on_gpu = simulated(many, device="gpu")
    one = simulated(few, workers=1)
    began = time.perf_counter()
    cores = os.cpu_count() or 1
    several = simulated(few * cores, workers=cores)
    rate = several.stopping_times.sum() / (time.perf_counter() - began)
    equal = np.mean(on_gpu.stopping_times[:few] == one.stopping_times)
    gpu = speed(on_gpu)
    return (
        f"| {name}, {sampler}, {scenario} | {many:,} | {gpu:.2g} | {gpu / speed(one):.0f} | "
        f"{gpu / rate:.0f} | {100 * equal:.1f}% | {first:.0f} s |"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="cases with this text in them")
    chosen = parser.parse_args().only
    print(
        "| case | runs | steps/s | times one core | times all cores | equal runs | first result |"
    )
    print("|---|---|---|---|---|---|---|")
    for case in CASES:
        if chosen in " ".join(map(str, case)):
            print(measured(*case), flush=True)


if __name__ == "__main__":
    main()
