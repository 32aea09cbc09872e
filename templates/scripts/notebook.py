# Load the answers of the newest analysis: those of live questions, of submitted work that no rule excludes.
import json
from pathlib import Path

import numpy as np
import pandas as pd

newest = max(Path("analyses").glob("*.json"), key=lambda path: int(path.stem))
report = json.loads(newest.read_text(encoding="utf-8"))["result"]
# Rules that use outcomes exclude nobody from the headline.
rules = {rule["rule"] for rule in report["flow"]["rules"] if rule["is_outcome_blind"]}
out = {one["annotator"] for one in report["flow"]["excluded_assignments"] if one["rule"] in rules}
rows = pd.read_csv("responses.csv", low_memory=False)
rows = rows[(rows.purpose == "live") & (rows.is_submitted == 1) & (rows.item_kind.fillna("live") == "live")]
rows = rows[rows.origin.isin(report["parameters"]["origins"]) & ~rows.annotator.isin(out)]
# %%
# Compute the headline again, beside what the report says: how often x is above y, ties half, and the mean stated chance.
blocks = {"rating.superiority": 1, "ranking.share": -1, "spa.pairs": 0}  # the best place is the lowest
keys = ["section", "question", "annotator", "prompt"]
wide = rows[rows.system.notna()].pivot_table(index=keys, columns="system", values="value")
headline = {}
for block in report["blocks"]:
    for estimate in block["estimates"] if block["mode"] == "recommended" and block["name"] in blocks else []:
        pair, better = estimate["settings"]["contrast"], blocks[block["name"]]
        x, y, section = pair["x"], pair["y"], pair["section"]
        if better:
            both = wide.loc[section][[x, y]].dropna()
            value = (better * np.sign(both[x] - both[y]).mean() + 1) / 2
        else:
            asked = rows[(rows.section == section) & rows.x.isin([x, y]) & rows.y.isin([x, y])]
            chance = (asked.value / 100).where(asked.x == x, 1 - asked.value / 100)
            value = chance.groupby(asked.annotator).mean().mean()
        headline[pair["key"]] = (estimate["estimate"], value)
pd.DataFrame(headline, index=["report", "again"]).T  # noqa: B018 - a notebook shows its last value
