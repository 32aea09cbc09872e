"""The base of records that load no numpy: what a plan is made from, and its live numbers."""

from dataclasses import asdict
from typing import Any, ClassVar


class PlainRecord:
    """Base of frozen dataclasses of plain values; `results.Record` is the base of those with arrays."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Any]]

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as a JSON-safe dict."""
        return asdict(self)


# Names of claims by a margin, for modules that must not load numpy.


NONINFERIORITY = "noninferiority"
SUPERIORITY_BY_MARGIN = "superiority_by_margin"
HYPOTHESES = (NONINFERIORITY, SUPERIORITY_BY_MARGIN)
