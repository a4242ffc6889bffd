"""Files of functions to compile: read without running them."""

import ast
import gc
import time
from concurrent.futures import ThreadPoolExecutor

from simplexplore.samplers import declarations
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


def test_a_parser_that_another_thread_disturbs_is_asked_again(monkeypatch, tmp_path):
    """Python 3.11 fails so when a traceback is formatted elsewhere at the same time."""
    parse, failures = ast.parse, [SystemError("AST constructor recursion depth mismatch")] * 2

    def disturbed(text):
        if failures:
            raise failures.pop()
        return parse(text)

    monkeypatch.setattr(declarations.ast, "parse", disturbed)
    path = tmp_path / "own.py"
    path.write_text("ARM_VECTORS = 7  # a text that nobody has parsed before\n")
    assert len(declarations.definitions(path)) == 1
    assert not failures
