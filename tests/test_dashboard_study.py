"""The dashboard in a real browser, as a new user meets it."""

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

import browser as chromium
import simplexplore as sx
from servers import Thread
from simplexplore.service.tokens import create_token
from simplexplore.study.store import Store
from simplexplore.study.study import Study
from trials import explore, trial
from workers import MEANS, star

DESKTOP = {"width": 1200, "height": 900}
PHONE = {"width": 390, "height": 844}
expect.set_options(timeout=30_000)  # a machine may be busy

EVIL = "<img src=x onerror=\"document.title='taken'\">"


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        running = chromium.launch(playwright)
        yield running
        running.close()


@pytest.fixture
def store(sqlite_url):
    return Store(sqlite_url)


@pytest.fixture
def served(sqlite_url):
    with Thread(sqlite_url) as running:
        yield running.url


@pytest.fixture
def page(browser):
    """A page that may not complain, nor fetch anything from elsewhere."""
    with_page = browser.new_context(viewport=DESKTOP)
    page = with_page.new_page()
    page.troubles = []
    page.on("pageerror", lambda error: page.troubles.append(str(error)))
    page.on(
        "request",
        lambda request: (
            page.troubles.append(request.url) if "//127.0.0.1" not in request.url else None
        ),
    )
    page.on(
        "console",
        lambda message: (
            page.troubles.append(message.text) if "Content Security" in message.text else None
        ),
    )
    yield page
    assert page.troubles == []
    with_page.close()


def drive(study, rounds=10, means=MEANS, batch=10):
    rng = np.random.default_rng(0)
    for _ in range(rounds):
        if study.stopped:
            break
        study.tell_many([(pull, float(rng.normal(means[pull.arm]))) for pull in study.ask(batch)])
    return study


def points_of(line):
    return [tuple(map(float, at.split(","))) for at in line.get_attribute("points").split()]


def check_access(page):
    """No serious finding of axe-core, and nothing that sticks out sideways."""
    found = Axe().run(page).response["violations"]
    serious = [
        (one["id"], [node["html"][:120] for node in one["nodes"]])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
    assert serious == []
    wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert wide <= 0


def test_an_empty_store(page, served):
    page.goto(served)
    expect(page.get_by_text("There are no studies yet.")).to_be_visible()
    check_access(page)
    page.get_by_role("link", name="Start the first one").click()
    expect(page.get_by_role("heading", name="New study")).to_be_visible()


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


def test_a_damaged_study_in_the_list(page, served, store):
    for name in ("sound", "broken"):
        drive(Study.create(store, name, star(delta=0.1)), 2)
    with store.writing() as connection:
        connection.exec_driver_sql("UPDATE studies SET delta = 1e300 WHERE name = 'broken'")
    page.goto(served)
    row = page.get_by_role("row", name=re.compile("^broken"))
    expect(row).to_contain_text("its row says delta = 1e+300. Put back a copy of the store.")
    expect(row.get_by_text("damaged", exact=True)).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("^sound running"))).to_be_visible()
    expect(page.get_by_text("damaged", exact=True)).to_have_count(1)
    check_access(page)
    row.get_by_role("link").click()
    expect(page.get_by_role("alert")).to_contain_text("'broken' is damaged")


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
    check_access(page)


def test_a_study_from_the_form(page, served, store):
    page.goto(f"{served}/new")
    expect(page.get_by_text("At least 122.1 samples on average")).to_be_visible()
    check_access(page)
    text = page.get_by_label("Problem file")
    good = text.input_value()
    # A mistake is shown at its line, while one writes.
    text.fill(good.replace("12*salmon", "12*salmn"))
    expect(page.get_by_text("Line 12. problem: constraint 'price': unknown arm")).to_be_visible()
    expect(page.locator(".editor .wrong")).to_have_text("12\n")
    expect(text).to_have_attribute("aria-invalid", "true")
    page.get_by_role("button", name="Go to line 12").click()
    chosen = page.evaluate(
        "(t) => t.value.slice(t.selectionStart, t.selectionEnd)", text.element_handle()
    )
    assert chosen.startswith("price = ")
    check_access(page)
    text.fill(good.replace("means = [8.0, 7.5, 6.0]", ""))
    expect(page.get_by_text("The file gives no means")).to_be_visible()
    text.fill(good)
    page.get_by_label("Name of the study").fill("tastings")
    page.get_by_label("Sampler").select_option("uniform")
    page.get_by_role("button", name="Start the study").click()
    expect(page.get_by_role("heading", name="tastings")).to_be_visible()
    study = Study.open(store, "tastings")
    assert study.about["sampler"] == "uniform"
    assert study.about["expire_after"] == 86_400.0
    # The name is taken now.
    page.goto(f"{served}/new")
    page.get_by_label("Name of the study").fill("tastings")
    page.get_by_role("button", name="Start the study").click()
    expect(page.get_by_role("alert")).to_contain_text("there is a study 'tastings'")


