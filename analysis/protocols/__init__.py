"""The registry of analyses: each analyses the answers to one protocol of ``studies.protocols``.

An analysis is one module or package in this folder, with the name of its protocol. There is no list to edit.
"""

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from analysis.data.context import AnalysisContext
from analysis.data.planned_labels import PlannedLabels

from .blocks import Block, Overview
from .blocks.comparisons import AdjustedByBlock, ComparedByBlock, Comparison
from .blocks.populations import SECOND_SAMPLE
from .scores import Scorer

if TYPE_CHECKING:
    from pandas import Categorical, DataFrame

    from analysis.stats.arrays import FloatArray
    from analysis.stats.results import Estimate
    from analysis.stats.sequential import RunningShare

ComparingAnalysis = Generator[ComparedByBlock, AdjustedByBlock, list[Block]]
REGISTRY: dict[str, "ProtocolAnalysis"] = {}


@dataclass(frozen=True, slots=True)
class StoppingStatus:
    """The state of a stopping rule for one comparison. ``evidence`` after each unit has the scale of ``threshold`` and does not
    reveal a side. ``verdict`` and ``estimate`` do, so they stay hidden in a blind study. ``remaining``: labels still expected.
    ``passed``: the assignments that the rule has passed, whether they count or not.
    ``name`` is the key of the comparison, ``label`` its name for readers. ``running``: the running share with its bounds, which
    reveals the side as well.
    """

    name: str
    rule: str
    unit: str
    evidence: tuple[float, ...]
    threshold: float
    is_decided: bool
    verdict: str | None
    stopped_at: int | None
    n_overrun: int = 0
    remaining: Mapping[str, Any] | None = None
    estimate: Any = None
    passed: frozenset[int] = frozenset()
    label: str = ""
    running: "RunningShare | None" = None


def keeping(rows: "DataFrame", column: str) -> "DataFrame":
    """Return the rows for the recommended estimates of the answers that a column keeps, or of all for ''."""
    return rows.assign(is_kept=rows[column] if column else True)


@dataclass(frozen=True, slots=True)
class HeadlineAnswers:
    """The answers behind the headline of one comparison, those of annotators that the rules keep.

    All but ``values`` are categories, so that statistics get their numbers, and results their names.
    ``prompts``: the second sample of each answer, which is the group of a prompt that belongs to one. ``values``: one for each answer about the pair, on the scale of ``analysis.stats.planning.inputs.StudySize.bounds``, none
    missing. ``points``: of the scale, if the protocol has one. ``keys``: the prompt of each answer, and ``items``: the item whose outputs
    it compares; None if answers are not about a single one. ``agreement`` computes how far people agree about an item, which takes a
    while. ``by_domain``: the same answers, apart for each domain, if there are several.
    """

    comparison: Comparison
    values: "FloatArray"
    annotators: "Categorical[Any]"
    prompts: "Categorical[Any]"
    points: int = 5
    keys: "Categorical[Any] | None" = None
    items: "Categorical[Any] | None" = None
    agreement: "Callable[[], Estimate | None]" = lambda: None
    by_domain: "Mapping[str, HeadlineAnswers]" = field(default_factory=dict)

    @classmethod
    def from_rows(cls, comparison: Comparison, rows: "DataFrame", column: str, points: int = 5) -> "HeadlineAnswers":
        """Return the answers in one column of rows that have an annotator and a second sample: a prompt or its group."""
        from pandas import Categorical

        annotators, prompts, keys = (Categorical(rows[name]) for name in ("annotator", SECOND_SAMPLE, "prompt"))
        items = Categorical(rows["item"]) if "item" in rows else None
        return cls(comparison, rows[column].to_numpy(float), annotators, prompts, points, keys, items)


