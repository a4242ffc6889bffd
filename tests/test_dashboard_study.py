"""The page of a study in a real browser, as a new user meets it."""

import itertools
import re

import numpy as np
import pytest
from playwright.sync_api import expect

import simplexplore as sx
from browser import DESKTOP, LAPTOP, PHONE, check_access, drive, known, open_tab, points_of
from commands import run
from nightly import NIGHTLY
from simplexplore.report.study_words import study_words
from trials import explore, trial
from workers import star

EVIL = "<img src=x onerror=\"document.title='taken'\">"


def test_a_study_is_watched_live(page, served, sqlite_url):
    study = drive(sx.Study.create(sqlite_url, "a/b mix", star(delta=0.1)))
    page.goto(served)
    page.get_by_role("link", name="a/b mix").click()
    expect(page.get_by_role("heading", name="a/b mix")).to_be_visible()
    expect(known(page, "best mix so far")).to_be_visible()
    means = page.get_by_role("tabpanel", name="Arms")
    assert means.locator(".wide").get_by_role("row").count() == 6
    of_a = "^a: mean [-0-9.]+, between [-0-9.]+ and [-0-9.]+ after {} rewards$"
    expect(means.get_by_role("img", name=re.compile(of_a.format(100)))).to_be_visible()
    assert means.locator(".panel").get_by_role("img").count() == 5
    over_time = [point for point in study.history() if "means" in point]
    assert len(points_of(means.locator("polyline").first)) == len(over_time) > 20
    page.locator("#means-as-table").click()
    arm = study.status()["arms"][0]
    now = f"{arm['mean']:.4g} ({arm['low']:.4g} to {arm['high']:.4g})"
    expect(means.get_by_role("row", name=re.compile("^a ")).get_by_role("cell").last).to_have_text(
        now
    )
    # It changes by itself, and what was unfolded stays so.
    drive(study, 2)
    expect(means.get_by_role("img", name=re.compile(of_a.format(120)))).to_be_visible()
    expect(page.locator("#mean-points")).to_have_attribute("open", "")
    expect(page.locator("#means-as-table")).to_be_focused()
    check_access(page)
    limits = open_tab(page, "Limits")
    expect(limits.get_by_role("row", name=re.compile("first at most 0.5"))).to_be_visible()
    evidence = open_tab(page, "Evidence")
    chart = evidence.get_by_role("img", name=re.compile("Evidence .* needed after 120 rewards"))
    expect(chart).to_be_visible()
    page.locator("#as-table").click()
    expect(page.get_by_role("columnheader", name="Needed").first).to_be_visible()
    check_access(page)


def test_the_answer_in_plain_words(page, served, sqlite_url):
    easy = {"a": 3.0, "b": 0.5, "c": 0.4, "d": 2.5, "e": 0.8}
    study = drive(sx.Study.create(sqlite_url, "done", star(delta=0.1)), 100, easy)
    assert study.stopped
    page.goto(f"{served}/studies/done")
    words = study_words(study.status())
    assert known(page, "answer").inner_text() == words["answer"]
    expect(page.locator("#news")).to_have_text(f"Answer: {words['answer']}")  # heard as well
    expect(page.get_by_text("Nothing: the study has its answer.")).to_be_visible()
    # What came after the decision is drawn apart from what it rests on.
    decided = study.answer["rewards"]
    means = page.get_by_role("tabpanel", name="Arms")
    expect(means.get_by_role("img", name=re.compile(f"^a: .* {decided} rewards"))).to_be_visible()
    study.tell_many([sx.Reward(2.0, arm=arm) for arm in 5 * list(easy)])
    expect(means.locator(".panel polyline.later")).to_have_count(5)
    expect(means.get_by_role("img", name=re.compile(f"^a: .* {decided} rewards"))).to_be_visible()
    check_access(page, colours=True)


