"""How the annotators' answers to live items agree with one another. Only for studies whose outcomes are shown."""

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from studies.protocols import REGISTRY as PROTOCOLS

if TYPE_CHECKING:
    from pandas import DataFrame, Series

# A question with more different answers than this is about amounts, and has no matrix of errors.
MAX_CATEGORIES = 11
# Keeps annotators with few answers from errors of exactly 0 or 1.
PSEUDO_COUNT = 0.1


def given_labels(responses: "DataFrame") -> "DataFrame":
    """Return the answers of submitted work in live sections that are a value or a choice, with the answer in one column."""
    rows = responses[responses["is_submitted"] & ~responses["is_erased"]]
    rows = rows[rows["value"].notna() | (rows["choice"] != "") | rows["chosen_system"].notna()].copy()
    turn_to_one_side(rows)
    rows["given"] = [
        f"{value:.9g}|{choice}|{chosen}"
        for value, choice, chosen in zip(rows["value"], rows["choice"], rows["chosen_system"], strict=True)
    ]
    return rows


def _kind_of_answers(rows: "DataFrame") -> "Series":
    """Return how each row's answer is compared: ``Protocol.comparable_answers``."""
    kinds = {slug: PROTOCOLS[slug].comparable_answers for slug in rows["protocol"].unique() if slug in PROTOCOLS}
    return rows["protocol"].map(kinds).fillna("")


def turn_to_one_side(rows: "DataFrame") -> None:
    """Let all answers of relative points about an item be about the same system, in place.

    Such an answer is about the output shown first, and annotators see the two outputs in either order. The system whose
    name comes first is taken, so a value of 0.8 about the other system becomes 0.2.
    """
    is_relative = (_kind_of_answers(rows) == "points_toward_first") & rows["item"].notna() & rows["system"].notna()
    first = rows[is_relative].groupby("item")["system"].transform("min")
    is_other = is_relative & (rows["system"] != first.reindex(rows.index))
    rows.loc[is_other, "value"] = (1 - rows.loc[is_other, "value"]).round(9)
    rows.loc[is_relative, "system"] = first
    # An item shows one sample of each system, so it alone says which texts were compared.
    rows.loc[is_relative, "sample"] = None


def agreement_by_annotator(labels: "DataFrame") -> dict[str, dict[str, Any]]:
    """Return how often each annotator's answer equals another annotator's answer to the same question about the same text.

    ``share`` of ``n`` pairs of answers. Annotators whose questions no other annotator answered are missing.
    """
    rows = labels[labels["item"].notna()].fillna({"system": "", "sample": -1, "label": ""})
    rows = rows.drop_duplicates(["annotator", "item", "question", "system", "sample", "part"])
    key = ["item", "question", "system", "sample", "part"]
    if rows.empty:
        return {}
    n_others = rows.groupby(key)["annotator"].transform("size") - 1
    n_equal = rows.groupby([*key, "given"])["annotator"].transform("size") - 1
    sums = rows.assign(n_others=n_others, n_equal=n_equal).groupby("annotator")[["n_others", "n_equal"]].sum()
    return {
        str(annotator): {"share": int(equal) / int(others), "n": int(others)}
        for annotator, others, equal in sums.itertuples()
        if others
    }


def evidence_by_annotator(labels: "DataFrame") -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Return what models of all answers say about each annotator, and why some questions have none.

    ``error_rate`` (Dawid and Skene) and ``competence`` are means over the questions, weighted by ``error_n`` answers.
    ``severity`` is in shares of the rating scale, over ``severity_n`` ratings that others gave, too.
    """
    from analysis.stats.annotator_models import competence_model, dawid_skene, severity

    rows = labels[labels["item"].notna()].fillna({"system": "", "sample": -1})
    rows = rows.drop_duplicates(["annotator", "item", "question", "system", "sample", "part"])
    rows = rows.assign(
        subject=[
            f"{item}|{question}|{system}|{sample:.0f}|{part}"
            for item, question, system, sample, part in zip(
                rows["item"], rows["question"], rows["system"], rows["sample"], rows["part"], strict=True
            )
        ]
    )
    sums: dict[str, dict[str, float]] = defaultdict(lambda: {"n": 0, "wrong": 0.0, "intended": 0.0})
    reasons = []
    for (section, question), own in rows[_kind_of_answers(rows) != ""].groupby(["section", "question"]):
        if own["given"].nunique() > MAX_CATEGORIES:
            continue
        columns = (own["subject"].to_list(), own["annotator"].to_list(), own["given"].to_list())
        errors = dawid_skene(*columns, pseudo_count=PSEUDO_COUNT)
        competence = competence_model(*columns, pseudo_count=PSEUDO_COUNT)
        if errors.status != "ok" or competence.status != "ok":
            reasons.append(f"Section {section}, question {question}: {errors.reason or competence.reason}.")
            continue
        for one, other in zip(errors.annotators, competence.annotators, strict=True):
            total = sums[one.annotator]
            total["n"] += one.n
            total["wrong"] += one.n * (one.error_rate or 0.0)
            total["intended"] += other.n * (other.competence or 0.0)
    found: dict[str, dict[str, Any]] = {
        annotator: {
            "error_rate": total["wrong"] / total["n"],
            "competence": total["intended"] / total["n"],
            "error_n": int(total["n"]),
        }
        for annotator, total in sums.items()
    }
    rated = rows[(_kind_of_answers(rows) == "points") & rows["value"].notna()]
    for shift in severity(rated["subject"].to_list(), rated["annotator"].to_list(), rated["value"].to_numpy(float)):
        interval = shift.interval
        found.setdefault(shift.annotator, {}).update(
            severity=shift.estimate,
            severity_low=interval.low if interval else None,
            severity_high=interval.high if interval else None,
            severity_n=shift.n,
        )
    return found, reasons
