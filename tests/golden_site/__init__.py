"""A stored site with a study for every way to a number, and the hashes of their reports: whether a change of the code changes a result.

See ``tests/golden/site/README.md``.
"""