def test_what_users_write_is_text(page, served, sqlite_url):
    problem = sx.Problem([EVIL, "b"], {EVIL: f"`{EVIL}` <= 0.5"}, delta=0.1)
    study = sx.Study.create(sqlite_url, EVIL, problem)
    study.note(EVIL)
    for arm in problem.arms:
        study.tell(arm=arm, reward=1.0)
    page.goto(served)
    page.get_by_role("link", name=EVIL).click()
    expect(page.get_by_role("heading", name=EVIL)).to_be_visible()
    expect(page.get_by_role("rowheader", name=EVIL)).to_be_visible()
    for tab in ("Limits", "Evidence", "Data", "Settings"):
        expect(open_tab(page, tab)).to_be_visible()
    assert page.locator("img").count() == 0
    assert "taken" not in page.title().replace(EVIL, "")


def test_money_beside_samples(page, served, sqlite_url):
    problem = star(delta=0.1).replace(costs=[4.0, 1.0, 1.0, 2.0, 0.5])
    study = drive(sx.Study.create(sqlite_url, "costly", problem))
    spent = study.status()["cost"]
    page.goto(f"{served}/studies/costly")
    expect(known(page, "cost")).to_contain_text(f"{spent:g} so far")
    check_access(page)


def test_sigmas_that_nobody_knew(page, served, sqlite_url):
    problem = sx.Problem(["tea", "coffee"], rewards=sx.Gaussian("unknown"), delta=0.1)
    study = sx.Study.create(sqlite_url, "taste", problem, seed=1)
    page.goto(f"{served}/studies/taste")
    row = page.locator("tr", has=page.get_by_role("rowheader", name="coffee"))
    expect(page.get_by_role("columnheader", name="Sigma seen")).to_be_visible()
    rng = np.random.default_rng(4)
    for _ in range(40):
        (pull,) = study.ask()
        study.tell(pull.id, rng.normal(5.0 if pull.arm == "tea" else 4.0, 2.0))
    seen = next(arm["sigma"] for arm in study.status()["arms"] if arm["arm"] == "coffee")
    expect(row.locator("td[data-label='Sigma seen']")).to_have_text(f"{seen:.4g}")
    expect(row.locator("td[data-label='Between']")).to_contain_text(" to ")
    check_access(page)


def test_good_enough_in_plain_words(page, served, sqlite_url):
    easy = {"a": 3.0, "b": 0.5, "c": 0.4, "d": 2.5, "e": 0.8}
    study = sx.Study.create(
        sqlite_url, "good enough", star(delta=0.1).replace(epsilon=0.25), "top-two"
    )
    for arm, mean in easy.items():
        study.tell(arm=arm, reward=mean)
    page.goto(f"{served}/studies/good enough")
    expect(known(page, "best mix so far")).to_be_visible()
    expect(known(page, "confidence")).to_contain_text("that no mix is better by more than 0.25.")
    assert drive(study, 100, easy).stopped
    expect(known(page, "answer")).to_contain_text("It is within 0.25 of the best")
    open_tab(page, "Settings")
    expect(page.get_by_text("allowed loss 0.25")).to_be_visible()


def test_a_question_besides_the_best_mix(page, served, sqlite_url):
    """It says what `study status` says, and nothing of mixes."""
    problem = sx.Problem(["a", "b", "c"], delta=0.1, question=sx.Question("threshold", at=0.5))
    means = {"a": 1.0, "b": 0.8, "c": 0.0}
    study = drive(sx.Study.create(sqlite_url, "good ones", problem, seed=1), 2, means)
    page.goto(f"{served}/studies/good ones")
    words = study_words(study.status())
    expect(known(page, "answer so far")).to_have_text(words["answer so far"])
    expect(page.locator(".mix")).to_have_count(0)
    arms = page.get_by_role("tabpanel", name="Arms")
    expect(arms.get_by_role("columnheader").first).to_be_visible()
    assert "In the mix" not in arms.inner_text()
    evidence = open_tab(page, "Evidence")
    expect(evidence.get_by_role("heading", name="Evidence for the answer")).to_be_visible()
    edge = min(study.status()["edges"], key=lambda one: one["statistic"] - one["threshold"])
    row = evidence.locator("tbody").last.get_by_role("row").first
    expect(row).to_contain_text(f"{edge['statistic']:.4g}")
    expect(row).to_contain_text("p ≤ ")
    assert "mix" not in page.locator("main").inner_text()
    check_access(page)


