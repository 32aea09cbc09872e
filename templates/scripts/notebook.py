# Load the answers behind the headline, and the newest report.
import json
from pathlib import Path

import pandas as pd

rows = pd.read_csv("headline.csv")
newest = max(Path("analyses").glob("*.json"), key=lambda path: int(path.stem))
report = json.loads(newest.read_text(encoding="utf-8"))["result"]
estimates = [one for block in report["blocks"] if block["mode"] == "recommended" for one in block["estimates"]]
# %%
# Compute the headline again, as a weighted mean of the answers, beside what the report says.
sums = rows.assign(value=rows.value * rows.weight).groupby(["comparison", "estimate"])[["value", "weight"]].sum()
stored = {(one["settings"].get("contrast", {}).get("key"), one["estimand"]): one["estimate"] for one in estimates}
headline = pd.DataFrame({"again": sums.value / sums.weight, "report": pd.Series(stored)}).dropna()
headline  # noqa: B018 - a notebook shows its last value
