"""The researcher's pages about who answers. Importing this package registers them."""

from annotators.places import monitor
from studies.admin import life

from . import assignments, collecting, recruitment

if monitor.progress_of not in life.progress_of:
    life.progress_of.append(monitor.progress_of)

__all__ = ["assignments", "collecting", "recruitment"]