def test_measured_limits(page, served, sqlite_url, tmp_path):
    study = sx.Study.create(sqlite_url, "dose", trial(), seed=1)
    page.goto(f"{served}/studies/dose#data")
    # By hand: a field for everything that is measured.
    page.get_by_role("button", name="Ask").click()
    page.get_by_label(re.compile("^Reward of safe")).fill("0,5")
    page.get_by_role("button", name="Tell", exact=True).first.click()
    expect(page.get_by_role("alert")).to_contain_text("toxicity is missing.")
    page.get_by_label(re.compile("^toxicity of safe")).fill("0,25")
    page.get_by_role("button", name="Tell", exact=True).first.click()
    expect(page.get_by_role("cell", name="0.5, toxicity 0.25")).to_be_visible()
    page.get_by_label("Arm", exact=True).select_option("strong")
    for label in ("Reward", "toxicity"):
        page.get_by_label(label, exact=True).fill("1")
    page.locator("#elsewhere").get_by_role("button").click()
    expect(page.get_by_role("cell", name="1, toxicity 1")).to_be_visible()
    # From a file.
    file = tmp_path / "doses.csv"
    file.write_text("arm,reward,toxicity\nsafe,0,0.125\nstrong,1,\n")
    page.get_by_label("CSV file").set_input_files(file)
    expect(page.get_by_text("Line 3: the toxicity is missing.")).to_be_visible()
    expect(
        page.locator("#csv-preview").get_by_role("columnheader", name="toxicity")
    ).to_be_visible()
    expect(page.locator("#csv-preview").get_by_role("cell", name="0.125")).to_be_visible()
    assert [one["measured"] for one in study.events()[1:]] == [{"toxicity": 0.25}, {"toxicity": 1}]
    snippets = open_tab(page, "Settings").get_by_role("region", name="Workers")
    expect(snippets).to_contain_text("study.tell(pull, reward, measured=measured)")
    expect(snippets).to_contain_text('"measured": {"toxicity": 0.2}')
    explore(study)
    open_tab(page, "Limits")
    expect(known(page, "confidence")).to_contain_text("that no mix that keeps the measured limits")
    row = study.status()["measured"][0]
    cells = page.get_by_role("row", name=re.compile("^toxicity <= 0.5")).first
    expect(cells).to_contain_text(re.compile(rf"<= 0\.5.*{row['value']:.4g}"))
    check_access(page)
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size(PHONE)
    check_access(page, colours=True)
    explore(sx.Study.create(sqlite_url, "none", trial(-1.0)))
    page.goto(f"{served}/studies/none")
    expect(known(page, "answer")).to_contain_text("no mix keeps toxicity below -1.")


def test_long_names_leave_room_for_the_rest(page, served, sqlite_url):
    names = ["a name of an arm that somebody pasted from a large spreadsheet" * 2, "x" * 80, "c"]
    study = sx.Study.create(
        sqlite_url, "n" * 150, sx.Problem(names, {"y" * 90: "c <= 0.5"}, delta=0.1)
    )
    study.note("word " * 60)
    for arm in names:
        study.tell(arm=arm, reward=1.0)
    for path in ("/", f"/studies/{'n' * 150}"):
        page.goto(served + path)
        expect(page.locator("tbody .whole").last).to_be_visible()
        tall = page.evaluate(
            "[...document.querySelectorAll('thead th, tbody .whole')].filter((one) =>"
            " one.getClientRects().length && one.getBoundingClientRect().height > 50)"
            ".map((one) => one.textContent)"
        )
        assert tall == []
        check_access(page)
    # Tables beside the charts, too.
    for size in (DESKTOP, PHONE):
        page.set_viewport_size(size)
        page.reload()
        expect(page.locator("tbody .whole").last).to_be_visible()
        page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        check_access(page)


