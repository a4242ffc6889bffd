"""The files of the dashboard: served whole, by relative addresses, and asked for again cheaply."""

import re
from importlib.resources import files
from urllib.parse import urljoin

import pytest

PAGES = ["/", "/new", "/studies/mix", "/studies/a%2Fb"]
MEDIA_TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


@pytest.mark.parametrize("root", ["", "/lab"])
@pytest.mark.parametrize("page", PAGES)
def test_a_page_finds_all_files(client, page, root):
    """Modules import modules: from every page, and below a proxy's path, all of them are found."""
    answer = client.get(page)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    named = re.findall(r'<(script|link rel="\w+") (?:src|href)="([^"]+)"', answer.text)
    addresses = [(kind, urljoin(root + page, one)) for kind, one in named]
    left = [address for kind, address in addresses if "preload" not in kind]
    assert len(left) == 3
    found = {}
    for address in left:
        name = address.removeprefix(f"{root}/assets/")
        if name not in found:
            file = found[name] = client.get(address.removeprefix(root))
            assert file.headers["content-type"] == MEDIA_TYPES[name.partition(".")[2]]
            imported = re.findall(r'^import .* from "([^"]+)";$', file.text, re.MULTILINE)
            left += [urljoin(address, one) for one in imported]
    there = {one.name: one for one in (files("simplexplore.service") / "dashboard").iterdir()}
    assert {*found} == {*there} - {"index.html"}
    assert all(found[name].content == there[name].read_bytes() for name in found)
    # All modules are fetched at once, and not one after the other.
    preloaded = {address for kind, address in addresses if "preload" in kind}
    assert preloaded == {f"{root}/assets/{name}" for name in found if name.endswith(".js")}


def test_modules_import_in_one_direction(client):
    """No module needs one that needs it."""
    done, doing = set(), []

    def visit(name):
        assert name not in doing, [*doing, name]
        if name not in done:
            doing.append(name)
            for one in re.findall(r'from "\./([^"]+)"', client.get(f"/assets/{name}").text):
                visit(one)
            done.add(doing.pop())

    visit("dashboard.js")
    assert len(done) > 10


def test_files_that_have_not_changed(client):
    for path in (*PAGES, "/assets/dashboard.js", "/assets/dashboard.css", "/assets/icon.svg"):
        answer = client.get(path)
        assert answer.headers["cache-control"] == "no-cache"
        tag = {"If-None-Match": answer.headers["etag"]}
        again = client.get(path, headers=tag)
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == answer.headers["etag"]
        assert client.get(path, headers={"If-None-Match": '"old"'}).content == answer.content
    assert client.get("/assets/nothing.js").status_code == 404
