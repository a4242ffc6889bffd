"""The feasible set, exactly: standard form, simplex method, vertices, edges, faces, conflicts."""
