"""The page of a study in a real browser, as a new user meets it."""

import io
import itertools
import re

import numpy as np
import pytest
from playwright.sync_api import expect
from rich.console import Console

import simplexplore as sx
from browser import DESKTOP, PHONE, check_access, drive, points_of
from nightly import NIGHTLY
from simplexplore.report.study_table import print_status
from simplexplore.study.study import Study
from trials import explore, trial
from workers import star

EVIL = "<img src=x onerror=\"document.title='taken'\">"


def test_a_study_is_watched_live(page, served, store):
    study = drive(Study.create(store, "a/b mix", star(delta=0.1)))
    page.goto(served)
    page.get_by_role("link", name="a/b mix").click()
    expect(page.get_by_role("heading", name="a/b mix")).to_be_visible()
    expect(page.get_by_text("Best mix so far").first).to_be_visible()
    expect(page.get_by_role("definition").nth(2)).to_have_text("100")
    chart = page.get_by_role("img", name=re.compile("Evidence .* needed after 100 rewards"))
    expect(chart).to_be_visible()
    arms = page.get_by_role("region", name="Arms").get_by_role("row")
    assert arms.count() == 6
    limits = page.get_by_role("region", name="Constraints")
    expect(limits.get_by_role("row", name=re.compile("first at most 0.5"))).to_be_visible()
    means = page.get_by_role("region", name="Means over time")
    of_a = "^a: mean [-0-9.]+, between [-0-9.]+ and [-0-9.]+ after {} rewards$"
    expect(means.get_by_role("img", name=re.compile(of_a.format(100)))).to_be_visible()
    assert means.get_by_role("img").count() == 5
    assert len(points_of(means.locator("polyline").first)) == 10  # over time, not only now
    page.locator("#means-as-table").click()
    arm = study.status()["arms"][0]
    now = f"{arm['mean']:.4g} ({arm['low']:.4g} to {arm['high']:.4g})"
    expect(means.get_by_role("row", name=re.compile("^a ")).get_by_role("cell").last).to_have_text(
        now
    )
    page.locator("#as-table").click()
    expect(page.get_by_role("columnheader", name="Needed").first).to_be_visible()
    # It changes by itself, and what was unfolded stays so.
    drive(study, 2)
    expect(page.get_by_role("definition").nth(2)).to_have_text("120")
    expect(means.get_by_role("img", name=re.compile(of_a.format(120)))).to_be_visible()
    expect(page.locator("#points")).to_have_attribute("open", "")
    expect(page.locator("#mean-points")).to_have_attribute("open", "")
    expect(page.locator("#as-table")).to_be_focused()
    check_access(page)


def test_the_answer_in_plain_words(page, served, store):
    easy = {"a": 3.0, "b": 0.5, "c": 0.4, "d": 2.5, "e": 0.8}
    study = drive(Study.create(store, "done", star(delta=0.1)), 100, easy)
    assert study.stopped
    page.goto(f"{served}/studies/done")
    expect(page.get_by_text(study.answer_in_words).first).to_be_visible()
    expect(page.locator("#news")).to_have_text(study.answer_in_words)  # heard as well
    expect(page.get_by_role("definition").nth(0)).to_have_text("100%")
    # What came after the decision is drawn apart from what it rests on.
    decided = study.answer["rewards"]
    means = page.get_by_role("region", name="Means over time")
    expect(means.get_by_role("img", name=re.compile(f"^a: .* {decided} rewards"))).to_be_visible()
    study.tell_many([sx.Reward(2.0, arm=arm) for arm in 5 * list(easy)])
    expect(means.locator("polyline.later")).to_have_count(5)
    expect(means.get_by_role("img", name=re.compile(f"^a: .* {decided} rewards"))).to_be_visible()
    check_access(page, colours=True)


def test_what_users_write_is_text(page, served, store):
    problem = sx.Problem([EVIL, "b"], {EVIL: f"`{EVIL}` <= 0.5"}, delta=0.1)
    study = Study.create(store, EVIL, problem)
    study.note(EVIL)
    for arm in problem.arms:
        study.tell(arm=arm, reward=1.0)
    page.goto(served)
    page.get_by_role("link", name=EVIL).click()
    expect(page.get_by_role("heading", name=EVIL)).to_be_visible()
    expect(page.get_by_role("region", name="Arms").get_by_text(EVIL)).to_be_visible()
    assert page.locator("img").count() == 0
    assert "taken" not in page.title().replace(EVIL, "")


def test_money_beside_samples(page, served, store):
    problem = star(delta=0.1).replace(costs=[4.0, 1.0, 1.0, 2.0, 0.5])
    study = drive(Study.create(store, "costly", problem))
    spent = study.status()["cost"]
    page.goto(f"{served}/studies/costly")
    expect(page.get_by_text("Cost to go")).to_be_visible()
    expect(page.get_by_role("definition").nth(2)).to_have_text(f"{spent:g}")
    check_access(page)


def test_sigmas_that_nobody_knew(page, served, store):
    problem = sx.Problem(["tea", "coffee"], rewards=sx.Gaussian("unknown"), delta=0.1)
    study = Study.create(store, "taste", problem, seed=1)
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


