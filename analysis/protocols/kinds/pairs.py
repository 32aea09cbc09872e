"""Analyses that compare pairs of systems."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from analysis.data.context import AnalysisContext
from analysis.protocols import ComparingAnalysis, HeadlineAnswers, ProtocolAnalysis, keeping
from analysis.protocols.blocks import Block
from analysis.protocols.blocks.comparisons import AdjustedByBlock, ComparedByBlock, Comparison

if TYPE_CHECKING:
    from pandas import DataFrame

    from analysis.stats.results import Estimate


def keep_by_id(analysis: "PairAnalysis", answers: Any, ids: Collection[int]) -> Any:
    """Return a record whose ``kept`` are its answers that an analysis keeps."""
    return replace(answers, kept=answers.kept[answers.kept["id"].isin(ids)])


class PairAnalysis(ProtocolAnalysis):
    """An analysis with comparisons. It says how answers are read, compared and shown; all else is the same for every protocol.

    ``read`` returns records of answers, for example one for each question. A record has ``comparisons``, planned ones first.
    """

    # The block of the comparisons, if there is one. With several, override ``planned_claims`` and ``compare``.
    pairs_block = ""

    def planned_comparisons(self, section: Any) -> Iterable[Comparison]:
        """Return the planned comparisons of a section, from its design alone."""
        raise NotImplementedError

    def read(self, context: AnalysisContext) -> Sequence[Any]:
        raise NotImplementedError

    def records(self, context: AnalysisContext) -> Sequence[Any]:
        """Return what ``read`` returns, read once for all parts of a report."""
        if self.slug not in context.already_read:
            context.already_read[self.slug] = self.read(context)
        return context.already_read[self.slug]

    def estimate(self, answers: Any, compared: Comparison, context: AnalysisContext) -> "Estimate":
        """Return the estimate of one comparison, with the comparison in its settings."""
        raise NotImplementedError

    def blocks(self, records: Sequence[Any], adjusted: AdjustedByBlock, context: AnalysisContext) -> list[Block]:
        """Return all blocks. Those without estimates are left out. ``adjusted``: the estimates of ``compare``, by block."""
        raise NotImplementedError

    def pair_scores(self, answers: Any, compared: Comparison) -> "DataFrame":
        """Return a row for each answer about both systems, with its ``score`` for x, annotator, and second sample."""
        raise NotImplementedError

    def points(self, answers: Any) -> int:
        """Return the number of points that a pair score can have, if a plan of the size needs it."""
        return 5

    def compare(self, records: Sequence[Any], context: AnalysisContext) -> ComparedByBlock:
        return {
            self.pairs_block: [
                (compared, self.estimate(answers, compared, context))
                for answers in records
                for compared in answers.comparisons
                if compared.is_planned or not context.is_only_planned
            ]
        }

    def compare_answers(self, context: AnalysisContext) -> ComparedByBlock:
        return self.compare(self.records(context), context)

    # Returns a record of everybody's answers with those that have some ids, as far as ``compare`` reads it. None: the answers are
    # read again for each exclusion rule.
    keep: Callable[[Any, Collection[int]], Any] | None = None

    def compare_each_kept(self, context: AnalysisContext, columns: Sequence[str]) -> Iterator[ComparedByBlock]:
        if self.keep is None:
            yield from super().compare_each_kept(context, columns)
            return
        rows = context.rows
        everybody = self.read(replace(context, rows=keeping(rows, "")))
        for column in columns:
            ids = frozenset(rows.loc[rows[column].astype(bool), "id"] if column else rows["id"])
            yield self.compare([self.keep(answers, ids) for answers in everybody], context)

    def planned_claims(self, sections: Sequence[Any]) -> dict[str, list[Comparison]]:
        return {self.pairs_block: [compared for section in sections for compared in self.planned_comparisons(section)]}

    def analyse(self, context: AnalysisContext) -> ComparingAnalysis:
        """Return the blocks of all live sections. Families span all sections."""
        records = self.records(context)
        adjusted = yield self.compare(records, context)
        return [block for block in self.blocks(records, adjusted, context) if block.estimates]

    def agreement(self, answers: Any, context: AnalysisContext) -> "Estimate | None":
        """Return how far people agree about an item, as in the report, or None if the protocol has no such number."""
        return None

    def headline_answers(self, context: AnalysisContext) -> list[HeadlineAnswers]:
        if not self.headline_blocks:
            return []
        return [
            replace(
                HeadlineAnswers.from_rows(compared, self.pair_scores(answers, compared), "score", self.points(answers)),
                agreement=partial(self.agreement, answers, context),
            )
            for answers in self.records(context)
            for compared in answers.comparisons
        ]
