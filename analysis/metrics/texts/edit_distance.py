"""A fast edit distance for TER. Almost all of TER's time goes into the distances of texts with shifted words."""

from collections.abc import Iterator
from typing import Any

from rapidfuzz.distance import Levenshtein
from sacrebleu.metrics import lib_ter

# sacreBLEU considers positions of the reference within this distance of the diagonal, or a little farther.
_BAND = lib_ter._BEAM_WIDTH - 2
_Exact = lib_ter.BeamEditDistance


class _Distances(_Exact):
    """The edit distances of texts from a reference, as sacreBLEU asks for them: ``distance, trace = distances(words)`` or
    ``distances(words)[0]``."""

    def __call__(self, words: list[str]) -> Any:
        return _Distance(self, words)


class _Distance:
    """One distance. The trace is computed by sacreBLEU, and only if it is read."""

    def __init__(self, distances: _Distances, words: list[str]):
        self._distances, self._words = distances, words

    def __iter__(self) -> Iterator[Any]:
        return iter(_Exact.__call__(self._distances, self._words))

    def __getitem__(self, place: int) -> Any:
        reference = self._distances._words_ref
        edits = Levenshtein.editops(self._words, reference)
        slope = len(reference) / max(1, len(self._words))
        margin = _BAND - max(1.0, slope)
        # sacreBLEU searches only near the diagonal. A shortest path that stays there is the shortest for both.
        if place == 0 and all(abs(edit.dest_pos - slope * edit.src_pos) <= margin for edit in edits):
            return len(edits)
        return _Exact.__call__(self._distances, self._words)[place]


def use_fast_edit_distance() -> None:
    """Let sacreBLEU compute TER with this distance, in this process. The scores are the same."""
    lib_ter.BeamEditDistance = _Distances  # type: ignore[misc]  # no type is assigned to elsewhere
