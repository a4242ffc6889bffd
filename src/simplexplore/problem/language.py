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
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from simplexplore.errors import ConstraintError

from .constraint import EACH, Constraint, row_name
from .rational import rational
from .spelling import (
    PLAIN_NAME,
    exactly,
    found_as,
    listed,
    mentioned,
    nearest,
    pointed,
    quoted,
    shortened,
)

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
_MIRRORED = {"<=": ">=", ">=": "<=", "==": "=="}

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
_DEEPEST = 50

# Characters of a constraint, and of a number in it.
_LONGEST = 2**22
_LONGEST_NUMBER = 5_000

# Bits of exact numbers on the way, above and below the line. A product of two floats has at most
# half of them, so that only sums and products without end meet this.
_MOST_BITS = 5_000

# Coefficients of all constraints, zeros and those of groups included.
MOST_COEFFICIENTS = 10_000_000

# What one entry of a table is called.
NOUNS = {"constraints": "constraint", "exploration": "exploration limit"}

# Where a form keeps the coefficient of `each`.
_EACH = -1

# Tokens and coefficients that all constraints of a problem touch: some seconds. A weighted sum of
# all arms that a problem may have just fits.
_MOST_STEPS = 1_000_000


def parse_constraint(
    text: str, name: str, arms: Sequence[str], groups: Mapping[str, Sequence[str]]
) -> Constraint:
    """Read one constraint.

    Parameters
    ----------
    text : str
        A linear (in)equality, such as ``"4*a - e <= 1"`` or ``"0.1 <= front <= 1/2"``.
    name : str
        Name of the constraint.
    arms : sequence of str
        Names of the arms; coefficients follow their order.
    groups : mapping of str to sequence of str
        Names that stand for sums of arms.

    Returns
    -------
    Constraint
        With everything that names an arm on the left and every constant on the right.
        Arms on the right only are moved as they are: ``0.5 >= a`` is ``a <= 0.5``.

    Raises
    ------
    ConstraintError
        If the text cannot be read, or stands for several constraints (`Operands.parse` reads
        those); the message points at the offending place.

    Examples
    --------
    >>> parse_constraint("0.1 <= front <= 1/2", "f", ["a", "b", "c"], {"front": ["a", "b"]})
    Constraint(name='f', coefficients=array([1., 1., 0.]), lower=0.1, upper=0.5)
    """
    rows = Operands(arms, groups).parse(text, name)
    if len(rows) > 1:
        raise ConstraintError(
            f"constraint {name!r}: '{EACH}' makes {len(rows)} constraints of it; only one is "
            f"wanted here.\n{pointed(text, 0, len(text))}"
        )
    return rows[0]


class Operands:
    """What the constraints of a problem may name, and the steps that reading all of them takes."""

    def __init__(
        self,
        arms: Sequence[str],
        groups: Mapping[str, Sequence[str]],
        table: str = "constraints",
    ) -> None:
        self.arms, self.groups, self.noun = arms, groups, NOUNS[table]
        self.meaning = {arm: [i] for i, arm in enumerate(arms)}
        self.meaning |= {
            group: [self.meaning[arm][0] for arm in members] for group, members in groups.items()
        }
        self.entries = len(arms) + sum(map(len, groups.values()))
        self.steps = self.rows = 0

    def parse(self, text: str, name: str) -> list[Constraint]:
        """Read one constraint, or one per arm where it says `each`."""
        return _Parser(text, name, self).read_constraint()


class _Token(NamedTuple):
    kind: str  # "number", "name", "relation", "end", or the operator itself
    text: str  # canonical: a name without its backticks, a relation in ASCII
    start: int
    end: int


@dataclass
class _Form:
    """A linear form, and the stretch of the text that it came from."""

    terms: dict[int, Fraction]
    constant: Fraction
    start: int
    end: int

    @property
    def span(self) -> tuple[int, int]:
        return self.start, self.end

    def is_number(self) -> bool:
        return not any(self.terms.values())

    def add(self, other: _Form, factor: int) -> None:
        for arm, x in other.terms.items():
            self.terms[arm] = self.terms.get(arm, 0) + (x if factor == 1 else -x)
        self.constant += factor * other.constant
        self.end = other.end

    def scaled(self, factor: Fraction, start: int, end: int) -> _Form:
        terms = {arm: factor * x for arm, x in self.terms.items()}
        return _Form(terms, factor * self.constant, start, end)


