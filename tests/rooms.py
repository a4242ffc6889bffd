"""How large each room is: python tests/rooms.py. How much of it the tests run: with coverage.json.

Lines of code are those that hold more than blanks, comments and docstrings.
"""

import ast
import io
import json
import sys
import tokenize
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "simplexplore"
BESIDE = ("paper", "addons")
LONG_FILE, LARGE_CLASS = 400, 25  # lines of code, methods
LAYOUT = (
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE),
    *(tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER),
)
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def has_docstring(node):
    return ast.get_docstring(node, clean=False) is not None


def code_lines(source, tree):
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, *DEFINITIONS)) and has_docstring(node):
            lines.difference_update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return len(lines)


def rooms_of(path):
    """A folder of the package and the package, or one beside it."""
    if path.is_relative_to(PACKAGE):
        folders = path.relative_to(PACKAGE).parts[:-1]
        return (folders[0] if folders else "(root)", "package")
    return (f"{path.relative_to(ROOT).parts[0]}/",)


def sizes():
    """Lines and files by room; files and classes that are too large."""
    rooms, large = defaultdict(lambda: [0, 0]), []
    for folder in (PACKAGE, *(ROOT / name for name in BESIDE)):
        for path in sorted(folder.rglob("*.py")):
            source = path.read_text(encoding="utf-8")
            tree = ast.parse(source)
            lines = code_lines(source, tree)
            for room in rooms_of(path):
                rooms[room][0] += lines
                rooms[room][1] += 1
            name = path.relative_to(ROOT)
            if lines > LONG_FILE:
                large.append(f"{name}: {lines} lines")
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef):
                    methods = sum(isinstance(part, DEFINITIONS) for part in node.body)
                    if methods > LARGE_CLASS:
                        large.append(f"{name}: {node.name} has {methods} methods")
    yield from (
        f"{room:16}{lines:7,} lines of code in {files:3} files"
        for room, (lines, files) in sorted(rooms.items(), key=lambda item: item[1][0])
    )
    yield f"Files above {LONG_FILE} lines, classes above {LARGE_CLASS} methods: {len(large)}"
    yield from large


def coverage(path):
    """Lines that ran, as the JSON that coverage.py writes has them."""
    lines = defaultdict(lambda: [0, 0])
    for file, found in json.loads(Path(path).read_text())["files"].items():
        inside = Path(file).parts[Path(file).parts.index("simplexplore") + 1 :]
        for room in ("total", inside[0]):
            lines[room][0] += found["summary"]["covered_lines"]
            lines[room][1] += found["summary"]["num_statements"]
    for room, (covered, count) in sorted(lines.items(), key=lambda item: item[1][0] / item[1][1]):
        yield f"{room:16}{count:6} lines{100 * covered / count:7.1f} %"


if __name__ == "__main__":
    said = coverage(sys.argv[1]) if sys.argv[1:] else sizes()
    sys.stdout.write("\n".join(said) + "\n")