def test_no_study_before_samplers_are_known(page, served):
    held = []
    page.route("**/v1/setup", lambda route: held.append(route))  # noqa: PLW0108
    page.goto(f"{served}/new")
    page.get_by_label("Name of the study").fill("too soon")
    button = page.get_by_role("button", name="Start the study")
    expect(button).to_be_disabled()
    held.pop().continue_()
    expect(button).to_be_enabled()
    expect(page.get_by_label("Sampler")).to_have_value("top-two")
    expect(page.get_by_label("Threshold")).to_have_value("tilt")


def test_remarks_and_extensions(page, served, store):
    study = Study.create(store, "mix", star(delta=0.1))
    page.goto(f"{served}/studies/mix")
    page.get_by_label("A remark for the journal").fill("new oven")
    page.get_by_role("button", name="Note it").click()
    expect(page.get_by_role("cell", name="new oven")).to_be_visible()
    page.get_by_label("A smaller allowed error").fill("0.5")
    page.get_by_role("button", name="Extend the study").click()
    expect(page.get_by_role("alert")).to_contain_text("extended to a smaller delta")
    page.get_by_label("A smaller allowed error").fill("0.01")
    page.get_by_role("button", name="Extend the study").click()
    expect(page.get_by_role("definition").nth(5)).to_have_text("0.01")
    assert [event["event"] for event in study.events()] == ["noted", "extended"]
    with page.expect_download() as download:
        page.get_by_role("button", name="Export as CSV").click()
    assert download.value.suggested_filename == "mix.csv"


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


def test_tokens(page, served, store):
    Study.create(store, "mix", star())
    _, reader = create_token(store, "read")
    _, runner = create_token(store, "run")

    def enter(text):
        page.get_by_role("textbox", name="Your token").fill(text)
        page.get_by_role("button", name="Use it").click()

    page.goto(served)
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("only for people who have a token")).to_be_visible()
    expect(page.get_by_role("textbox", name="Your token")).to_be_focused()
    check_access(page)
    assert "mix" not in page.content()
    enter("sx_00000000_" + "x" * 43)
    expect(dialog.get_by_text("not known here")).to_be_visible()
    enter(reader)
    expect(page.get_by_role("link", name="mix")).to_be_visible()
    expect(page.get_by_text("You may watch.")).to_be_visible()
    page.goto(f"{served}/new")
    expect(page.get_by_text("You may only watch.")).to_be_visible()
    page.goto(f"{served}/studies/mix")
    expect(page.get_by_text("No answer yet")).to_be_visible()
    expect(page.get_by_role("button", name="Export as CSV")).to_be_visible()
    assert page.get_by_role("button", name="Note it").count() == 0
    page.get_by_role("button", name="Token").click()
    enter(runner)
    expect(page.get_by_role("button", name="Note it")).to_be_visible()
    assert page.get_by_role("button", name="Extend the study").count() == 0
    assert page.context.cookies() == []
    assert runner not in page.url


def test_a_token_that_is_not_given(page, served, store):
    """Whoever does not want to give a token is not asked again and again."""
    create_token(store, "read")
    page.goto(served)
    dialog = page.get_by_role("dialog")
    page.get_by_role("button", name="Cancel").click()
    with page.expect_response("**/v1/setup"):
        pass
    page.wait_for_timeout(300)
    expect(dialog).to_be_hidden()
    expect(page.get_by_role("alert")).to_have_text("This service wants a token: press “Token”.")
    page.get_by_role("button", name="Token").click()
    expect(dialog).to_be_visible()


