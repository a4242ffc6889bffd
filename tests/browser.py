"""A real Chromium, headless, for tests of the dashboard."""

import os
import shutil

import pytest


def executable():
    """Chromium's path, if there is one."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


def launch(playwright):
    """Start it; where there is none, skip with a reason, or fail if it must be there."""
    path = executable()
    if path is None:
        reason = "no Chromium on the path (apt-get install chromium)"
        if os.environ.get("SIMPLEXPLORE_REQUIRE_CHROMIUM"):
            pytest.fail(reason)
        pytest.skip(reason)
    # Root may not use the sandbox, and every page here is our own.
    return playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
