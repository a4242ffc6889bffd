"""Default sampler and threshold: in Python, on the command line and in the service."""

SAMPLER = "top-two"
THRESHOLD = "tilt"

# A simulated run that has not stopped by then is stuck for all practical purposes.
MAX_STEPS = 10_000_000