class _Parser:
    """Recursive descent over one text; each ``read`` method starts at the current token."""

    def __init__(self, text: str, name: str, operands: Operands) -> None:
        self.text, self.name, self.operands = text, name, operands
        self.arms, self.groups, self.meaning = operands.arms, operands.groups, operands.meaning
        if len(text) > _LONGEST:
            raise self.error(
                f"it has {len(text):,} characters; at most {_LONGEST:,} are read. Write several "
                "constraints, or a matrix."
            )
        self.tokens = list(self.tokenize())
        self.position = 0
        self.depth = 0
        self.each: list[int] | None = None  # the arms that `each` runs over

    @property
    def token(self) -> _Token:
        return self.tokens[self.position]

    def advance(self) -> _Token:
        self.position += 1
        return self.tokens[self.position - 1]

    def spend(self, steps: int) -> None:
        """Count steps, and stop where they are too many."""
        self.operands.steps += steps
        if self.operands.steps > _MOST_STEPS:
            raise self.error(
                f"reading the constraints up to here takes more than {_MOST_STEPS:,} steps; write "
                "shorter sums, or a matrix."
            )

    def bounded(self, form: _Form) -> _Form:
        """The outcome of a calculation, unless its numbers grow without end."""
        for x in (form.constant, *form.terms.values()):
            bits = x.numerator.bit_length() + x.denominator.bit_length()
            if bits > _MOST_BITS:
                digits = int(_MOST_BITS * math.log10(2))
                raise self.error(
                    f"an exact number in it has more than {digits:,} digits; write it shorter, or "
                    "rescale the constraint.",
                    form,
                )
            self.spend(1 + bits // 100)
        return form

    def tokenize(self) -> Iterator[_Token]:
        start = signs = 0
        while start < len(self.text):
            match = _TOKEN.match(self.text, start)
            if match is None:
                raise self.unexpected(_Token("", self.text[start], start, start + 1))
            kind, text, end = match.lastgroup or "", match.group(), match.end()
            place = _Token(kind, text, start, end)
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
                if signs > _DEEPEST:
                    raise self.error(
                        f"more than {_DEEPEST} signs follow each other; write one.", place
                    )
                yield _Token(kind, text, start, end)
            start = end
        yield _Token("end", "", start, start)

    def read_constraint(self) -> list[Constraint]:
        sides, relations = [self.read_sum()], list[_Token]()
        while self.token.kind == "relation":
            relations.append(self.advance())
            sides.append(self.read_sum())
        if self.token.kind == ")":
            raise self.unopened()
        if not relations:
            raise self.error(
                "there is no relation; add '<=', '>=' or '==' and what to compare with.",
                self.token,
            )
        if len(relations) > 2:
            raise self.error(
                "there are more than two relations; write separate constraints.", relations[2]
            )
        if len(relations) == 2:
            return self.between(sides, relations)
        left, right = sides
        relation = relations[0].text
        if left.is_number():
            left, right, relation = right, left, _MIRRORED[relation]
        left.add(right, -1)
        bound = -left.constant
        return self.build(
            left,
            lower=None if relation == "<=" else bound,
            upper=None if relation == ">=" else bound,
        )

    def between(self, sides: list[_Form], relations: list[_Token]) -> list[Constraint]:
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
                raise self.error(
                    "the outer sides of a range must be numbers; write two constraints.", side
                )
            self.rounded(side.constant, "a bound")
        if low.constant > high.constant:
            raise self.error(
                f"the lower bound {exactly(low.constant)} exceeds the upper bound "
                f"{exactly(high.constant)}; no mix can satisfy both."
            )
        return self.build(middle, low.constant - middle.constant, high.constant - middle.constant)

    def build(
        self, form: _Form, lower: Fraction | None, upper: Fraction | None
    ) -> list[Constraint]:
        if not form.terms:
            raise self.error(f"it names no arm; the arms are {listed(self.arms)}.")
        if form.is_number():
            raise self.error("no arm is left in it: they cancel out; correct or drop it.")
        each = form.terms.pop(_EACH, Fraction(0))
        coefficients = np.zeros(len(self.arms))
        for i, x in form.terms.items():
            coefficients[i] = self.coefficient(i, x)
        low = -math.inf if lower is None else self.rounded(lower, "a bound")
        high = math.inf if upper is None else self.rounded(upper, "a bound")
        if not each or self.each is None:
            return [Constraint(self.name, coefficients, low, high)]
        self.reserve(len(self.each))
        rows = []
        for i in self.each:
            row = coefficients.copy()
            row[i] = self.coefficient(i, form.terms.get(i, 0) + each)
            if row.any():
                rows.append(Constraint(row_name(self.name, self.arms[i]), row, low, high))
            elif not low <= 0 <= high:  # else it says nothing, as `each <= b` does of b
                raise self.error(
                    f"for {mentioned(self.arms[i])} all arms cancel out, and the rest does not "
                    "hold; correct it."
                )
        if not rows:
            raise self.error("no arm is left in it: they cancel out; correct or drop it.")
        return rows

    def reserve(self, rows: int) -> None:
        """Count the constraints that `each` makes, and stop where they are too many."""
        self.operands.rows += rows
        if self.operands.rows * self.operands.entries > MOST_COEFFICIENTS:
            raise self.error(
                f"'{EACH}' makes {rows:,} constraints of it; all those of '{EACH}' have more than "
                f"{MOST_COEFFICIENTS:,} coefficients, one per arm and member of a group. Use it "
                "with a smaller group, or merge arms."
            )

    def coefficient(self, arm: int, exact: Fraction) -> float:
        return self.rounded(exact, f"the coefficient of {mentioned(self.arms[arm])}")

    def rounded(self, exact: Fraction, what: str) -> float:
        try:
            x = float(exact)
        except OverflowError:
            raise self.error(f"{what} is too large for a float; rescale the constraint.") from None
        if exact and not x:
            raise self.error(f"{what} is too small for a float; rescale the constraint.")
        return x

    def read_sum(self) -> _Form:
        total = self.read_product()
        while self.token.kind in ("+", "-"):
            sign = 1 if self.advance().kind == "+" else -1
            term = self.read_product()
            total.add(term, sign)
            self.bounded(
                _Form({a: total.terms[a] for a in term.terms}, total.constant, *total.span)
            )
        return total

    def read_product(self) -> _Form:
        left = self.read_factor()
        while True:
            if self.token.kind == "/":
                self.advance()
                left = self.divided(left, self.read_factor())
            elif self.token.kind == "*":
                self.advance()
                left = self.multiplied(left, self.read_factor())
            elif self.token.kind in ("name", "(") and left.is_number():
                left = self.multiplied(left, self.read_factor())
            elif self.token.kind in ("name", "(", "number"):
                raise self.no_operator()
            else:
                return left

    def multiplied(self, left: _Form, right: _Form) -> _Form:
        if left.is_number():
            return self.bounded(right.scaled(left.constant, left.start, right.end))
        if right.is_number():
            return self.bounded(left.scaled(right.constant, left.start, right.end))
        raise self.error(
            "a product of arms is not linear; one side of each '*' must be a number.", left, right
        )

    def divided(self, left: _Form, right: _Form) -> _Form:
        if not right.is_number():
            raise self.error(
                "dividing by an arm is not linear; what follows '/' must be a number.", left, right
            )
        if not right.constant:
            raise self.error("this divides by zero; correct the divisor.", right)
        return self.bounded(left.scaled(1 / right.constant, left.start, right.end))

    def read_factor(self) -> _Form:
        start, sign = self.token.start, Fraction(1)
        while self.token.kind in ("+", "-"):
            sign = sign if self.advance().kind == "+" else -sign
        token = self.token
        if token.kind == "(":
            form = self.read_parenthesis()
        elif token.kind == "number":
            try:
                form = _Form({}, rational(token.text), token.start, token.end)
            except ValueError as error:
                raise self.error(f"{error}; rescale the constraint.", token) from None
            self.advance()
        elif self.is_each(token):
            form = self.read_each()
        elif token.kind == "name":
            if token.text not in self.meaning:
                raise self.unknown(token)
            self.spend(len(self.meaning[token.text]))
            terms = dict.fromkeys(self.meaning[token.text], Fraction(1))
            form = _Form(terms, Fraction(0), token.start, token.end)
            self.advance()
        else:
            raise self.no_operand()
        return form if start == token.start else form.scaled(sign, start, form.end)

    def is_each(self, token: _Token) -> bool:
        quoted_name = self.text[token.start : token.start + 1] == "`"
        return token[:2] == ("name", EACH) and EACH not in self.meaning and not quoted_name

    def read_each(self) -> _Form:
        word = last = self.advance()
        members = list(range(len(self.arms)))
        if self.token.kind == "name":
            if self.token.text not in self.meaning:
                raise self.unknown(self.token)
            last = self.advance()
            if last.text not in self.groups:
                raise self.error(
                    f"{mentioned(last.text)} is an arm; after '{EACH}' goes a group, or nothing "
                    "for all arms.",
                    word,
                    last,
                )
            members = self.meaning[last.text]
        if self.each not in (None, members):
            raise self.error(
                f"'{EACH}' stands for one arm at a time, here of two different lists; write two "
                "constraints.",
                word,
                last,
            )
        self.each = members
        return _Form({_EACH: Fraction(1)}, Fraction(0), word.start, last.end)

    def read_parenthesis(self) -> _Form:
        opening = self.advance()
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.error(
                f"parentheses are nested more than {_DEEPEST} deep; write the sum out.", opening
            )
        form = self.read_sum()
        if self.token.kind != ")":
            raise self.unclosed(opening)
        self.depth -= 1
        return _Form(form.terms, form.constant, opening.start, self.advance().end)

    def error(
        self, message: str, first: _Token | _Form | None = None, last: _Token | _Form | None = None
    ) -> ConstraintError:
        """Point at a stretch of the text, or at all of it."""
        start = first.start if first else 0
        end = last.end if last else first.end if first else len(self.text)
        return ConstraintError(
            f"{self.operands.noun} {self.name!r}: {message}\n{pointed(self.text, start, end)}"
        )

    def unexpected(self, place: _Token) -> ConstraintError:
        if known := self.unquoted(place):
            return known
        message = _REFUSED_CHARACTERS.get(
            place.text,
            f"unexpected {place.text!r}; if it is part of a name, put the name in backticks.",
        )
        return self.error(message, place)

    def unquoted(self, place: _Token) -> ConstraintError | None:
        """Recognise a known name that was written here without its backticks."""
        for known in self.meaning:
            if not PLAIN_NAME.fullmatch(known) and (
                span := found_as(known, self.text, place.start)
            ):
                return self.error(
                    f"the name {known!r} goes in backticks: {quoted(known)}.",
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
        if guess := nearest(phrase, self.meaning) or nearest(word, self.meaning):
            message += f"; did you mean {mentioned(guess)}?"
        else:
            message += f"; the arms are {listed(self.arms)}"
            message += f", the groups {listed(self.groups)}." if self.groups else "."
        if last is not token:
            message += " Names of several words go in backticks."
        return self.error(message, token, last)

    def no_operator(self) -> ConstraintError:
        """Say what is wrong with two operands in a row."""
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
            f"{self.operands.noun} {self.name!r} is empty; write for instance "
            f"'{quoted(self.arms[0])} <= 0.5'."
        )

    def unclosed(self, opening: _Token) -> ConstraintError:
        return self.error("this '(' is never closed; add a ')', or remove it.", opening)

    def unopened(self) -> ConstraintError:
        return self.error("this ')' closes nothing; add a '(' before it, or remove it.", self.token)
