"""Whose opinion: whether the groups that a design declares, of people or of prompts, agree about the planned comparisons."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from analysis.data.context import AnalysisContext
from analysis.data.flat_rows import annotator_pseudonym
from analysis.protocols import REGISTRY, HeadlineAnswers, headline_name
from analysis.protocols.blocks import Block, cells
from analysis.protocols.blocks.layouts import Table, build_table
from analysis.protocols.blocks.populations import population_of
from analysis.stats.planning.inputs import HEADLINES
from annotators.models import SampleValue
from annotators.recruitment.channels import REGISTRY as CHANNELS
from studies.models import Study
from studies.models.fields import parse_groupings

from .items import estimate_of_comparison
from .report_data import ReportData

if TYPE_CHECKING:
    import numpy as np

    from analysis.stats.opinions import Opinions
    from analysis.stats.results import Estimate

NAME = "opinions.groups"
LEVEL = 0.05
OF_PROMPTS = frozenset({"language", "domain", "length", "attribute"})
NOTE = (
    "Only groups that the design declares. A group needs ten people and, if prompts are grouped, five prompts. “Less the others”: the mean in the "
    "group that differs most clearly, less that in all other groups; its interval accounts for the choice among three groups or more. p tests whether the groups differ; it is adjusted for all "
    "rows with a p by Holm's method."
)


@dataclass(frozen=True, slots=True)
class Grouping:
    """A declared grouping with the group of each annotator (by pseudonym) or prompt (by key)."""

    kind: str
    name: str
    members: Mapping[Any, str]

    @property
    def label(self) -> str:
        return f"{self.kind}: {self.name}" if self.name else self.kind

    @property
    def is_of_prompts(self) -> bool:
        return self.kind in OF_PROMPTS

    def groups_of(self, answers: HeadlineAnswers) -> "np.ndarray | None":
        """Return the group of each answer, '' if it is in none. None if the answers are not about single prompts."""
        import numpy as np

        keys = answers.keys if self.is_of_prompts else answers.annotators
        if keys is None:
            return None
        return np.array([*(self.members.get(key, "") for key in keys.categories), ""], dtype=object)[keys.codes]


@dataclass(frozen=True, slots=True)
class Compared:
    """The groups of one grouping in one comparison. ``reason``: why there are no opinions."""

    label: str
    grouping: Grouping
    null: float = 0.0
    opinions: "Opinions | None" = None
    reason: str = ""


def read_groupings(data: ReportData) -> list[Grouping]:
    """Return the groupings that the study declares, each with its members."""
    return [
        Grouping(kind, name, _members(data, kind, name)) for kind, name in parse_groupings(data.study.compared_groups)
    ]


def _members(data: ReportData, kind: str, name: str) -> dict[Any, str]:
    if kind in OF_PROMPTS:
        return _groups_of_prompts(data.study, kind, name)
    if kind == "answer":
        rows = data.responses[(data.responses["question"] == name) & data.responses["item"].isna()]
        said: dict[Any, list[str]] = {}
        for annotator, choice, value in zip(rows["annotator"], rows["choice"], rows["value"], strict=True):
            if choice or value == value:
                said.setdefault(annotator, []).append(choice or f"{value:g}")
        return {annotator: " + ".join(sorted(set(choices))) for annotator, choices in said.items()}
    if kind == "sample":
        values = SampleValue.objects.filter(column__study=data.study, column__name=name).values_list(
            "annotator__code", "value"
        )
        return {annotator_pseudonym(data.study, code): value for code, value in values}
    column = data.assignments["channel" if kind == "panel" else "arm"]
    return {
        annotator: CHANNELS[group].label if group in CHANNELS else str(group)
        for annotator, group in zip(data.assignments["annotator"], column, strict=True)
        if group and group == group
    }


def _groups_of_prompts(study: Study, kind: str, name: str) -> dict[Any, str]:
    from statistics import median

    rows = study.prompts.values_list("key", "text", "source", "language", "domain", "attributes")
    if kind == "length":
        lengths = {key: len(text) + len(source) for key, text, source, *_ in rows}
        middle = median(lengths.values()) if lengths else 0
        return {key: "longer" if length > middle else "shorter" for key, length in lengths.items()}
    return {
        key: {"language": language, "domain": domain}.get(kind, str((attributes or {}).get(name, "")))
        for key, _, _, language, domain, attributes in rows
    }


def compare_groups(context: AnalysisContext, groupings: Sequence[Grouping], blocks: Sequence[Block]) -> list[Compared]:
    """Return what each group says in each planned comparison of a protocol whose headline is a mean of answers."""
    import numpy as np

    from analysis.stats.opinions import opinions_of_groups

    analysis, name = REGISTRY[context.protocol], headline_name(context.protocol)
    headline = analysis.headline_blocks.get(name, "")
    if not groupings or analysis.superseded_claims.get(headline) in {block.name for block in blocks}:
        return []
    found = []
    for answers in analysis.headline_answers(context):
        compared = answers.comparison
        estimate = estimate_of_comparison(blocks, headline, compared.key)
        if not compared.is_planned or estimate is None or estimate.estimate is None or not len(answers.values):
            continue
        _, people, sizes = np.unique(answers.annotators.codes, return_inverse=True, return_counts=True)
        weights = 1 / sizes[people] if analysis.weighs_people_equally else np.ones(len(people))
        is_mean = np.isclose(np.average(answers.values, weights=weights), estimate.estimate, rtol=0, atol=1e-9)
        for grouping in groupings:
            groups = grouping.groups_of(answers)
            reason = (
                "each answer is about several prompts"
                if groups is None
                else "the headline is the estimate of a model, and no mean of answers"
                if not is_mean
                else f"nobody and nothing has a value of “{grouping.label}”"
                if not (groups != "").any()
                else ""
            )
            null = HEADLINES[name].null
            opinions = (
                None
                if reason or groups is None
                else opinions_of_groups(
                    answers.values,
                    answers.annotators.codes,
                    answers.prompts.codes,
                    groups,
                    of="prompts" if grouping.is_of_prompts else "annotators",
                    null=null,
                    weights=weights,
                    population="people" if population_of(estimate) == "people" else "",
                    level=context.level,
                )
            )
            found.append(Compared(compared.label, grouping, null, opinions, reason))
    return found


def opinions_block(found: Sequence[Compared]) -> tuple[Block, dict[str, Any]]:
    """Return the block of all groups, and the sentences about them. p-values are adjusted over groupings and comparisons."""
    from analysis.stats.multiplicity import holm

    adjusted = holm([_claimable_pvalue(one.opinions) for one in found])
    rows: list[dict[str, Any]] = []
    estimates, heads, sentences = [], [], []
    for one, pvalue in zip(found, adjusted, strict=True):
        about: dict[str, Any] = {"contrast": one.label, "by": one.grouping.label}
        if one.opinions is None:
            rows.append(about | {"group": one.reason, "estimate": None, "interval": None, "p": None, "n": None})
            continue
        named = [*zip(one.opinions.names, one.opinions.estimates, strict=True)]
        lines: list[tuple[str, Estimate, float | None]] = [(str(name), estimate, None) for name, estimate in named]
        lines.append((" ".join([*map(str, one.opinions.contrast), "less the others"]), one.opinions.difference, pvalue))
        for name, estimate, p in lines:
            said = f"{name} ({estimate.reason})" if estimate.reason else name
            numbers: dict[str, Any] = {
                "estimate": estimate.estimate,
                "interval": cells.interval_bounds(estimate),
                "p": p,
            }
            rows.append(about | {"group": said, "n": estimate.n or None, **numbers})
            settings = {**estimate.settings, "grouping": one.grouping.label, "group": name, "comparison": one.label}
            # The question is whether groups differ, so the groups themselves are not tested.
            test = estimate.test if estimate is one.opinions.difference else None
            estimates.append(replace(estimate, settings=settings, sensitivity=(), test=test))
        if is_split(one.opinions, pvalue, one.null):
            who = "Prompts" if one.grouping.is_of_prompts else "People"
            heads.append(f"{who} split on {one.label} by {one.grouping.label}")
            sentences.append(f"{heads[-1]}{_numbers_in_words(one.opinions, pvalue)}.")
    return Block(NAME, "Whose opinion", estimates=tuple(estimates), tables=[_table(rows)], note=NOTE), {
        "heads": [f"{head}." for head in heads],
        "sentences": sentences,
        "n_compared": sum(pvalue is not None for pvalue in adjusted),
    }


def _claimable_pvalue(opinions: "Opinions | None") -> float | None:
    """Return the p-value of the interaction, or None without one, or if a warning forbids a claim."""
    return None if opinions is None or opinions.difference.is_blocked else opinions.pvalue


def is_split(opinions: "Opinions", pvalue: float | None, null: float) -> bool:
    """Return whether groups differ by the adjusted test, or the whole intervals of two groups are on opposite sides."""
    ends = [cells.interval_bounds(estimate) for estimate in opinions.estimates if not estimate.is_blocked]
    known = [one for one in ends if one]
    is_opposite = any(low is not None and low > null for low, _ in known) and any(
        high is not None and high < null for _, high in known
    )
    return (pvalue is not None and pvalue < LEVEL) or is_opposite


def _numbers_in_words(opinions: "Opinions", pvalue: float | None) -> str:
    said = "; ".join(
        f"{name} {cells.format_number(estimate.estimate)} {cells.format_interval(bounds, 'number')}"
        for name, estimate in zip(opinions.names, opinions.estimates, strict=True)
        if (bounds := cells.interval_bounds(estimate))
    )
    printed = cells.format_pvalue(pvalue)
    tested = f" (adjusted p {'' if printed.startswith('<') else '= '}{printed})" if pvalue is not None else ""
    return f"{tested}: {said}"


def _table(rows: Sequence[Mapping[str, Any]]) -> Table:
    return build_table(
        "opinions",
        "Whose opinion: groups that the design declares",
        "contrast|Comparison|text; by|Groups by|text; group|Group|text; estimate|Estimate|number; interval|95% CI|wide_interval; "
        "p|Holm's p|p; n|n annotators|integer",
        rows,
        "opinions",
        NOTE,
    )
