"""Coverage by room, from the JSON that coverage.py writes: python tests/rooms.py coverage.json."""

import json
import sys
from collections import defaultdict
from pathlib import Path


def main(path):
    lines = defaultdict(lambda: [0, 0])
    for file, found in json.loads(Path(path).read_text())["files"].items():
        inside = Path(file).parts[Path(file).parts.index("simplexplore") + 1 :]
        for room in ("total", inside[0]):
            lines[room][0] += found["summary"]["covered_lines"]
            lines[room][1] += found["summary"]["num_statements"]
    for room, (covered, count) in sorted(lines.items(), key=lambda item: item[1][0] / item[1][1]):
        sys.stdout.write(f"{room:16}{count:6} lines{100 * covered / count:7.1f} %\n")


if __name__ == "__main__":
    main(sys.argv[1])
