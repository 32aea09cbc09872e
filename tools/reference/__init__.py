"""The pages of the reference that the code itself writes: ``python -m tools.reference`` writes them anew.

What a name, a default or a constraint is comes from the code. What it is for, where the code has no place for that, is in
the ``.toml`` files of this folder. A test fails when a page is not what this tool makes, or when something new has no words.
"""
