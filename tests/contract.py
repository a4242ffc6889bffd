"""Keys of the JSON that `bound` prints, as the contract names them."""

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
}
