"""Check that the names in a file look different to a person."""

from studies.stimuli.texts import name_key


class DistinctNames:
    """A set of names that must look different to a person."""

    def __init__(self, taken):
        self._by_key = {name_key(name): name for name in taken}

    def add_and_find_lookalike(self, name: str) -> str:
        """Take the name. Return another taken name that looks the same, or '' if all others look different."""
        other = self._by_key.setdefault(name_key(name), name)
        return "" if other == name else other
