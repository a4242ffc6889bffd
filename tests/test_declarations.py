"""Files of functions to compile: read without running them."""

import gc
import time
from concurrent.futures import ThreadPoolExecutor

from simplexplore.samplers.declarations import HERE, defined, definitions


def test_many_threads_read_files():
    # What is collected meanwhile may run Python code, and then another thread has its turn in
    # the middle of a file.
    def let_others(*_):
        time.sleep(0)

    files = sorted(HERE.glob("*.py")) * 8
    before = gc.get_threshold()
    gc.set_threshold(50)
    gc.callbacks.append(let_others)
    try:
        with ThreadPoolExecutor(8) as pool:
            read = list(pool.map(definitions, files))
    finally:
        gc.callbacks.remove(let_others)
        gc.set_threshold(*before)
    names = {name for some in read for node in some for name in defined(node)}
    assert {"allocate", "turns"} <= names
