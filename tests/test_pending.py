"""Pending pulls: which are overdue, whatever the clock did."""

from hypothesis import given
from hypothesis import strategies as st

from simplexplore.study.pending import PendingPull, PendingPulls


@given(
    times=st.lists(st.integers(0, 20), max_size=12),
    in_order=st.booleans(),
    answered=st.sets(st.integers(0, 11)),
    now=st.integers(0, 30),
    expire_after=st.integers(1, 12),
)
def test_overdue_is_what_is_too_far_from_now(times, in_order, answered, now, expire_after):
    pending = PendingPulls()
    for number, at in enumerate(sorted(times) if in_order else times):
        pending.add(number, PendingPull(0, float(at)))
    for number in answered & pending.keys():
        del pending[number]
    far = [number for number, pull in pending.items() if abs(now - pull.at) > expire_after]
    assert pending.overdue(float(now), float(expire_after)) == far
    assert pending.overdue(float(now), float("inf")) == []


def test_not_all_are_looked_at():
    """A page that hands out many pulls and hears of few asks as quickly as others."""
    looked = []

    class Watched(PendingPull):
        @property
        def at(self):
            looked.append(self[1])
            return self[1]

    pending = PendingPulls()
    for number in range(1000):
        pending.add(number, Watched(0, float(number)))
    looked.clear()
    assert pending.overdue(1000.0, 990.0) == list(range(10))
    assert len(looked) < 20
