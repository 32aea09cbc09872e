"""``python -m tools.proofs.papers [--quick] [--write] [--page-only]``: compute the papers' numbers again, show and keep them.

The numbers lie in tests/golden/papers.json; the page is made from them alone. Without the real labels beside the
project, and with ``--quick`` for the simulations, what was kept is shown.
"""

import argparse

from .numbers import collected, keep, kept
from .page import lines, write
from .rows import SHARED


def main() -> None:
    arguments = argparse.ArgumentParser(prog="python -m tools.proofs.papers")
    arguments.add_argument("--quick", action="store_true", help="leave the simulations as they were kept")
    arguments.add_argument("--write", action="store_true", help="keep the numbers and write the page")
    arguments.add_argument("--page-only", action="store_true", help="write the page from what was kept")
    given = arguments.parse_args()
    if given.page_only:
        parts = kept()
    else:
        parts = collected(SHARED, lambda part: not (given.quick and part.is_simulated))
        if given.write:
            keep(parts)
    print("\n".join(lines(parts)))
    if given.write or given.page_only:
        write()


if __name__ == "__main__":
    main()
