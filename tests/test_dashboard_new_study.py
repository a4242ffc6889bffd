"""A new study from the form, in a real browser."""

from playwright.sync_api import expect

import simplexplore as sx
from browser import check_access, open_tab


def test_a_study_from_the_form(page, served, sqlite_url):
    page.goto(f"{served}/new")
    page.get_by_role("button", name="Fill in an example").click()
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
    check_access(page, colours=True)
    text.fill(good.replace("means = [8.0, 7.5, 6.0]", ""))
    expect(page.get_by_text("The file gives no means")).to_be_visible()
    text.fill(good)
    page.get_by_label("Name of the study").fill("tastings")
    page.get_by_text("How it is explored").click()
    page.get_by_label("Sampler").select_option("uniform")
    page.get_by_role("button", name="Start the study").click()
    expect(page.get_by_role("heading", name="tastings")).to_be_visible()
    study = sx.Study.open(sqlite_url, "tastings")
    assert study.about["sampler"] == "uniform"
    assert study.about["expire_after"] == 86_400.0
    # The name is taken now.
    page.goto(f"{served}/new")
    page.get_by_role("button", name="Fill in an example").click()
    page.get_by_label("Name of the study").fill("tastings")
    page.get_by_role("button", name="Start the study").click()
    expect(page.get_by_role("alert")).to_contain_text("there is a study 'tastings'")


def test_a_file_is_checked_before_samplers_are_known_and_no_study_made(page, served):
    held = []
    page.route("**/v1/setup", lambda route: held.append(route))  # noqa: PLW0108
    page.goto(f"{served}/new")
    page.get_by_label("Name of the study").fill("too soon")
    button = page.get_by_role("button", name="Start the study")
    expect(button).to_be_disabled()
    page.get_by_role("button", name="Fill in an example").click()
    expect(page.locator("#result table").first).to_be_visible()
    held.pop().continue_()
    expect(button).to_be_enabled()
    page.get_by_text("How it is explored").click()
    expect(page.get_by_label("Sampler")).to_have_value("top-two")
    expect(page.get_by_label("Threshold")).to_have_value("tilt")


def test_an_answer_that_gets_lost(page, served, sqlite_url):
    """What was sent again happens once."""
    lost = []

    def lose(route):
        if route.request.method != "POST" or len(lost) > 1:
            route.continue_()
        else:
            lost.append(route.fetch().status)
            route.abort()

    page.goto(f"{served}/new")
    page.get_by_role("button", name="Fill in an example").click()
    expect(page.get_by_text("At least 122.1 samples on average")).to_be_visible()
    page.route("**/v1/studies", lose)
    page.get_by_label("Name of the study").fill("tastings")
    page.get_by_role("button", name="Start the study").click()
    expect(page.get_by_role("alert")).to_contain_text("The service cannot be reached.")
    lost.append("enough")
    page.get_by_role("button", name="Start the study").click()
    expect(page.get_by_role("heading", name="tastings")).to_be_visible()
    open_tab(page, "Data")
    page.route("**/notes", lose)
    del lost[1:]
    page.get_by_label("A remark for the journal").fill("new oven")
    page.get_by_role("button", name="Note it").click()
    expect(page.get_by_role("alert")).to_contain_text("The service cannot be reached.")
    page.get_by_role("button", name="Note it").click()
    expect(page.get_by_label("A remark for the journal")).to_have_value("")
    assert lost == [201, 204]
    events = sx.Study.open(sqlite_url, "tastings").events()
    assert [event["text"] for event in events] == ["new oven"]