class ProtocolAnalysis:
    """The analysis of a protocol's answers. ``slug`` (the protocol's) and ``analyse`` are required."""

    slug = ""
    # Whether ``analyse`` needs all planned labels, given or not (``analysis.data.planned_labels``).
    needs_planned_labels = False
    # Whether ``analyse`` needs the seconds of each page.
    needs_page_seconds = False
    # Whether ``analyse`` needs the scores of metrics.
    needs_metric_scores = False
    # Whether a report counts the labels that strategies need at further values of delta.
    reads_deltas = False
    # What a plan of the size can be about: names in ``analysis.stats.planning.inputs.HEADLINES``, with the block that has its
    # estimates ('' if none has). The first one is about pairs of systems, or single outputs. Empty if no plan knows the protocol.
    headline_blocks: Mapping[str, str] = {}
    # How the answers become scores of systems, for boards and for metrics beside people; None if they are no scores.
    scorer: Scorer | None = None
    # Whether the estimate of the headline gives every person the same weight, and not every answer.
    weighs_people_equally = False
    # Whether two scores that a person gave to outputs of a prompt say which one the person prefers, and equal ones that neither.
    gives_preferences = True
    has_equal_preferences = True
    # Whether the blocks say what each exclusion rule changes, so that the report's own table leaves this protocol out.
    has_own_rule_effects = False
    # How readers name the paper whose numbers the blocks with the mode "paper" have; '' if the protocol is from none.
    paper = ""
    # Blocks whose claims are left out if another block, of any protocol, has claims.
    superseded_claims: Mapping[str, str] = {}
    # The function that builds the overview of several protocols, from all blocks and the star scheme. A shared one is called
    # once.
    build_overview: Callable[[Sequence[Block], str], Overview] | None = None

    def planned_claims(self, sections: Sequence[Any]) -> dict[str, list[Comparison]]:
        """Return the planned comparisons about which the report writes a sentence, under the name of their block.

        ``sections``: the live sections of this protocol. Answers play no part, so a draft's checklist can count them.
        """
        return {}

    def analyse(self, context: AnalysisContext) -> "list[Block] | ComparingAnalysis":
        """Analyse all live sections of this protocol. Return blocks, each ``paper`` or ``recommended``.

        An analysis with comparisons is a generator. It yields them once, with their estimates, under the name of their
        block, and gets the estimates back, adjusted in their families over all protocols and with verdicts.
        """
        raise NotImplementedError

    def compare_answers(self, context: AnalysisContext) -> ComparedByBlock:
        """Return the comparisons with their estimates by block, not yet adjusted. A protocol without comparisons has none."""
        return {}

    def compare_each_kept(self, context: AnalysisContext, columns: Sequence[str]) -> Iterator[ComparedByBlock]:
        """Give the comparisons with the answers that each column of the rows keeps, or with all for the column ''."""
        for column in columns:
            yield self.compare_answers(replace(context, rows=keeping(context.rows, column)))

    def headline_answers(self, context: AnalysisContext) -> list[HeadlineAnswers]:
        """Return the answers behind the headline of each comparison, planned ones first. Plans of other studies read them.

        A protocol that no plan knows has none.
        """
        return []

    def guesses(self, context: AnalysisContext) -> "list[tuple[Comparison, DataFrame]]":
        """Return the answers about who wrote single texts, for each comparison with chance. Other protocols have none.

        Columns: annotator, prompt, system, sample, item, and 1 or 0 for ``correct`` and ``says`` (a machine).
        """
        return []

    def judged_outputs(
        self, section: Any, question: Any, answers: "DataFrame", shown: Mapping[str, tuple[tuple[str, int], ...]]
    ) -> "DataFrame | None":
        """Return a row for each output that an answer to a question is about. None if the answers are not about single outputs.

        ``answers``: those of the section. ``shown``: the outputs of each item, as (system, sample). The columns are those of the
        answers, with ``value`` from 0 to 1, higher is better, and ``unit``: what a person compared with each other.
        """
        scorer = self.scorer
        if scorer is None or not (scorer.is_about_outputs and scorer.is_scored(question)):
            return None
        rows = scorer.score_answers(section, question, answers[answers["question"] == question.key], {})
        return rows.assign(unit=rows["prompt"])

    def error_marks(
        self, section: Any, answers: "DataFrame", texts: Mapping[tuple[str, str, int], str]
    ) -> "DataFrame | None":
        """Return a row for each marked error and for each output without one. None if annotators mark no errors.

        ``texts``: of the outputs, by system, prompt and sample. The columns are those of the answers, with ``category`` and
        ``severity`` ('' without an error), and ``start`` and ``end`` in the text (missing if no place was marked).
        """
        return None

    def stopping_statuses(self, planned_labels: PlannedLabels, section: Any, seed: str = "") -> list[StoppingStatus]:
        """Return the status of the section's stopping rule for each comparison, from the planned labels so far."""
        return []


class StartedAnalysis:
    """An analysis up to its comparisons (``compared``), which ``finish`` completes when they are adjusted."""

    def __init__(self, analysis: ProtocolAnalysis, context: AnalysisContext) -> None:
        self.compared: ComparedByBlock = {}
        self._blocks: list[Block] = []
        self._rest: ComparingAnalysis | None = None
        started = analysis.analyse(context)
        if isinstance(started, list):
            self._blocks = started
            return
        try:
            self.compared = next(started)
            self._rest = started
        except StopIteration as stop:
            self._blocks = stop.value
        for name, pairs in self.compared.items():
            members = Counter((compared.family, compared.key) for compared, _ in pairs)
            if twice := [key for (_, key), n in members.items() if n > 1]:
                raise ValueError(f"{name} has the comparison {twice[0]} twice in one family.")

    def finish(self, adjusted: AdjustedByBlock) -> list[Block]:
        """Return the blocks. ``adjusted`` has the estimates of ``compared``, and may have others."""
        if self._rest is None:
            return self._blocks
        try:
            self._rest.send({name: adjusted[name] for name in self.compared})
        except StopIteration as stop:
            return stop.value
        raise RuntimeError("An analysis yields its comparisons once.")


def register(cls) -> type[ProtocolAnalysis]:
    """Register the decorated class as the analysis of its protocol's slug."""
    if not cls.slug or cls.slug in REGISTRY:
        raise ValueError(f"The analysis of {cls.slug!r} has no slug or is registered twice.")
    REGISTRY[cls.slug] = cls()
    return cls


def headline_name(protocol: str) -> str:
    """Return what a plan of a section with this protocol is about, or '' if no plan knows the protocol."""
    return next(iter(REGISTRY[protocol].headline_blocks), "") if protocol in REGISTRY else ""


def planned_protocols() -> list[str]:
    """Return the protocols that plans know."""
    return [slug for slug, analysis in REGISTRY.items() if analysis.headline_blocks]


def planned_block(headline: str) -> str:
    """Return the block with the estimates of a plan's headline."""
    blocks = (analysis.headline_blocks.get(headline, "") for analysis in REGISTRY.values())
    return next(filter(None, blocks))


def load_analyses() -> None:
    """Import every module of this package. Django calls this once, when the application is ready.

    The registry is in the order of the slugs, also if a module was imported before.
    """
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    for slug in sorted(REGISTRY):
        REGISTRY[slug] = REGISTRY.pop(slug)
