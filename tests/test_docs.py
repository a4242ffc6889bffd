"""Pages for users: what they link to and the commands they show exist."""

import re
import runpy
from pathlib import Path
from xml.etree import ElementTree

import pytest
import typer

from simplexplore.cli.app import app

ROOT = Path(__file__).parent.parent
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.py"))
PAGES = [
    *(ROOT / name for name in ("README.md", "PACKAGE.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *TUTORIALS,
]


def anchors(page):
    """What headings are called in links, as mkdocs and GitHub do."""
    if page.suffix == ".py":
        return set()
    plain = (re.sub(r"[^\w\s-]", "", h.lower()) for h in headings(page.read_text()))
    return {re.sub(r"\s+", "-", text.strip()) for text in plain}


def headings(text):
    return [
        re.sub(r"<[^>]+>|\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    ]


def test_links_lead_somewhere():
    for page in PAGES:
        for link in re.findall(r"\]\(([^)\s{]+)\)", page.read_text()):
            if link.startswith("https://"):
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if target.with_suffix(".py") in TUTORIALS:  # its page is made when the site is built
                target = target.with_suffix(".py")
            assert target.exists(), f"{page.name}: {link}"
            if anchor:
                assert anchor in anchors(target), f"{page.name}: {link}"


def test_formulas_are_written_as_mathml():
    site = runpy.run_path(str(ROOT / "docs" / "formulas.py"))
    page = r'<p>With <span class="arithmatex">\(a &lt; \frac{1}{b}\)</span>, <code>$x$</code></p>'
    shown = site["on_page_content"](page)
    assert "<mfrac>" in shown
    assert "arithmatex" not in shown
    assert "<code>$x$</code>" in shown
    with pytest.raises(ValueError, match=r"unknown command in the formula \\fraq"):
        site["mathml"](r"\fraq{1}{2}", displayed=False)
    count = 0
    for path in (ROOT / "docs").rglob("*.md"):
        text = re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text(), flags=re.DOTALL)
        for block, inline in re.findall(r"\$\$(.+?)\$\$|\$([^$]+?)\$", text, re.DOTALL):
            ElementTree.fromstring(site["mathml"](block or inline, displayed=bool(block)))
            count += 1
    assert count > 500


def commands(group, before=()):
    """Every command, and the options it has."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*before, name))
        else:
            yield (*before, name), {o for p in command.params for o in (*p.opts, *p.secondary_opts)}


@pytest.fixture(scope="module")
def known():
    return dict(commands(typer.main.get_command(app)))


def code_of(page):
    """Shell blocks, inline code, and the shell cells of tutorials."""
    text = page.read_text().replace("\\\n", " ")
    if page.suffix == ".py":
        return re.sub(
            r"^# ?", "", "".join(re.findall(r"\[shell\]\n((?:#.*\n)+)", text)), flags=re.M
        )
    blocks = re.findall(r"```(?:sh|bash|console)\n(.*?)```", text, re.DOTALL)
    return "\n".join([*blocks, *re.findall(r"`(simplexplore [^`\n]*)`", text)])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_on_pages_exist(page, known):
    for line in re.findall(r"^[$ ]*simplexplore ([a-z].*)", code_of(page), re.MULTILINE):
        words = re.sub(r"\s[#|]\s.*|\".*?\"|[\[\]]", "", line).split()
        name = tuple(words[:2]) if words[0] in ("study", "token") else tuple(words[:1])
        assert name in known, f"simplexplore {line}"
        asked = {w.partition("=")[0] for w in words if re.match(r"--?[a-z]", w)}
        assert asked <= known[name] | {"--help"}, f"simplexplore {line}"
