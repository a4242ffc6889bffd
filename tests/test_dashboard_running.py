"""An experiment run from the dashboard: ask, tell, correct, import, without a programme."""

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from playwright.sync_api import expect

import simplexplore as sx
from browser import check_access, drive, known, open_tab
from workers import star


def test_an_experiment_on_a_phone(page, served, sqlite_url):
    """Ask, tell one and many, strike out, pause, resume, archive: without a programme."""
    problem = star(delta=0.1)
    study = sx.Study.create(sqlite_url, "dishes", problem)
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
    expect(page.locator(f"#pull-{pulls[0].id}")).to_contain_text("1.5")  # it stays where it was
    expect(rewards.first).to_have_value("0.75")
    expect(rewards.first).to_be_focused()
    rewards.nth(1).fill("many")
    page.get_by_role("button", name="Tell all that are filled in").click()
    expect(page.get_by_role("alert")).to_contain_text("“many” is not a number")
    rewards.nth(1).fill("-0.25")
    page.get_by_role("button", name="Tell all that are filled in").click()
    expect(page.get_by_text("No pull is pending.")).to_be_visible()
    told = {one["number"]: one["reward"] for one in study.events() if one["event"] == "told"}
    assert told == {1: 1.5, 2: 0.75, 3: -0.25}
    open_tab(page, "Data")
    page.get_by_label("Arm", exact=True).select_option("e")
    page.get_by_label("Reward", exact=True).fill("0.8")
    page.locator("#elsewhere").get_by_role("button", name="Tell").click()
    events = page.get_by_role("region", name="Recent events")
    expect(events.get_by_text("0.8", exact=True)).to_be_visible()
    check_access(page)
    # A mistake: beside the pull, or in the list of events.
    strike = page.get_by_role("button", name=f"Strike out 0.75, the reward of {pulls[1].arm}")
    expect(strike).to_be_visible()
    name = f"Strike out the reward 0.75 of {pulls[1].arm}"
    page.get_by_role("button", name=name).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text(f"0.75, of {pulls[1].arm}")).to_be_visible()
    check_access(page, colours=True)
    dialog.get_by_role("button", name="Strike it out").click()
    expect(dialog).to_be_visible()  # a reason is wanted
    dialog.get_by_label("Why?").fill("burnt")
    dialog.get_by_role("button", name="Strike it out").click()
    expect(events.get_by_text("event 5: burnt")).to_be_visible()
    expect(page.get_by_text("1 pull to make")).to_be_visible()
    expect(strike).to_have_count(0)
    assert study.status()["voided"] == 1
    assert study.pending() == [pulls[1]]
    # No more of them for a while.
    open_tab(page, "Settings")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Ask", exact=True)).to_be_hidden()
    assert study.state == "paused"
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("button", name="Ask", exact=True)).to_be_visible()
    page.get_by_role("button", name="Archive").click()
    expect(page.get_by_role("button", name="Bring it back")).to_be_visible()
    check_access(page, colours=True)
    page.goto(served)
    expect(page.get_by_text("All studies are archived.")).to_be_visible()
    page.get_by_label("Show archived studies").check()
    expect(page.get_by_role("link", name=study.name)).to_be_visible()
    assert study.state == "archived"
    assert study.verify()


def test_an_experiment_by_keyboard_alone(page, served, sqlite_url):
    """The focus is never lost, on a page of 320 points: 1280 at four times the size."""
    study = sx.Study.create(sqlite_url, "n" * 60, star(delta=0.1))
    page.set_viewport_size({"width": 320, "height": 640})
    page.goto(f"{served}/studies/{study.name}")
    expect(page.get_by_text("No pull is pending")).to_be_visible()
    wanted = page.get_by_label("Pulls wanted")
    wanted.focus()
    page.keyboard.press("ArrowUp")
    expect(wanted).to_have_value("2")
    page.keyboard.press("Enter")
    rewards = page.get_by_placeholder("reward")
    expect(rewards.first).to_be_focused()
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.type("1.5\n")
    expect(page.get_by_text("1 pull to make")).to_be_visible()
    expect(rewards.first).to_be_focused()
    page.keyboard.type("-123456789012.5\n")
    expect(page.get_by_text("No pull is pending.")).to_be_visible()
    expect(wanted).to_be_focused()
    expect(page.get_by_text("-1.235e+11", exact=True).first).to_be_visible()
    # Tabs are one stop; arrow keys, Home and End go from one to the next, and the address follows.
    tabs = page.get_by_role("tablist").get_by_role("tab")
    tabs.first.focus()
    page.keyboard.press("ArrowLeft")
    expect(tabs.last).to_be_focused()
    for key, name in (("Home", "Arms"), ("ArrowRight", "Limits"), ("End", "Settings")):
        page.keyboard.press(key)
        expect(page.get_by_role("tab", name=name)).to_be_focused()
        expect(page.get_by_role("tab", selected=True)).to_have_text(name)
        expect(page.get_by_role("tabpanel")).to_have_accessible_name(name)
        assert page.url.endswith(f"#{name.lower()}")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Tab")
    expect(page.get_by_role("tabpanel", name="Data")).to_be_focused()
    # What opened a dialog gets the focus back, though it was drawn anew in the meantime.
    strike = page.get_by_role("button", name="Strike out the reward 1.5 of")
    strike.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Why?")).to_be_focused()
    study.tell(None, 0.125, arm="e")
    expect(page.get_by_role("region", name="Recent events").get_by_text("0.125")).to_be_visible()
    page.keyboard.press("Escape")
    expect(strike).to_be_focused()
    check_access(page)
    page.reload()
    expect(page.get_by_role("tab", selected=True)).to_have_text("Data")
    open_tab(page, "Settings")
    page.get_by_role("button", name="Pause").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Resume")).to_be_focused()
    page.goto(served)
    link = page.get_by_role("link", name=study.name)
    link.focus()
    with page.expect_response("**/v1/studies?*"):
        study.note("news")
    page.wait_for_timeout(100)
    expect(link).to_be_focused()
    check_access(page)


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


