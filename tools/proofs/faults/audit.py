"""Compare what annotators got acknowledged with what is stored. Run in a site's environment; the acknowledgements come as JSON."""

import json
import sys
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import django


def same(response, sent: str) -> bool:
    """Whether a stored answer is the one that was sent."""
    if response.value is not None:
        return response.value == Decimal(sent)
    return sent in (response.choice, response.text, response.label)


def audit(told: dict[str, Any]) -> dict[str, Any]:
    """``told``: pages {code, key, answers, sent_at (of the last attempt)} that were acknowledged, codes of claims."""
    from annotators.models import Assignment, PageVisit, Response
    from annotators.places.assign import find_miscounted_batches
    from studies.models import Batch

    visits = {
        (code, key): at for code, key, at in PageVisit.objects.values_list("assignment__code", "key", "recorded_at")
    }
    stored: dict[tuple[str, str], list] = {}
    about: Counter = Counter()
    for response in Response.objects.select_related("assignment"):
        stored.setdefault((response.assignment.code, response.slot), []).append(response)
        about[
            response.assignment_id, response.question_id, response.item_id, response.exposure_id, response.choice
        ] += 1
    lost, replayed = [], 0
    for page in told["pages"]:
        recorded_at = visits.get((page["code"], page["key"]))
        answers = {slot: stored.get((page["code"], slot), []) for slot in page["answers"]}
        kept = all(any(same(row, page["answers"][slot]) for row in rows) for slot, rows in answers.items())
        if recorded_at is None or not kept:
            lost.append([page["code"], page["key"]])
        elif recorded_at < datetime.fromtimestamp(page["sent_at"], UTC):
            replayed += 1  # stored by an attempt of which nobody heard
    known = set(Assignment.objects.values_list("code", flat=True))
    return {
        "acknowledged_pages": len(told["pages"]),
        "acknowledged_answers": sum(len(page["answers"]) for page in told["pages"]),
        "acknowledged_claims": len(told["claims"]),
        "lost_pages": len(lost),
        "lost_claims": len(set(told["claims"]) - known),
        "doubled_answers": sum(n - 1 for n in about.values()),
        "doubled_places": len(told["claims"]) - len(set(told["claims"])),
        "over_assigned": sum(batch.claimed > batch.wanted for batch in Batch.objects.all())
        + len(find_miscounted_batches()),
        "recorded_without_word": replayed,
    }


if __name__ == "__main__":
    django.setup()
    json.dump(audit(json.load(sys.stdin)), sys.stdout)
