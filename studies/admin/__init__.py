"""The researcher's pages about what is asked. Importing this package registers them."""

from . import jobs, log, section, stimuli, study

__all__ = ["jobs", "log", "section", "stimuli", "study"]
