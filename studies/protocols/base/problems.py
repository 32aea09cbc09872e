"""A problem: something missing or unwise in the definition of a study."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """Something missing (blocking) or unwise (a researcher acknowledges it by name) in a study's definition."""

    text: str
    field: str = ""
    is_blocking: bool = True
    name: str = ""

    @property
    def key(self) -> str:
        """The key that an acknowledgement names."""
        return self.name or self.text
