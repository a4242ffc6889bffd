"""The dashboard and its service: tokens, proxies, connections that break, notifications."""

from playwright.sync_api import expect

import simplexplore as sx
from browser import check_access, drive, known, open_tab
from servers import Thread
from service_client import new_token
from workers import star


def test_tokens(page, served, sqlite_url):
    sx.Study.create(sqlite_url, "mix", star())
    _, reader = new_token(sqlite_url, "read")
    _, runner = new_token(sqlite_url, "run")

    def enter(text):
        page.get_by_role("textbox", name="Your token").fill(text)
        page.get_by_role("button", name="Use it").click()

    page.goto(served)
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("only for people who have a token")).to_be_visible()
    expect(page.get_by_role("textbox", name="Your token")).to_be_focused()
    check_access(page, colours=True)
    assert "studies/mix" not in page.content()
    enter("sx_00000000_" + "x" * 43)
    expect(dialog.get_by_text("not known here")).to_be_visible()
    enter(reader)
    expect(page.get_by_role("link", name="mix")).to_be_visible()
    expect(page.get_by_text("You may watch.")).to_be_visible()
    page.goto(f"{served}/new")
    expect(page.get_by_text("You may only watch.")).to_be_visible()
    page.goto(f"{served}/studies/mix#data")
    expect(known(page, "best mix so far")).to_contain_text("not known yet")
    expect(page.get_by_text("You may only watch.")).to_be_visible()
    expect(page.get_by_role("button", name="Export as CSV")).to_be_visible()
    assert page.get_by_role("button", name="Note it").count() == 0
    page.get_by_role("button", name="Token").click()
    enter(runner)
    expect(page.get_by_role("button", name="Note it")).to_be_visible()
    open_tab(page, "Settings")
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    assert page.get_by_role("button", name="Extend the study").count() == 0
    assert page.context.cookies() == []
    assert runner not in page.url


def test_a_token_that_is_not_given(page, served, sqlite_url):
    """Whoever does not want to give a token is not asked again and again."""
    new_token(sqlite_url, "read")
    page.goto(served)
    dialog = page.get_by_role("dialog")
    page.get_by_role("button", name="Cancel").click()
    with page.expect_response("**/v1/setup"):
        pass
    page.wait_for_timeout(300)
    expect(dialog).to_be_hidden()
    expect(page.get_by_role("alert")).to_have_text("This service needs a token: press “Token”.")
    page.get_by_role("button", name="Token").click()
    expect(dialog).to_be_visible()


def test_below_a_path_of_a_proxy(page, served, sqlite_url):
    drive(sx.Study.create(sqlite_url, "a/b mix", star(delta=0.1)), 1)

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
    expect(known(page, "best mix so far")).to_be_visible()
    page.get_by_role("link", name="New study").click()
    page.get_by_label("Name of the study").fill("second")
    page.get_by_role("button", name="Fill in an example").click()
    expect(page.get_by_text("At least 122.1 samples on average")).to_be_visible()
    page.get_by_role("button", name="Start the study").click()
    expect(page.get_by_role("heading", name="second")).to_be_visible()
    assert page.url.endswith("/lab/studies/second")
    page.get_by_role("link", name="simplexplore").click()
    expect(page.get_by_text("2 of 2 studies")).to_be_visible()
    page.unroute_all(behavior="wait")  # what is under way would end in the next test


def test_a_study_that_is_not_there(page, served, sqlite_url):
    page.goto(f"{served}/studies/mix#data")
    expect(page.get_by_role("alert")).to_contain_text("there is no study 'mix'")
    expect(page.get_by_role("tab", name="Data")).to_be_hidden()
    sx.Study.create(sqlite_url, "mix", star())
    expect(page.get_by_role("button", name="Note it")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_service_that_goes_away_and_comes_back(page, sqlite_url):
    study = drive(sx.Study.create(sqlite_url, "mix", star(delta=0.1)))
    with Thread(sqlite_url) as running:
        page.goto(f"{running.url}/studies/mix")
        rewards = page.get_by_role("row").locator("td[data-label=Samples]")
        most = study.status()["arms"][0]["rewards"]
        expect(rewards.first).to_have_text(str(most))
        page.route("**/v1/**", lambda route: route.abort())
        study.tell(arm="a", reward=1.0)
        expect(page.get_by_text("The service cannot be reached")).to_be_visible()
        page.unroute("**/v1/**")
        expect(rewards.first).to_have_text(str(most + 1))
        expect(page.get_by_text("The service cannot be reached")).to_have_count(0)
        # One that was away when the page was opened.
        page.route("**/v1/**", lambda route: route.abort())
        page.goto(f"{running.url}/studies/mix")
        expect(page.get_by_text("The service cannot be reached. Trying again.")).to_be_visible()
        page.unroute("**/v1/**")
        expect(known(page, "best mix so far")).to_be_visible()
        page.route("**/v1/**", lambda route: route.abort())
        page.goto(f"{running.url}/new")
        expect(page.get_by_text("The service cannot be reached. Trying again.")).to_be_visible()
        page.unroute("**/v1/**")
        expect(page.get_by_role("button", name="Start the study")).to_be_enabled()


def test_notifications(browser, served, sqlite_url):
    easy = {"a": 9.0, "b": 0.5, "c": 0.4, "d": 8.5, "e": 0.8}
    study = drive(sx.Study.create(sqlite_url, "mix", star(delta=0.1)), 1, easy, batch=4)
    context = browser.new_context(permissions=["notifications"])
    context.add_init_script(
        "window.said = []; class Fake { constructor(title, { body }) { said.push([title, body]); }"
        " static permission = 'granted'; static requestPermission = async () => 'granted'; }"
        " window.Notification = Fake;"
    )
    page = context.new_page()
    page.goto(f"{served}/studies/mix#settings")
    page.get_by_label("Notify me in this browser").check()
    expect(page.get_by_text("You will be notified")).to_be_visible()
    assert drive(study, 100, easy).stopped
    expect(known(page, "decided")).to_be_visible()
    page.wait_for_function("said.length === 1")
    assert page.evaluate("said") == [["mix", study.answer_in_words]]
    context.close()
