"""Tables and figures of human-likeness: the paper's Tables 1 and 2, its histograms, and the recommended tables.

This module only arranges values.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from analysis.protocols.blocks.cells import contrast_of, reported_pvalue, verdict_text
from analysis.protocols.blocks.layouts import (
    Figure,
    Table,
    build_figure,
    build_table,
    estimate_row,
    figure_row,
    prefixed_cells,
)
from analysis.protocols.kinds.answers import column_arrays

from .judgements import ALL_DOMAINS, PAPER_ALPHA, Cell, Judgements

if TYPE_CHECKING:
    from analysis.stats.results import Estimate

    from . import PaperCellResults

PAPER = "Clark et al. 2021"
PAPER_COLUMNS = (
    "overall|Overall acc.|probability; overall_sign|Sign.|text; domain|Domain|text; accuracy|Acc.|probability; sign|Sign. |text; "
    "f1|F1|probability; precision|Prec.|probability; recall|Recall|probability; alpha|Kripp. α|probability; "
    "alpha_points|α, four points|probability; human|% human|percent; confident|% confident|percent; p|Bonferroni p|p; "
    "n|n annotators|integer; n_rows|Answers|integer; reason|Undefined because|text"
)


def detection_table(estimates: Mapping, cells: Sequence[Any], title_suffix: str) -> Table:
    """Return the table of d', c, AUC and accuracy of every cell, with the smallest detectable difference from chance."""
    rows = []
    for cell in sorted(cells, key=lambda cell: (cell.model, list(cells).index(cell))):
        d, c, auc, accuracy = (estimates[cell, part] for part in ("sensitivity", "criterion", "auc", "accuracy"))
        within = next((other for other in d.sensitivity if other.analysis.endswith("random_criterion")), None)
        row = {
            **cell.as_dict(),
            "within": within.estimate if within else None,
            "detectable": accuracy.detail.get("detectable"),
            "n": accuracy.n,
            "reason": "; ".join(sorted({estimate.reason for estimate in (d, c, auc, accuracy) if estimate.reason})),
        }
        named = {"d": d, "c": c, "auc": auc, "accuracy": accuracy, "bias": estimates[cell, "bias"]}
        for name, estimate in named.items():
            row |= prefixed_cells(name, estimate)
        rows.append(row)
    return build_table(
        "detection",
        f"Telling human from machine: sensitivity and leaning{title_suffix}",
        "model|Machine|text; condition|Training|text; domain|Domain|text; d|d'|number; d_interval|95% CI, d'|wide_interval; "
        "d_p|adj. p, d'|p; within|d' within annotators|number; c|c|number; c_interval|95% CI, c|wide_interval; auc|AUC|probability; "
        "auc_interval|95% CI, AUC|interval; accuracy|Correct|percent; accuracy_interval|95% CI, correct|interval; "
        "accuracy_p|adj. p, correct|p; detectable|Findable departure from 50 %|percent; "
        "bias|“Human” answered less true|fine_percent; bias_interval|95% CI, bias|fine_interval; n|n annotators|integer; reason|Undefined because|text",
        rows,
        "first",
        "d' measures how well annotators distinguish machine and human texts; 0: not at all. c above 0 is a leaning to “human”. "
        "The share of correct answers mixes the two. Intervals treat annotators and texts as samples. d' within annotators allows "
        "each their own leaning. Findable: the smallest departure that 8 of 10 such studies would show, if its p were the smallest of "
        "its family.",
    )


def sensitivity_and_criterion_figure(estimates: Mapping, cells: Sequence[Any], title_suffix: str) -> Figure:
    """Return the figure of d' and c of every cell."""
    rows = [
        figure_row(estimates[cell, part], cell.label, name)
        for cell in cells
        for name, part in (("sensitivity d'", "sensitivity"), ("criterion c", "criterion"))
    ]
    return build_figure(
        "sensitivity",
        f"Sensitivity and leaning{title_suffix}",
        rows,
        description="d' above 0: annotators distinguish machine from human texts. c above 0: a leaning to “human”.",
        axis="d' and c, in standard deviations",
        reference=0.0,
    )


def _paper_row(judgements, cell, results_by_cell, tests, kind: str) -> dict[str, Any]:
    paper = results_by_cell[cell]
    measures = paper.measures
    test = tests.get((kind, cell))
    return {
        "model": cell.model, "condition": cell.condition, "domain": cell.domain, "accuracy": paper.accuracy.estimate,
        "f1": measures.f1, "precision": measures.precision, "recall": measures.recall, "alpha": paper.alpha.estimate,
        "alpha_points": paper.alpha_points.estimate, "human": measures.share_human, "confident": measures.share_confident,
        "p": reported_pvalue(test), "sign": _significance_mark(test), "n": paper.n, "n_rows": measures.n,
        "reason": "; ".join(
            sorted({estimate.reason for estimate in (paper.accuracy, paper.alpha, test) if estimate is not None and estimate.reason})
        ),
    }  # fmt: skip


