"""What simulations gave: summaries by hand, and files that come back as they were."""

import json
import math
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

import simplexplore as sx
from instances import EXAMPLES
from simplexplore import Results, load_results, save_results
from simulated import RESULT_KEYS, made_up

MANIFEST = "results.json"
ARRAYS = ("run_numbers", "stopping_times", "capped", "correct", "pulls")


def star(**changes):
    return sx.Problem.from_file(EXAMPLES / "star.toml").replace(**changes)


@pytest.fixture(scope="module")
def simulated():
    """Real runs, few enough to be quick."""
    return sx.simulate(star(), sampler="uniform", runs=20, seed=3)


def cut(result, runs):
    """The first runs only, as after an interruption."""
    fields = {name: getattr(result, name)[:runs] for name in ARRAYS}
    others = ("plan", "seed", "runs_asked", "max_steps", "seconds")
    return Results(**{name: getattr(result, name) for name in others}, **fields)


def same(one, other):
    """Whether nothing was lost."""
    assert one.plan.problem == other.plan.problem
    for name in ("delta", "scenario", "tracking", "allocation", "threshold"):
        assert getattr(one.plan, name) == getattr(other.plan, name), name
    assert one.plan.sampler.name == other.plan.sampler.name
    for name in ("seed", "runs_asked", "max_steps", "seconds"):
        assert getattr(one, name) == getattr(other, name), name
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), strict=True)
    assert one.bound.to_dict() == other.bound.to_dict()
    assert one.summary() == other.summary()


# ---------------------------------------------------------------------- summary


def test_summary_by_hand():
    result = made_up(star(), runs=4, wrong=1, cap=1200, seed=5)
    times = result.stopping_times
    assert result.capped.sum() > 0
    summary = result.summary()
    assert summary.keys() >= RESULT_KEYS
    assert summary["stopping_time"] == {
        "mean": pytest.approx(sum(times) / 4),
        "stderr": pytest.approx(
            math.sqrt(sum((t - sum(times) / 4) ** 2 for t in times) / 3) / math.sqrt(4)
        ),
        "median": pytest.approx(sum(sorted(times)[1:3]) / 2),
        "q05": pytest.approx(np.quantile(times, 0.05)),
        "q95": pytest.approx(np.quantile(times, 0.95)),
        "max": max(times),
    }
    assert summary["correct"]["fraction"] == 0.75
    assert summary["capped"] == int((times == 1200).sum())
    assert summary["lower_bound"] == pytest.approx(774.3871196)
    assert summary["microseconds_per_step"] == pytest.approx(0.25e6 / sum(times))
    by_hand = sum(n / t for n, t in zip(result.pulls, times, strict=True)) / 4
    assert summary["mean_allocation"] == pytest.approx(by_hand.tolist())
    assert sum(summary["mean_allocation"]) == pytest.approx(1)
    assert summary["constraint_use"] == {
        "first": pytest.approx(by_hand[0] + by_hand[1]),
        "second": pytest.approx(by_hand[2] + by_hand[3]),
    }
    assert (summary["runs"], summary["runs_asked"], summary["seed"]) == (4, 4, 5)
    assert (summary["family"], summary["delta"]) == ("gaussian", 0.1)


def test_summary_of_real_runs_is_plain_json(simulated):
    summary = simulated.summary()
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    assert summary["runs"] == 20
    assert simulated.pulls.sum(axis=1).tolist() == simulated.stopping_times.tolist()
    right = summary["correct"]
    assert right["low"] < right["fraction"] == simulated.correct.mean() <= right["high"]
    assert simulated.correct.sum() >= 15  # asked for 90%, and gk16 is cautious
    # Uniform sampling without constraints in the way: a fifth each.
    assert summary["mean_allocation"] == pytest.approx([0.2] * 5, abs=0.02)


def test_the_scenario_of_the_runs_counts():
    movies = sx.Problem.from_file(EXAMPLES / "movies.toml")
    bounds = {
        scenario: made_up(movies.replace(scenario=scenario)).summary()["lower_bound"]
        for scenario in ("end-of-time", "anytime")
    }
    assert bounds["end-of-time"] == pytest.approx(2020.307, rel=1e-5)
    assert bounds["anytime"] == pytest.approx(3806.99, rel=1e-5)


def test_too_few_runs_say_nothing():
    nothing = made_up(star(), runs=0, asked=10).summary()
    assert nothing["runs"] == 0
    assert set(nothing["stopping_time"].values()) == {None}
    assert nothing["correct"] == {"fraction": None, "low": 0.0, "high": 1.0}
    assert nothing["microseconds_per_step"] is None
    assert nothing["mean_allocation"] is None
    assert nothing["constraint_use"] == {"first": None, "second": None}
    one = made_up(star(), runs=1).summary()
    assert one["stopping_time"]["stderr"] is None
    assert one["stopping_time"]["mean"] == one["stopping_time"]["max"]


