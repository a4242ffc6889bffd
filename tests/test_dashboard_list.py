"""The list of studies, and studies side by side, in a real browser."""

import re

from playwright.sync_api import expect

import simplexplore as sx
from browser import check_access, drive
from stores import execute
from workers import star


def test_an_empty_store(page, served):
    page.goto(served)
    expect(page.get_by_text("There are no studies yet.")).to_be_visible()
    check_access(page)
    page.get_by_role("link", name="Start the first one").click()
    expect(page.get_by_role("heading", name="New study")).to_be_visible()


def test_a_damaged_study_in_the_list(page, served, sqlite_url):
    for name in ("sound", "broken"):
        drive(sx.Study.create(sqlite_url, name, star(delta=0.1)), 2)
    execute(sqlite_url, "UPDATE studies SET delta = 1e300 WHERE name = 'broken'")
    page.goto(served)
    row = page.get_by_role("row", name=re.compile("^broken"))
    expect(row).to_contain_text("its row says delta = 1e+300. Put back a copy of the store.")
    expect(row.get_by_text("damaged", exact=True)).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("^sound running"))).to_be_visible()
    expect(page.get_by_text("damaged", exact=True)).to_have_count(1)
    check_access(page, colours=True)
    row.get_by_role("link").click()
    expect(page.get_by_role("alert")).to_contain_text("'broken' is damaged")


def test_by_keyboard_alone(page, served, sqlite_url):
    sx.Study.create(sqlite_url, "mix", star())
    page.goto(served)
    expect(page.get_by_role("link", name="mix")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="mix")).to_be_focused()
    # Another one changes and comes first: the focus stays where it was.
    with page.expect_response("**/v1/studies?*"):
        sx.Study.create(sqlite_url, "newer", star())
    expect(page.get_by_role("link", name="newer")).to_be_visible()
    expect(page.get_by_role("link", name="mix")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="mix", exact=True)).to_be_visible()


def test_two_hundred_studies_and_fifty_arms(page, served, sqlite_url):
    arms = [f"arm {i}" for i in range(50)]
    for i in range(199):
        sx.Study.create(sqlite_url, f"study {i}", sx.Problem(2), "uniform")
    wide = sx.Problem(arms, {"cap": " + ".join(f"`{arm}`" for arm in arms[:10]) + " <= 0.3"})
    study = sx.Study.create(sqlite_url, "wide", wide, "uniform")
    study.tell_many([sx.Reward(0.02 * i, arm=arm) for i, arm in enumerate(arms)])
    page.goto(served)
    expect(page.get_by_text("200 of 200 studies")).to_be_visible()
    page.get_by_label("Search names and states").fill("wid")
    expect(page.get_by_text("1 of 200 studies")).to_be_visible()
    page.get_by_role("link", name="wide").click()
    arms = page.get_by_role("tabpanel", name="Arms")
    rows = arms.locator(".wide").get_by_role("row")
    expect(rows).to_have_count(13)
    page.locator("#all-arms").click()
    expect(rows).to_have_count(51)
    expect(page.locator("#all-arms")).to_be_focused()
    charts = arms.locator(".panel").get_by_role("img")
    expect(charts).to_have_count(12)
    page.get_by_role("button", name="Show all 50 arms").click()
    expect(charts).to_have_count(50)
    expect(page.locator("#all-means")).to_be_focused()
    expect(page.locator("#all-means")).to_have_text("Show the first 12")
    check_access(page)


def test_pages_of_studies(page, served, sqlite_url):
    for i in range(8):
        sx.Study.create(sqlite_url, f"study {i}", star())
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
    sx.Study.open(sqlite_url, "study 0").note("changed")
    first = page.get_by_role("row").nth(1)
    expect(first.get_by_role("link")).to_have_text("study 0")
    assert len(pages) <= 8  # what changed, and not all of them every time


def test_studies_side_by_side(page, served, sqlite_url):
    easy = {"a": 3.0, "b": 0.5, "c": 0.4, "d": 2.5, "e": 0.8}
    one = drive(sx.Study.create(sqlite_url, "done", star(delta=0.1)), 100, easy)
    drive(sx.Study.create(sqlite_url, "going on", star(delta=1e-9)), 3)
    sx.Study.create(sqlite_url, "new", star())
    page.goto(served)
    page.get_by_label("Sort").select_option("by name")
    rows = page.get_by_role("row")
    expect(rows.nth(1)).to_contain_text("done")
    page.get_by_label("Search names and states").fill("going")
    expect(page.get_by_text("1 of 3 studies")).to_be_visible()
    page.get_by_label("Search names and states").fill("")
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
    # One that stopped because its samples were spent has not got all the evidence.
    goal = sx.Problem(["a", "b"], delta=1e-6, stop_when={"budget": 20})
    assert drive(sx.Study.create(sqlite_url, "spent", goal)).stopped
    page.goto(served)
    row = page.get_by_role("row", name=re.compile("spent"))
    expect(row).to_contain_text("budget 20")  # and no allowed error, which it has not
    expect(row).not_to_contain_text("0.000001")
    page.goto(f"{served}/compare?study=spent")
    expect(page.get_by_role("img", name=re.compile("spent [0-9.]{1,4}%"))).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("100%"))).to_have_count(0)
    check_access(page, colours=True)


def test_a_comparison_does_not_wait_for_the_slowest_study(page, served, sqlite_url):
    for name in ("quick", "slow"):
        drive(sx.Study.create(sqlite_url, name, star(delta=1e-9)), 3)
    held = []

    def hold(route):
        held.append(route)

    page.route("**/studies/slow/status", hold)
    page.goto(f"{served}/compare?study=slow&study=quick")
    rows = page.get_by_role("row")
    expect(rows.nth(1)).to_contain_text("quick")
    expect(page.get_by_text("Reading 1 more…")).to_be_visible()
    held[0].continue_()
    expect(rows.nth(1)).to_contain_text("slow")  # in the order that was asked for
    expect(rows.nth(2)).to_contain_text("quick")
    expect(page.get_by_text("Reading")).to_have_count(0)
    # One that cannot be read is named, and the other is shown.
    page.goto(f"{served}/compare?study=none&study=quick")
    expect(page.get_by_role("alert")).to_contain_text("none")
    expect(rows.nth(1)).to_contain_text("quick")
