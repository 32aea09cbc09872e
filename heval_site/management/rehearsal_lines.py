"""The report of a rehearsal as lines for a terminal."""

from collections.abc import Iterator
from typing import Any


def report_lines(report: dict[str, Any]) -> Iterator[str]:
    """Return the report as lines for a terminal."""
    yield f"{report['study']}, by {report['channel']}: {report['people']} people, {report['seconds']} s"
    yield ""
    for row in report["roles"]:
        yield f"{'ok ' if row['is_ok'] else 'NOT'} {row['people']:3} {row['label']}"
        facts = [("last page", row["last_page"]), ("sent to", row["sent"])]
        facts += [("at the panel", row["at_panel"]), ("in heval", row["in_heval"])]
        facts += [("reconciled", row["match_status"]), ("pay", row["pay"])]
        yield "        " + "; ".join(f"{name}: {text}" for name, text in facts if text)
        yield from (f"        ! {fault}" for fault in row["faults"])
    for head, key in (
        ("Problems", "faults"),
        ("Faults simulated, and handled correctly", "proofs"),
        ("Notes", "notes"),
        ("Before you recruit people", "before"),
    ):
        if report.get(key):
            yield ""
            yield head
            yield from (f"  {text}" for text in report[key])
    if money := report.get("money"):
        yield ""
        yield (
            f"Money (nothing was spent): {money['paid']} who finished at {money['reward']} and "
            f"{money['bonuses']} of bonuses are {money['rehearsed']} {money['currency']}."
        )
        yield (
            f"{money['wanted']} real people cost {money['rewards']} {money['currency']} plus the panel's fee, "
            "which heval does not know."
        )
    yield ""
    yield "Everything was as expected." if report["is_ok"] else "Something was not as expected."
