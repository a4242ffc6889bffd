"""Figures as PGF for LaTeX documents, made without LaTeX.

Matplotlib's own writer asks a TeX program how wide each text is. Here texts are measured as for
the other formats, so that none is needed; the document's fonts differ a little from them.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pgf import RendererPgf

from simplexplore.tabular import to_tex

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEADER = """%% Made by simplexplore; in a LaTeX document, with \\usepackage{pgf}:
%%   \\input{<filename>.pgf}
%% Names in other letters than TeX's own need XeLaTeX or LuaLaTeX.
\\begingroup%
\\makeatletter%
\\begin{pgfpicture}%
"""
FOOTER = """\\end{pgfpicture}%
\\makeatother%
\\endgroup%
"""


def to_pgf(figure: Figure) -> bytes:
    """The text of a PGF picture."""
    out = io.StringIO()
    width, height = figure.get_size_inches()
    out.write(HEADER)
    out.write(
        f"\\pgfpathrectangle{{\\pgfpointorigin}}{{\\pgfqpoint{{{width:f}in}}{{{height:f}in}}}}%\n"
        "\\pgfusepath{use as bounding box, clip}%\n"
    )
    dpi = figure.dpi
    figure.dpi = 72  # what PGF counts in
    try:
        figure.draw(_Renderer(figure, out))
    finally:
        figure.dpi = dpi
    out.write(FOOTER)
    return out.getvalue().encode()


class _Renderer(RendererPgf):
    """Writes texts whose signs mean themselves, as wide as they are in the other formats."""

    def __init__(self, figure: Figure, out: io.StringIO) -> None:
        super().__init__(figure, out)  # type: ignore[no-untyped-call]
        self._measure = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]

    def draw_text(
        self, gc: Any, x: Any, y: Any, s: Any, prop: Any, angle: Any, ismath: Any = False,
        mtext: Any = None,
    ) -> None:  # fmt: skip
        super().draw_text(gc, x, y, to_tex(s), prop, angle, ismath, mtext)  # type: ignore[no-untyped-call]

    def get_text_width_height_descent(
        self, s: Any, prop: Any, ismath: Any
    ) -> tuple[float, float, float]:
        w, h, d = self._measure.get_text_width_height_descent(s, prop, False)
        return float(w), float(h), float(d)
