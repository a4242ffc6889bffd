"""A small problem with a measured limit, for tests of live studies: decided within few rewards."""

import simplexplore as sx

OUTCOMES = {"safe": (0.0, 0.0), "strong": (1.0, 1.0)}


def trial(limit=0.5, **changes):
    row = sx.Measured("toxicity", limit, sigma=0.2, tolerance=0.3)
    given = {"rewards": sx.Gaussian(0.2), "epsilon": 0.5, "delta": 0.2, "measured": [row]}
    return sx.Problem([*OUTCOMES], **{**given, **changes})


def explore(study, most=40):
    """Ask and tell, without noise, until the study has its answer."""
    for _ in range(most):
        if study.stopped:
            return study
        for pull in study.ask():
            reward, toxicity = OUTCOMES[pull.arm]
            study.tell(pull, reward, measured={"toxicity": toxicity})
    raise AssertionError("it has no answer yet")
