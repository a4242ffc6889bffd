"""What verdicts rest on: every number that decides one.

Fixed on 15 November 2026, before anything was run with `SEED`. The values are those that reports
with seed 0 had; some of these were chosen when results of that seed had been seen, so only reports
with this seed judge by numbers that were fixed beforehand. Whoever changes one takes a new seed.
"""

from __future__ import annotations

SEED = 20261115

# Means further apart than so many standard errors differ: 0.3% by chance in one comparison, so
# among the hundred or so of a report one such slip would be no surprise.
SURE = 3.0

# "On par" and "equally": means within this factor of each other.
ALIKE = 1.25

# "Close to the bound": so many times what the stopping threshold alone takes.
CLOSE = 1.5

# "Differ more": the ratio of means is larger by this factor, by both measures.
MORE = 1.05

# "Excessively slow": a step takes so many times as long.
SLOW = 1.5

# Printed with two decimals: policies are rounded, allocations off by up to one digit more.
PRINTED_POLICY = 0.005
PRINTED_ALLOCATION = 0.011