@pytest.mark.parametrize("trials", [1, 7, 1000])
def test_clopper_pearson(trials):
    for successes in {0, 1, trials // 2, trials - 1, trials}:
        exact = binomtest(successes, trials).proportion_ci(0.95, method="exact")
        correct = made_up(star(), runs=trials, wrong=trials - successes).summary()["correct"]
        assert correct["fraction"] == successes / trials
        assert (correct["low"], correct["high"]) == pytest.approx((exact.low, exact.high))


@pytest.mark.parametrize(
    ("threshold", "rewards", "proven"),
    [
        ("gk16", sx.Gaussian(), False),
        ("paper", sx.Gaussian(), False),
        ("kk21", sx.Gaussian(), True),
        ("kk21", sx.Bounded(0, 2), True),
        ("mixture", sx.Gaussian(), True),
        ("mixture", sx.Bounded(0, 2), True),
        (str(EXAMPLES / "cautious.py"), sx.Gaussian(), False),
    ],
)
def test_proven(threshold, rewards, proven):
    problem = sx.Problem(2, means=[0.2, 0.8], rewards=rewards)
    summary = made_up(problem, threshold=threshold).summary()
    assert summary["proven"] is proven
    assert summary["family"] == rewards.name


@pytest.mark.parametrize(("noise", "proven"), [([0.5, 1.0], True), ([0.5, 1.1], False)])
def test_nothing_is_proven_of_rewards_that_vary_more_than_told(noise, proven):
    result = made_up(sx.Problem(2, means=[0.2, 0.8]), threshold="mixture")
    result = replace(result, noise=np.array(noise))
    assert result.summary()["proven"] is proven


def test_repr_names_what_counts(simulated):
    expected = "<Results: uniform, anytime, 20 of 20 runs, threshold tilt, seed 3>"
    assert repr(simulated) == expected


# ---------------------------------------------------------------------- files


def test_one_result_comes_back(simulated, tmp_path):
    save_results([simulated], tmp_path / "new" / "folder")
    (loaded,) = load_results(tmp_path / "new" / "folder")
    same(loaded, simulated)


def test_many_results_come_back_in_order(simulated, tmp_path):
    trial = sx.Problem.from_file(EXAMPLES / "trial.toml")
    results = [
        simulated,
        made_up(star(), "oracle", seed=1, threshold="mixture", tracking="direct"),
        made_up(trial, "cge", runs=0, asked=5, delta=0.01),
        made_up(trial.replace(scenario="end-of-time"), runs=3, cap=500),
        cut(simulated, 6),
    ]
    save_results(results, tmp_path)
    for loaded, result in zip(load_results(tmp_path), results, strict=True):
        same(loaded, result)


def test_means_that_differ_from_the_guess(tmp_path):
    means = [0.1, 0.2, 0.3, 1 / 3, 2 / 3]
    result = sx.simulate(star(), means, "uniform", runs=2, scenario="end-of-time", delta=0.3)
    save_results([result], tmp_path)
    (loaded,) = load_results(tmp_path)
    same(loaded, result)
    assert loaded.bound.means.tolist() == means
    assert loaded.plan.problem.means.tolist() == star().means.tolist()


def test_loaded_results_can_be_made_again(simulated, tmp_path):
    save_results([simulated], tmp_path)
    plan = load_results(tmp_path)[0].plan
    again = sx.simulate(plan.problem, sampler=plan.sampler.name, runs=20, seed=3)
    np.testing.assert_array_equal(again.stopping_times, simulated.stopping_times)
    np.testing.assert_array_equal(again.pulls, simulated.pulls)


def test_noise_is_kept_and_sets_results_apart(saved):
    assert sx.load_results(saved)[0].noise is None
    noise = np.array([0.5, 0.5, 1.0, 1.0, 2.0])
    results = [replace(made_up(star()), noise=noise), made_up(star())]
    sx.save_results(results, saved)
    again, plain = sx.load_results(saved)
    assert again.noise.tolist() == again.summary()["noise"] == noise.tolist()
    assert plain.noise is None
    # As written before noise was stored.
    edit(saved, lambda content: content["results"][0].pop("noise"))
    assert sx.load_results(saved)[0].noise is None
    edit(saved, lambda content: content["results"][0].update(noise=[1.0]))
    with pytest.raises(sx.SettingError, match="result 1: it is damaged"):
        sx.load_results(saved)


def test_own_sampler_and_threshold_are_kept(tmp_path):
    mine, rule = tmp_path / "mine.py", tmp_path / "rule.py"
    shutil.copy(EXAMPLES / "weakest_edge.py", mine)
    shutil.copy(EXAMPLES / "cautious.py", rule)
    result = made_up(star(), str(mine), threshold=str(rule))
    save_results([result], tmp_path / "out")
    mine.unlink()
    rule.unlink()
    (loaded,) = load_results(tmp_path / "out")
    assert loaded.plan.sampler.name == "mine"
    assert loaded.plan.sampler.file.read_text() == (EXAMPLES / "weakest_edge.py").read_text()
    assert loaded.plan.threshold.name == "rule"
    assert loaded.plan.threshold.file.read_text() == (EXAMPLES / "cautious.py").read_text()
    assert loaded.summary() == result.summary()
    # And once more, from there.
    save_results([loaded], tmp_path / "copy")
    assert load_results(tmp_path / "copy")[0].summary() == result.summary()


def test_own_files_with_names_of_ours_are_kept(tmp_path):
    shutil.copy(EXAMPLES / "weakest_edge.py", tmp_path / "oracle.py")
    shutil.copy(EXAMPLES / "cautious.py", tmp_path / "mixture.py")
    rule = str(tmp_path / "mixture.py")
    result = made_up(star(), str(tmp_path / "oracle.py"), threshold=rule)
    assert not result.plan.sampler.needs_truth
    assert not result.is_proven
    save_results([result], tmp_path / "out")
    (loaded,) = load_results(tmp_path / "out")
    assert loaded.plan.sampler.file.read_text() == (EXAMPLES / "weakest_edge.py").read_text()
    assert (loaded.plan.sampler.name, loaded.plan.threshold.name) == ("oracle.py", "mixture.py")
    assert loaded.summary() == result.summary()


def test_what_a_sampler_needs_beside_it_is_kept(tmp_path):
    text = (EXAMPLES / "weakest_edge.py").read_text()
    (tmp_path / "mine.py").write_text(f"{text}\nWITHIN_CONSTRAINTS = 'other.py'\n")
    (tmp_path / "other.py").write_text(text)
    save_results([made_up(star(), str(tmp_path / "mine.py"))], tmp_path / "out")
    (tmp_path / "other.py").unlink()
    sampler = load_results(tmp_path / "out")[0].plan.sampler
    assert sampler.in_scenario("anytime").file.read_text() == text


def test_two_samplers_of_the_same_name(tmp_path):
    files = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        files.append(tmp_path / folder / "mine.py")
        text = (EXAMPLES / "weakest_edge.py").read_text()
        files[-1].write_text(f"{text}\nWHICH = '{folder}'\n")
    save_results([made_up(star(), str(file)) for file in files], tmp_path / "out")
    loaded = [result.plan.sampler for result in load_results(tmp_path / "out")]
    assert [sampler.name for sampler in loaded] == ["mine", "mine"]
    texts = [sampler.file.read_text() for sampler in loaded]
    assert texts == [file.read_text() for file in files]


def test_saving_again_replaces_our_files_only(tmp_path):
    save_results([made_up(star(), runs=5), made_up(star(), runs=6)], tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    save_results([made_up(star(), runs=7)], tmp_path)
    assert [result.runs for result in load_results(tmp_path)] == [7]
    assert len(list(tmp_path.glob("*.npz"))) == 1
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".npz", ".txt"]


def test_the_same_results_give_the_same_bytes(tmp_path):
    for folder in ("one", "two"):
        save_results([made_up(star())], tmp_path / folder)
    one, two = ({p.name: p.read_bytes() for p in (tmp_path / f).iterdir()} for f in ("one", "two"))
    assert one == two


def test_no_results_are_a_list_too(tmp_path):
    save_results([], tmp_path)
    assert load_results(tmp_path) == []


# ---------------------------------------------------------------------- files that are no good


@pytest.fixture
def saved(tmp_path):
    save_results([made_up(star())], tmp_path)
    return tmp_path


def edit(folder, change):
    manifest = json.loads((folder / MANIFEST).read_text())
    change(manifest)
    (folder / MANIFEST).write_text(json.dumps(manifest))


def test_newer_version(saved):
    def change(manifest):
        manifest["version"] += 1
        manifest["simplexplore"] = "9.1.0"
        manifest["results"] = {"in": "another form"}

    edit(saved, change)
    newer = r"from a newer version of simplexplore \(9\.1\.0, format 2\).*Update simplexplore"
    with pytest.raises(sx.SettingError, match=newer):
        load_results(saved)


def test_missing(tmp_path):
    with pytest.raises(sx.SettingError, match="nowhere holds no results"):
        load_results(tmp_path / "nowhere")
    with pytest.raises(sx.SettingError, match=r"holds no results: there is no results\.json"):
        load_results(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(sx.SettingError, match="file holds no results"):
        load_results(tmp_path / "file")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is damaged; Expecting value"),
        ('{"format": "simplexplore results", "version": 1, "resu', "it is damaged"),
        ("\x00\xff", "it is damaged"),
        ("[1, 2]", "not a file of results from simplexplore"),
        ('{"format": "other", "version": 1}', "not a file of results from simplexplore"),
        ('{"format": "simplexplore results"}', "it has no list of results"),
        ('{"format": "simplexplore results", "version": "1"}', "it has no list of results"),
        ('{"format": "simplexplore results", "version": 1}', "it has no list of results"),
        (
            '{"format": "simplexplore results", "version": 1, "results": [7]}',
            "result 1: it is damaged",
        ),
        (
            '{"format": "simplexplore results", "version": 1, "results": [{}]}',
            r"result 1: it is damaged \(KeyError: 'problem'\)",
        ),
    ],
)
def test_rubbish(tmp_path, text, message):
    (tmp_path / MANIFEST).write_text(text, encoding="latin-1")
    with pytest.raises(sx.SettingError, match=message):
        load_results(tmp_path)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("problem", "arms = 3 4", "result 1: its problem, line 1"),
        ("problem", 'arms = ["a", "b"]', "means has 5 numbers for 2 arms"),
        ("means", [1, 2], "means has 2 numbers for 5 arms"),
        ("means", [1, 2, 3, 4, "x"], "means: the entry for arm 'e' must be a number"),
        ("delta", "small", "it is damaged"),
        ("sampler", "magic", "there is no sampler 'magic'"),
        ("sampler_file", "own/gone.py", "there is no sampler file"),
        ("threshold", "magic", "there is no threshold 'magic'"),
        ("tracking", "blind", "there is no tracking 'blind'"),
        ("runs", 51, r"stopping_times|run_numbers should be int64 of shape \(51,\)"),
        ("runs", None, "it is damaged"),
        ("arrays", "gone.npz", "its file gone.npz is damaged: No such file"),
        ("arrays", 5, "it is damaged"),
    ],
)
def test_damaged_entries(saved, key, value, message):
    edit(saved, lambda manifest: manifest["results"][0].update({key: value}))
    with pytest.raises(sx.SettingError, match=message):
        load_results(saved)


