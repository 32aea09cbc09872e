"""Prepare the answers of one section for the statistics: percent as typed, in both orders of naming."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from analysis.data.context import AnalysisContext
from analysis.protocols.blocks import Block
from analysis.protocols.blocks.comparisons import (
    Comparison,
    comparison_from_contrast,
    names_more,
    read_contrasts,
    unplanned_comparison,
)
from studies.design.draw import group_batches_by_shared_prompts, has_own_prompts
from studies.design.subjects import in_parentheses, words_of_section
from studies.protocols import REGISTRY
from studies.protocols.base.pairs import system_contrasts_for_section
from studies.protocols.spa import asks_for_size

from . import layouts

if TYPE_CHECKING:
    import numpy as np
    from pandas import DataFrame

    from analysis.stats.results import Estimate


ESTIMAND = "preference"


@dataclass(frozen=True, slots=True)
class SectionAnswers:
    """The answers of one section: a row an annotator (at their last batch that counts), a column a comparison; percent as typed, NaN
    missing."""

    section: Any
    comparisons: tuple[Comparison, ...]
    xy: "np.ndarray"
    yx: "np.ndarray"
    people: "DataFrame"

    @property
    def title(self) -> str:
        return words_of_section(self.section).circumstance

    @property
    def names(self) -> list[str]:
        return [comparison.key for comparison in self.comparisons]

    @property
    def kept(self) -> "SectionAnswers":
        """Return the answers of the annotators in the recommended estimates."""
        return self.select_annotators(self.people["is_kept"].to_numpy(bool))

    def select_annotators(self, mask) -> "SectionAnswers":
        return replace(self, xy=self.xy[mask], yx=self.yx[mask], people=self.people[mask])


def planned_then_unplanned_comparisons(section: Any) -> list[Comparison]:
    """Return the comparisons of a section: the planned ones, then the other pairs that its questions name."""
    contrasts = read_contrasts(section)
    directions: dict[tuple[frozenset, str], tuple[str, str]] = {}
    for question in section.questions.select_related("x", "y"):
        if question.x_id and not asks_for_size(question.scale):
            directions.setdefault(
                (frozenset((question.x.name, question.y.name)), question.criterion), (question.x.name, question.y.name)
            )
    meant: dict[tuple[frozenset, str], Any] = {}
    concerned = system_contrasts_for_section(
        contrasts, section, ESTIMAND, REGISTRY[section.protocol].default_estimand(section)
    )
    for contrast in concerned:
        for pair, criterion in directions:
            if pair == {contrast.x.name, contrast.y.name} and contrast.criterion in ("", criterion):
                first = meant.setdefault((pair, criterion), contrast)
                is_same_family = (first.family or first.role) == (contrast.family or contrast.role)
                if is_same_family and names_more(contrast) > names_more(first):
                    meant[pair, criterion] = contrast
    comparisons = [
        comparison_from_contrast(contrast, section, criterion)
        for contrast in concerned
        for (pair, criterion) in directions
        if meant.get((pair, criterion)) == contrast
    ]
    for (pair, criterion), (x, y) in directions.items():
        if (pair, criterion) not in meant:
            comparisons.append(unplanned_comparison(section, x, y, criterion))
    return comparisons


def read_section_answers_by_annotator(frame: "DataFrame", section: Any) -> SectionAnswers:
    """Return the answers of a section as two tables, planned comparisons first, then unplanned pairs."""
    rows = frame[(frame["section"] == section.position) & frame["x"].notna() & frame["y"].notna()]
    comparisons = planned_then_unplanned_comparisons(section)
    # Each person is one unit. Use their last batch that counts, because it has the most exposure.
    people = rows.drop_duplicates("assignment").sort_values(["annotator", "is_kept", "ordinal", "assignment"])
    people = people.drop_duplicates("annotator", keep="last").reset_index(drop=True)
    return SectionAnswers(section, tuple(comparisons), *tabulate_directions(rows, people, comparisons), people)


def tabulate_directions(
    rows: "DataFrame", people: "DataFrame", comparisons: Sequence[Comparison]
) -> "tuple[np.ndarray, np.ndarray]":
    """Return the answers of these people with x named first and with y named first, as percent of the scale: a column a comparison."""
    import numpy as np

    row_numbers = {assignment: row for row, assignment in enumerate(people["assignment"])}
    columns = {
        (comparison.x, comparison.y, comparison.criterion): column for column, comparison in enumerate(comparisons)
    }
    xy = np.full((len(people), len(comparisons)), np.nan)
    yx = np.full_like(xy, np.nan)
    for assignment, x, y, criterion, value in zip(
        *(rows[name] for name in ("assignment", "x", "y", "criterion", "value")), strict=True
    ):
        row = row_numbers.get(assignment)
        if row is None:
            continue
        # Round back to the typed value, so that sums are compared exactly.
        if (x, y, criterion) in columns:
            xy[row, columns[x, y, criterion]] = round(100 * value, 6) if value == value else np.nan
        elif (y, x, criterion) in columns:
            yx[row, columns[y, x, criterion]] = round(100 * value, 6) if value == value else np.nan
    return xy, yx


# Which annotators read some of the same prompts: the second kind of clusters of stated chances.


def read_prompt_groups(
    answers: SectionAnswers, prompts: Mapping[int, set[Hashable]] | None = None
) -> "tuple[np.ndarray | None, int]":
    """Return the group of each annotator's batch, and the number of annotators whose prompts are not known.

    There are no groups if the prompts of some annotator are not known, for example because only stated chances were imported.
    ``prompts``: those of each batch, by default all that it shows.
    """
    import numpy as np

    numbers = answers.people["batch"].tolist()
    prompts = prompts_by_batch(answers.section, numbers) if prompts is None else prompts
    n_unknown = sum(not prompts.get(number) for number in numbers)
    if n_unknown:
        return None, n_unknown
    groups = group_batches_by_shared_prompts(prompts)
    return np.array([groups[number] for number in numbers], dtype=np.int64), 0


def read_own_prompts(
    answers: SectionAnswers,
) -> "dict[str, tuple[set[str], np.ndarray | None, dict[int, set[Hashable]]]]":
    """Return for each system its prompts' keys, the groups of batches by them, and them by batch, if systems have prompts of their own."""
    if not has_own_prompts(answers.section):
        return {}
    numbers = answers.people["batch"].tolist()
    keys: dict[str, set[str]] = {name: set() for one in answers.comparisons for name in (one.x, one.y)}
    prompts: dict[str, dict[int, set[Hashable]]] = {name: {number: set() for number in numbers} for name in keys}
    columns = ("batch__number", "item__prompt", "item__prompt__group", "item__prompt__key")
    rows = _placements(answers.section).values_list(*columns, "item__exposures__output__system__name")
    for number, prompt, group, key, system in rows:
        if number in prompts.get(system, ()):
            prompts[system][number].add(group or prompt)
            keys[system].add(key)
    return {name: (keys[name], read_prompt_groups(answers, prompts[name])[0], prompts[name]) for name in keys}


