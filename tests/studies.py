"""A study of three arms, to ask and tell."""

import numpy as np

import simplexplore as sx

ARMS = ["a", "b", "c"]
MEANS = {"a": 0.7, "b": 0.1, "c": 0.35}


def problem(rewards=None, **options):
    return sx.Problem(ARMS, {"cap": "a + b <= 0.6"}, rewards or sx.Gaussian(0.5), **options)


def make(url, *, name="mix", rewards=None, **options):
    options = {"sampler": "ctns", "delta": 1e-6, **options}
    return sx.Study.create(url, name, problem(rewards), **options)


def drive(study, pairs, batch=1, seed=0):
    """Ask and tell; stops when the study does."""
    rng = np.random.default_rng(seed)
    for _ in range(pairs):
        if study.stopped:
            break
        pulls = study.ask(batch)
        study.tell_many([(pull, float(rng.normal(MEANS[pull.arm], 0.5))) for pull in pulls])
    return study


def journal(study):
    return study.events()