@pytest.mark.parametrize("part", [0.0, 0.3, 0.6, 0.97])
def test_truncated_arrays(saved, part):
    (file,) = saved.glob("*.npz")
    data = file.read_bytes()
    file.write_bytes(data[: int(part * len(data))])
    with pytest.raises(sx.SettingError, match=r"result 1: its file uniform-.*\.npz is damaged"):
        load_results(saved)


def test_flipped_bits(saved):
    (file,) = saved.glob("*.npz")
    data = bytearray(file.read_bytes())
    for place in range(60, 400, 7):
        data[place] ^= 0x55
    file.write_bytes(bytes(data))
    with pytest.raises(sx.SettingError, match="is damaged"):
        load_results(saved)


def test_arrays_of_another_kind(saved):
    (file,) = saved.glob("*.npz")
    with np.load(file) as stored:
        arrays = dict(stored)
    arrays["correct"] = arrays["correct"].astype(float)
    np.savez_compressed(file, **arrays)
    with pytest.raises(sx.SettingError, match="correct should be bool of shape"):
        load_results(saved)
    arrays["correct"] = np.array([object()] * 50)
    np.savez_compressed(file, allow_pickle=True, **arrays)
    with pytest.raises(sx.SettingError, match="is damaged"):
        load_results(saved)


