"""Where the texts of a drawn figure are."""

from itertools import combinations

import matplotlib

from analysis.report import plots


def overlaps_and_overflows(figure):
    """Return the texts of a drawn figure that lie on each other, and those that leave it."""
    with matplotlib.rc_context(plots.RC_PARAMS):
        canvas = plots._drawn(figure)
        renderer = canvas.canvas.get_renderer()
        canvas.draw(renderer)
        # Labels of ticks beyond the limits of an axis are not drawn.
        axes = [axis for one in canvas.axes for axis in (one.xaxis, one.yaxis)]
        beyond = {tick.label1 for axis in axes for tick in axis.get_major_ticks() if tick not in axis._update_ticks()}
        texts = [
            one
            for one in canvas.findobj(matplotlib.text.Text)
            if one.get_visible() and one.get_text() and one not in beyond
        ]
        boxes = [(one.get_text(), one.get_window_extent(renderer)) for one in texts]
    on_each_other = [
        (first, second)
        for (first, one), (second, other) in combinations(boxes, 2)
        if min(one.x1, other.x1) - max(one.x0, other.x0) > 1 and min(one.y1, other.y1) - max(one.y0, other.y0) > 1
    ]
    width, height = canvas.bbox.width, canvas.bbox.height
    outside = [text for text, one in boxes if one.x0 < 0 or one.y0 < 0 or one.x1 > width or one.y1 > height]
    return len(boxes), on_each_other, outside
