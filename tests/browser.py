"""A real Chromium, headless, for tests of the dashboard, and what they have in common."""

import os
import shutil

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import DEFAULT_OPTIONS, Axe
from playwright.sync_api import expect

from nightly import NIGHTLY
from workers import MEANS

DESKTOP = {"width": 1200, "height": 900}
LAPTOP = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
PATIENCE = 60_000  # milliseconds: a machine may be busy
expect.set_options(timeout=PATIENCE)


def executable():
    """Chromium's path, if there is one: without windows it takes a fifth less time."""
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


def launch(playwright):
    """Start it; where there is none, skip with a reason, or fail if it must be there."""
    path = executable()
    if path is None:
        reason = "no Chromium on the path (apt-get install chromium-headless-shell)"
        if os.environ.get("SIMPLEXPLORE_REQUIRE_CHROMIUM"):
            pytest.fail(reason)
        pytest.skip(reason)
    # Root may not use the sandbox, and every page here is our own.
    return playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])


def watched(context):
    """A page, and a list of what it complains of or fetches from elsewhere."""
    context.set_default_timeout(PATIENCE)
    page, troubles = context.new_page(), []

    def from_elsewhere(request):
        if "//127.0.0.1" not in request.url:
            troubles.append(request.url)

    def refused(message):
        if "Content Security" in message.text:
            troubles.append(message.text)

    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("request", from_elsewhere)
    page.on("console", refused)
    return page, troubles


def drive(study, rounds=10, means=MEANS, batch=10):
    """Ask and tell, until the study stops or for so many rounds."""
    rng = np.random.default_rng(0)
    for _ in range(rounds):
        if study.stopped:
            break
        study.tell_many([(pull, float(rng.normal(means[pull.arm]))) for pull in study.ask(batch)])
    return study


def known(page, about):
    """What the page says is known of something, such as "confidence"."""
    return page.locator(f"#known-{about.replace(' ', '-')} dd")


def open_tab(page, title):
    """Show a part of a study's page; returns it."""
    page.get_by_role("tab", name=title).click()
    return page.get_by_role("tabpanel", name=title)


def points_of(line):
    """Where a line of a chart goes, in pixels."""
    return [tuple(map(float, at.split(","))) for at in line.get_attribute("points").split()]


def check_access(page, *, colours=NIGHTLY):
    """No serious finding of axe-core, and nothing that sticks out sideways.

    Contrasts take four fifths of its time: they are looked at once for each kind of page and of
    message, and everywhere at night.
    """
    options = {**DEFAULT_OPTIONS, "rules": {"color-contrast": {"enabled": colours}}}
    found = Axe().run(page, options=options).response["violations"]
    serious = [
        (one["id"], [node["html"][:120] for node in one["nodes"]])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
    assert serious == []
    wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert wide <= 0
