"""Many runs: simulate, and what they gave."""
