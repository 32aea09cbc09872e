"""Rows of error marks and scores, as the analysis reads them."""

import pandas as pd


def frame_of(section, judged):
    """``judged``: {(person, prompt, system): ([(category, weight, part), …], score)}."""
    rows = []
    for (person, prompt, system), (marks, score) in judged.items():
        base = {
            "assignment": person,
            "annotator": f"a{person}",
            "section": section.position,
            "item": f"s1.{prompt}",
            "prompt": f"p{prompt:03}",
            "second_sample": f"p{prompt:03}",
            "system": system,
            "sample": 0,
            "is_kept": True,
            "is_kept_paper": person != 9,
        }
        for category, weight, part in marks or [("", 0, "")]:
            rows.append(base | {"question": "errors", "choice": category, "value": weight / 100, "part": part})
        rows.append(base | {"question": "score", "choice": "", "value": score / 100, "part": ""})
    return pd.DataFrame(rows).assign(id=range(len(rows)))
