"""Tables about test questions: what annotators answered, and whom the rules flag. They say nothing about systems."""

from typing import TYPE_CHECKING, Any

from analysis.exclusions.screening import (
    ModelSettings,
    SimpleSettings,
    boundary_rows,
    count_by_annotator,
    fails_simple_rule,
    fit_and_screen,
    model_sentences,
)
from analysis.protocols.blocks.tables import Table, build_table
from studies.models import Item

from .report_data import ReportData

if TYPE_CHECKING:
    from pandas import DataFrame


def build_test_question_tables(data: ReportData) -> list[Table]:
    """Return the tables, or nothing if no submitted work has an answer to a test question.

    They use the settings of the declared rules, and the default settings of a rule that the design does not declare.
    """
    answers = data.test_answers
    if answers.empty or not answers["is_submitted"].any():
        return []
    declared = {rule.slug: rule.settings for rule in data.applied_rules if not rule.problem}
    counts = count_by_annotator(answers)
    screening = fit_and_screen(counts, ModelSettings.from_stored(declared.get("test_question_model", {})))
    simple = SimpleSettings.from_stored(declared.get("failed_tests", {}))
    judged = [fails_simple_rule(row, simple) for row in counts]
    n_counted = sum(row.n_counted > 0 for row in counts)
    share = f" and {100 * simple.share:g} %" if simple.share else ""
    rows: list[dict[str, Any]] = [
        {
            "rule": f"model {screening.model}",
            "n": n_counted,
            "flagged": int(screening.flagged.sum()) if screening.status == "ok" else None,
            "declared": "yes" if "test_question_model" in declared else "no",
        },
        {
            "rule": f"failed {simple.failed} or more{share}, of at least {simple.counted}",
            "n": sum(is_failed is not None for is_failed in judged),
            "flagged": sum(is_failed is True for is_failed in judged),
            "declared": "yes" if "failed_tests" in declared else "no",
        },
    ]
    if screening.beside is not None:
        flagged = int(screening.beside.flagged.sum())
        rows.insert(1, {"rule": "model rate_fixed2", "n": n_counted, "flagged": flagged, "declared": "no"})
    return [
        _answers_by_type_table(answers[answers["is_submitted"]]),
        build_table(
            "test_question_flags",
            "Annotators flagged by test questions",
            "rule|By|text; declared|Declared|text; n|n annotators|integer; flagged|Flagged|integer",
            rows,
            "more",
            " ".join(model_sentences(screening)),
        ),
        build_table(
            "test_question_boundaries",
            "Flagged at this number of right answers or fewer",
            "n|Counted answers of a type|integer; positive|Positive questions|integer; negative|Negative questions|integer",
            boundary_rows(screening, counts),
            "more",
            f"Model {screening.model}. A dash: no number of right answers is flagged. Negative: also damaged and given questions.",
        ),
    ]


def _answers_by_type_table(answers: "DataFrame") -> Table:
    rows = []
    for test_type in Item.TestType.values:
        own = answers[answers["type"] == test_type]
        if own.empty:
            continue
        counted = own[own["is_counted"]]
        n_right = int(counted["is_right"].astype(bool).sum())
        rows.append(
            {
                "type": test_type,
                "questions": int(own[["item", "question"]].drop_duplicates().shape[0]),
                "annotators": int(own["annotator"].nunique()),
                "answers": len(own),
                "pilot": int(own["is_pilot"].sum()),
                "counted": len(counted),
                "right": n_right,
                "share": n_right / len(counted) if len(counted) else None,
            }
        )
    return build_table(
        "test_questions",
        "Test questions",
        "type|Type|text; questions|Questions|integer; annotators|n annotators|integer; answers|Answers|integer; "
        "pilot|Pilot answers|integer; counted|Counted|integer; right|Right|integer; share|Right|percent",
        rows,
        "more",
        "Not counted: skipped answers, neutral answers if the section says so, pilot answers, and questions with which the pilot disagrees.",
    )