def test_a_manager_with_six_channels_and_two_workers(page, served, sqlite_url):
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
    answer = sx.Study.open(sqlite_url, "channels").answer
    assert answer["mix"] == pytest.approx({"search": 0.5, "mail": 0.5})
    expect(known(page, "answer")).to_contain_text("50% search, 50% mail.")
    expect(known(page, "decided")).to_be_visible()
    check_access(page)


def test_a_file_of_rewards(page, served, sqlite_url):
    study = sx.Study.create(sqlite_url, "dishes", star(delta=0.1))
    pull = study.ask()[0]
    page.goto(f"{served}/studies/dishes#data")

    def upload(text):
        file = {"name": "week.csv", "mimeType": "text/csv", "buffer": text.encode()}
        page.get_by_label("CSV file").set_input_files(file)

    upload("arm,reward\na,1\nq,2\nb,x\nc,3\n")
    expect(page.get_by_text("2 rows wrong, so nothing can be imported yet")).to_be_visible()
    expect(page.get_by_text("Line 3: there is no arm 'q'")).to_be_visible()
    expect(page.get_by_text("Line 4: the reward 'x' is not a number.")).to_be_visible()
    expect(page.get_by_role("button", name="Import")).to_have_count(0)
    check_access(page, colours=True)
    assert study.head == 1
    upload(f"pull;arm;reward\n{pull.id};;0,5\n;b;1,25\n")
    expect(page.get_by_text("2 rows can be read (1 of a pull, 1 made elsewhere).")).to_be_visible()
    page.get_by_role("button", name="Import 2 rewards").click()
    expect(page.get_by_text("2 rewards imported.")).to_be_visible()
    assert [one.get("reward") for one in study.events()] == [None, 0.5, 1.25]


def test_what_a_worker_needs(page, served, sqlite_url):
    study = sx.Study.create(sqlite_url, "a/b 'mix'", star(delta=0.1))
    page.goto(f"{served}/studies/a%2Fb%20'mix'#limits")
    expect(page.get_by_role("cell", name="a + b <= 0.5")).to_be_visible()
    open_tab(page, "Settings")
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
    in_r = page.get_by_label("A worker in R")
    expect(in_r).to_contain_text(f"{served}/v1/studies/a%2Fb%20'mix'")
    bare = re.sub(r'"[^"]*"|#.*', "", in_r.inner_text())  # R is not here: what opens closes
    assert [bare.count(one) for one in "([{"] == [bare.count(one) for one in ")]}"]
    check_access(page, colours=True)


def test_remarks_and_extensions(page, served, sqlite_url):
    study = sx.Study.create(sqlite_url, "mix", star(delta=0.1))
    page.goto(f"{served}/studies/mix#data")
    page.get_by_label("A remark for the journal").fill("new oven")
    page.get_by_role("button", name="Note it").click()
    expect(page.get_by_role("cell", name="new oven")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="Export as CSV").click()
    assert download.value.suggested_filename == "mix.csv"
    open_tab(page, "Settings")
    page.get_by_label("A smaller allowed error").fill("0.5")
    page.get_by_role("button", name="Extend the study").click()
    expect(page.get_by_role("alert")).to_contain_text("extended to a smaller delta")
    page.get_by_label("A smaller allowed error").fill("0.01")
    page.get_by_role("button", name="Extend the study").click()
    expect(page.get_by_text("allowed error 0.01 (proven)")).to_be_visible()
    assert [event["event"] for event in study.events()] == ["noted", "extended"]


def test_a_refusal_stays_on_show(page, served, sqlite_url):
    study = sx.Study.create(sqlite_url, "mix", star(delta=0.1))
    page.goto(f"{served}/studies/mix#settings")
    page.get_by_label("A smaller allowed error").fill("0.5")
    page.get_by_role("button", name="Extend the study").click()
    expect(page.get_by_role("alert")).to_contain_text("extended to a smaller delta")
    drive(study, 1)
    expect(known(page, "best mix so far")).to_contain_text("%")
    expect(page.get_by_role("alert")).to_contain_text("extended to a smaller delta")
