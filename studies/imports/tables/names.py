"""Names that a file brings, held apart where a person would read them as the same."""

from studies.stimuli.texts import name_key


class DistinctNames:
    """Names that must differ to a person's eye."""

    def __init__(self, taken):
        self._by_key = {name_key(name): name for name in taken}

    def claim(self, name: str) -> str:
        """Another name that reads the same, '' where there is none; the name counts as taken from then on."""
        other = self._by_key.setdefault(name_key(name), name)
        return "" if other == name else other
