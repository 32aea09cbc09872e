"""What the four papers print, computed again: ``python -m tools.proofs.papers`` shows it, ``--write`` keeps it too."""