def test_below_a_path_of_a_proxy(page, served, store):
    drive(Study.create(store, "a/b mix", star(delta=0.1)), 1)

    def pass_on(route):
        if "/lab/" not in route.request.url:
            page.troubles.append(route.request.url)
        if route.request.url.endswith("/events"):
            route.abort()  # a stream has no end that could be waited for
            return
        route.fulfill(response=route.fetch(url=route.request.url.replace("/lab/", "/")))

    page.route("**/*", pass_on)
    page.goto(f"{served}/lab/")
    page.get_by_role("link", name="a/b mix").click()
    expect(page.get_by_text("Best mix so far").first).to_be_visible()
    page.get_by_role("link", name="New study").click()
    page.get_by_label("Name of the study").fill("second")
    expect(page.get_by_text("At least 122.1 samples on average")).to_be_visible()
    page.get_by_role("button", name="Start the study").click()
    expect(page.get_by_role("heading", name="second")).to_be_visible()
    assert page.url.endswith("/lab/studies/second")
    page.get_by_role("link", name="simplexplore").click()
    expect(page.get_by_text("2 of 2 studies")).to_be_visible()
    page.unroute_all(behavior="wait")  # what is under way would end in the next test


def test_an_answer_that_gets_lost(page, served, store):
    """What was sent again happens once."""
    lost = []

    def lose(route):
        if route.request.method != "POST" or len(lost) > 1:
            route.continue_()
        else:
            lost.append(route.fetch().status)
            route.abort()

    page.goto(f"{served}/new")
    expect(page.get_by_text("At least 122.1 samples on average")).to_be_visible()
    page.route("**/v1/studies", lose)
    page.get_by_label("Name of the study").fill("tastings")
    page.get_by_role("button", name="Start the study").click()
    expect(page.get_by_role("alert")).to_contain_text("The service cannot be reached.")
    lost.append("enough")
    page.get_by_role("button", name="Start the study").click()
    expect(page.get_by_role("heading", name="tastings")).to_be_visible()
    page.route("**/notes", lose)
    del lost[1:]
    page.get_by_label("A remark for the journal").fill("new oven")
    page.get_by_role("button", name="Note it").click()
    expect(page.get_by_role("alert")).to_contain_text("The service cannot be reached.")
    page.get_by_role("button", name="Note it").click()
    expect(page.get_by_label("A remark for the journal")).to_have_value("")
    assert lost == [201, 204]
    events = Study.open(store, "tastings").events()
    assert [event["text"] for event in events] == ["new oven"]


def test_a_refusal_stays_on_show(page, served, store):
    study = Study.create(store, "mix", star(delta=0.1))
    page.goto(f"{served}/studies/mix")
    page.get_by_label("A smaller allowed error").fill("0.5")
    page.get_by_role("button", name="Extend the study").click()
    expect(page.get_by_role("alert")).to_contain_text("extended to a smaller delta")
    drive(study, 1)
    expect(page.get_by_role("definition").nth(2)).to_have_text("10")
    expect(page.get_by_role("alert")).to_contain_text("extended to a smaller delta")


def test_a_study_that_is_not_there(page, served, store):
    page.goto(f"{served}/studies/mix")
    expect(page.get_by_role("alert")).to_contain_text("there is no study 'mix'")
    expect(page.get_by_role("button", name="Note it")).to_be_hidden()
    expect(page.get_by_role("heading", name="Evidence")).to_be_hidden()
    Study.create(store, "mix", star())
    expect(page.get_by_role("button", name="Note it")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


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
    check_access(page)
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


def test_by_keyboard_alone(page, served, store):
    Study.create(store, "mix", star())
    page.goto(served)
    expect(page.get_by_role("link", name="mix")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="mix")).to_be_focused()
    # Another one changes and comes first: the focus stays where it was.
    with page.expect_response("**/v1/studies?*"):
        Study.create(store, "newer", star())
    expect(page.get_by_role("link", name="newer")).to_be_visible()
    expect(page.get_by_role("link", name="mix")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="mix", exact=True)).to_be_visible()


def test_two_hundred_studies_and_fifty_arms(page, served, store):
    arms = [f"arm {i}" for i in range(50)]
    for i in range(199):
        Study.create(store, f"study {i}", sx.Problem(2), "uniform")
    wide = sx.Problem(arms, {"cap": " + ".join(f"`{arm}`" for arm in arms[:10]) + " <= 0.3"})
    study = Study.create(store, "wide", wide, "uniform")
    study.tell_many([sx.Reward(0.02 * i, arm=arm) for i, arm in enumerate(arms)])
    page.goto(served)
    expect(page.get_by_text("200 of 200 studies")).to_be_visible()
    page.get_by_label("Search names, tags and states").fill("wid")
    expect(page.get_by_text("1 of 200 studies")).to_be_visible()
    page.get_by_role("link", name="wide").click()
    rows = page.get_by_role("region", name="Arms").get_by_role("row")
    expect(rows).to_have_count(13)
    page.locator("#all-arms").click()
    expect(rows).to_have_count(51)
    expect(page.locator("#all-arms")).to_be_focused()
    charts = page.get_by_role("region", name="Means over time").get_by_role("img")
    expect(charts).to_have_count(12)
    page.get_by_role("button", name="Show all 50 arms").click()
    expect(charts).to_have_count(50)
    expect(page.locator("#all-means")).to_be_focused()
    expect(page.locator("#all-means")).to_have_text("Show the first 12")
    check_access(page)


