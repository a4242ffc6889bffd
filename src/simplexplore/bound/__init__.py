"""How hard a problem is: information, characteristic time, solvers, certificate, epsilon."""
