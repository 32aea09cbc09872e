"""What the numbers of a table without comparisons are about."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from .comparisons import Comparison

if TYPE_CHECKING:
    from pandas import DataFrame

# The column of the rows with the second sample beside annotators: what a result about prompts like these generalises to.
SECOND_SAMPLE = "prompt"


def table_population(comparisons: Iterable[Comparison], rows: "DataFrame") -> str:
    """Return the declared population of the tables of one question: people and prompts, or people for exactly these prompts.

    They are about the narrowest population that a planned comparison of the question declares. If none declares any, the rows
    decide, as they do for comparisons.
    """
    from analysis.stats.clusters import TOO_FEW_ITEMS

    declared = {compared.population for compared in comparisons if compared.is_planned} - {""}
    if declared:
        return "people" if "people" in declared else "people_and_prompts"
    return "people" if rows[SECOND_SAMPLE].nunique() < TOO_FEW_ITEMS else "people_and_prompts"