def test_pages_of_studies(page, served, store):
    for i in range(8):
        Study.create(store, f"study {i}", star())
    pages = []

    def in_pieces(route):
        pages.append(route.request.url)
        if len(pages) == 2:  # one gets lost, so all of them are read again
            route.abort()
        else:
            route.continue_(url=route.request.url.replace("limit=1000", "limit=3"))

    page.route("**/v1/studies?*", in_pieces)
    page.goto(served)
    expect(page.get_by_text("8 of 8 studies")).to_be_visible()
    assert len(pages) == 5
    Study.open(store, "study 0").note("changed")
    first = page.get_by_role("row").nth(1)
    expect(first.get_by_role("link")).to_have_text("study 0")
    assert len(pages) <= 8  # what changed, and not all of them every time


def test_an_experiment_on_a_phone(page, served, store):
    """Ask, tell one and many, strike out, pause, resume, archive: without a programme."""
    problem = star(delta=0.1)
    study = Study.create(store, "dishes", problem)
    page.set_viewport_size({"width": 375, "height": 740})
    page.goto(f"{served}/studies/dishes")
    page.get_by_label("Pulls wanted").fill("3")
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.get_by_text("3 pulls to make")).to_be_visible()
    pulls = study.pending()
    rewards = page.get_by_placeholder("reward")
    expect(rewards.first).to_be_focused()
    # One, with a decimal comma; what is typed elsewhere stays.
    rewards.nth(1).fill("0.75")
    rewards.nth(0).fill("1,5")
    page.keyboard.press("Enter")
    expect(page.get_by_text("2 pulls to make")).to_be_visible()
    expect(rewards.first).to_have_value("0.75")
    rewards.nth(1).fill("many")
    page.get_by_role("button", name="Tell all that are filled in").click()
    expect(page.get_by_role("alert")).to_contain_text("“many” is not a number")
    rewards.nth(1).fill("-0.25")
    page.get_by_role("button", name="Tell all that are filled in").click()
    expect(page.get_by_text("No pull is pending.")).to_be_visible()
    told = {one["number"]: one["reward"] for one in study.events() if one["event"] == "told"}
    assert told == {1: 1.5, 2: 0.75, 3: -0.25}
    page.get_by_text("Rewards from elsewhere, or from a file").click()
    page.get_by_label("Arm", exact=True).select_option("e")
    page.get_by_label("Reward", exact=True).fill("0.8")
    page.locator("#elsewhere").get_by_role("button", name="Tell").click()
    events = page.get_by_role("region", name="Recent events")
    expect(events.get_by_text("0.8", exact=True)).to_be_visible()
    check_access(page)
    # A mistake.
    name = f"Strike out the reward 0.75 of {pulls[1].arm}"
    page.get_by_role("button", name=name).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text(f"0.75, of {pulls[1].arm}")).to_be_visible()
    check_access(page)
    dialog.get_by_role("button", name="Strike it out").click()
    expect(dialog).to_be_visible()  # a reason is wanted
    dialog.get_by_label("Why?").fill("burnt")
    dialog.get_by_role("button", name="Strike it out").click()
    expect(events.get_by_text("event 5: burnt")).to_be_visible()
    expect(page.get_by_text("1 pull to make")).to_be_visible()
    assert study.status()["voided"] == 1
    assert study.pending() == [pulls[1]]
    # No more of them for a while.
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Ask", exact=True)).to_be_hidden()
    assert study.state == "paused"
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("button", name="Ask", exact=True)).to_be_visible()
    page.get_by_label("Tags").fill("kitchen, spring")
    page.get_by_role("button", name="Save tags").click()
    page.get_by_role("button", name="Archive").click()
    expect(page.get_by_role("button", name="Bring it back")).to_be_visible()
    check_access(page)
    page.goto(served)
    expect(page.get_by_text("All studies are archived.")).to_be_visible()
    page.get_by_label("Show archived studies").check()
    expect(page.get_by_role("button", name="spring")).to_be_visible()
    assert study.state == "archived"
    assert study.verify()


