"""Words of the constraint language, and what can be wrong with them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, Protocol

from simplexplore.errors import ConstraintError

from .spelling import PLAIN_NAME, found_as, listed, mentioned, nearest, pointed, quoted, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_TOKEN = re.compile(
    rf"""
      (?P<space>\s+)
    | (?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | (?P<name>{PLAIN_NAME.pattern})
    | (?P<backtick>`[^`]*`?)
    | (?P<relation>[<>=!]=|=[<>]|[<>=≤≥≠])
    | (?P<power>\*\*|\^)
    | (?P<operator>[-+*/()−])
    """,
    re.VERBOSE,
)

_RELATIONS = {"<=": "<=", "≤": "<=", ">=": ">=", "≥": ">=", "==": "==", "=": "=="}

_REFUSED_RELATIONS = {
    "<": "a strict '<' is not supported, as the best mix lies on the boundary; write '<='.",
    ">": "a strict '>' is not supported, as the best mix lies on the boundary; write '>='.",
    "=<": "'=<' is not a relation; write '<='.",
    "=>": "'=>' is not a relation; write '>='.",
    "!=": "'!=' is not a linear constraint; use '<=', '>=' or '=='.",
    "≠": "'≠' is not a linear constraint; use '<=', '>=' or '=='.",
}

_REFUSED_CHARACTERS = {
    ",": "unexpected ','; write decimals with a point, as in 0.5.",
    "%": "unexpected '%'; write 50% as 0.5 or 1/2.",
    "'": "unexpected quote; put a name that is not a plain word in backticks: `The Net`.",
    '"': "unexpected quote; put a name that is not a plain word in backticks: `The Net`.",
}

# Deeper nesting and more signs in a row than anyone writes, and shallow enough for Python's stack.
DEEPEST = 50

# Characters of a constraint, and of a number in it.
_LONGEST = 2**22
_LONGEST_NUMBER = 5_000

# Tokens and coefficients that all constraints of a problem touch: some seconds. A weighted sum of
# all arms that a problem may have just fits.
_MOST_STEPS = 1_000_000


class Token(NamedTuple):
    """A word, a number or a sign."""

    kind: str  # "number", "name", "relation", "end", or the operator itself
    text: str  # canonical: a name without its backticks, a relation in ASCII
    start: int
    end: int


class Stretch(Protocol):
    """A part of the text."""

    @property
    def start(self) -> int: ...

    @property
    def end(self) -> int: ...


class Vocabulary:
    """What constraints may name, and the steps that reading all of them took."""

    def __init__(self, arms: Sequence[str], groups: Mapping[str, Sequence[str]], noun: str) -> None:
        self.arms, self.groups, self.noun = arms, groups, noun
        self.meaning = {arm: [i] for i, arm in enumerate(arms)}
        self.meaning |= {
            group: [self.meaning[arm][0] for arm in members] for group, members in groups.items()
        }
        self.steps = 0


class Reader:
    """A text as tokens, one of which is the current one."""

    def __init__(self, text: str, name: str, words: Vocabulary) -> None:
        self.text, self.name, self.words = text, name, words
        self.arms, self.groups, self.meaning = words.arms, words.groups, words.meaning
        if len(text) > _LONGEST:
            raise self.error(
                f"it has {len(text):,} characters; at most {_LONGEST:,} are read. Write several "
                "constraints, or a matrix."
            )
        self.tokens = list(self.tokenize())
        self.position = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    def advance(self) -> Token:
        self.position += 1
        return self.tokens[self.position - 1]

    def spend(self, steps: int) -> None:
        """Count steps, and stop where they are too many."""
        self.words.steps += steps
        if self.words.steps > _MOST_STEPS:
            raise self.error(
                f"reading the constraints up to here takes more than {_MOST_STEPS:,} steps; write "
                "shorter sums, or a matrix."
            )

    def tokenize(self) -> Iterator[Token]:
        start = signs = 0
        while start < len(self.text):
            match = _TOKEN.match(self.text, start)
            if match is None:
                raise self.unexpected(Token("", self.text[start], start, start + 1))
            kind, text, end = match.lastgroup or "", match.group(), match.end()
            place = Token(kind, text, start, end)
            if kind == "backtick":
                if len(text) == 1 or not text.endswith("`"):
                    raise self.error(
                        "this backtick is never closed; add another after the name.", place
                    )
                kind, text = "name", text[1:-1]
            elif kind == "number":
                if len(text) > _LONGEST_NUMBER:
                    raise self.error(
                        f"this number has {len(text):,} characters; at most {_LONGEST_NUMBER:,} "
                        "are read. Round it.",
                        place,
                    )
                # 2e3 is two thousand; where there is an arm e3, better ask.
                tail = re.search(r"[eE][0-9]+$", text)
                if tail and tail.group() in self.meaning:
                    product = f"{text[: tail.start()]}*{tail.group()}"
                    raise self.error(
                        f"'{text}' could be a number or {product}; write {product} for the "
                        "product, or the number without an exponent.",
                        place,
                    )
            elif kind == "relation":
                if text in _REFUSED_RELATIONS:
                    raise self.error(_REFUSED_RELATIONS[text], place)
                text = _RELATIONS[text]
            elif kind == "power":
                raise self.error(
                    "powers are not linear; a constraint adds up numbers times arms.", place
                )
            elif kind == "operator":
                kind = text = text.replace("−", "-")
            if kind != "space":
                self.spend(1)
                signs = signs + 1 if kind in ("+", "-") else 0
                if signs > DEEPEST:
                    raise self.error(
                        f"more than {DEEPEST} signs follow each other; write one.", place
                    )
                yield Token(kind, text, start, end)
            start = end
        yield Token("end", "", start, start)

    def error(
        self, message: str, first: Stretch | None = None, last: Stretch | None = None
    ) -> ConstraintError:
        """Point at a stretch of the text, or at all of it."""
        start = first.start if first else 0
        end = last.end if last else first.end if first else len(self.text)
        return ConstraintError(
            f"{self.words.noun} {self.name!r}: {message}\n{pointed(self.text, start, end)}"
        )

    def unexpected(self, place: Token) -> ConstraintError:
        if known := self.unquoted(place):
            return known
        message = _REFUSED_CHARACTERS.get(
            place.text,
            f"unexpected {place.text!r}; if it is part of a name, put the name in backticks.",
        )
        return self.error(message, place)

    def unquoted(self, place: Token) -> ConstraintError | None:
        """Recognise a known name that was written here without its backticks."""
        for known in self.meaning:
            if not PLAIN_NAME.fullmatch(known) and (
                span := found_as(known, self.text, place.start)
            ):
                return self.error(
                    f"the name {known!r} goes in backticks: {quoted(known)}.",
                    Token("name", known, *span),
                )
        return None

    def unknown(self, token: Token) -> ConstraintError:
        word = token.text
        if word.casefold() in ("inf", "infinity", "nan"):
            return self.error(
                f"{word!r} is not a finite number; leave out a bound that does not exist.", token
            )
        if known := self.unquoted(token):
            return known
        # Several words in a row may be one name, without its backticks.
        last = token
        if self.text[token.start] != "`":
            for other in self.tokens[self.position + 1 :]:
                if other.kind not in ("name", "number"):
                    break
                last = other
        phrase = word if last is token else self.text[token.start : last.end]
        message = f"unknown arm {shortened(phrase)!r}"
        if guess := nearest(phrase, self.meaning) or nearest(word, self.meaning):
            message += f"; did you mean {mentioned(guess)}?"
        else:
            message += f"; the arms are {listed(self.arms)}"
            message += f", the groups {listed(self.groups)}." if self.groups else "."
        if last is not token:
            message += " Names of several words go in backticks."
        return self.error(message, token, last)

    def no_operator(self) -> ConstraintError:
        """Say what is wrong with two words in a row."""
        before, found = self.tokens[self.position - 1], self.token
        if known := self.unquoted(found):
            return known
        left, right = (shortened(self.text[t.start : t.end]) for t in (before, found))
        message = f"an operator is missing between '{left}' and '{right}'."
        if before.kind == found.kind == "name":
            message += " Names of several words go in backticks."
        return self.error(message, before, found)

    def no_operand(self) -> ConstraintError:
        """Say why no arm, number or parenthesis starts here."""
        found = self.token
        before = self.tokens[self.position - 1] if self.position else None
        if before is not None and before.kind in ("+", "-", "*", "/"):
            return self.error(
                f"'{before.text}' has nothing after it; add an arm or a number, or remove it.",
                before,
            )
        if found.kind in ("*", "/"):
            return self.error(
                f"'{found.text}' has nothing before it; add an arm or a number, or remove it.",
                found,
            )
        if before is not None and before.kind == "(":
            if found.kind != ")":
                return self.unclosed(before)
            return self.error(
                "nothing stands between these parentheses; fill or remove them.", before, found
            )
        if found.kind == ")":
            return self.unopened()
        if before is not None:
            return self.error(
                f"nothing stands after '{before.text}'; add an arm or a number.", before
            )
        if found.kind == "relation":
            return self.error(
                f"nothing stands before '{found.text}'; add an arm or a number.", found
            )
        return ConstraintError(
            f"{self.words.noun} {self.name!r} is empty; write for instance "
            f"'{quoted(self.arms[0])} <= 0.5'."
        )

    def unclosed(self, opening: Token) -> ConstraintError:
        return self.error("this '(' is never closed; add a ')', or remove it.", opening)

    def unopened(self) -> ConstraintError:
        return self.error("this ')' closes nothing; add a '(' before it, or remove it.", self.token)
