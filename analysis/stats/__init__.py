"""The statistics: pure functions of numpy arrays that return frozen records.

No Django, no pandas, no files, no global randomness: every function can be called from a notebook.
Import the module that holds what you need (`from analysis.stats import spa`); nothing is re-exported here,
so that a caller who plans a study does not load the ranking of systems.
"""
