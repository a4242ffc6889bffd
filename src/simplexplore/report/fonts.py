"""Fonts for letters that matplotlib's own does not have, such as Chinese ones."""

from __future__ import annotations

import logging
import unicodedata
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from matplotlib import font_manager
from matplotlib.text import Text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Control signs and parts of other letters: no font needs a picture of them.
_INVISIBLE = ("Cc", "Cf", "Mn", "Zs")


@contextmanager
def quiet_fonts() -> Iterator[None]:
    """Keep matplotlib from saying of every font which weights it lacks, and which letters."""
    log = logging.getLogger(font_manager.__name__)
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing from font")
            yield
    finally:
        log.setLevel(level)


def letters_lacking(figure: Figure) -> set[int]:
    """Letters in a figure that the font in use does not have."""
    has = font_manager.get_font(font_manager.findfont(font_manager.FontProperties())).get_charmap()
    texts = (text.get_text() for text in figure.findobj(Text))
    return {
        ord(letter)
        for letter in set().union(*texts)
        if ord(letter) not in has and unicodedata.category(letter) not in _INVISIBLE
    }


def fonts_with(letters: Iterable[int]) -> list[str]:
    """Families of this machine's fonts that have these letters, as few as needed; warn of the rest.

    Files are read anew: matplotlib's list of fonts is as old as its first use.
    """
    lacking = set(letters)
    families: list[str] = []
    fonts = sorted(_fonts_of_the_machine(lacking))
    for _, _, family, found in fonts:
        if lacking & found:
            families.append(family)
            lacking -= found
    for _, path, family, _ in fonts:
        if family in families:
            font_manager.fontManager.addfont(path)
    if lacking:
        sample = "".join(map(chr, sorted(lacking)[:10]))
        warnings.warn(
            f"no font on this machine has the letters {sample}{'…' if len(lacking) > 10 else ''}: "
            "pictures show boxes in their place. Install a font that has them, such as Noto Sans.",
            stacklevel=2,
        )
    return families


def _fonts_of_the_machine(letters: set[int]) -> Iterator[tuple[bool, str, str, frozenset[int]]]:
    """Whether a font is a variant, its file, its family, and which of the letters it has."""
    for path in font_manager.findSystemFonts():
        try:
            font = font_manager.get_font(path)
            # Emoji in colours are pictures, which matplotlib cannot draw.
            has = frozenset(letters & font.get_charmap().keys()) if font.scalable else frozenset()
        except (OSError, RuntimeError):  # no font after all
            continue
        yield font.style_name != "Regular", path, font.family_name, has