def _placements(section: Any) -> Any:
    from studies.models import Placement

    return Placement.objects.filter(batch__study=section.study, item__section=section.reuses_id or section.pk)


def prompts_by_batch(section: Any, numbers: Iterable[int]) -> dict[int, set[Hashable]]:
    """Return the prompts that are shown in these batches before the section's questions: of a prompt in a group, the group."""
    prompts: dict[int, set[Hashable]] = {number: set() for number in numbers}
    for number, prompt, group in _placements(section).values_list(
        "batch__number", "item__prompt", "item__prompt__group"
    ):
        if number in prompts:
            prompts[number].add(group or prompt)
    return prompts


# Compute the effect of each exclusion rule on each comparison.


KEPT_COLUMN_PREFIX = "kept:"


def exclusion_effect_blocks(answers: Sequence[SectionAnswers], context: AnalysisContext) -> list[Block]:
    """Return one block per section. Their tables and figures are merged."""
    changes_by_section = [_rule_changes(section_answers, context) for section_answers in answers]
    all_changes = [change for changes in changes_by_section for change in changes]
    layout: dict[str, Any] = {
        "tables": [layouts.rule_effects_table(all_changes)],
        "figures": [layouts.rule_effects_figure(all_changes)],
    }
    return [
        Block(
            "spa.before_after",
            f"Effect of each rule{in_parentheses(section_answers.title)}",
            estimates=changes,
            **(layout if n == 0 else {}),
            note="Mean after the rule minus mean before it. The same people are on both sides, so the interval resamples them.",
        )
        for n, (section_answers, changes) in enumerate(zip(answers, changes_by_section, strict=True))
    ]


def _rule_changes(answers: SectionAnswers, context: AnalysisContext) -> tuple["Estimate", ...]:
    """Return the mean after minus the mean before each rule, and all primary rules together, resampling annotators."""
    from analysis.stats import basic, spa

    masks = {
        name.removeprefix(KEPT_COLUMN_PREFIX): answers.people[name].to_numpy(bool)
        for name in answers.people.columns
        if name.startswith(KEPT_COLUMN_PREFIX)
    }
    masks["all rules of the recommended estimate"] = answers.people["is_kept"].to_numpy(bool)
    masks["all primary rules"] = answers.people["is_kept_paper"].to_numpy(bool)
    values = spa.combine_orders(answers.xy, answers.yx)
    changes = spa.exclusion_effects_by_rule(
        values,
        masks,
        names=answers.names,
        level=context.level,
        resamples=context.resamples,
        rng=context.rng("before_after", answers.section.position),
    )
    estimates = []
    for rule, mask in masks.items():
        for column, compared in enumerate(answers.comparisons):
            change = compared.tag_estimate(changes[rule][compared.key], ESTIMAND)
            if 0 < mask.sum() < len(mask):
                # The two groups have different people, so an ordinary two-group comparison is correct here.
                against = basic.welch_t_test(values[~mask, column], values[mask, column], level=context.level).labelled(
                    analysis="spa.excluded_against_kept", estimand="mean of those left out - mean of those kept"
                )
                change = replace(change, sensitivity=(against,))
            estimates.append(change)
    return tuple(estimates)
