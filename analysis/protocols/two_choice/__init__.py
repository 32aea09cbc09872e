"""What two choices say: which system is chosen, by what rule that was decided, what it cost, and how far people agree.

Everything comes from the labels that were planned (``Context.claims``), so that a label which was not given is seen too. The
rows say whom the rules keep. Third labels (max three) belong to items in disagreement: they count for the items' answers and
for agreement, and for no share.

Source: Thorleiksdóttir et al. 2022, sections 3 and 5; ``paper`` is its bound on the items' answers, in both readings.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from analysis.blocks import Block
from analysis.claims import Claims
from analysis.comparisons import Comparison, judged
from analysis.context import Context
from studies.protocols.two_choice import PREFERENCE, settings_of

from .. import Look, ProtocolAnalysis, register
from .labels import Answers, about, comparisons, final_answers, has_third
from .stopping import looks

if TYPE_CHECKING:
    from pandas import DataFrame

    from analysis.stats.choice import Strategy
    from analysis.stats.results import Estimate

# What an anytime-valid verdict is in the words that all comparisons share.
VERDICTS = {
    "a_better": "different", "b_better": "different", "equivalent": "equivalent", "different_but_trivial": "different_but_trivial",
}  # fmt: skip
FIRST_PLACE = "A"
REPLAYED = (("one", 1), ("max_three", 1), ("majority", 3), ("majority", 5), ("majority", 7))
RUNS = 1000
# With fewer items a replay says nothing of a rule that needs at least ten unanimous answers.
FEWEST_ITEMS = 20


@dataclass(frozen=True, slots=True)
class Compared:
    """One comparison's labels: all that were given in time, those of people whom the rules keep, and the final answers.

    ``is_third`` marks third labels in each of them. ``n_submitted``: who finished a batch of the section, whatever pairs it held.
    """

    section: Any
    comparison: Comparison
    given: "DataFrame"
    kept: "DataFrame"
    paper: "DataFrame"
    answers: Answers
    look: Look | None
    n_submitted: int

    @property
    def shares(self) -> "DataFrame":
        """The labels that say something of the systems by themselves."""
        return self.kept[~self.kept["is_third"].to_numpy(bool)]


@register
class TwoChoiceAnalysis(ProtocolAnalysis):
    slug = "two_choice"
    reads_claims = True

    def analyse(self, context: Context) -> list[Block]:
        """Blocks for all sections of two choices; families run over all of them."""
        claims = context.claims
        if claims is None or not len(claims.rows):
            return []
        found = [one for section in context.sections for one in _compared(context, claims, section)]
        recommended = [(one.comparison, _recommended(one, context)) for one in found]
        blocks = [
            Block("choice.preference", "Share of choices for x", "recommended", estimates=_judged(recommended, found, context),
                  note="Annotators weigh the same, whatever the number of their labels. Under a stopping rule the interval and the p-value hold "
                       "at whatever moment it stopped; else a test for a number of annotators that was fixed beforehand."),
            Block("choice.preference", "Share of items on which x was chosen, as in the paper", "paper",
                  estimates=tuple(one.comparison.named(_paper(one), PREFERENCE) for one in found),
                  note="One answer an item by the labelling strategy, Hoeffding's bound after each. First crossing is what a running study can "
                       "use; the crossing that stays to the end is what the paper's tables hold. Neither keeps its error at so many looks."),
        ]  # fmt: skip
        for one in found:
            blocks += _about(one, context)
        for section in context.sections:
            blocks += _ranking([one for one in found if one.section == section], context)
        return [block for block in blocks if block.estimates]

    def looks(self, claims: Claims, section: Any, seed: str = "") -> list[Look]:
        return looks(claims, section, seed)


def _compared(context: Context, claims: Claims, section: Any) -> list[Compared]:
    rows = context.rows
    kept, paper = (set(rows.loc[rows[column].astype(bool), "assignment"]) for column in ("is_kept", "is_kept_paper"))
    said = {look.name: look for look in looks(claims, section, context.seed)}
    mine = claims.rows[claims.rows["section"] == section.position]
    n_submitted = mine.loc[mine["is_submitted"] & ~mine["is_top_up"], "assignment"].nunique()
    pairs = [frozenset(pair.split("\x1f")) for pair in sorted(set(mine["pair"])) if pair.count("\x1f") == 1]
    found = []
    for compared in comparisons(section, pairs=pairs):
        rows = about(mine, compared)
        given = rows[rows["is_given"] & rows["is_submitted"]]
        given = given.assign(is_third=has_third(given, section))
        in_paper = given[given["assignment"].isin(paper)]
        found.append(
            Compared(
                section, compared, given, given[given["assignment"].isin(kept)], in_paper, final_answers(in_paper, section),
                said.get(compared.key), n_submitted,
            )
        )  # fmt: skip
    return found


def _recommended(one: Compared, context: Context) -> "Estimate":
    """What the anytime-valid rule says, where the study had one; the fixed-n test beside it, else alone."""
    fixed = _fixed_n(one, context)
    if one.look is None or one.look.rule != "anytime" or one.look.estimate is None:
        return fixed
    look, estimate = one.look, one.look.estimate
    # At an n that the data chose its p-value would claim too much: the estimate and interval stand for comparison.
    beside = replace(fixed, test=None, sensitivity=(), analysis="choice.preference.all_labels")
    outcome = look.verdict if look.verdict != "inconclusive" or not _is_spent(one) else "budget_exhausted"
    return replace(
        estimate, analysis="choice.preference.sequential", sensitivity=(beside,),
        detail={
            **estimate.detail, "outcome": outcome, "stopped_at": look.stopped_at, "labels_overrun": look.n_overrun,
            "verdict": VERDICTS.get(str(look.verdict), "inconclusive"),
        },
    )  # fmt: skip


def _is_spent(one: Compared) -> bool:
    """Whether as many have submitted as the target allows, third labels not counted."""
    target = one.section.study.target_n
    return bool(target and one.n_submitted >= target)


def _fixed_n(one: Compared, context: Context) -> "Estimate":
    """x's share at an n fixed beforehand: a tie counts half, "cannot judge" is left out."""
    from analysis.stats import basic, choice, equivalence

    rows = one.shares[one.shares["value"].notna()]
    values, people = rows["value"].to_numpy(float), rows["annotator"].to_numpy(object)
    margin, level = one.comparison.margin, context.level
    n_ties = int((rows["value"] == 0.5).sum())
    means = rows.groupby("annotator", sort=True)["value"].mean().to_numpy(float)
    if n_ties == 0:
        estimate = replace(choice.preference(values, people, level=level), estimand="annotator-weighted share of x")
    else:
        estimate = basic.one_sample(
            means,
            null=0.5,
            level=level,
            bounds=(0.0, 1.0),
            analysis="choice.preference",
            estimand="annotator-weighted share of x, ties half",
        )
        estimate = replace(estimate, n_rows=len(rows))
    if margin and len(means):
        # At the comparison's own level, which need not be the report's.
        tost = equivalence.equivalence(
            means, null=0.5, margin=margin, significance=one.comparison.level, bounds=(0.0, 1.0),
            analysis="choice.preference.equivalence", estimand=estimate.estimand,
        )  # fmt: skip
        estimate = replace(estimate, sensitivity=(*estimate.sensitivity, tost))
    skipped = int((one.shares["skip_reason"] != "").sum())
    return replace(estimate, detail={**estimate.detail, "n_ties": n_ties, "n_skipped": skipped})