def _significance_mark(test: Any) -> str:
    after = reported_pvalue(test)
    return "*" if after is not None and after < PAPER_ALPHA else ""


def _rows_with_overall(judgements, cells, results_by_cell, tests_by_kind_and_cell, kind: str) -> list[dict[str, Any]]:
    """Return the rows of cells by domain. The first row also has the mean over domains, and is the only row without domains."""
    rows = []
    for pooled_cell in cells:
        domain_cells = [
            cell
            for cell in results_by_cell
            if (cell.model, cell.condition) == (pooled_cell.model, pooled_cell.condition) and cell.domain != ALL_DOMAINS
        ]
        test = tests_by_kind_and_cell.get((kind, pooled_cell))
        overall = {"overall": results_by_cell[pooled_cell].accuracy.estimate, "overall_sign": _significance_mark(test)}
        for number, cell in enumerate(domain_cells or [pooled_cell]):
            rows.append(
                _paper_row(judgements, cell, results_by_cell, tests_by_kind_and_cell, kind)
                | (overall if number == 0 else {})
            )
    return rows


def paper_untrained_annotators_table(
    judgements: Judgements,
    results_by_cell: Mapping[Cell, "PaperCellResults"],
    tests_by_kind_and_cell: Mapping[tuple[str, Cell], "Estimate"],
) -> Table:
    """Return the paper's Table 1: untrained annotators, by machine system and domain."""
    cells = [
        cell for cell in judgements.cells_over_domains if cell.condition == judgements.reference_condition(cell.model)
    ]
    return build_table(
        "paper_table_1",
        f"As in Table 1 of {PAPER}: annotators without training{judgements.where}",
        f"model|Model|text; {PAPER_COLUMNS}",
        _rows_with_overall(judgements, cells, results_by_cell, tests_by_kind_and_cell, "chance"),
        "sure",
        "Machine is the positive class of F1, precision and recall. * accuracy differs from 50 %: two-sided one-sample t test of "
        "annotators' accuracies, Bonferroni-corrected p < .05 over all cells of this table and the tests of the next. Texts are treated as "
        "fixed, unlike in the recommended table.",
    )


def paper_conditions_table(
    judgements: Judgements,
    results_by_cell: Mapping[Cell, "PaperCellResults"],
    tests_by_kind_and_cell: Mapping[tuple[str, Cell], "Estimate"],
) -> Table:
    """Return the paper's Table 2: the training conditions of each machine system that has several."""
    cells = [cell for cell in judgements.cells_over_domains if len(judgements.conditions(cell.model)) > 1]
    head = "model|Model|text; " if len({cell.model for cell in cells}) > 1 else ""
    return build_table(
        "paper_table_2",
        f"As in Table 2 of {PAPER}: by training{judgements.where}",
        f"{head}condition|Training|text; {PAPER_COLUMNS}",
        _rows_with_overall(judgements, cells, results_by_cell, tests_by_kind_and_cell, "training"),
        "sure",
        "* accuracy differs from that of the first condition: two-sided t test of annotators' accuracies, Bonferroni-corrected "
        "p < .05. Accuracy mixes better judgement with a leaning to “machine”: see d' and c above.",
    )


def condition_comparisons_table(estimates: Sequence["Estimate"], title_suffix: str) -> Table:
    """Return the table of each comparison on each estimand, with the smallest difference that it could detect."""
    rows = []
    for estimate in estimates:
        contrast = contrast_of(estimate)
        rows.append(
            estimate_row(
                estimate,
                model=contrast["question"],
                what=estimate.settings["key"],
                planned="planned" if contrast["is_planned"] else "",
                verdict=verdict_text(estimate, if_open=""),
                detectable=estimate.detail.get("detectable"),
            )
        )
    return build_table(
        "changes",
        f"What is compared: sensitivity, leaning, accuracy{title_suffix}",
        "x|x|text; y|y|text; model|Machine|text; what|Of|text; planned|Planned|text; estimate|Estimate|fine_number; "
        "interval|95% CI|fine_wide_interval; p|adj. p|p; verdict|Verdict|text; detectable|Findable difference|fine_number; n|n annotators|integer; "
        "reason|Undefined because|text",
        rows,
        "first",
        "x minus y; against chance, x itself. A training that only makes annotators say “machine” more often changes the criterion, but not d'. Findable: the "
        "smallest difference that 8 of 10 such studies would show, if its p were the smallest of its family. “Not significant” leaves all smaller differences open.",
    )


