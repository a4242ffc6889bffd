"""Whole-number linear algebra against the definition of an inverse."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightly import examples
from simplexplore.geometry.integers import adjugate, dot, integer_row


def matrices(size, entries):
    row = st.lists(entries, min_size=size, max_size=size)
    return st.lists(row, min_size=size, max_size=size)


def determinant(matrix):
    """Expansion along the first row."""
    if not matrix:
        return 1
    return sum(
        (-1) ** j * x * determinant([row[:j] + row[j + 1 :] for row in matrix[1:]])
        for j, x in enumerate(matrix[0])
        if x
    )


def product(left, right):
    return [
        [sum(x * y for x, y in zip(row, c, strict=True)) for c in zip(*right, strict=True)]
        for row in left
    ]


@examples(80)
@given(st.integers(0, 5).flatmap(lambda n: matrices(n, st.integers(-3, 3))))
def test_adjugate_over_determinant_is_the_inverse(matrix):
    n = len(matrix)
    expected = determinant(matrix)
    if expected == 0:
        with pytest.raises(ZeroDivisionError, match="singular"):
            adjugate(matrix)
        return
    adj, det = adjugate(matrix)
    assert abs(det) == abs(expected)
    scaled = [[det * (i == j) for j in range(n)] for i in range(n)]
    assert product(matrix, adj) == scaled
    assert product(adj, matrix) == scaled


@examples(30)
@given(matrices(4, st.integers(-(10**30), 10**30)))
def test_large_numbers_lose_no_digit(matrix):
    if determinant(matrix):
        adj, det = adjugate(matrix)
        assert product(matrix, adj) == [[det * (i == j) for j in range(4)] for i in range(4)]


@examples(40)
@given(matrices(4, st.integers(-3, 3)), st.integers(0, 3), st.integers(-2, 2), st.integers(-2, 2))
def test_dependent_rows_are_singular(matrix, k, p, q):
    others = [row for i, row in enumerate(matrix) if i != k]
    matrix[k] = [p * x + q * y for x, y in zip(others[0], others[1], strict=True)]
    with pytest.raises(ZeroDivisionError, match="singular"):
        adjugate(matrix)


def test_input_is_left_alone():
    matrix = [[0, 1], [1, 0]]
    assert adjugate(matrix) == ([[0, 1], [1, 0]], 1)
    assert matrix == [[0, 1], [1, 0]]


@examples(40)
@given(st.lists(st.fractions(-5, 5, max_denominator=12), min_size=1, max_size=6))
def test_integer_row_is_the_least_whole_multiple(row):
    whole = integer_row(row)
    assert all(isinstance(x, int) for x in whole)
    scale = next((Fraction(n) / x for n, x in zip(whole, row, strict=True) if x), Fraction(1))
    assert scale > 0
    assert [scale * x for x in row] == whole
    # No smaller multiple of the row is whole.
    assert all(any((x * smaller).denominator > 1 for x in row) for smaller in range(1, int(scale)))


def test_integer_row_reads_floats_as_meant():
    assert integer_row([0.1, 1 / 3, -0.5]) == [3, 10, -15]
    assert integer_row([0.0, 0.0]) == [0, 0]


def test_dot_is_exact():
    assert dot([10**20, -1, 0], [10**20, 1, 7]) == 10**40 - 1
    with pytest.raises(ValueError, match="zip"):
        dot([1], [1, 2])