def _judged(
    found: Sequence[tuple[Comparison, "Estimate"]], compared: Sequence[Compared], context: Context
) -> tuple["Estimate", ...]:
    """Fixed-n estimates with p-values adjusted over each family; sequential ones were tested at a divided level already."""
    sequential = {
        one.comparison.key for one, (_, estimate) in zip(compared, found, strict=True) if _is_sequential(estimate)
    }
    results = {one.key: estimate for one, estimate in found if one.key in sequential}
    others = [(one, estimate) for one, estimate in found if one.key not in sequential]
    adjusted = judged(others, "choice.preference", context.star_scheme)
    results |= {one.key: estimate for (one, _), estimate in zip(others, adjusted, strict=True)}
    return tuple(one.named(results[one.key], PREFERENCE) for one, _ in found)


def _is_sequential(estimate: "Estimate") -> bool:
    return estimate.analysis.endswith(".sequential")


def _paper(one: Compared) -> "Estimate":
    """The paper's decision at the first crossing, with the crossing that stays beside it."""
    from analysis.stats import sequential
    from analysis.stats.results import Warning

    settings = settings_of(one.section)
    values = one.answers.values
    n_open = int((~one.answers.is_complete).sum())
    warnings: tuple[Warning, ...] = ()
    if n_open and settings["strategy"] == "max_three":
        # Items that still want a third label are those in disagreement: the others alone would look too unanimous.
        values = values[: int(one.answers.is_complete.argmin())]
        warnings = (Warning("open_items", "warn", {"n_open": n_open, "n_used": len(values)}),)
    first, stays = (
        sequential.hoeffding_decision(
            values, delta=settings["delta"], reading=reading, analysis=f"choice.hoeffding.{reading}"
        )
        for reading in sequential.READINGS
    )
    words = "share of items on which x was chosen"
    stays = replace(stays, estimand=words, warnings=(*stays.warnings, *warnings))
    return replace(first, estimand=words, warnings=(*first.warnings, *warnings), sensitivity=(stays,))


