"""Print the headline of a study: of each comparison, the estimate of the report that is a mean of answers."""

import csv
import json
import sys
from collections import defaultdict

FILE = sys.argv[1] if len(sys.argv) > 1 else "headline.csv"


def rows_of(path):
    if path.endswith(".parquet"):
        import pyarrow.parquet

        return pyarrow.parquet.read_table(path).to_pylist()
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file)) if path.endswith(".csv") else [json.loads(line) for line in file]


groups = defaultdict(list)
for row in rows_of(FILE):
    groups[row["comparison"], row["estimate"]].append(row)
for (comparison, estimate), rows in sorted(groups.items()):
    weights = [float(row["weight"]) for row in rows]
    total = sum(float(row["value"]) * weight for row, weight in zip(rows, weights, strict=True))
    annotators = len({row["annotator"] for row in rows})
    print(f"{comparison}\t{total / sum(weights):.6f}\t{annotators} annotators, {len(rows)} answers\t{estimate}")
