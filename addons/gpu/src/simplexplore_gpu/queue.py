"""What each of a GPU's threads does: runs, one after the other, until there are none.

A kernel like those of simplexplore: called from Python it runs as Python.
"""

from __future__ import annotations

from simplexplore.kernels.episode import check_stopping, choose, keep_result, play, start_run
from simplexplore.kernels.kernel import kernel
from simplexplore.kernels.records import (
    CAPPED,
    GO_ON,
    MISSING_EDGE,
    PULLS,
    STOPPED,
    EdgeTable,
    RunConfig,
    RunState,
    Scratch,
    SimulationBatch,
)


@kernel
def take(batch: SimulationBatch) -> int:
    """The number of a run that nobody has taken yet. A GPU's threads ask one after the other."""
    number = batch.progress[0]
    batch.progress[0] = number + 1
    return number


@kernel
def simulate_queue(
    config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch, batch: SimulationBatch
) -> None:
    """Take runs until there are none: what each of a GPU's threads does.

    One step is one turn of one loop, so that threads in step with each other stay so though their
    runs end at different times. A run that meets a vertex which is not in the table is left, with 0
    pulls and the number of the edge that leads there; whoever called adds it and has the run made
    anew.
    """
    number = -1
    while True:
        is_new = number < 0
        if is_new:
            number = take(batch)
            if number >= batch.seeds.shape[0]:
                return
            start_run(config, table, run, scratch, batch, number)
        status = GO_ON
        if not is_new:
            if run.integers[PULLS] >= batch.cap:
                run.integers[CAPPED] = 1
                status = STOPPED
            else:
                play(config, table, run, batch)
                status = check_stopping(config, table, run, scratch)
        if status == GO_ON:
            choose(config, table, run, scratch)
        if status == STOPPED:
            keep_result(config, run, batch, number)
        elif status != GO_ON:
            batch.pulls[number] = 0
            batch.vertices[number] = run.integers[MISSING_EDGE]
        if status != GO_ON:
            number = -1
