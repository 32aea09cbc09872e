"""The usual page is stored without being read before.

Its assignment goes on, it was shown as it is laid today, the page before it is answered, it is not, it is neither the first
nor the last, and what was sent is whole. What of this the database alone knows stands in the statements' conditions: where
one does not hold no answer is stored, and ``record.record_page``, which reads everything first, finds out what is so. The
place of an assignment that goes on may have been kept for longer then, as it is for whoever is at work.
"""

import json
from functools import lru_cache

from django.db.models import Exists, JSONField, OuterRef, TextField, Value
from django.db.models.functions import Cast, Greatest
from django.http import QueryDict

from studies.models import Study
from studies.protocols import Page

from .assign import kept_for
from .images import mentions_images
from .models import PageVisit, Response
from .pages import fixed_way, shown_of
from .prepared import Update, in_turn
from .record import OF_RESPONSE, RECORDED, active_seconds, live, read_page, rows_of, screens_out

# By design: how long its study keeps a place, as it was last read. A statement that was told another time finds no row.
_times: dict[int, tuple[int | None, int | None]] = {}
MANY = 10_000


def remember(design_id: int | None, study: Study) -> None:
    """How long this study keeps a place, read just now."""
    if design_id:
        if len(_times) >= MANY:
            _times.clear()
        _times[design_id] = study.idle_seconds, study.minutes


def record_at_once(code: str, key: str, data: QueryDict) -> tuple[str, str | None] | None:
    """The next page's key and the channel, where this page is stored now. None: it is not, and all is to be looked at."""
    found = fixed_way(code, key)
    if found is None:
        return None
    settled, walk = found
    before, following, step = walk.before(key), walk.after(key), walk.steps[key]
    times = _times.get(settled.design_id)
    # A page with images that were not seen is checked against what it shows, and stored, by ``record_page``.
    if times is None or not before or following is None or mentions_images(data):
        return None
    asks = step.protocol.asks(step.page)
    sent = read_page(step, asks, data)
    if not sent.is_valid or (step.purpose == "screening" and screens_out(asks, sent)):
        return None
    rows = rows_of(settled.assignment_id, asks, sent)
    changes = [
        (_extension(*times), (settled.assignment_id, settled.batch_id, settled.design_id, settled.seed)),
        (_recording, (active_seconds(data), settled.assignment_id, key, _shown(step.page), before)),
    ]
    is_stored = in_turn(changes, Response, OF_RESPONSE, rows) == len(changes)
    return (following, settled.channel) if is_stored else None


@lru_cache(maxsize=64)
def _extension(idle_seconds: int | None, minutes: int | None) -> Update:
    """Keep the place of an assignment that goes on, as long as its study says."""
    study = Study(idle_seconds=idle_seconds, minutes=minutes)
    as_told = Study.objects.filter(pk=OuterRef("study_id"), idle_seconds=idle_seconds, minutes=minutes)
    return Update(
        lambda pk, batch, design, seed: (
            live(pk).filter(Exists(as_told), batch=batch, design=design, seed=seed),
            {"reserved_until": kept_for(study.idle_lease_seconds)},
        ),
        int, int, int, int,
    )  # fmt: skip


_recording = Update(
    lambda seconds, assignment, key, shown, before: (
        PageVisit.objects.filter(
            Exists(PageVisit.objects.filter(assignment=assignment, key=before, recorded_at__isnull=False)),
            assignment=assignment, key=key, recorded_at=None,
            shown=Cast(Value(shown, TextField()), JSONField()),
        ),
        {
            **RECORDED, "active_seconds": Greatest("active_seconds", Value(seconds)),
        },
    ),
    int, int, str, str, str,
)  # fmt: skip


def _shown(page: Page) -> str:
    return json.dumps(shown_of(page))
