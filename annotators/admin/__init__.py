"""Admin pages about annotators and recruitment. Importing this package registers them."""

from . import assignments, collecting, recruitment

__all__ = ["assignments", "collecting", "recruitment"]
