"""How the annotators' answers to live items agree with one another. Only for studies whose outcomes are shown."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pandas import DataFrame


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


def turn_to_one_side(rows: "DataFrame") -> None:
    """Let all answers of relative points about an item be about the same system, in place.

    Such an answer is about the output shown first, and annotators see the two outputs in either order. The system whose
    name comes first is taken, so a value of 0.8 about the other system becomes 0.2.
    """
    is_relative = (rows["protocol"] == "relative") & rows["item"].notna() & rows["system"].notna()
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
