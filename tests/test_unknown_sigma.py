"""Unknown standard deviations: the bound is that of the guess."""

import numpy as np
import pytest

import simplexplore as sx
from instances import paper
from simplexplore import Gaussian, ProblemError, SettingError


@pytest.mark.parametrize("settings", [{}, {"epsilon": 0.02}, {"costs": [1, 2, 3, 1, 2]}], ids=str)
def test_the_guess_is_taken_for_the_truth(settings):
    known = paper("exp2").replace(exploration={"fair": "each >= 0.02"}, **settings)
    sigma = known.rewards.sigma
    unknown = known.replace(rewards=Gaussian("unknown", sigma_guess=sigma))
    bound, same = sx.lower_bound(unknown), sx.lower_bound(known)
    assert bound.problem is unknown
    found = bound.to_dict()
    assert (found.pop("sigma"), found.pop("sigma_guess")) == ("unknown", [sigma] * 5)
    assert found == same.to_dict()
    w = np.arange(1, 6)
    assert bound.time_of(w) == same.time_of(w)
    if not settings:
        proof = bound.scenarios["anytime"].certificate
        assert proof.verify(unknown, bound.means, "anytime")


def test_what_is_said_and_what_is_refused():
    problem = sx.Problem(["a", "b"], rewards=Gaussian("unknown"), means=[1.0, 0.0])
    with pytest.raises(ProblemError, match="sigma is unknown and no guess of it is given"):
        sx.lower_bound(problem)
    guessed = problem.replace(rewards=Gaussian("unknown", sigma_guess=2.0))
    found = sx.lower_bound(guessed).to_dict()
    assert (found["sigma"], found["sigma_guess"]) == ("unknown", [2.0, 2.0])
    assert found["scenarios"]["anytime"]["characteristic_time"] == pytest.approx(32.0)
    assert "sigma" not in sx.lower_bound(sx.Problem(2, means=[1, 0])).to_dict()
    for call in (sx.simulate, sx.Explorer):
        with pytest.raises(SettingError, match="the threshold 'mixture' is for a known sigma"):
            call(guessed, threshold="mixture")
