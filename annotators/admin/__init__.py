"""The researcher's pages about who answers. Importing this package registers them."""

from . import assignments, collecting, recruitment

__all__ = ["assignments", "collecting", "recruitment"]