def _about(one: Compared, context: Context) -> list[Block]:
    """What the decision cost, and what the labels are like."""
    title = _title(one)
    where = one.section.position
    return [
        Block("choice.effort", f"Labels paid ({title})", "recommended", estimates=_spent(one),
              verdict={"section": where, "decided": _decided(one)}),
        *_replayed(one, title, context),
        Block("choice.agreement", f"Agreement, by side of the screen and by system ({title})", "recommended",
              estimates=_agreement(one, context),
              note="The same labels coded twice. Sides are drawn, so each is chosen half of the time; a much better system is not, and kappa by "
                   "system falls although nobody disagrees more. The paper prints kappa by side."),
        Block("choice.position", f"Whether the side mattered ({title})", "recommended", estimates=_position(one, context)),
    ]  # fmt: skip


def _title(one: Compared) -> str:
    criterion = f", {one.comparison.criterion}" if one.comparison.criterion else ""
    return f"section {one.section.position}, {one.comparison.x} and {one.comparison.y}{criterion}"


def _decided(one: Compared) -> dict[str, Any] | None:
    """What the log says of this comparison, where the study closed itself."""
    event = one.section.study.audit_events.filter(verb="decide").order_by("pk").last()
    told = event.data.get("outcomes", []) if event else []
    return next((outcome for outcome in told if outcome.get("comparison") == one.comparison.key), None)


def _spent(one: Compared) -> tuple["Estimate", ...]:
    """Labels an item, and up to which item the paper's bound would have paid."""
    import numpy as np

    from analysis.stats.results import Estimate

    labels, values = one.answers.n_labels, one.answers.values
    if not len(labels):
        return ()
    decided = int(np.sum(~np.isnan(values)))
    common: dict[str, Any] = {"unit": "item", "n": len(labels), "n_rows": int(labels.sum())}
    made = [
        Estimate(
            analysis="choice.effort.labels", estimand="labels paid for an item", estimate=float(labels.mean()),
            detail={
                "labels": int(labels.sum()), "items": len(labels), "items_answered": decided,
                "items_open": int(np.sum(~one.answers.is_complete)), "strategy": settings_of(one.section)["strategy"],
            },
            **common,
        )
    ]  # fmt: skip
    first = _paper(one)
    for estimate in (first, *first.sensitivity):
        n = estimate.detail.get("n_decision")
        where = np.flatnonzero(~np.isnan(values))
        paid = int(labels[: where[n - 1] + 1].sum()) if n else None
        made.append(
            Estimate(
                analysis=f"choice.effort.{estimate.settings['reading']}", mode="paper",
                estimand=f"labels paid up to the decision of the paper's rule, reading “{estimate.settings['reading']}”",
                estimate=None if paid is None else float(paid), status="ok" if paid else "not_applicable",
                reason="" if paid else "the bound was not crossed", detail={"items": n, "winner": estimate.detail.get("winner")},
                warnings=estimate.warnings, settings=estimate.settings, **common,
            )
        )  # fmt: skip
    if one.look is not None:
        made.append(
            Estimate(
                analysis="choice.effort.overrun", estimand="labels that came after the decision", estimate=float(one.look.n_overrun),
                settings={"rule": one.look.rule}, detail={"stopped_at": one.look.stopped_at, "of": one.look.unit}, **common,
            )
        )  # fmt: skip
    return tuple(one.comparison.named(estimate, PREFERENCE) for estimate in made)


