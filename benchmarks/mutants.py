"""Mutation tests: break one line at a time and see whether a test notices.

    python benchmarks/mutants.py [--only WORD] [--seconds S]

Each mutant is applied to a copy of the tree, where only the tests run that should notice it. One
that is not noticed survives: a test is missing, or the line does nothing. The table goes to
mutants.md; mutants that were not tried this time (``--only``) keep their rows.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
REPORT = ROOT / "benchmarks" / "mutants.md"


class Mutant(NamedTuple):
    """A change of one place, and the tests that should fail with it."""

    file: str
    old: str
    new: str
    tests: str  # arguments of pytest
    equivalent: str = ""  # why nothing can notice it, where that was shown


DAMAGE = "tests/test_store_damage.py"
FILES = "tests/test_store_files.py"
FORKS = "tests/test_store_forks.py"
VERSION_2 = "tests/test_store_version_2.py"
STUDY = "tests/test_study.py"
CONTRACT = "tests/test_store_contract.py"
STORE = "tests/test_store.py"
ACCESS = "tests/test_service_access.py"

MUTANTS = {
    "SQLite file": [
        Mutant(
            "study/sqlite_file.py",
            "synchronous = NORMAL",
            "synchronous = OFF",
            f"{FILES} -k on_the_disk",
        ),
        Mutant(
            "study/sqlite_file.py",
            "journal_mode = WAL",
            "journal_mode = DELETE",
            f"{FILES} -k on_the_disk",
        ),
        Mutant(
            "study/sqlite_file.py",
            "foreign_keys = ON",
            "foreign_keys = OFF",
            f"{FILES} -k on_the_disk",
        ),
        Mutant(
            "study/sqlite_file.py",
            "os.fsync(descriptor)",
            "pass",
            f"{STORE} -k relative_path",
        ),
        Mutant(
            "study/sqlite_file.py",
            "if written is not None and _id(self._path) != written:",
            "if False:",
            f"{FILES} -k just_before",
        ),
        Mutant(
            "study/sqlite_file.py",
            "if _id(self._path) != connection.file or (",
            "if (",
            f"{FILES} -k 'was_deleted or was_replaced'",
        ),
        Mutant(
            "study/sqlite_file.py",
            "(writing and wal != connection.wal)",
            "False",
            f"{FILES} -k a_log_that_was_deleted",
        ),
        Mutant(
            "study/sqlite_file.py",
            '"mode=rwc" if self._may_make else "mode=rw"',
            '"mode=rwc"',
            f"{FILES} -k no_empty_file",
        ),
        Mutant(
            "study/sqlite_file.py",
            "if self._wal.exists() and self._wal.stat().st_size:",
            "if False:",
            f"{FILES} -k cannot_be_read",
        ),
        Mutant(
            "study/sqlite_file.py",
            "fcntl.flock(descriptor, fcntl.LOCK_UN)",
            "pass",
            f"{FORKS} -k keep_the_lock",
        ),
    ],
    "transactions": [
        Mutant(
            "study/database.py",
            '"BEGIN IMMEDIATE" if writing',
            '"BEGIN" if writing',
            f"{FILES} -k alone_before",
        ),
        Mutant(
            "study/database.py",
            "SET LOCAL synchronous_commit TO DEFAULT; ",
            "",
            f"{FILES} -k servers_log",
        ),
        Mutant(
            "study/database.py",
            "passing = lost and not _LASTING.search(str(cause))",
            "passing = lost",
            f"{FILES} -k waiting_does_not_help",
        ),
        Mutant(
            "study/database.py",
            "self._engine.dispose(close=False)",
            "pass",
            f"{FORKS} -k connections_of_its_own",
        ),
        Mutant(
            "study/store.py",
            "        self._queue(connection)\n        return self.look_up",
            "        return self.look_up",
            f"{STUDY} -k creating_at_the_same_moment",
        ),
        Mutant(
            "study/replica.py",
            "self.store.flush()  # other",
            "pass  # other",
            f"{STORE} -k relative_path",
        ),
        Mutant(
            "study/replica.py",
            "if error.passing and attempt.is_committing and not idempotent:",
            "if False:",
            f"{STORE} -k lost_answer",
        ),
        Mutant(
            "study/replica.py",
            "if any(transaction.is_dirty for transaction in begun):",
            "if False:",
            f"{STUDY} -k that_fails",
        ),
        Mutant(
            "study/replica.py",
            "if (head.seq, head.checksum) != seen:",
            "if False:",
            f"{STORE} -k overtaken",
        ),
        Mutant(
            "study/replica.py",
            "large = self.plan.problem.size >= _MANY_ARMS or events >= _MANY_EVENTS",
            "large = False",
            f"{STORE} -k 'long_decisions and arms'",
        ),
        Mutant(
            "study/forks.py",
            "self._condition.wait_for(",
            "(lambda *_: None)(",
            f"{FORKS} -k 'fork and sqlite'",
        ),
        Mutant(
            "study/forks.py",
            "self.is_unsafe = self.is_unsafe or self._child_is_unsafe",
            "self.is_unsafe = False",
            f"{FORKS} -k middle_of_a_transaction",
        ),
        Mutant(
            "study/replica.py",
            "        with FORKS, self._mutex:\n            with self.store",
            "        with self._mutex:\n            with self.store",
            f"{FORKS} -k 'forks_while_threads and sqlite'",
        ),
    ],
    "events": [
        Mutant("study/checksums.py", "            previous,\n", "            0,\n", DAMAGE),
        Mutant("study/checksums.py", "            at,\n", "            0.0,\n", DAMAGE),
        Mutant("study/checksums.py", "{key!r} {None", "{None", DAMAGE),
        Mutant(
            "study/journal.py",
            "if link(checksum, event) != event.checksum:",
            "if False:",
            DAMAGE,
        ),
        Mutant("study/journal.py", "if event.seq != seq:", "if False:", DAMAGE),
        Mutant(
            "study/journal.py",
            "                check_event(",
            "                (",
            f"{DAMAGE} {VERSION_2}",
        ),
        Mutant(
            "study/journal.py",
            "self._linked(checksums[event.seq - 1], event.seq - 1, [event])",
            "pass",
            f"{DAMAGE} -k looked_up",
        ),
        Mutant(
            "study/journal.py",
            "if head is None or head[2:] != self._owner:",
            "if head is None:",
            f"{FILES} -k made_anew",
        ),
        Mutant(
            "study/events.py",
            "or not 0 <= event.arm < arms:",
            "or event.arm < 0:",
            f"{VERSION_2} -k before_it_had",
        ),
        Mutant(
            "study/events.py",
            "        if not _is_number(event.reward):",
            "        if event.reward is None:",
            f"{VERSION_2} -k before_it_had",
        ),
        Mutant(
            "study/state.py",
            "if arms.max() >= self.engine.plan.problem.size or arms.min() < -1:",
            "if False:",
            f"{DAMAGE} -k compiled_code",
        ),
        Mutant("study/state.py", "if pull != asked:", "if False:", f"{VERSION_2} -k before_it_had"),
        Mutant("study/state.py", "if pull > asked:", "if False:", f"{VERSION_2} -k before_it_had"),
        Mutant(
            "study/state.py",
            "elif arm != event.arm:",
            "elif False:",
            f"{VERSION_2} -k before_it_had",
        ),
        Mutant(
            "study/replica.py",
            "if state.checksum != head.checksum:\n            raise",
            "if False:\n            raise",
            f"{DAMAGE} -k damaged_row",
        ),
        Mutant(
            "study/replica.py",
            "or (state.seq == head.seq and state.checksum != head.checksum)",
            "",
            f"{STORE} -k older_copy",
        ),
        Mutant(
            "study/journal.py",
            "if checksum not in (None, found[0].checksum):",
            "if False:",
            f"{STORE} -k older_copy",
        ),
        Mutant(
            "study/replica.py",
            "return state.same_as(replayed)",
            "return True",
            f"{DAMAGE} -k not_verified",
        ),
        Mutant(
            "study/registry.py",
            'if row["fixed"] != of_study(*fixed):',
            "if False:",
            f"{DAMAGE} -k damaged_row",
        ),
        Mutant(
            "study/migrations.py",
            '"fixed": of_study(*fixed),',
            '"fixed": 0,',
            f"{VERSION_2} -k version_2_goes_on",
        ),
    ],
    "snapshots": [
        Mutant(
            "study/state.py",
            'if books["delta"] != plan.delta:',
            "if False:",
            f"{DAMAGE} -k delta_back",
        ),
        Mutant(
            "study/state.py",
            'state.answer, state.checksum = books["answer"],',
            "state.answer, state.checksum = None,",
            f"{DAMAGE} -k everything_back",
        ),
        Mutant(
            "study/store.py",
            "return data if of_snapshot(data) == found.checksum else None",
            "return data",
            f"{DAMAGE} -k something_else",
        ),
        Mutant(
            "study/replica.py",
            "return state if events and events[-1].checksum == state.checksum else fresh",
            "return state",
            f"{DAMAGE} -k another_journal",
        ),
        Mutant(
            "study/replica.py",
            "events = self._journal.read(connection, first, state.seq - first)",
            "events = self._journal.read(connection, state.seq - 1, 1)",
            f"{DAMAGE} -k before_a_snapshot",
        ),
    ],
    "asking and telling": [
        Mutant(
            "study/asking.py",
            "        if state.answer is not None:",
            "        if False:",
            f"{STUDY} -k 'stopping_and_extending and sqlite'",
        ),
        Mutant(
            "study/asking.py",
            "earlier = [] if key is None else transaction.events_under_keys([key])",
            "earlier = []",
            f"{STUDY} -k asking_under_a_key",
        ),
        Mutant(
            "study/telling.py",
            "if earlier is not None and _content(earlier) != _content(event):",
            "if False:",
            f"{STUDY} -k telling_twice",
        ),
        Mutant(
            "study/telling.py",
            'kind = "late" if pending is None else "told"',
            'kind = "told"',
            f"{STUDY} -k test_expiry",
        ),
        Mutant(
            "study/telling.py",
            "or self._ids.write(number, found.arm, found.at) != item.pull",
            "",
            f"{STUDY} -k not_ours",
        ),
        Mutant(
            "study/telling.py",
            "self.is_idempotent = all(item.pull or item.key for item in rewards)",
            "self.is_idempotent = True",
            f"{STORE} -k lost_answer",
        ),
        Mutant(
            "study/telling.py",
            "return float(item.reward) + 0.0",
            "return float(item.reward)",
            f"{DAMAGE} -k no_sign",
        ),
        Mutant(
            "study/state.py",
            "if abs(now - pull.at) > expire_after",
            "if now - pull.at > expire_after",
            f"{STUDY} -k jumps_back",
        ),
        Mutant(
            "study/state.py",
            "if self.engine.is_enough and self.answer is None:",
            "if False:",
            f"{STUDY} -k 'stopping_and_extending and sqlite'",
        ),
        Mutant(
            "study/study.py",
            "if not delta < present:",
            "if False:",
            f"{STUDY} -k 'stopping_and_extending and sqlite'",
        ),
        Mutant(
            "problem/families.py",
            "if number and limit < abs(reward) < math.inf:",
            "if False:",
            "tests/test_families.py -k absurd",
        ),
    ],
    "tokens and roles": [
        Mutant(
            "service/tokens.py",
            "if row is not None and hmac.compare_digest(row.digest, _digest(parts[2])):",
            "if row is not None:",
            ACCESS,
        ),
        Mutant(
            "service/tokens.py",
            "if token.revoked is None:\n            ",
            "if True:\n            ",
            ACCESS,
        ),
        Mutant(
            "service/tokens.py",
            "return ROLES.index(self.role) >= ROLES.index(role)",
            "return True",
            ACCESS,
        ),
        Mutant("service/access.py", "if not token.allows(role):", "if False:", ACCESS),
        Mutant("service/access.py", "    if not is_open:", "    if False:", ACCESS),
        Mutant("service/access.py", "await _admit(request, role)", "pass", ACCESS),
        Mutant("service/access.py", "return not is_loopback(", "return None is (", ACCESS),
        Mutant("service/access.py", "return not _LOCAL.fullmatch(", "return None is (", ACCESS),
        Mutant(
            "service/access.py",
            "return any(name in request.headers for name in _PROXIES)",
            "return False",
            ACCESS,
        ),
        Mutant("service/access.py", "if origin is not None and", "if False and", ACCESS),
        Mutant(
            "service/access.py",
            'not in ("same-origin", "none")',
            "in ()",
            ACCESS,
        ),
        Mutant(
            "service/tokens.py",
            "hashlib.sha256(secret.encode())",
            "hashlib.sha256(secret[:11].encode())",  # of a whole token, the id
            ACCESS,
        ),
        Mutant(
            "service/tokens.py",
            "        store.flush()\n    return token\n",
            "    return token\n",
            ACCESS,
        ),
        Mutant(
            "service/tokens.py",
            "    store.flush()\n    return token, f",
            "    return token, f",
            ACCESS,
        ),
        Mutant(
            "service/tokens.py",
            "self._is_closed = connection.execute(_ANY).first() is not None",
            "self._is_closed = False",
            ACCESS,
        ),
    ],
    "edge signs": [
        Mutant(
            "geometry/edges.py",
            "change = -local.body_arms",
            "change = local.body_arms",
            "tests/test_edges.py",
        ),
        Mutant(
            "geometry/edges.py",
            "gaps = -terms.sum(axis=1)",
            "gaps = terms.sum(axis=1)",
            "tests/test_geometry.py tests/test_information.py",
        ),
        Mutant(
            "geometry/edges.py",
            "direction.get(arm, Fraction(0)) - rate * entry",
            "direction.get(arm, Fraction(0)) + rate * entry",
            "tests/test_edges.py",
        ),
        Mutant(
            "geometry/edges.py",
            "exact = -exact[:, kind] * local.away[unclear]",
            "exact = exact[:, kind] * local.away[unclear]",
            "tests/test_edges.py",
        ),
        Mutant(
            "geometry/edges.py",
            "size * int(local.away[n])",
            "size",
            "tests/test_edges.py",
        ),
        Mutant(
            "geometry/edges.py",
            "own * local.away.astype(float)",
            "own.astype(float)",
            "tests/test_edges.py",
        ),
        Mutant(
            "geometry/edges.py",
            "loss = -sum(",
            "loss = sum(",
            "tests/test_edges.py -k cancel",
        ),
    ],
    "root finders": [
        Mutant(
            "kernels/roots.py",
            "if steep > 0.0 and abs(excess) <= 0.5 * before:",
            "if steep > 0.0:",
            "tests/test_roots.py",
        ),
        Mutant(
            "kernels/roots.py",
            "if following > low and following < high:",
            "if True:",
            "tests/test_roots.py",
        ),
        Mutant("kernels/roots.py", "least = RESOLUTION * x", "least = 0.0", "tests/test_roots.py"),
        Mutant(
            "kernels/roots.py",
            "return not high - low > 2.0 * RESOLUTION * high and high < math.inf",
            "return high < math.inf and high == low",
            "tests/test_roots.py",
        ),
        Mutant(
            "kernels/exponential.py",
            "if not abs(excess) > 1e-13 * gap or is_closed(low, high):",
            "if not abs(excess) > 1e-3 * gap or is_closed(low, high):",
            "tests/test_evidence.py",
        ),
        Mutant(
            "kernels/exponential.py",
            "if not gamma < most:",
            "if False:",
            "tests/test_tilt.py -k never_failed",
        ),
        Mutant(
            "kernels/exponential.py",
            "value += gamma * excess\n",
            "value += 0.0\n",
            "tests/test_evidence.py",
        ),
        Mutant(
            "kernels/exponential.py",
            "if unseen:",
            "if False:",
            "tests/test_evidence.py",
            "the bracket closes at the pole all the same, in 50 evaluations instead of one",
        ),
        Mutant(
            "kernels/exponential.py",
            "        if not gamma < high:\n            gamma = 0.5 * high",
            "        if False:\n            gamma = 0.5 * high",
            "tests/test_evidence.py",
            "beyond the pole the excess is below 0, too: a start there is an upper end",
        ),
        Mutant(
            "bound/information.py",
            "fits = (np.abs(at.excess) <= 0.5 * before) & (proposal > low) & (proposal < high)",
            "fits = (proposal > low) & (proposal < high)",
            "tests/test_roots.py -k arrays",
        ),
        Mutant(
            "bound/information.py",
            "high = np.where(at.excess > 0, high, x)",
            "pass",
            "tests/test_roots.py -k arrays",
        ),
        Mutant(
            "bound/information.py",
            "if not (np.isfinite(value).all() and (value > 0).all()):",
            "if False:",
            "tests/test_information.py -k hopeless",
        ),
    ],
    "stopping rules": [
        Mutant(
            "kernels/thresholds.py",
            "level += kk21_penalty(setting, run.n[table.arm[k]])",
            "level += 0.0",
            "tests/test_thresholds.py",
        ),
        Mutant(
            "kernels/thresholds.py",
            "math.log((1.0 + math.log(run.integers[PULLS])) / setting.delta)",
            "math.log(math.log(run.integers[PULLS]) / setting.delta)",
            "tests/test_thresholds.py",
        ),
        Mutant(
            "exploration/stopping.py",
            "- 0.5 * math.log(1 - l)",
            "",
            "tests/test_thresholds.py",
        ),
        Mutant(
            "kernels/thresholds.py",
            "if t > math.e else 0.0",
            "if t > 1.0 else 0.0",
            "tests/test_thresholds.py",
        ),
        Mutant(
            "kernels/gaussian.py",
            "penalty = math.log(7.0)",
            "penalty = 0.0",
            "tests/test_thresholds.py",
        ),
        Mutant(
            "kernels/gaussian.py",
            "penalty += 0.5 * math.log1p(n / c)",
            "penalty += 0.0",
            "tests/test_thresholds.py -k gaussian_mixtures",
        ),
        Mutant(
            "kernels/exponential.py",
            "price += regret_of_mixture(setting.family, run.n[a], run.mean[a])",
            "price += 0.0",
            "tests/test_thresholds.py -k table_for_bernoulli",
        ),
        Mutant(
            "kernels/exponential.py",
            "return statistic * weight - price",
            "return statistic - price",
            "tests/test_thresholds.py -k within_a_domain",
        ),
        Mutant(
            "kernels/exponential.py",
            "return 3.0 * math.log1p(math.log(n))",
            "return 2.0 * math.log1p(math.log(n))",
            "tests/test_thresholds.py -k table_for_bernoulli",
        ),
        Mutant(
            "exploration/arrays.py",
            "log_union += table.union_size()[0]",
            "pass",
            "tests/test_thresholds.py -k 'proven_rules or table_on'",
        ),
        Mutant(
            "kernels/thresholds.py",
            "if not setting.slots.reached(setting, table, run, edge, run.value[edge - first]):",
            "if False:",
            "tests/test_thresholds.py -k every_edge",
        ),
    ],
    "tilt": [
        Mutant(
            "kernels/tilt.py",
            "drift = s * (run.mean[arm] - lam) - 0.5 * slope * slope",
            "drift = s * (run.mean[arm] - lam) - 0.4 * slope * slope",
            "tests/test_tilt.py -k ground_truth",
        ),
        Mutant(
            "kernels/tilt.py",
            "return bet - n * math.log1p(slope * lam), -n * u, n * u * u",
            "return bet - n * math.log1p(slope * lam), -n * u, 0.0",
            "tests/test_tilt.py",
            "only Newton's method sees the curvature; the certificate holds whatever it did",
        ),
        Mutant(
            "kernels/tilt.py",
            "bound -= loss_of_arm(setting, table, run, memory, edge, i, gamma)",
            "pass",
            "tests/test_tilt.py -k certificate",
        ),
        Mutant(
            "kernels/tilt.py",
            "bound += gamma * off - _ROUNDING * gamma * beyond",
            "pass",
            "tests/test_tilt.py",
        ),
        Mutant(
            "kernels/tilt.py",
            "return max(value - TILTS_PAY, conjugate)",
            "return max(value, conjugate)",
            "tests/test_tilt.py",
        ),
        Mutant(
            "kernels/tilt.py",
            "if is_out_of_reach(setting, table, edge):",
            "if False:",
            "tests/test_tilt.py -k reach",
        ),
        Mutant(
            "kernels/search.py",
            "sign = 1.0 if row == 0 else -1.0",
            "sign = 1.0",
            "tests/test_search.py -k definition",
        ),
        Mutant(
            "kernels/search.py",
            "return setting.log_policy + more + math.log(float(count))",
            "return setting.log_policy + more",
            "tests/test_search.py -k definition",
        ),
        Mutant(
            "kernels/search.py",
            "or is_beaten(setting, table, run, memory, following, more, least)",
            "or True",
            "tests/test_search.py -k definition",
        ),
        Mutant(
            "kernels/search.py",
            "if memory.looks[BEST, edge] >= high:",
            "if memory.looks[BEST, edge] >= setting.log_policy:",
            "tests/test_search.py -k definition",
        ),
        Mutant(
            "kernels/search.py",
            "looks[row + BEST, edge] = max(looks[row + BEST, edge], value)",
            "looks[row + BEST, edge] = value",
            "tests/test_search.py -k less_evidence",
        ),
        Mutant(
            "kernels/search.py",
            "look_at(setting, table, run, memory, edge, 0, math.inf, least, -1.0)",
            "is_ruled_out(setting, table, run, memory, edge, 0, least, least, -1.0)",
            "tests/test_moment.py -k follows",
        ),
        Mutant(
            "exploration/arrays.py",
            "level = sure + np.log(polytope.dimension)",
            "level = sure",
            "tests/test_search.py -k pairs",
        ),
        Mutant(
            "geometry/circuits.py",
            "whole = (v != 0).all(axis=1)",
            "whole = (v > 0).any(axis=1)",
            "tests/test_circuits.py",
        ),
        Mutant(
            "exploration/moment.py",
            "return max(0.0, -float(found.fun or 0.0)) if found.success else math.inf",
            "return max(0.0, -0.9 * float(found.fun or 0.0)) if found.success else math.inf",
            "tests/test_moment.py -k regret_bound",
        ),
        Mutant(
            "exploration/engine.py",
            "return 2 * count_directions(self.polytope.form)",
            "return count_directions(self.polytope.form)",
            "tests/test_moment.py",
        ),
    ],
    "journal fold": [
        Mutant(
            "kernels/events.py",
            "if kind == TOLD:\n                    pending[arms[i]] -= 1.0",
            "if kind == TOLD:\n                    pending[arms[i]] -= 0.0",
            "tests/test_live.py -k 'grouping or starve or pulled'",
        ),
        Mutant(
            "kernels/events.py",
            "weigh(setting, run, pending, 1.0)",
            "pass",
            "tests/test_live.py -k late",
        ),
        Mutant(
            "kernels/events.py",
            "run.n[a] -= pending[a]",
            "pass",
            "tests/test_live.py -k asking_leaves",
        ),
        Mutant(
            "kernels/events.py",
            "if arms[i] < 0:\n                    arms[i]",
            "if True:\n                    arms[i]",
            "tests/test_live.py -k journal_decides",
        ),
        Mutant(
            "kernels/events.py",
            "if kind in (ASKED, ELSEWHERE):",
            "if kind == ASKED:",
            "tests/test_live.py -k elsewhere",
        ),
        Mutant(
            "kernels/events.py",
            "weigh(setting, run, pending, -1.0)",
            "pass",
            "tests/test_live.py -k starve",
        ),
        Mutant(
            "kernels/events.py",
            "if status == STOPPED and events.until_stopped:",
            "if False:",
            f"{STUDY} -k 'stopping_and_extending and sqlite'",
        ),
    ],
    "certificate": [
        Mutant(
            "bound/solver.py",
            "return 1.0 / float(best) if 0 < best",
            "return 1.001 / float(best) if 0 < best",
            "tests/test_bound.py",
        ),
        Mutant(
            "bound/solver.py",
            "best += (8 + terms) * EPS * most",
            "pass",
            "tests/test_solver.py",
        ),
        Mutant(
            "bound/solver.py",
            "closest.ceiling[chosen]",
            "closest.gradient[chosen]",
            "tests/test_solver.py",
        ),
        Mutant(
            "bound/solver.py",
            "np.maximum(point.l, 0.0) / scale",
            "point.l / scale",
            "tests/test_solver.py",
        ),
        Mutant(
            "bound/solver.py",
            "least = float((values * (1.0 - errors)).min())",
            "least = float(values.min())",
            "tests/test_solver.py",
        ),
        Mutant(
            "bound/information.py",
            "short = np.maximum(at.excess + at.noise + at.doubt, 0.0)",
            "short = np.maximum(at.excess, 0.0)",
            "tests/test_precision.py -k 'sizes or certain'",
        ),
        Mutant(
            "bound/information.py",
            "error=ROUNDING + at.gamma * (at.noise + at.doubt) / value",
            "error=ROUNDING + 0.0 * value",
            "tests/test_solver.py",
        ),
        Mutant(
            "bound/information.py",
            "return np.asarray(ROUNDING + terms + 2 * self.doubt / self.gaps)",
            "return np.asarray(ROUNDING + terms)",
            "tests/test_solver.py",
        ),
        Mutant(
            "bound/bound.py",
            "and allocation.relative_gap <= WORST_GAP)",
            ")",
            "tests/test_bound.py -k 'uncertified or thinner'",
        ),
        Mutant(
            "bound/solver.py",
            "/ lower - 1.0 if lower > 0",
            "/ lower - 1.0001 if lower > 0",
            "tests/test_bound.py -k certificate",
        ),
    ],
    "projection": [
        Mutant(
            "kernels/projection.py",
            "w[a] = max(y[a] - level * loose[a], 0.0)",
            "w[a] = y[a] - level * loose[a]",
            "tests/test_projection.py",
        ),
        Mutant(
            "kernels/projection.py",
            "following = (top - 1.0) / below",
            "following = (top - 1.001) / below",
            "tests/test_projection.py",
        ),
        Mutant(
            "kernels/projection.py",
            "if i < m and step[p] < 0.0:",
            "if False:",
            "tests/test_projection.py",
        ),
        Mutant(
            "kernels/projection.py",
            "w[a] = min(max(asked, setting.floor[a]), setting.cap[a])",
            "w[a] = max(asked, setting.floor[a])",
            "tests/test_projection.py",
        ),
        Mutant(
            "kernels/projection.py",
            "if i < m and trial[i] < 0.0:",
            "if False:",
            "tests/test_projection.py",
        ),
        Mutant(
            "kernels/projection.py",
            "moved = slope <= 0.5 * promise",
            "moved = True",
            "tests/test_projection.py",
        ),
    ],
    "limits and costs": [
        Mutant(
            "bound/information.py",
            "weight = weight / self.costs",
            "weight = weight * 1.0",
            "tests/test_costs.py -k sixteen",
        ),
        Mutant(
            "bound/information.py",
            "ceiling=self._ceiling(at, gradient) / self.costs,",
            "ceiling=self._ceiling(at, gradient),",
            "tests/test_costs.py -k 'cone_solver and bernoulli'",
        ),
        Mutant(
            "bound/information.py",
            "end = np.where(self.v > 0, low, high)",
            "end = np.where(self.v < 0, low, high)",
            "tests/test_exploration.py -k bounded_means",
        ),
        Mutant(
            "bound/information.py",
            "self.offset_of_rest - _total(",
            "self.offset_of_rest + _total(",
            "tests/test_exploration.py -k bounded_means",
        ),
        Mutant(
            "bound/information.py",
            "self.v, self.used = np.where(free, 0.0, self.v), self.used & ~free",
            "self.v, self.used = np.where(free, 0.0, self.v), self.used",
            "tests/test_exploration.py -k bounded_means",
        ),
        Mutant(
            "bound/allocation_set.py",
            "rows = (rows - bound[:, None]) / self.costs",
            "rows = rows / self.costs",
            "tests/test_costs.py -k 'sixteen or spent_shares'",
        ),
        Mutant(
            "bound/allocation_set.py",
            "own = replace(cls.feasible(limits), in_play=_in_play(polytope))",
            "own = cls.feasible(limits)",
            "tests/test_exploration.py -k the_set_has",
        ),
        Mutant(
            "bound/allocation_set.py",
            "inside, deep = self._spent(self.inside), self._spent(self.deep)",
            "inside, deep = self.inside, self.deep",
            "tests/test_costs.py -k spent_shares",
        ),
        Mutant(
            "bound/allocation.py",
            "if len(allowed.equal) >= len(allowed.free):",
            "if False:",
            "tests/test_exploration.py -k one_allocation",
        ),
        Mutant(
            "bound/solver.py",
            "over = (room < 0) & ~chosen",
            "over = (room < -1) & ~chosen",
            "tests/test_costs.py -k rounds",
        ),
        Mutant(
            "bound/solver.py",
            "l[chosen], room[chosen] = point.l, point.r",
            "room[chosen] = point.r",
            "tests/test_costs.py -k rounds",
        ),
        Mutant(
            "bound/bound.py",
            "if information.lost.any():",
            "if False:",
            "tests/test_exploration.py -k without_samples",
        ),
        Mutant(
            "bound/bound.py",
            "if missed > WORST_MISS:",
            "if False:",
            "tests/test_costs.py -k miss_a_limit",
        ),
        Mutant(
            "bound/corollaries.py",
            "(problem.rewards.sigmas(problem.size) * np.sqrt(costs))",
            "problem.rewards.sigmas(problem.size)",
            "tests/test_costs.py -k closed_form",
        ),
        Mutant(
            "bound/epsilon.py",
            "w = polytope.optimal_vertex(costs * (asked - most)).policy",
            "w = polytope.optimal_vertex(costs * asked).policy",
            "tests/test_costs.py -k best_vertex",
        ),
        Mutant(
            "geometry/polytope.py",
            "if bound <= 0 and shares[arm] > 0 and shares.min() >= 0:",
            "if bound <= 0 and shares[arm] > 0:",
            "tests/test_exploration.py -k its_limits",
        ),
        Mutant(
            "problem/language.py",
            "elif not low <= 0 <= high:",
            "elif False:",
            "tests/test_language.py -k refuses",
        ),
        Mutant(
            "problem/language.py",
            "self.operands.rows += rows",
            "self.operands.rows = rows",
            "tests/test_each.py -k counted_row_by_row",
        ),
        Mutant(
            "problem/constraint.py",
            "and name not in taken\n",
            "",
            "tests/test_each.py -k does_not_make",
        ),
        Mutant(
            "exploration/plan.py",
            "_check_supported(self.problem)",
            "pass",
            "tests/test_exploration.py tests/test_costs.py -k yet",
        ),
    ],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="areas, files or lines that hold this text")
    parser.add_argument("--untried", action="store_true", help="only those without a result")
    parser.add_argument("--seconds", type=float, default=600.0, help="for the tests of one mutant")
    options = parser.parse_args()
    rows = _known_rows()
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        ignored = shutil.ignore_patterns(".*", "__pycache__", "site", "docs")
        shutil.copytree(ROOT, tree, ignore=ignored)
        for area, mutants in MUTANTS.items():
            for mutant in mutants:
                known = options.untried and rows[_key(area, mutant)]
                if options.only in f"{area} {mutant.file} {mutant.old}" and not known:
                    row = _row(area, mutant, _try(mutant, tree, options.seconds))
                    rows[_key(area, mutant)] = row
                    print(row, flush=True)
                    _write(rows)


def _try(mutant: Mutant, tree: Path, seconds: float) -> str:
    """What became of a mutant."""
    path = tree / "src" / "simplexplore" / mutant.file
    text = path.read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        return f"not tried: its line is there {text.count(mutant.old)} times"
    path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    command = f"-m pytest -x -q --no-header -p no:cacheprovider --tb=no {mutant.tests}"
    start = time.monotonic()
    try:
        done = subprocess.run(
            f"{sys.executable} {command}",
            shell=True,  # the tests are written as one types them
            cwd=tree,
            env=os.environ | {"PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        # A hang is a way to notice; a busy machine is none.
        return f"no end within {seconds:.0f} s"
    finally:
        path.write_text(text, encoding="utf-8")
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", done.stdout, re.MULTILINE)
    if done.returncode in (1, 2) and failed:
        return f"noticed by `{failed[1].split('::')[-1]}`, {time.monotonic() - start:.0f} s"
    if done.returncode == 0:
        if mutant.equivalent:
            return f"equivalent: {mutant.equivalent}"
        return f"**survived** `{mutant.tests}`"
    if done.returncode < 0:
        return f"noticed: the tests died of signal {-done.returncode}"
    return f"not tried: pytest ended with {done.returncode}"


def _key(area: str, mutant: Mutant) -> str:
    return f"| {area} | {mutant.file} | {_code(mutant.old)} | {_code(mutant.new)} |"


def _row(area: str, mutant: Mutant, fate: str) -> str:
    return f"{_key(area, mutant)} {fate} |"


def _code(text: str) -> str:
    return "`" + " ".join(text.split()).replace("|", "\\|") + "`" if text.strip() else ""


def _known_rows() -> dict[str, str]:
    """Rows of the last report whose mutants are still there."""
    lines = REPORT.read_text(encoding="utf-8").splitlines() if REPORT.exists() else []
    rows = {}
    for area, mutants in MUTANTS.items():
        for mutant in mutants:
            key = _key(area, mutant)
            rows[key] = next((line for line in lines if line.startswith(key)), "")
    return rows


def _write(rows: dict[str, str]) -> None:
    tried = [row for row in rows.values() if row and "| not tried" not in row]
    survived = sum("**survived**" in row for row in tried)
    noticed = sum("| noticed" in row for row in tried)
    endless = sum("| no end" in row for row in tried)
    equivalent = sum("| equivalent" in row for row in tried)
    REPORT.write_text(
        "# Mutants: lines broken one at a time\n\n"
        f"Made by `make mutants`. Of {len(rows)} mutants {len(tried)} were tried: {noticed} were "
        f"noticed by a test, {equivalent} are equivalent, {endless} did not end in time, "
        f"{survived} survived.\n\n"
        "| area | file | instead of | stands | fate |\n|---|---|---|---|---|\n"
        + "".join(f"{row}\n" for row in rows.values() if row),
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
