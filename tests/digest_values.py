"""What cases of `digests.py` give, as JSON: without times and random ids, and where two differ."""

import json
import re

import simplexplore as sx

BLANKS = (
    (r"\b[0-9a-f]{6}-(\d+)-[0-9a-f]{4}\b", r"PULL-\1"),
    (r"\b20\d\d-\d\d-\d\d(?:[T ]\d\d:\d\d[\d:.]*(?:Z|\+00:00)?)?", "DATE"),
    (r"\b1[6-9]\d{8}(?:\.\d+)?\b", "0"),
    (r"\b127\.0\.0\.1:\d+", "127.0.0.1:PORT"),
    (r'("microseconds_per_step": )[\d.e+-]+', r"\g<1>0"),
)

# What is about to go, or to come.
LEFT_OUT = ("tags", "webhook", "webhooks", "health", "held")

# Smaller numbers differ relatively to this one.
SMALL = 1e-3


def blanked(text, *folders):
    """A text without what differs from run to run."""
    for folder in folders:
        text = text.replace(str(folder), "FOLDER")
    for pattern, blank in BLANKS:
        text = re.sub(pattern, blank, text)
    return text


def without(value):
    """JSON without the keys that are left out."""
    if isinstance(value, dict):
        return {key: without(x) for key, x in value.items() if key not in LEFT_OUT}
    return [without(x) for x in value] if isinstance(value, list) else value


def plain(value, *folders):
    """As JSON, blanked; pulls and what became of them are their fields."""
    return without(json.loads(blanked(json.dumps(value, default=vars), *folders)))


def value_of(case):
    """What a case gives; a refusal is a value, and so is any other error, which nobody wants."""
    try:
        return json.loads(json.dumps(case()))
    except sx.SimplexploreError as error:
        return {"refused": f"{type(error).__name__}: {error}"}
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"}


def differences(one, other, tolerance=0.0, at=""):
    """Where two values differ, and how: numbers by their relative difference, else in words."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in one | other:
            if key in one and key in other:
                yield from differences(one[key], other[key], tolerance, f"{at}/{key}")
            else:
                yield f"{at}/{key}", "only before" if key in one else "only now"
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for i, pair in enumerate(zip(one, other, strict=True)):
            yield from differences(*pair, tolerance, f"{at}/{i}")
    elif type(one) is type(other) is float:
        apart = abs(one - other) / max(abs(one), abs(other), SMALL)
        # Infinite ones, and those that are no numbers, are alike if they look alike.
        if not apart <= tolerance and repr(one) != repr(other):
            yield at, apart
    elif one != other or type(one) is not type(other):
        yield at, _in_words(one, other)


def _in_words(one, other):
    """Both values; of long texts what surrounds the place where they part."""
    texts = [x if isinstance(x, str) else json.dumps(x) for x in (one, other)]
    pairs = enumerate(zip(*texts, strict=False))
    parted = next((i for i, (a, b) in pairs if a != b), min(map(len, texts)))
    start = max(0, parted - 20)
    return " -> ".join(repr(text[start : start + 60]) for text in texts)
