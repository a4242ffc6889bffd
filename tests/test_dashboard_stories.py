"""What people want to do, from the pages alone, each as a story in a real browser."""

import re

import numpy as np
from playwright.sync_api import expect

import simplexplore as sx
from browser import LAPTOP, PATIENCE, PHONE, check_access, known, open_tab


def check_sizes(page):
    """On a laptop and a phone, light and dark."""
    for size, scheme in ((LAPTOP, "light"), (PHONE, "dark")):
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=scheme)
        check_access(page, colours=True)
    page.set_viewport_size(LAPTOP)


def test_a_newcomer_starts_without_a_file(page, served, sqlite_url):
    page.set_viewport_size(LAPTOP)
    page.goto(served)
    page.get_by_role("link", name="Start the first one").click()
    file = page.get_by_label("Problem file")
    page.get_by_label("Name of the study").fill("lunch")
    for i, dish in enumerate(("pizza", "pasta", "green salad"), 1):
        if i > 2:
            page.get_by_role("button", name="Add an arm").click()
        page.get_by_label(f"Name of arm {i}").fill(dish)
    page.get_by_label("A reward is").select_option("a rating")
    page.get_by_role("button", name="Add a limit").click()
    expect(page.get_by_label("Kind of limit 1")).to_be_focused()
    page.get_by_label("What limit 1 is about").fill("pizza + pasta")
    amount = page.get_by_label("Amount of limit 1")
    amount.fill("40")
    expect(page.get_by_text("40%?")).to_be_visible()
    assert "pizza + pasta" not in file.input_value()  # not before it is clear
    check_sizes(page)
    page.get_by_role("button", name="Yes, 40%").click()
    expect(file).to_have_value(re.compile(r'"pizza \+ pasta <= 0\.4"'))
    expect(page.get_by_text("The file gives no means")).to_be_visible()
    # The form follows the file, and the file the form; what it does not show stays.
    file.fill(file.input_value().replace("0.4", "0.3") + "\n[costs]\npizza = 2\n")
    expect(amount).to_have_value("30%")
    page.get_by_role("button", name="Add a limit").click()
    page.get_by_label("What limit 2 is about").fill("green salad")
    page.get_by_label("Kind of limit 2").select_option("at least")
    page.get_by_label("Amount of limit 2").fill("120%")
    expect(page.get_by_text("No share is above 100%.")).to_be_visible()
    page.get_by_label("Amount of limit 2").fill("12,5%")
    expect(file).to_have_value(re.compile(r"`green salad` >= 0\.125"))
    page.get_by_label("Confidence wanted").fill("90")
    expect(file).to_have_value(re.compile("^delta = 0.1$", re.MULTILINE))
    page.get_by_role("button", name="Start the study").click()
    expect(page.get_by_role("heading", name="lunch")).to_be_visible()
    study = sx.Study.open(sqlite_url, "lunch")
    problem = sx.Problem(
        ["pizza", "pasta", "green salad"],
        {"pizza + pasta": "pizza + pasta <= 0.3", "`green salad`": "`green salad` >= 0.125"},
        rewards=sx.Bounded(1, 5),
        costs=[2, 1, 1],
        delta=0.1,
    )
    assert study.problem.to_text() == problem.to_text()
    # The first three meals.
    expect(page.get_by_text("Ask for pulls: every arm is played first.")).to_be_visible()
    page.get_by_label("Pulls wanted").fill("3")
    page.keyboard.press("Enter")
    expect(page.get_by_placeholder("reward").first).to_be_focused()
    for rating in ("4", "3,5", "5"):
        page.keyboard.type(f"{rating}\n")
        expect(
            page.get_by_role("button", name=f"Strike out {rating.replace(',', '.')},")
        ).to_be_visible()
    expect(known(page, "best mix so far")).to_contain_text("green salad")
    expect(page.get_by_label("Pulls wanted")).to_be_focused()
    check_sizes(page)


