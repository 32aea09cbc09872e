"""Small frames of assignments and answers, as exclusion rules read them."""

from datetime import timedelta

import pandas as pd

START = pd.Timestamp("2026-11-21 10:00", tz="UTC")


def assignments(*rows):
    """Submitted assignments 1, 2, ...: each row overrides what is usual."""
    usual = {
        "batch": 1, "arm": "all", "trust": "verified", "is_identified": True, "is_submitted": True, "is_late": False,
        "released_reason": "", "released_at": pd.NaT, "seconds": 900.0,
    }  # fmt: skip
    return pd.DataFrame(
        [
            usual | {"assignment": n, "annotator": f"a{n}", "submitted_at": START + timedelta(minutes=n)} | row
            for n, row in enumerate(rows, 1)
        ]
    )


def responses(*rows):
    usual = {
        "arm": "all", "batch": 1, "section": 1, "purpose": "live", "criterion": "", "question": "q", "x": None, "y": None, "value": float("nan"),
        "choice": "", "chosen_system": None, "item": None, "system": None, "sample": None, "text": "", "skip_reason": "", "is_erased": False, "position": 1, "received_at": START,
    }  # fmt: skip
    return pd.DataFrame([usual | {"id": n} | row for n, row in enumerate(rows, 1)])
