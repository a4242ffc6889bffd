"""What every picture must keep to."""

import itertools

from simplexplore.report.bound_figure import bound_figure  # noqa: F401
from simplexplore.report.comparison_figure import comparison_figure  # noqa: F401
from simplexplore.report.results_figure import results_figure  # noqa: F401


def texts(figure):
    """Everything written in a figure, but the numbers on axes."""
    every = [*figure.texts, *(text for axes in figure.axes for text in axes.texts)]
    legends = filter(None, (axes.get_legend() for axes in figure.axes))
    every += [text for legend in legends for text in legend.get_texts()]
    return [text for text in every if text.get_text()]


def _on_axes(axes):
    """The labels of axes that are shown, and the numbers on them."""
    if not axes.axison:
        return []
    labels = [axes.xaxis.label, axes.yaxis.label]
    for axis in (axes.xaxis, axes.yaxis):
        low, high = sorted(axis.get_view_interval())
        labels += [t.label1 for t in axis.get_major_ticks() if low <= t.get_loc() <= high]
        labels += [t.label2 for t in axis.get_major_ticks() if low <= t.get_loc() <= high]
    return [label for label in labels if label.get_text() and label.get_visible()]


def assert_texts_apart(figure):
    """No text lies on another or beyond the page."""
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()
    every = [*texts(figure), *(label for axes in figure.axes for label in _on_axes(axes))]
    boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in every]
    page = figure.bbox
    for words, box in boxes:
        assert page.x0 <= box.x0, words
        assert box.x1 <= page.x1, words
        assert page.y0 <= box.y0, words
        assert box.y1 <= page.y1, words
    for (words, box), (other_words, other) in itertools.combinations(boxes, 2):
        # Lines of text may touch; a pixel of overlap is not seen.
        assert not box.padded(-1.0).overlaps(other.padded(-1.0)), (words, other_words)