# ---------------------------------------------------------------------- places that are no good


def test_places_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    result = made_up(star(), runs=2)
    with pytest.raises(sx.SettingError, match="file' is a file, not a folder"):
        save_results([result], tmp_path / "file")
    with pytest.raises(sx.SettingError, match="file' is a file, not a folder"):
        save_results([result], tmp_path / "file" / "below")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(sx.SettingError, match=r"cannot save results in .*: permission denied"):
        save_results([result], tmp_path / "new" / "deep")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_somebody_elses_results(tmp_path):
    (tmp_path / MANIFEST).write_text('{"scores": [1, 2]}')
    with pytest.raises(sx.SettingError, match=r"the results\.json there is not ours"):
        save_results([made_up(star())], tmp_path)
    assert (tmp_path / MANIFEST).read_text() == '{"scores": [1, 2]}'


def test_full_disk_leaves_what_was_there(saved, monkeypatch):
    before = load_results(saved)[0].summary()
    write = Path.write_bytes

    def full(path, data):
        if MANIFEST in path.name:
            write(path, data[:10])
            raise OSError(28, "No space left on device")
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(sx.SettingError, match="No space left on device"):
        save_results([made_up(star(), runs=9)], saved)
    assert load_results(saved)[0].summary() == before
    assert not [path for path in saved.iterdir() if path.name.startswith(".")]
