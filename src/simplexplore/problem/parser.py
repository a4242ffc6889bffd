"""The constraint language: linear (in)equalities over arms and groups, as text.

::

    constraint := sum relation sum [relation sum]
    relation   := "<=" | ">=" | "=="
    sum        := product (("+" | "-") product)*
    product    := factor (("*" | "/") factor)*
    factor     := ("+" | "-") factor | number | name | "(" sum ")" | "each" [group]
    name       := letters, digits and underscores, or anything between backticks

A number may stand directly before a name or a parenthesis, as in ``4 a``. ``each`` stands for
one arm after the other, of a group or of all, and makes as many constraints; where an arm or a
group has that name, it is that. All arithmetic is exact; a coefficient becomes a float once, at
the end.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from simplexplore.errors import ConstraintError, ProblemError

from .constraint import EACH, Constraint, expanded_name
from .messages import (
    PLAIN_NAME,
    backticked,
    closest_match,
    exactly,
    found_as,
    listed,
    pointed,
    quote,
    shortened,
)
from .rational import rational

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

# What one entry of a table is called.
NOUNS = {"constraints": "constraint", "exploration": "exploration limit"}

# Characters of a constraint, or a term per arm where that is more; and binary digits of an exact
# number, of which a product of two floats has half at most.
MAX_LENGTH, _MAX_BITS = 2**16, 2**13
_TERM = 32  # characters, without the name

# Coefficients of all constraints that are not zero, and how many a constraint counts for at least:
# it takes as much memory.
MAX_COEFFICIENTS, MIN_COEFFICIENTS = 10_000_000, 20

# Deeper nesting than anyone writes, and shallow enough for Python's stack.
MAX_DEPTH = 50

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
_MIRRORED = {"<=": ">=", ">=": "<=", "==": "=="}

_STRICT = "a strict '{}' is not supported, as the best mix lies on the boundary; write '{}='."
_REFUSED = {
    "<": _STRICT.format("<", "<"),
    ">": _STRICT.format(">", ">"),
    "=<": "'=<' is not a relation; write '<='.",
    "=>": "'=>' is not a relation; write '>='.",
    "!=": "'!=' is not a linear constraint; use '<=', '>=' or '=='.",
    "≠": "'≠' is not a linear constraint; use '<=', '>=' or '=='.",
    ",": "unexpected ','; write decimals with a point, as in 0.5.",
    "%": "unexpected '%'; write 50% as 0.5 or 1/2.",
}
_REFUSED["**"] = _REFUSED["^"] = "powers are not linear; a constraint adds up numbers times arms."
_REFUSED["'"] = _REFUSED['"'] = (
    "unexpected quote; put a name that is not a plain word in backticks: `The Net`."
)


class Names:
    """What the constraints of a problem may name, and how many coefficients they have so far."""

    def __init__(self, arms: Sequence[str], groups: Mapping[str, Sequence[str]], table: str):
        self.arms, self.groups, self.noun = arms, groups, NOUNS[table]
        self.members = {arm: [i] for i, arm in enumerate(arms)}
        self.members |= {
            group: [self.members[arm][0] for arm in named] for group, named in groups.items()
        }
        self.max_length = max(MAX_LENGTH, sum(len(arm) + _TERM for arm in arms))
        self._coefficients = 0

    def reserve(self, coefficients: int, rows: int = 1) -> None:
        """Count coefficients of so many constraints, and stop where they are too many."""
        self._coefficients += rows * max(coefficients, MIN_COEFFICIENTS)
        if self._coefficients > MAX_COEFFICIENTS:
            raise ProblemError(
                f"the {self.noun}s have more than {MAX_COEFFICIENTS:,} coefficients that are not "
                f"zero ({MIN_COEFFICIENTS} are counted where one has fewer); use fewer."
            )


class _Token(NamedTuple):
    """A word, a number or a sign."""

    kind: str  # "number", "name", "relation", "end", or the operator itself
    text: str  # canonical: a name without its backticks, a relation in ASCII
    start: int
    end: int


@dataclass
class _Sum:
    """Numbers times names, plus a number, and the part of the text that says so."""

    terms: dict[str, Fraction]
    constant: Fraction
    start: int
    end: int

    def is_number(self) -> bool:
        return not any(self.terms.values())


_Span: TypeAlias = _Token | _Sum


class Parser:
    """Recursive descent over one text; each ``read`` method starts at the current token.

    Examples
    --------
    >>> names = Names(["a", "b", "c"], {"front": ["a", "b"]}, "constraints")
    >>> Parser("0.1 <= front <= 1/2", "f", names).read()
    [Constraint(name='f', coefficients=array([1., 1., 0.]), lower=0.1, upper=0.5)]
    """

    def __init__(self, text: str, name: str, names: Names) -> None:
        self.text, self.name, self.names = text, name, names
        if len(text) > names.max_length:
            raise self.error(
                f"it has {len(text):,} characters; at most {names.max_length:,} are read. Write "
                "several constraints, or a matrix."
            )
        self.tokens = list(self.tokenize())
        self.position = self.depth = 0
        self.each: list[int] | None = None  # the arms that `each` runs over

    def read(self) -> list[Constraint]:
        """One constraint, or one per arm where the text says `each`.

        Everything that names an arm goes to the left, every constant to the right. Arms on the
        right only are moved as they are: ``0.5 >= a`` is ``a <= 0.5``.
        """
        sides, relations = [self.read_sum()], list[_Token]()
        while self.token.kind == "relation":
            relations.append(self.advance())
            sides.append(self.read_sum())
        if self.token.kind == ")":
            raise self.unmatched()
        if not relations:
            message = "expected a relation; add '<=', '>=' or '==' and what to compare with."
            raise self.error(message, self.token)
        if len(relations) > 2:
            raise self.error("more than two relations; write separate constraints.", relations[2])
        if len(relations) == 2:
            return self.between(sides, relations)
        left, right = sides
        relation = relations[0].text
        if left.is_number():
            left, right, relation = right, left, _MIRRORED[relation]
        self.add(left, right, -1)
        bound = -left.constant
        lower = None if relation == "<=" else bound
        return self.build(left, lower, None if relation == ">=" else bound)

    def between(self, sides: list[_Sum], relations: list[_Token]) -> list[Constraint]:
        first, second = relations
        if first.text != second.text or first.text == "==":
            raise self.error(
                f"'{first.text}' and '{second.text}' do not make a range; use '<=' twice or "
                "'>=' twice, or write two constraints.",
                second,
            )
        low, middle, high = sides if first.text == "<=" else reversed(sides)
        for side in (low, high):
            if not side.is_number():
                message = "the outer sides of a range must be numbers; write two constraints."
                raise self.error(message, side)
            self.rounded(side.constant)
        if low.constant > high.constant:
            raise self.error(
                f"the lower bound {exactly(low.constant)} exceeds the upper bound "
                f"{exactly(high.constant)}; no mix can satisfy both."
            )
        return self.build(middle, low.constant - middle.constant, high.constant - middle.constant)

    def build(
        self, found: _Sum, lower: Fraction | None, upper: Fraction | None
    ) -> list[Constraint]:
        if not found.terms:
            raise self.error(f"it names no arm; the arms are {listed(self.names.arms)}.")
        each = found.terms.pop(EACH, Fraction(0)) if self.each else Fraction(0)
        exact = dict[int, Fraction]()
        for name, x in found.terms.items():
            for i in self.names.members[name]:
                exact[i] = exact.get(i, 0) + x
        each_of = self.each if each and self.each else []
        self.names.reserve(len(exact) + bool(each), len(each_of) or 1)
        shared = {i: self.rounded(x, i) for i, x in exact.items()}
        low = -math.inf if lower is None else self.rounded(lower)
        high = math.inf if upper is None else self.rounded(upper)
        rows = {} if each_of else {self.name: shared}
        for i in each_of:
            arm = self.names.arms[i]
            row = shared | {i: self.rounded(exact.get(i, 0) + each, i)}
            rows[expanded_name(self.name, arm)] = row
            # A row of zeros says nothing, as `each <= b` does of b.
            if not any(row.values()) and not low <= 0 <= high:
                message = f"for {quote(arm)} all arms cancel out, and the rest does not hold"
                raise self.error(f"{message}; correct it.")
        size, used = len(self.names.arms), {name: x for name, x in rows.items() if any(x.values())}
        if not used:
            raise self.error("no arm is left in it: they cancel out; correct or drop it.")
        return [Constraint(name, row, low, high, size) for name, row in used.items()]

    def rounded(self, exact: Fraction, arm: int | None = None) -> float:
        """A bound, or the coefficient of an arm, as a float."""
        try:
            x = float(exact)
        except OverflowError:
            x = math.inf
        if x == math.inf or (exact and not x):
            what = "a bound" if arm is None else f"the coefficient of {quote(self.names.arms[arm])}"
            size = "large" if x else "small"
            raise self.error(f"{what} is too {size} for a float; rescale the constraint.")
        return x

    def read_sum(self) -> _Sum:
        total = self.read_product()
        while self.token.kind in ("+", "-"):
            sign = 1 if self.advance().kind == "+" else -1
            self.add(total, self.read_product(), sign)
        return total

    def add(self, total: _Sum, term: _Sum, sign: int) -> None:
        total.end = term.end
        for name, x in term.terms.items():
            total.terms[name] = self.exact(total.terms.get(name, 0) + sign * x, total)
        total.constant = self.exact(total.constant + sign * term.constant, total)

    def read_product(self) -> _Sum:
        # One factor for all terms at the end: long products of long sums take no longer.
        found, factor = self.read_factor(), Fraction(1)
        whole = _Sum({}, Fraction(0), found.start, found.end)
        while self.token.kind in ("*", "/", "name", "(", "number"):
            operator = "*"
            if self.token.kind in ("*", "/"):
                operator = self.advance().kind
            elif self.token.kind == "number" or not found.is_number():
                raise self.missing_operator()
            right = self.read_factor()
            whole.end = right.end
            if operator == "/":
                if not right.is_number():
                    message = "dividing by an arm is not linear; after '/' goes a number."
                    raise self.error(message, whole)
                if not right.constant:
                    raise self.error("this divides by zero; correct the divisor.", right)
                factor /= right.constant
            elif right.is_number():
                factor *= right.constant
            elif found.is_number():
                factor, found = factor * found.constant, right
            else:
                message = "a product of arms is not linear; one side of each '*' must be a number."
                raise self.error(message, whole)
            self.exact(factor, whole)
        whole.terms = {name: self.exact(factor * x, whole) for name, x in found.terms.items()}
        whole.constant = self.exact(factor * found.constant, whole)
        return whole

    def exact(self, x: Fraction, place: _Span) -> Fraction:
        """The outcome of a calculation, unless numbers grow without end."""
        if x.numerator.bit_length() + x.denominator.bit_length() > _MAX_BITS:
            raise self.error(
                f"an exact number in it has more than {_MAX_BITS:,} binary digits; write it "
                "shorter, or rescale the constraint.",
                place,
            )
        return x

    def read_factor(self) -> _Sum:
        start, sign = self.token.start, 1
        while self.token.kind in ("+", "-"):
            sign = sign if self.advance().kind == "+" else -sign
        token = self.token
        if token.kind == "(":
            found = self.read_parenthesis()
        elif token.kind == "number":
            try:
                found = _Sum({}, rational(token.text), token.start, token.end)
            except ValueError as error:
                raise self.error(f"{error}; rescale the constraint.", token) from None
            self.advance()
        elif self.is_each(token):
            found = self.read_each()
        elif token.kind == "name":
            if token.text not in self.names.members:
                raise self.unknown(token)
            found = _Sum({token.text: Fraction(1)}, Fraction(0), token.start, token.end)
            self.advance()
        else:
            raise self.missing_expression()
        if sign < 0:
            found.terms = {name: -x for name, x in found.terms.items()}
        return _Sum(found.terms, sign * found.constant, start, found.end)

    def is_each(self, token: _Token) -> bool:
        is_plain = not self.text.startswith("`", token.start)
        return token[:2] == ("name", EACH) and EACH not in self.names.members and is_plain

    def read_each(self) -> _Sum:
        word = last = self.advance()
        members = list(range(len(self.names.arms)))
        if self.token.kind == "name":
            if self.token.text not in self.names.members:
                raise self.unknown(self.token)
            last = self.advance()
            if last.text not in self.names.groups:
                message = f"{quote(last.text)} is an arm; after '{EACH}' goes a group, or nothing."
                raise self.error(message, word, last)
            members = self.names.members[last.text]
        if self.each not in (None, members):
            message = f"'{EACH}' runs over two different lists of arms; write two constraints."
            raise self.error(message, word, last)
        self.each = members
        return _Sum({EACH: Fraction(1)}, Fraction(0), word.start, last.end)

    def read_parenthesis(self) -> _Sum:
        opening = self.advance()
        self.depth += 1
        if self.depth > MAX_DEPTH:
            message = f"parentheses are nested more than {MAX_DEPTH} deep; write the sum out."
            raise self.error(message, opening)
        found = self.read_sum()
        if self.token.kind != ")":
            raise self.unclosed(opening)
        self.depth -= 1
        return _Sum(found.terms, found.constant, opening.start, self.advance().end)

    # The text as tokens, one of which is the current one

    @property
    def token(self) -> _Token:
        return self.tokens[self.position]

    def advance(self) -> _Token:
        self.position += 1
        return self.tokens[self.position - 1]

    def tokenize(self) -> Iterator[_Token]:
        start = 0
        while start < len(self.text):
            match = _TOKEN.match(self.text, start)
            kind, text = (match.lastgroup or "", match.group()) if match else ("", self.text[start])
            token = _Token(kind, text, start, start + len(text))
            start = token.end
            if kind == "space":
                continue
            if not kind or text in _REFUSED:
                known = None if kind else self.unquoted(token)
                other = f"unexpected {text!r}; if it is part of a name, put the name in backticks."
                raise known or self.error(_REFUSED.get(text, other), token)
            if kind == "backtick":
                if len(text) == 1 or not text.endswith("`"):
                    raise self.error("unclosed backtick; add another after the name.", token)
                token = token._replace(kind="name", text=text[1:-1])
            elif kind == "number":
                # 2e3 is two thousand; where there is an arm e3, better ask.
                tail = re.search(r"[eE][0-9]+$", text)
                if tail and tail.group() in self.names.members:
                    product = f"{text[: tail.start()]}*{tail.group()}"
                    raise self.error(
                        f"'{text}' could be a number or {product}; write {product} for the "
                        "product, or the number without an exponent.",
                        token,
                    )
            elif kind == "relation":
                token = token._replace(text=_RELATIONS[text])
            elif kind == "operator":
                sign = text.replace("−", "-")
                token = token._replace(kind=sign, text=sign)
            yield token
        yield _Token("end", "", start, start)

    # What can be wrong

    def error(
        self, message: str, first: _Span | None = None, last: _Span | None = None
    ) -> ConstraintError:
        """Point at a part of the text, or at all of it."""
        start = first.start if first else 0
        end = last.end if last else first.end if first else len(self.text)
        return ConstraintError(
            f"{self.names.noun} {self.name!r}: {message}\n{pointed(self.text, start, end)}"
        )

    def unquoted(self, found: _Token) -> ConstraintError | None:
        """Recognise a known name that was written here without its backticks."""
        for known in self.names.members:
            if not PLAIN_NAME.fullmatch(known) and (
                span := found_as(known, self.text, found.start)
            ):
                return self.error(
                    f"the name {known!r} goes in backticks: {backticked(known)}.",
                    _Token("name", known, *span),
                )
        return None

    def unknown(self, token: _Token) -> ConstraintError:
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
        known_names = self.names.members
        if near := closest_match(phrase, known_names) or closest_match(word, known_names):
            message += f"; did you mean {quote(near)}?"
        else:
            message += f"; the arms are {listed(self.names.arms)}"
            message += f", the groups {listed(self.names.groups)}." if self.names.groups else "."
        if last is not token:
            message += " Names of several words go in backticks."
        return self.error(message, token, last)

    def missing_operator(self) -> ConstraintError:
        before, found = self.tokens[self.position - 1], self.token
        if known := self.unquoted(found):
            return known
        left, right = (shortened(self.text[t.start : t.end]) for t in (before, found))
        message = f"expected an operator between '{left}' and '{right}'."
        if before.kind == found.kind == "name":
            message += " Names of several words go in backticks."
        return self.error(message, before, found)

    def missing_expression(self) -> ConstraintError:
        """Say why no arm, number or parenthesis starts here."""
        found = self.token
        before = self.tokens[self.position - 1] if self.position else None
        if before is None and found.kind == "end":
            return ConstraintError(
                f"{self.names.noun} {self.name!r} is empty; write for instance "
                f"'{backticked(self.names.arms[0])} <= 0.5'."
            )
        if before is None and found.kind == ")":
            return self.unmatched()
        if before is None or before.kind == "(":
            if before and found.kind == ")":
                return self.error("empty parentheses; fill or remove them.", before, found)
            if before and found.kind in ("relation", "end"):
                return self.unclosed(before)
            side, token = "before", found
        else:
            side, token = "after", before
        message = f"expected an expression {side} '{token.text}'; add an arm or a number."
        return self.error(message, token)

    def unclosed(self, opening: _Token) -> ConstraintError:
        return self.error("unclosed '('; add a ')', or remove it.", opening)

    def unmatched(self) -> ConstraintError:
        return self.error("unmatched ')'; add a '(' before it, or remove it.", self.token)
