"""Formulas on the site: LaTeX between dollars becomes MathML while the site is built.

Browsers show MathML by themselves, so that no script and no font is fetched by a reader.
"""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from latex2mathml.converter import convert

# What pymdownx.arithmatex leaves of $...$ and $$...$$, and what must not begin a line after it.
FORMULA = re.compile(
    r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>([.,;:)]*)', re.DOTALL
)
# Displayed, these have what they range over below them.
LIMITS = re.compile(r"\\(min|max|inf|sup|liminf|limsup|bigcup)_")
# Logarithms stand apart from letters that follow them.
LOGARITHM = re.compile(r"\\log (?=[\\\w])")
# A name before a bracket is a function, not an operator with space around it.
FUNCTION = re.compile(r"<mo>(\w+)</mo>(?=<mo stretchy=\"false\">&#x00028;)")


def on_page_content(html: str, **_: Any) -> str:
    """Write the formulas of a page as MathML, before mkdocs puts the page into its frame."""
    return FORMULA.sub(_written, html)


def _written(found: re.Match[str]) -> str:
    formula = mathml(unescape(found[2]), displayed=found[1] == "div")
    return f'<span class="formula">{formula}{found[3]}</span>' if found[3] else formula


def mathml(latex: str, displayed: bool) -> str:
    """One formula.

    Raises
    ------
    ValueError
        If it has a command that the converter does not know: it would be shown as it is.
    """
    # As a pair of fences, with no space around them.
    latex = latex.replace(r"\lvert", r"\left|").replace(r"\rvert", r"\right|")
    latex = LOGARITHM.sub(r"\\log\\, ", latex)
    if displayed:
        latex = LIMITS.sub(r"\\\1\\limits_", latex)
    written = convert(latex, display="block" if displayed else "inline")
    if "\\" in written:
        raise ValueError(f"unknown command in the formula {latex}")
    return FUNCTION.sub(r"<mi>\1</mi>", written)
