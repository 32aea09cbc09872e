"""Rows of stated chances that a test made up."""

import pandas as pd


def frame_of(section, answers, **columns):
    """A row for each (person, x, y, percent)."""
    rows = [
        {
            "assignment": person,
            "annotator": f"a{person}",
            "ordinal": 1,
            "batch": person,
            "section": section.position,
            "x": x,
            "y": y,
            "criterion": "",
            "value": percent / 100,
            "is_kept": True,
            "is_kept_paper": True,
            "kept:late": True,
            "design_version": 1,
            **columns,
        }
        for person, x, y, percent in answers
    ]
    frame = pd.DataFrame(rows)
    return frame
