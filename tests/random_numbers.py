"""Arrays of random numbers as compiled runs draw them."""

from numba import njit

from simplexplore.kernels import (
    pipeline,  # noqa: F401  (lets compiled code call kernels)
    rng,
)


@njit
def fill_uniform(state, out):
    for i in range(out.size):
        out[i] = rng.uniform(state)


@njit
def fill_normal(state, out):
    for i in range(out.size):
        out[i] = rng.normal(state)


@njit
def fill_beta(state, mean, deviation, out):
    for i in range(out.size):
        out[i] = rng.beta(state, mean, deviation)


@njit
def fill_log_gamma(state, shape, out):
    for i in range(out.size):
        out[i] = rng.log_gamma(state, shape)


@njit
def fill_poisson(state, mean, out):
    for i in range(out.size):
        out[i] = rng.poisson(state, mean)