def _replayed(one: Compared, title: str, context: Context) -> list[Block]:
    """What each labelling strategy would have paid, drawing among the labels that are there.

    All on the same items, as in the paper: those with enough labels for the most demanding strategy that half of the items allow.
    """
    import numpy as np

    from analysis.stats import choice, sequential

    # Third labels are among them where they were asked for: the draw would meet disagreement too often.
    rows = one.paper[~one.paper["is_third"].to_numpy(bool) & one.paper["value"].isin([0.0, 1.0])]
    numbers, place = np.unique(rows["item_number"].to_numpy(np.int64), return_inverse=True)
    given = np.bincount(place, minlength=len(numbers))
    wins = np.bincount(place, weights=rows["value"].to_numpy(float), minlength=len(numbers))
    delta = settings_of(one.section)["delta"]
    both: dict[str, list[Estimate]] = {"paper": [], "recommended": []}
    strategies: list[Strategy] = [choice.Strategy(*words) for words in REPLAYED]
    # With one label an item there is nothing to draw.
    fewest = max(FEWEST_ITEMS, int((given > 1).sum()) / 2)
    replayed = [one for one in strategies if (given >= max(2, one.most)).sum() >= fewest]
    if not replayed:
        return []
    enough = given >= max(2, *(one.most for one in replayed))
    rule = sequential.hoeffding_boundaries(int(enough.sum()), delta=delta)
    for strategy in replayed:
        name, workers = strategy.name, strategy.workers
        for mode, reading in (("paper", "stays"), ("recommended", "first")):
            rng = context.rng("replay", one.comparison.key, name, workers, mode)
            effort = choice.resampled_effort(
                wins[enough], given[enough], strategy, rule=rule, reading=reading, runs=RUNS, rng=rng
            )
            summary = choice.effort_summary(effort, mode=mode, rng=rng, analysis="choice.replay")
            words = (
                f"{workers} workers"
                if name == "majority"
                else {"one": "one worker", "max_three": "max three workers"}[name]
            )
            both[mode].append(one.comparison.named(replace(summary, settings={**summary.settings, "system": words}), PREFERENCE))
    note = "Labels to the decision of the paper's bound, each strategy replayed on the same items; the interval is about these items."
    return [
        Block("choice.replay", f"Labelling effort of each strategy ({title})", mode, estimates=tuple(found), note=note)
        for mode, found in both.items()
    ]


def _places(rows: "DataFrame"):
    """Where x stood, 1 on the first side; NaN where nothing was chosen."""
    import numpy as np

    value, is_first = rows["value"].to_numpy(float), (rows["label"] == FIRST_PLACE).to_numpy(bool)
    return np.where(np.isin(value, (0.0, 1.0)), np.where(value == 1, is_first, ~is_first), np.nan).astype(float)