def test_what_no_study_can_be_made_of(page, served):
    """The form says what the service would say."""
    page.goto(f"{served}/new")
    page.get_by_label("Name of arm 1").fill("a")
    page.get_by_label("Name of arm 2").fill("b")
    page.get_by_role("button", name="Add a limit").click()
    page.get_by_label("What limit 1 is about").fill("a + z")
    page.get_by_label("Amount of limit 1").fill("50%")
    refusal = page.locator("#result .error")
    expect(refusal).to_contain_text("unknown arm 'z'")
    expect(page.locator(".editor .wrong")).to_have_count(1)
    page.get_by_label("Name of the study").fill("no")
    page.get_by_role("button", name="Start the study").click()
    said = refusal.inner_text()
    expect(page.get_by_role("button", name="Start the study")).to_be_enabled()
    assert refusal.inner_text() == said
    page.get_by_role("button", name="Remove limit 1").click()
    expect(refusal).to_have_count(0)
    check_access(page)


def test_nothing_moves_while_rewards_are_told(page, served, sqlite_url):
    """On a phone: neither the next field nor what stands below it."""
    problem = sx.Problem(["a", "b", "c"], {"cap": "a <= 0.5"}, delta=0.1)
    study = sx.Study.create(sqlite_url, "still", problem)
    study.tell_many([sx.Reward(0.5, arm=arm) for arm in problem.arms])
    page.set_viewport_size(PHONE)
    page.goto(f"{served}/studies/still")
    page.get_by_label("Pulls wanted").fill("6")
    page.keyboard.press("Enter")
    rewards = page.get_by_placeholder("reward")
    expect(rewards).to_have_count(6)
    expect(page.get_by_role("button", name="Tell all that are filled in")).to_be_visible()
    places = "[...document.querySelectorAll('.pull, [role=tablist]')].map((one) =>"
    places += " Math.round(one.getBoundingClientRect().top + scrollY))"
    before = page.evaluate(places)
    for i in range(3):
        rewards.first.fill("1.25")
        page.keyboard.press("Enter")
        expect(rewards).to_have_count(5 - i)
    for field in rewards.all():
        field.fill("0.75")
    page.get_by_role("button", name="Tell all that are filled in").click()
    expect(page.get_by_text("No pull is pending.")).to_be_visible()
    expect(page.get_by_role("button", name="Strike out 0.75")).to_have_count(3)
    assert page.evaluate(places)[:6] == before[:6]
    assert study.status()["rewards"] == 9


def test_two_cooks_and_one_typo(browser, page, served, sqlite_url):
    """Each has pulls of their own; a slip of the finger is asked about, or holds the decision."""
    problem = sx.Problem(["pizza", "salmon", "lentils"], rewards=sx.Gaussian(2.0), delta=0.05)
    study = sx.Study.create(sqlite_url, "dishes", problem)
    study.tell_many([sx.Reward(7.5, arm=arm) for arm in problem.arms])
    context = browser.new_context(viewport=PHONE)
    context.set_default_timeout(PATIENCE)
    kitchens = {"Anna": page, "Ben": context.new_page()}
    page.set_viewport_size(LAPTOP)
    for name, cook in kitchens.items():
        cook.goto(f"{served}/studies/dishes")
        cook.get_by_label("Your name").fill(name)
        cook.get_by_label("Pulls wanted").fill("3")
        cook.keyboard.press("Enter")
        expect(cook.get_by_placeholder("reward")).to_have_count(3)
    anna, ben = kitchens.values()
    assert [pull.by for pull in study.pending()] == 3 * ["Anna"] + 3 * ["Ben"]
    # Others' pulls are there if one wants to see them, and can be taken over.
    expect(anna.get_by_placeholder("reward")).to_have_count(3)
    anna.get_by_label("Show 3 pulls of others").check()
    expect(anna.get_by_role("button", name="Take over")).to_have_count(3)
    check_sizes(anna)
    anna.get_by_role("button", name="Take over").first.click()
    expect(anna.get_by_placeholder("reward")).to_have_count(4)
    expect(ben.get_by_placeholder("reward")).to_have_count(2)
    assert [pull.by for pull in study.pending()].count("Anna") == 4
    # One of them burnt: it was not made.
    ben.get_by_role("button", name="was not made").first.click()
    expect(ben.get_by_label("Why?")).to_have_value("not made")
    check_access(ben)
    ben.get_by_role("button", name="Give it back").click()
    expect(ben.get_by_placeholder("reward")).to_have_count(1)
    assert study.events()[-1]["event"] == "expired"
    # The slip.
    rewards = anna.get_by_placeholder("reward")
    rewards.first.fill("99")
    rewards.first.press("Enter")
    question = anna.get_by_role("alert")
    expect(question).to_contain_text("99 looks impossible")
    expect(question).to_contain_text("Did you mean 9.9?")
    check_sizes(anna)
    anna.get_by_role("button", name="Yes, 9.9").click()
    expect(rewards).to_have_count(3)
    assert study.events()[-1]["reward"] == 9.9
    # One that a programme told: the study does not stop before somebody has looked at it.
    pull = study.pending(by="Ben")[0]
    study.tell(pull, 77.0)
    held = anna.locator("#held")
    expect(held).to_contain_text(f"77 looks impossible for {pull.arm}")
    held.get_by_role("button", name="Strike out").click()
    anna.get_by_label("Why?").fill("it was 7.7")
    anna.get_by_role("button", name="Strike it out").click()
    expect(held).to_be_empty()
    assert study.status()["held"] == []
    assert study.verify()
    context.close()