def test_sizes_and_colours(page, served, sqlite_url):
    together = itertools.product if NIGHTLY else zip
    name = "mix with a name that is rather long, as names are"
    drive(sx.Study.create(sqlite_url, name, star(delta=0.1))).ask(8)
    for size, scheme in together((PHONE, LAPTOP), ("light", "dark")):
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=scheme)
        for path, heading in (("/", "Studies"), ("/new", "New study")):
            page.goto(served + path)
            expect(page.get_by_role("heading", name=heading)).to_be_visible()
            if path == "/new":
                page.get_by_role("button", name="Fill in an example").click()
            expect(page.locator("table").first).to_be_visible()
            check_access(page, colours=True)
        page.goto(served)
        page.get_by_role("link", name="mix with").click()
        expect(page.get_by_role("img", name=re.compile("^Shares of the samples"))).to_be_visible()
        for tab in ("Arms", "Limits", "Evidence", "Data", "Settings"):
            expect(open_tab(page, tab)).to_be_visible()
            check_access(page, colours=True)
            tall = page.evaluate("document.documentElement.scrollHeight")
            assert size is PHONE or tall <= 2 * size["height"], tab


@pytest.mark.parametrize(
    ("goal", "before", "after"),
    [
        ({"budget": 40}, "30 of 40 samples.", "when the samples were spent."),
        (
            {"regret": 0.5},
            "until no mix can be better by more than 0.5.",
            "when no mix could be better by more than 0.5.",
        ),
    ],
    ids=["budget", "regret"],
)
def test_studies_that_stop_otherwise(page, served, sqlite_url, goal, before, after, monkeypatch):
    """Neither waits for evidence on every comparison, so nothing says that there was enough."""
    problem = sx.Problem(["a", "b"], delta=0.1, stop_when=goal)
    study = drive(sx.Study.create(sqlite_url, "goal", problem, seed=1), 1)
    page.goto(f"{served}/studies/goal#evidence")
    expect(known(page, "still to go")).to_contain_text(before)
    assert drive(study, 100).stopped
    expect(known(page, "decided")).to_contain_text(after)
    words = page.locator("main").inner_text()
    open_tab(page, "Settings")
    words += page.locator("main").inner_text()
    assert not re.search("rule of thumb|a heuristic|ruled out together|was needed", words)
    # With a budget no error is allowed for, and a smaller one would change nothing.
    assert ("llowed error" in words) == ("budget" not in goal)
    monkeypatch.setenv("COLUMNS", "200")
    out = run("study", "status", study.name, "--store", sqlite_url).stdout
    assert not re.search("rule of thumb|a heuristic|was needed", out)
    assert "budget" in goal or after in out


def test_limits_on_samples_stand_apart(page, served, sqlite_url):
    """What pulls keep is not promised of the mix's limits; names may be the same."""
    problem = sx.Problem(
        ["a", "b"], constraints={"cap": "a <= 0.6"}, exploration={"cap": "a <= 0.3"}
    )
    drive(sx.Study.create(sqlite_url, "apart", problem, seed=1), 1)
    page.goto(f"{served}/studies/apart#limits")
    tables = page.locator("table").filter(has=page.get_by_role("rowheader", name="cap", exact=True))
    expect(tables.filter(has_text="at most 0.3")).to_contain_text(
        "no prefix of them ever exceeds one"
    )
    on_mix = tables.filter(has_text="at most 0.6")
    expect(on_mix).to_contain_text("How much of each limit the mix uses")
    expect(on_mix).not_to_contain_text("prefix")
    check_access(page)
