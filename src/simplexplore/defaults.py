"""What explores where nobody says otherwise: in Python, on the command line and in the service."""

SAMPLER = "top-two"
THRESHOLD = "tilt"