def test_a_manager_imports_weekly_sums_and_stops_when_it_is_good_enough(page, served, sqlite_url):
    channels = {"search": 0.09, "social": 0.05, "mail": 0.07}
    problem = sx.Problem(list(channels), {"most": "search <= 0.6"}, rewards=sx.Bernoulli())
    study = sx.Study.create(sqlite_url, "campaign", problem)
    page.set_viewport_size(LAPTOP)
    page.goto(f"{served}/studies/campaign#data")
    for week in (1, 2):
        page.get_by_label("What they are the sums of").fill(f"week {week}")
        for channel, rate in channels.items():
            page.get_by_label(f"Samples of {channel}").fill("1000")
            page.get_by_label(f"Successes of {channel}").fill(f"{1000 * rate:.0f}")
        page.get_by_role("button", name="Tell the sums").click()
        expect(page.get_by_label("What they are the sums of")).to_have_value("")
        assert study.status()["rewards"] == 3000 * week
    expect(known(page, "best mix so far")).to_have_text("60% search, 40% mail.")
    check_sizes(page)
    open_tab(page, "Settings")
    page.get_by_label("Good enough: say why").fill("the quarter ends")
    page.get_by_role("button", name="Stop now").click()
    expect(known(page, "answer")).to_contain_text("60% search, 40% mail.")
    expect(known(page, "answer")).to_contain_text(re.compile("Stopped by hand.*the quarter ends"))
    expect(page.get_by_text("Nothing: the study has its answer.")).to_be_visible()
    assert study.answer["by_hand"]
    assert study.answer["confidence"] < 0.9
    check_sizes(page)


def test_a_clinician_whose_patients_drift(page, served, sqlite_url):
    """Quiet while all is well; a sentence when the patients become others."""
    doses = {"low": 0.0, "middle": 0.4, "high": 0.5}
    study = sx.Study.create(sqlite_url, "dose", sx.Problem(list(doses), delta=1e-6), "uniform")
    rng = np.random.default_rng(0)

    def visits(n, shift):
        arms = n * list(doses)
        study.tell_many([sx.Reward(float(rng.normal(doses[a] + shift)), arm=a) for a in arms])

    visits(60, 0.0)
    page.set_viewport_size(LAPTOP)
    page.goto(f"{served}/studies/dose")
    expect(known(page, "health")).to_have_text("nothing unusual.")
    expect(page.locator("#known-health .light")).to_have_class("light ok")
    visits(60, 1.5)  # every patient gains by as much, whatever the dose
    expect(known(page, "health")).to_contain_text("fewer than 1 of")
    expect(page.locator("#known-health .light")).to_have_class("light alarm")
    check_sizes(page)