def _agreement(one: Compared, context: Context) -> tuple["Estimate", ...]:
    from analysis.stats import choice

    # A third label is asked for where two differ, and agrees with one of them: with it strangers who throw coins would agree.
    rows = one.shares[one.shares["value"].isin([0.0, 1.0])]
    rows = rows[rows.groupby("item")["annotator"].transform("nunique") > 1]
    rows = rows.drop_duplicates(["item", "annotator"])
    if not len(rows):
        return ()
    found = choice.choice_agreement(
        rows["value"].to_numpy(float), _places(rows), rows["item"].to_numpy(object), rows["annotator"].to_numpy(object),
        level=context.level, resamples=min(999, context.resamples), rng=context.rng("agreement", one.comparison.key),
    )  # fmt: skip
    shares = {
        "observed_by_side": found.percent_agreement_position, "observed_by_system": found.percent_agreement_system,
        "prevalence_by_side": found.prevalence_position, "prevalence_by_system": found.prevalence_system,
    }  # fmt: skip
    coded = (
        ("Fleiss' kappa by side of the screen", found.kappa_position), ("Fleiss' kappa by system", found.kappa_system),
        ("Gwet's AC1 by side of the screen", found.ac1_position), ("Gwet's AC1 by system", found.ac1_system),
    )  # fmt: skip
    return tuple(
        one.comparison.named(replace(estimate, estimand=words, detail={**estimate.detail, **shares}), PREFERENCE)
        for words, estimate in coded
    )


def _position(one: Compared, context: Context) -> tuple["Estimate", ...]:
    from analysis.stats import choice

    rows = one.shares[one.shares["value"].isin([0.0, 1.0])]
    if not len(rows):
        return ()
    found = choice.position_effect(
        rows["value"].to_numpy(float), _places(rows), rows["annotator"].to_numpy(object), level=context.level
    )
    return (one.comparison.named(found, PREFERENCE),)


def _ranking(found: Sequence[Compared], context: Context) -> list[Block]:
    """Strengths of three systems or more, each question apart; with ties Davidson's model, without Bradley and Terry's."""
    import numpy as np

    from analysis.stats.davidson import davidson

    blocks = []
    for question in dict.fromkeys(one.comparison.question for one in found):
        mine = [one for one in found if one.comparison.question == question]
        systems = sorted({name for one in mine for name in (one.comparison.x, one.comparison.y)})
        if len(systems) < 3:
            continue
        number = {name: n for n, name in enumerate(systems)}
        rows = [one.shares[one.shares["value"].notna()] for one in mine]
        first = np.concatenate([np.full(len(r), number[one.comparison.x]) for one, r in zip(mine, rows, strict=True)])
        second = np.concatenate([np.full(len(r), number[one.comparison.y]) for one, r in zip(mine, rows, strict=True)])
        outcomes = np.concatenate([r["value"].to_numpy(float) for r in rows])
        people = np.concatenate([r["annotator"].to_numpy(object) for r in rows])
        if not len(outcomes):
            continue
        fit = davidson(first, second, outcomes, people, n_systems=len(systems), level=context.level)
        strengths = [
            replace(
                one,
                estimand=f"log-odds of {systems[n]} against the mean of all",
                detail={**one.detail, "system": systems[n]},
            )
            for n, one in enumerate(fit.strengths)
        ]
        observed = np.full((len(systems), len(systems)), None, dtype=object)
        for one, table in zip(mine, rows, strict=True):
            share = float(table["value"].mean()) if len(table) else None
            x, y = number[one.comparison.x], number[one.comparison.y]
            observed[x, y], observed[y, x] = share, None if share is None else 1 - share
        fitted = fit.probabilities + fit.tie_probabilities / 2
        blocks.append(
            Block("choice.ranking", f"Ranking of the systems (section {mine[0].section.position}, {question})", "recommended",
                  estimates=tuple(strengths),
                  verdict={
                      "systems": systems, "status": fit.status, "reason": fit.reason, "observed": observed.tolist(),
                      "probabilities": fitted.tolist(), "components": [[systems[n] for n in group] for group in fit.components],
                  },
                  note="Strengths in log-odds, their sum 0, annotators as clusters. Ties are part of the model (Davidson's).")
        )  # fmt: skip
    return blocks