def test_good_enough_in_plain_words(page, served, store):
    easy = {"a": 3.0, "b": 0.5, "c": 0.4, "d": 2.5, "e": 0.8}
    study = Study.create(store, "good enough", star(delta=0.1).replace(epsilon=0.25), "top-two")
    for arm, mean in easy.items():
        study.tell(arm=arm, reward=mean)
    page.goto(f"{served}/studies/good enough")
    expect(page.get_by_text("Good mix so far").first).to_be_visible()
    assert drive(study, 100, easy).stopped
    expect(page.get_by_text("It earns at most 0.25 less than the best mix.")).to_be_visible()
    expect(page.get_by_role("definition").nth(6)).to_have_text("0.25")


def test_measured_limits(page, served, store, tmp_path):
    study = Study.create(store, "dose", trial(), seed=1)
    page.goto(f"{served}/studies/dose")
    # By hand: a field for everything that is measured.
    page.get_by_role("button", name="Ask").click()
    page.get_by_label(re.compile("^Reward of safe")).fill("0,5")
    page.get_by_role("button", name="Tell", exact=True).first.click()
    expect(page.get_by_role("alert")).to_contain_text("toxicity is missing.")
    page.get_by_label(re.compile("^toxicity of safe")).fill("0,25")
    page.get_by_role("button", name="Tell", exact=True).first.click()
    expect(page.get_by_role("cell", name="0.5, toxicity 0.25")).to_be_visible()
    page.locator("#show-ways").click()
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
    snippets = page.get_by_role("region", name="Workers")
    expect(snippets).to_contain_text("study.tell(pull, reward, measured=measured)")
    expect(snippets).to_contain_text('"measured": {"toxicity": 0.2}')
    explore(study)
    expect(page.get_by_text("that keeps the measured limits.")).to_be_visible()
    row = study.status()["measured"][0]
    cells = page.get_by_role("region", name="Measured limits").get_by_role("row").nth(1)
    expect(cells).to_contain_text(re.compile(rf"<= 0\.5.*{row['value']:.4g}"))
    check_access(page)
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size(PHONE)
    check_access(page, colours=True)
    explore(Study.create(store, "none", trial(-1.0)))
    page.goto(f"{served}/studies/none")
    expect(page.get_by_text("no mix keeps toxicity below -1.").first).to_be_visible()


def test_long_names_leave_room_for_the_rest(page, served, store):
    names = ["a name of an arm that somebody pasted from a large spreadsheet" * 2, "x" * 80, "c"]
    study = Study.create(store, "n" * 150, sx.Problem(names, {"y" * 90: "c <= 0.5"}, delta=0.1))
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
        expect(page.locator("#share-points")).to_be_visible()
        page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        check_access(page)


def test_sizes_and_colours(page, served, store):
    together = itertools.product if NIGHTLY else zip
    drive(Study.create(store, "mix with a name that is rather long, as names are", star(delta=0.1)))
    for size, scheme in together((PHONE, DESKTOP), ("light", "dark")):
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=scheme)
        for path, heading in (("/", "Studies"), ("/new", "New study")):
            page.goto(served + path)
            expect(page.get_by_role("heading", name=heading)).to_be_visible()
            expect(page.locator("table").first).to_be_visible()
            check_access(page, colours=True)
        page.goto(served)
        page.get_by_role("link", name="mix with").click()
        expect(page.get_by_role("img", name=re.compile("^Evidence"))).to_be_visible()
        expect(page.get_by_role("img", name=re.compile("^Shares of the samples"))).to_be_visible()
        check_access(page, colours=True)


@pytest.mark.parametrize(
    ("goal", "before", "after"),
    [
        ({"budget": 40}, "30 of 40 samples to go.", "when the samples were spent."),
        (
            {"regret": 0.5},
            "until no mix can be better by more than 0.5.",
            "when no mix could be better by more than 0.5.",
        ),
    ],
    ids=["budget", "regret"],
)
def test_studies_that_stop_otherwise(page, served, store, goal, before, after):
    """Neither waits for evidence on every comparison, so nothing says that there was enough."""
    problem = sx.Problem(["a", "b"], delta=0.1, stop_when=goal)
    study = drive(Study.create(store, "goal", problem, seed=1), 1)
    page.goto(f"{served}/studies/goal")
    expect(page.get_by_text(before)).to_be_visible()
    assert drive(study, 100).stopped
    expect(page.get_by_text(after)).to_be_visible()
    expect(page.get_by_text("Progress")).to_be_visible()
    words = page.locator("main").inner_text()
    assert not re.search("rule of thumb|a heuristic|ruled out together|was needed", words)
    # With a budget no error is allowed for, and a smaller one would change nothing.
    assert ("llowed error" in words) == ("budget" not in goal)
    out = io.StringIO()
    print_status(study.status(), Console(file=out, width=200))
    assert not re.search("rule of thumb|a heuristic|was needed", out.getvalue())
    assert "budget" in goal or after in out.getvalue()


def test_limits_on_samples_stand_apart(page, served, store):
    """What pulls keep is not promised of the mix's limits; names may be the same."""
    problem = sx.Problem(
        ["a", "b"], constraints={"cap": "a <= 0.6"}, exploration={"cap": "a <= 0.3"}
    )
    drive(Study.create(store, "apart", problem, seed=1), 1)
    page.goto(f"{served}/studies/apart")
    tables = page.locator("table").filter(has=page.get_by_role("rowheader", name="cap", exact=True))
    expect(tables.filter(has_text="at most 0.3")).to_contain_text(
        "no prefix of them ever exceeds one"
    )
    on_mix = tables.filter(has_text="at most 0.6")
    expect(on_mix).to_contain_text("How much of each limit the mix uses")
    expect(on_mix).not_to_contain_text("prefix")
    check_access(page)