CHANNELS = """\
arms = ["search", "social", "mail", "video", "radio", "print"]
delta = 0.1

[rewards]
family = "bernoulli"

[groups]
paid = ["search", "social", "video"]

[constraints]
budget = "paid <= 0.7"
caps = "each <= 0.5"
"""
CLICKS = {"search": 0.9, "social": 0.6, "mail": 0.7, "video": 0.2, "radio": 0.15, "print": 0.1}


def test_a_manager_with_six_channels_and_two_workers(page, served, store):
    """From the form to the answer: nobody wrote a programme but the two workers' owners."""
    page.goto(f"{served}/new")
    page.get_by_label("Problem file").fill(CHANNELS)
    page.get_by_label("Name of the study").fill("channels")
    page.get_by_role("button", name="Start the study").click()
    expect(page.get_by_role("heading", name="channels")).to_be_visible()

    def work(seed):
        rng = np.random.default_rng(seed)
        with sx.connect(served) as service:
            study = service.open("channels")
            while not study.stopped:
                try:
                    pulls = study.ask(20)
                except sx.StoppedError:  # the other worker had the last word
                    return
                study.tell_many([(x, float(rng.random() < CLICKS[x.arm])) for x in pulls])

    with ThreadPoolExecutor(2) as workers:
        list(workers.map(work, (1, 2)))
    answer = Study.open(store, "channels").answer
    assert answer["mix"] == pytest.approx({"search": 0.5, "mail": 0.5})
    expect(page.get_by_text("0.5 search, 0.5 mail").first).to_be_visible()
    expect(page.get_by_text("Decided").first).to_be_visible()
    check_access(page)


def test_a_file_of_rewards(page, served, store):
    study = Study.create(store, "dishes", star(delta=0.1))
    pull = study.ask()[0]
    page.goto(f"{served}/studies/dishes")
    page.get_by_text("Rewards from elsewhere, or from a file").click()

    def upload(text):
        file = {"name": "week.csv", "mimeType": "text/csv", "buffer": text.encode()}
        page.get_by_label("CSV file").set_input_files(file)

    upload("arm,reward\na,1\nq,2\nb,x\nc,3\n")
    expect(page.get_by_text("2 rows wrong, so nothing can be imported yet")).to_be_visible()
    expect(page.get_by_text("Line 3: there is no arm 'q'")).to_be_visible()
    expect(page.get_by_text("Line 4: the reward 'x' is not a number.")).to_be_visible()
    expect(page.get_by_role("button", name="Import")).to_have_count(0)
    check_access(page)
    assert study.head == 1
    upload(f"pull;arm;reward\n{pull.id};;0,5\n;b;1,25\n")
    expect(page.get_by_text("2 rows can be read (1 of a pull, 1 made elsewhere).")).to_be_visible()
    page.get_by_role("button", name="Import 2 rewards").click()
    expect(page.get_by_text("2 rewards imported.")).to_be_visible()
    assert [one.get("reward") for one in study.events()] == [None, 0.5, 1.25]


def test_what_a_worker_needs(page, served, store):
    study = Study.create(store, "a/b 'mix'", star(delta=0.1))
    page.goto(f"{served}/studies/a%2Fb%20'mix'")
    expect(page.get_by_role("cell", name="a + b <= 0.5")).to_be_visible()
    page.get_by_text("The problem file").click()
    expect(page.get_by_label("The problem file")).to_have_text(study.problem.to_text())
    # The program on the page runs as it is.
    program = page.get_by_label("A worker in Python").inner_text()
    measure = "import numpy as np\nrng = np.random.default_rng(0)\nleft = iter(range(3))\n"
    measure += "def measure(arm):\n    next(left)\n    return float(rng.normal())\n"
    with pytest.raises(StopIteration):
        exec(measure + program, {})
    assert study.status()["rewards"] == 3
    page.locator("#show-curl").click()
    curl = page.get_by_label("A worker in curl").inner_text()
    found = subprocess.run(["sh", "-c", curl], capture_output=True, text=True, check=True).stdout
    assert '"arm"' in found
    page.locator("#show-R").click()
    expect(page.get_by_label("A worker in R")).to_contain_text(f"{served}/v1/studies/a%2Fb%20'mix'")
    check_access(page)


