"""Generate reference pages from the code. Run ``python -m tools.reference`` to update them.

Names, defaults and constraints come from the code. Descriptions that have no place in the code are in the ``.toml`` files of
this folder. A test fails if a page is not up to date, or if something new has no description.
"""
