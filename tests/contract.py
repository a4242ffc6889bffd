"""What the contract shows: a problem file, and the keys of the JSON that `bound` prints."""

PROBLEM_FILE = """
arms = ["a", "b", "c", "d", "e"]
means = [1.0, 0.5, 0.4, 0.95, 0.8]   # optional: a guess or the truth
delta = 0.05
scenario = "anytime"

[rewards]
family = "gaussian"
sigma = 2

[groups]
front = ["a", "b"]

[constraints]
first  = "front <= 0.5"
second = "c + d <= 0.5"
mix    = "4*a - e <= 1"
"""

BOUND_KEYS = {
    "arms",
    "family",
    "delta",
    "means",
    "policy",
    "value",
    "active",
    "degenerate",
    "edges",
    "scenarios",
    "unconstrained",
    "bounds",
}
SCENARIO_KEYS = {
    "characteristic_time",
    "allocation",
    "lower_bound",
    "relative_gap",
    "closest_alternative",
    "binding_edges",
    "expected_samples",
}
