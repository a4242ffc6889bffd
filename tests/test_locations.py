"""Errors say where in a problem file they lie, as data."""

import pytest

from simplexplore import Gaussian, InfeasibleError, MeansError, Problem, ProblemError, lower_bound

HEAD = 'arms = ["a", "b"]\n'


def place(caught):
    """File, line and field of an error."""
    return caught.value.place.file, caught.value.place.line, caught.value.place.field


@pytest.mark.parametrize(
    ("text", "field", "line"),
    [
        ('arms = ["a", "a"]', "arms", 1),
        (HEAD + "delta = 7", "delta", 2),
        (HEAD + "epsilon = -1", "epsilon", 2),
        (HEAD + 'scenario = "never"', "scenario", 2),
        (HEAD + "means = [1]", "means", 2),
        (HEAD + "means = [1, nan]", "means", 2),
        (HEAD + "colour = 1", "colour", 2),
        (HEAD + "\nsigma = 1", "sigma", 3),
        (HEAD + "[groups]\nx = []", "groups.x", 3),
        (HEAD + '[groups]\nx = ["a"]\ny = ["a", "c"]', "groups.y", 4),
        (HEAD + "[rewards]\nsigma = 1", "rewards", 2),
        (HEAD + '[rewards]\nfamily = "gausian"', "rewards.family", 3),
        (HEAD + '[rewards]\nfamily = "gaussian"\nsgma = 1', "rewards.sgma", 4),
        (HEAD + '[rewards]\nfamily = "gaussian"\nsigma = -1', "rewards.sigma", 4),
        (HEAD + '[rewards]\nfamily = "gaussian"\nsigma = [1, 2, 3]', "rewards.sigma", 4),
        (HEAD + '[rewards]\nfamily = "poisson"\ndomain = [2, 1]', "rewards.domain", 4),
        (HEAD + '[rewards]\nfamily = "bounded"\nlow = 2', "rewards.low", 4),
        (HEAD + 'rewards = {family = "gaussian", sigma = -1}', "rewards.sigma", 2),
        (HEAD + "[constraints]\ndelta = 0.1", "constraints.delta", 3),
        (HEAD + '[constraints]\nx = "a <= 1"\ny = "c <= 1"', "constraints.y", 4),
        (HEAD + '[constraints]\n"The Net" = "c <= 1"', "constraints.The Net", 3),
        (HEAD + 'constraints.x = "c <= 1"', "constraints.x", 2),
        (HEAD + '[constraints]\nx = "a <= 1"\ny = "each c <= 1"', "constraints.y", 4),
        (HEAD + '[constraints]\n"x[a]" = "a <= 1"\nx = "each <= 1"', "constraints.x[a]", 3),
        (HEAD + '[constraints]\nmix.x = "a <= 1"', "constraints.mix", 3),
        (HEAD + '[constraints]\ntotal = "a <= 1"', "constraints.total", 3),
        (HEAD + "[constraints]\nmatrix = [[1, 0]]", "constraints.matrix", 3),
        (HEAD + "[constraints]\nmatrix = [[1, 0]]\nupper = [1, 2]", "constraints.upper", 4),
        (HEAD + "[constraints]\nmatrix = [[1]]\nupper = [1]", "constraints.matrix", 3),
    ],
)
def test_field_and_its_line(text, field, line):
    for ends in (text, text.replace("\n", "\r\n")):
        with pytest.raises((ProblemError, MeansError)) as caught:
            Problem.from_text(ends, source="mix.toml")
        assert place(caught) == ("mix.toml", line, field)


def test_lines_are_those_of_entries_not_of_what_looks_like_one():
    text = (
        "# delta = 1\n"
        "arms = [ # [rewards]\n"
        '    "delta = 2",\n'
        '    "b#",\n'
        "]\n"
        "[constraints] # scenario = 3\n"
        '"delta = 4" = """\n'
        "delta = 5\n"
        '<= """ # [groups]\n'
        "[rewards]\n"
        "family = 'gaussian'\n"
        "[groups]\n"
        "delta = ['b#']\n"
    )
    broken = {
        ("arms", 2): ('"b#"', "3"),
        ("constraints.delta = 4", 7): ("delta = 5\n", "c\n"),
        ("rewards.family", 11): ("gaussian", "gausian"),
        ("groups.delta", 13): ("['b#']", "['c']"),
    }
    for (field, line), (old, new) in broken.items():
        with pytest.raises(ProblemError) as caught:
            Problem.from_text(text.replace(old, new))
        assert place(caught)[1:] == (line, field)


def test_toml_and_encoding_errors_have_lines(tmp_path):
    with pytest.raises(ProblemError, match="not valid TOML") as caught:
        Problem.from_text(f"{HEAD}delta = ", source="mix.toml")
    assert place(caught) == ("mix.toml", 2, None)
    path = tmp_path / "mix.toml"
    path.write_bytes(HEAD.encode() + b"# \xff")
    with pytest.raises(ProblemError, match="not UTF-8") as caught:
        Problem.from_file(path)
    assert place(caught) == (str(path), 2, None)
    with pytest.raises(ProblemError, match="no such file") as caught:
        Problem.from_file(tmp_path / "other.toml")
    assert place(caught) == (str(tmp_path / "other.toml"), None, None)


def test_conflicts_are_at_the_first_of_their_constraints():
    text = f'{HEAD}[constraints]\nfree = "a <= 1"\nx = "a <= 0.3"\ny = "a >= 0.5"\n'
    with pytest.raises(InfeasibleError) as caught:
        lower_bound(Problem.from_text(text), [1.0, 0.0])
    assert place(caught) == (None, None, "constraints.x")


def test_python_callers_learn_the_field_too():
    with pytest.raises(ProblemError) as caught:
        Gaussian(-1.0)
    assert place(caught) == (None, None, "sigma")
    with pytest.raises(MeansError) as caught:
        Problem(2).check_means([1.0])
    assert place(caught) == (None, None, "means")
