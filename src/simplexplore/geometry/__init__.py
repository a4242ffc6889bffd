"""The feasible set, exactly: standard form, tableau, vertices, edges, cones, answers."""
