"""What the filter tau does: the result over its values, and both directions by the number of examples before and after it.

Source: Ethayarajh and Jurafsky 2022, section 5.2, Figures 1 and 5, and limitation 2. All of it describes: the filter selects on the
answers that it is judged by, so nothing after it is a test.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analysis.data.context import AnalysisContext
from analysis.protocols.blocks import Block
from analysis.protocols.blocks.layouts import build_figure, build_table, estimate_row, figure_row
from studies.design.subjects import in_parentheses

from . import layouts
from .answers import ESTIMAND, SectionAnswers

if TYPE_CHECKING:
    import numpy as np

    from analysis.stats.exposure import ExposureStudy
    from analysis.stats.results import Estimate

VALUES_OF_TAU = (1.0, 1.05, 1.1, 1.2, 1.3, 1.5, 2.0)
ORDERS = {"xy": "P[x > y], x named first", "yx": "P[y > x], y named first"}


def find_incoherent_annotators(answers: Iterable[SectionAnswers], tau: float) -> set[str]:
    """Return the annotators whose two answers to some pair of some section add up to more than tau."""
    from analysis.stats import spa

    return {
        person
        for one in answers
        for person, is_incoherent in zip(
            one.people["annotator"], spa.tau_incoherence_flags(one.xy, one.yx, tau=tau).incoherent, strict=True
        )
        if is_incoherent
    }


def values_of_tau_blocks(answers: Sequence[SectionAnswers], context: AnalysisContext) -> list[Block]:
    """Return one block per section that asks both directions: who is kept and what results at each value of tau."""
    import numpy as np

    from analysis.stats import basic, spa

    kept_answers = [one.kept for one in answers]
    left_out = {tau: find_incoherent_annotators(kept_answers, tau) for tau in VALUES_OF_TAU}
    blocks = []
    for one in kept_answers:
        values = spa.combine_orders(one.xy, one.yx)
        people = one.people["annotator"]
        estimates, rows = [], []
        for column, compared in enumerate(one.comparisons):
            if np.isnan(one.xy[:, column] + one.yx[:, column]).all():
                continue
            n_before = int((~np.isnan(values[:, column])).sum())
            for tau in VALUES_OF_TAU:
                is_kept = (~people.isin(left_out[tau])).to_numpy(bool)
                estimate = basic.one_sample_t_test(
                    values[is_kept, column], null=0.5, bounds=(0.0, 1.0), level=context.level
                ).labelled(
                    analysis="spa.tau_value",
                    estimand=f"mean over annotators of P[x > y] with tau = {tau:g}, both orders combined",
                )
                estimate = compared.tag_estimate(replace(estimate, test=None), ESTIMAND)
                estimate = replace(estimate, settings={**estimate.settings, "tau": tau})
                stated = spa.pair_preference_paper(one.xy[is_kept, column], level=context.level)
                estimates.append(estimate)
                rows.append(estimate_row(estimate, tau=tau, share=estimate.n / n_before, one_order=stated.estimate))
        if rows:
            blocks.append(
                Block(
                    "spa.tau_values",
                    f"The result over values of tau{in_parentheses(one.title)}",
                    estimates=tuple(estimates),
                    tables=[_values_table(rows)],
                    note="Annotators whose two answers to some pair add up to more than tau are left out.",
                )
            )
    return blocks


def _values_table(rows: Sequence[Mapping[str, Any]]) -> Any:
    return build_table(
        "tau_values",
        "The result over values of tau",
        "contrast|Comparison|text; tau|tau|number; n|n annotators|integer; share|Kept|percent; estimate|P[x > y], both orders|probability; "
        "interval|95% CI|interval; one_order|P[x > y], x named first|probability; reason|Undefined because|text",
        rows,
        "more",
        "A tau of 2 leaves out nobody. The table only describes: who chooses the tau with the clearest result chooses the result. After tau "
        "the mean of one order is too low, because only large sums are left out; both orders together do not have this bias.",
    )


def directions_by_exposure_block(
    studies: Sequence[tuple[Mapping[str, str], "ExposureStudy", "ExposureStudy", Mapping[str, "np.ndarray"]]],
    context: AnalysisContext,
) -> Block | None:
    """Return both directions after each number of examples, before and after tau, or None if no pair is asked in both directions.

    ``studies``: for each comparison its names, the results before and after tau, and the gaps of both.
    """
    from analysis.stats import basic

    estimates, rows, marks = [], [], []
    for names, before, after, gaps in studies:
        for place, m in enumerate(before.levels):
            row: dict[str, Any] = {"what": layouts.comparison_after_exposures_words(m, **names)}
            for when, study in (("before", before), ("after", after)):
                for order, words in ORDERS.items():
                    words = words.partition(",")[0] + (", after tau" if when == "after" else "")
                    estimate = _of_order(study.by_level[place], order)
                    estimates.append(
                        replace(
                            estimate,
                            estimand=f"{row['what']}: {words}",
                            test=None,
                            settings={
                                **estimate.settings,
                                **names,
                                "m": m,
                                "tau": context.tau if when == "after" else None,
                            },
                        )
                    )
                    row |= {f"{when}_{order}": estimate.estimate, f"{when}_n": estimate.n}
                    marks.append(figure_row(estimate, row["what"], words))
                symmetry = basic.one_sample_t_test(gaps[when][:, place] / 100, null=0.0, bounds=(-1.0, 1.0))
                row[f"{when}_p"] = symmetry.pvalue
            rows.append(row)
    if all(row["before_yx"] is None or row["before_xy"] is None for row in rows):
        return None
    return Block(
        "spa.exposure_tau",
        f"Both directions by the number of examples, as in {layouts.PAPER}",
        "paper",
        estimates=tuple(estimates),
        tables=[_directions_table(rows, context.tau)],
        figures=[
            build_figure(
                "exposure_tau",
                "Both directions by the number of examples",
                marks,
                description=f"Means over annotators, before and after those above tau = {context.tau:g} are left out.",
                axis="Stated chance",
                reference=0.5,
                limits=[0, 1],
            )
        ],
        note="Symmetry after tau proves nothing: tau leaves out people whose two answers have a large sum, and symmetry is about this sum.",
    )


def _of_order(estimate: "Estimate", order: str) -> "Estimate":
    return next(one for one in estimate.sensitivity if one.analysis.endswith(f".{order}"))


def _directions_table(rows: Sequence[Mapping[str, Any]], tau: float) -> Any:
    return build_table(
        "exposure_tau",
        "Both directions by the number of examples",
        "what|Comparison|text; before_xy|P[x > y]|probability; before_yx|P[y > x]|probability; before_p|p of symmetry|p; before_n|n annotators|integer; "
        "after_xy|P[x > y] after tau|probability; after_yx|P[y > x] after tau|probability; after_p|p of symmetry after tau|p; "
        "after_n|n after tau|integer",
        rows,
        "more",
        f"As in Figures 1 and 5 of {layouts.PAPER}, with tau = {tau:g}. The p of symmetry is that of a t test whether both directions add up to "
        "100 %. After tau it proves nothing, in either direction: tau leaves out people whose sum is large, and the test is about the sum. "
        "“Does it matter who is named first?” has the test before tau.",
    )
