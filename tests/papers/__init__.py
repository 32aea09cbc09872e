"""What the four papers print, computed again: ``python -m tests.papers`` shows it, ``--write`` keeps it too."""