def test_studies_side_by_side(page, served, store):
    easy = {"a": 3.0, "b": 0.5, "c": 0.4, "d": 2.5, "e": 0.8}
    one = drive(Study.create(store, "done", star(delta=0.1)), 100, easy)
    drive(Study.create(store, "going on", star(delta=1e-9)), 3).tag("spring")
    Study.create(store, "new", star())
    page.goto(served)
    page.get_by_label("Sort").select_option("by name")
    rows = page.get_by_role("row")
    expect(rows.nth(1)).to_contain_text("done")
    page.get_by_role("button", name="spring").click()
    expect(page.get_by_text("1 of 3 studies")).to_be_visible()
    page.get_by_label("Search names, tags and states").fill("")
    for name in ("done", "going on"):
        page.get_by_label(f"Compare {name}").check()
    check_access(page)
    page.get_by_role("link", name="Compare 2 studies").click()
    expect(page.get_by_role("link", name="going on")).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("^done stopped"))).to_contain_text(
        f"after {one.answer['rewards']} rewards"
    )
    # A study may stop by ruling out all others together, before each comparison is settled.
    expect(page.get_by_role("img", name=re.compile("done [0-9.]+%, going on"))).to_be_visible()
    check_access(page)


def test_notifications(browser, served, store):
    study = drive(Study.create(store, "mix", star(delta=0.1)), 5)
    context = browser.new_context(permissions=["notifications"])
    context.add_init_script(
        "window.said = []; class Fake { constructor(title, { body }) { said.push([title, body]); }"
        " static permission = 'granted'; static requestPermission = async () => 'granted'; }"
        " window.Notification = Fake;"
    )
    page = context.new_page()
    page.goto(f"{served}/studies/mix")
    page.get_by_label("Notify me in this browser").check()
    expect(page.get_by_text("You will be notified")).to_be_visible()
    page.get_by_label("Webhook").fill("ftp://example.org")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("a webhook is an address such as https://")
    easy = {"a": 9.0, "b": 0.5, "c": 0.4, "d": 8.5, "e": 0.8}
    assert drive(study, 100, easy).stopped
    expect(page.get_by_text("Decided on")).to_be_visible()
    page.wait_for_function("said.length === 1")
    assert page.evaluate("said") == [["mix", study.answer_in_words]]
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_sizes_and_colours(browser, served, store, scheme, size):
    drive(Study.create(store, "mix with a name that is rather long, as names are", star(delta=0.1)))
    context = browser.new_context(viewport=size, color_scheme=scheme)
    page = context.new_page()
    for path, heading in (("/", "Studies"), ("/new", "New study")):
        page.goto(served + path)
        expect(page.get_by_role("heading", name=heading)).to_be_visible()
        expect(page.locator("table").first).to_be_visible()
        check_access(page)
    page.goto(served)
    page.get_by_role("link", name="mix with").click()
    expect(page.get_by_role("img", name=re.compile("^Evidence"))).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("^Shares of the samples"))).to_be_visible()
    check_access(page)
    context.close()


def test_a_service_that_goes_away_and_comes_back(page, sqlite_url, store):
    study = drive(Study.create(store, "mix", star(delta=0.1)))
    with Thread(sqlite_url) as running:
        page.goto(f"{running.url}/studies/mix")
        expect(page.get_by_role("definition").nth(2)).to_have_text("100")
        page.route("**/v1/**", lambda route: route.abort())
        drive(study, 1)
        expect(page.get_by_text("The service cannot be reached")).to_be_visible()
        page.unroute("**/v1/**")
        expect(page.get_by_role("definition").nth(2)).to_have_text("110")
        expect(page.get_by_text("The service cannot be reached")).to_have_count(0)
        # One that was away when the page was opened.
        page.route("**/v1/**", lambda route: route.abort())
        page.goto(f"{running.url}/studies/mix")
        expect(page.get_by_text("The service cannot be reached. Trying again.")).to_be_visible()
        page.unroute("**/v1/**")
        expect(page.get_by_role("button", name="Note it")).to_be_visible()
        page.route("**/v1/**", lambda route: route.abort())
        page.goto(f"{running.url}/new")
        expect(page.get_by_text("The service cannot be reached. Trying again.")).to_be_visible()
        page.unroute("**/v1/**")
        expect(page.get_by_text("At least 122.1 samples on average")).to_be_visible()
