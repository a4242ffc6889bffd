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
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from simplexplore.errors import ConstraintError

from .constraint import EACH, Constraint, row_name
from .rational import rational
from .spelling import exactly, listed, mentioned, pointed
from .tokens import DEEPEST, Reader, Token, Vocabulary

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MIRRORED = {"<=": ">=", ">=": "<=", "==": "=="}

# Bits of exact numbers on the way, above and below the line. A product of two floats has at most
# half of them, so that only sums and products without end meet this.
_MOST_BITS = 5_000

# Coefficients of all constraints, zeros and those of groups included.
MOST_COEFFICIENTS = 10_000_000

# What one entry of a table is called.
NOUNS = {"constraints": "constraint", "exploration": "exploration limit"}

# Where a form keeps the coefficient of `each`.
_EACH = -1


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


class Operands(Vocabulary):
    """What the constraints of a problem may name, and the steps that reading all of them takes."""

    def __init__(
        self,
        arms: Sequence[str],
        groups: Mapping[str, Sequence[str]],
        table: str = "constraints",
    ) -> None:
        super().__init__(arms, groups, NOUNS[table])
        self.entries = len(arms) + sum(map(len, groups.values()))
        self.rows = 0

    def parse(self, text: str, name: str) -> list[Constraint]:
        """Read one constraint, or one per arm where it says `each`."""
        return _Parser(text, name, self).read_constraint()


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


class _Parser(Reader):
    """Recursive descent over one text; each ``read`` method starts at the current token."""

    def __init__(self, text: str, name: str, operands: Operands) -> None:
        super().__init__(text, name, operands)
        self.operands = operands
        self.depth = 0
        self.each: list[int] | None = None  # the arms that `each` runs over

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

    def read_constraint(self) -> list[Constraint]:
        sides, relations = [self.read_sum()], list[Token]()
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

    def between(self, sides: list[_Form], relations: list[Token]) -> list[Constraint]:
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

    def is_each(self, token: Token) -> bool:
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
        if self.depth > DEEPEST:
            raise self.error(
                f"parentheses are nested more than {DEEPEST} deep; write the sum out.", opening
            )
        form = self.read_sum()
        if self.token.kind != ")":
            raise self.unclosed(opening)
        self.depth -= 1
        return _Form(form.terms, form.constant, opening.start, self.advance().end)