def training_effects_by_domain_table(estimates: Sequence["Estimate"], title_suffix: str) -> Table:
    """Return the table of the effect of a condition in each domain and on average, with the test of interaction."""
    effect_labels = {
        "effect": "mean over domains",
        "by_domain": "in the domain",
        "interaction": "depends on the domain (joint test)",
    }
    rows = []
    for estimate in estimates:
        kind = estimate.analysis.rpartition(".")[2]
        if kind in effect_labels:
            row = estimate_row(
                estimate,
                **{name: estimate.settings.get(name, "") for name in ("model", "condition", "domain")},
                what=effect_labels[kind],
                detectable=estimate.detail.get("detectable"),
            )
            rows.append(row | {"estimate": None, "interval": None} if kind == "interaction" else row)
    return build_table(
        "domains",
        f"What training adds to accuracy, by domain{title_suffix}",
        "model|Machine|text; condition|Training|text; domain|Domain|text; what|What|text; estimate|Added|fine_percent; "
        "interval|95% CI|fine_interval; p|p|p; detectable|Findable|fine_percent; n|n annotators|integer; reason|Undefined because|text",
        rows,
        "sure",
        "Significant in one domain and not in another does not mean that the domains differ. The joint test answers this question. "
        "p is not adjusted.",
    )


def accuracy_group_tests_table(estimates: Sequence["Estimate"], name: str, title: str) -> Table:
    rows = []
    for estimate in estimates:
        is_pair = "x" in estimate.settings
        test = estimate.test
        detail = estimate.detail
        rows.append(
            estimate_row(
                estimate,
                model=estimate.settings.get("model", ""),
                what=f"{estimate.settings['x']} less {estimate.settings['y']}" if is_pair else "all domains alike",
                method=estimate.analysis.rpartition(".")[2].replace("_", " "),
                statistic=test.statistic if test else None,
                df=f"{detail['df_between']}, {detail['df_within']:.6g}"
                if "df_between" in detail
                else (f"{test.df:.6g}" if test and test.df else ""),
                d=estimate.effect.value if estimate.effect else None,
                detectable=detail.get("detectable"),
            )
        )
    return build_table(
        name,
        title,
        "model|Machine|text; what|What|text; method|Method|text; estimate|Difference, or η²|fine_number; interval|95% CI|fine_wide_interval; "
        "statistic|q or F|number; df|df|text; p|p|p; d|Cohen's d|number; detectable|Findable difference|fine_number; n|n annotators|integer; "
        "reason|Undefined because|text",
        rows,
        "more",
        "Accuracies of annotators, with texts treated as fixed. p of pairs are adjusted for all pairs.",
    )


def confidence_and_session_table(estimates: Sequence["Estimate"], title_suffix: str) -> Table:
    return build_table(
        "session",
        f"Confidence, and the session{title_suffix}",
        "what|What|text; estimate|Estimate|number; interval|95% CI|wide_interval; p|p|p; n|n annotators|integer; reason|Undefined because|text",
        map(estimate_row, estimates),
        "sure",
        "Above 0: confident answers are more often correct than others; accuracy rises from one text to the next.",
    )


def rewrites_table(rows: Sequence[tuple[Cell, str, "Estimate", int, int]], title_suffix: str) -> Table:
    """Return how much of each author's texts the rewrites keep. ``rows``: cell, author, mean share, rewrites, texts."""
    return build_table(
        "rewrites",
        f"Words kept in rewritten texts{title_suffix}",
        "model|Machine|text; condition|Training|text; author|Text by|text; kept|Words kept|percent; kept_interval|95% CI, words kept|interval; "
        "n_rewrites|Rewrites|integer; n_texts|Texts|integer; n|n annotators|integer; reason|Undefined because|text",
        [
            {
                **{key: value for key, value in cell.as_dict().items() if key != "domain"},
                "author": author,
                **prefixed_cells("kept", estimate),
                "n_rewrites": n_rewrites,
                "n_texts": n_texts,
                "n": estimate.n,
                "reason": estimate.reason,
            }
            for cell, author, estimate, n_rewrites, n_texts in rows
        ],
        "keep",
        "The share of a text's words that its rewrite has too, in any order and each as often as both have it. 100 %: no word was taken away, though others may have been added.",
    )


def correct_count_histograms(cell, rows, figure_number: int, title_suffix: str) -> list[Figure]:
    """Return the paper's Figures 3 and 4: the number of annotators by number of correct texts, and the same by guessing."""
    from analysis.stats import signal_detection

    figures = []
    for histogram in signal_detection.correct_count_histograms_by_n_items(*column_arrays(rows, "correct", "annotator")):
        n = histogram["n_items"]
        bars = [
            {
                "label": f"{right} of {n} right",
                "series": series,
                "estimate": float(values[right]),
                "low": None,
                "high": None,
                "n": histogram["n_annotators"],
                "unit": "annotator",
            }
            for right in range(n + 1)
            for series, values in (
                ("annotators", histogram["counts"]),
                ("by guessing", histogram["expected_by_chance"]),
            )
        ]
        figures.append(
            build_figure(
                f"scores_{figure_number}_{n}",
                f"Texts right: {cell.label}{title_suffix}",
                bars,
                description=f"Number of annotators (of {histogram['n_annotators']}) by number of correct texts (of {n}), and what guessing would give.",
                axis="annotators",
                kind="bars",
            )
        )
    return figures
