"""A crash of the database may lose the row that says that a page was shown. Nothing that is typed on the page is lost with it."""

import pytest
from django.db import transaction
from django.test import Client

from analysis.data.flat_rows import read_assignment_rows
from annotators.models import Assignment, PageVisit, Response
from studies.protocols import REGISTRY
from tests.builders import launched, recruitment, spa_study
from tests.players import claimed, sent_from, submitted
from tests.samples import sample_draft

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


def stored_of(assignment: Assignment) -> tuple[list, list]:
    """Answers and pages, without their moments."""
    answers = Response.objects.filter(assignment=assignment).order_by("slot")
    pages = PageVisit.objects.filter(assignment=assignment, recorded_at__isnull=False).order_by("key")
    columns = ("value", "chosen", "choice", "part", "text", "skip_reason", "label", "position", "item", "exposure")
    return list(answers.values_list("slot", *columns)), list(pages.values_list("key", "shown", "layout", "draft"))


def play(assignment: Assignment, *, loses: bool) -> int:
    """Answer every page, each second one with a draft before. ``loses``: the page's row is gone once it was written."""
    client, pages = Client(), 0
    path = client.get(f"/p/{assignment.code}/")["Location"]
    while client.get(path) and (answers := sent_from(path)) is not None:
        open_visit = PageVisit.objects.filter(assignment=assignment, recorded_at=None)
        assert open_visit.get().shown_at
        for data in [answers | {"save": "auto"}, answers] if pages % 2 else [answers]:
            if loses:
                open_visit.delete()
            sent = client.post(path, data)
            if "save" in data:
                typed = {name: [value] for name, value in answers.items() if name != "go"}
                assert (sent.status_code, open_visit.get().draft) == (200, typed)
        assert sent.status_code == 302, sent.content.decode()
        path, pages = sent["Location"], pages + 1
    assert path.endswith("/done/")
    return pages


@pytest.mark.parametrize("slug", sorted(REGISTRY))
def test_every_page_of_every_protocol_is_stored_as_if_its_row_had_not_been_lost(slug):
    """But for the moment of the first sight, which nobody knows any more."""
    study = launched(sample_draft(slug, 3, 1))
    assignment = claimed(study, "w", recruitment(study))
    found = {}
    for loses in (False, True):
        point = transaction.savepoint()
        assert play(assignment, loses=loses) == PageVisit.objects.filter(assignment=assignment).count() > 0
        found[loses] = stored_of(assignment)
        known = set(PageVisit.objects.filter(assignment=assignment).values_list("shown_at", flat=True)) - {None}
        assert bool(known) is not loses
        assert Assignment.objects.get(pk=assignment.pk).submitted_at
        transaction.savepoint_rollback(point)
    assert found[True] == found[False]


def test_a_moment_that_is_not_known_is_exported_as_not_known_and_never_as_that_of_the_answer():
    study = spa_study(target_n=2)
    lost = claimed(study, "w", recruitment(study))
    play(lost, loses=True)
    known = submitted(study, "v")
    pages = {seat.pk: seat.pages for seat in read_assignment_rows(study, Assignment.objects.filter(study=study))}
    assert len(pages[lost.pk]) == len(pages[known.pk]) > 0
    assert {shown for _, _, shown, *_ in pages[lost.pk]} == {None}
    assert all(shown for _, _, shown, *_ in pages[known.pk])


def test_who_had_begun_has_begun_though_a_crash_came_between_the_first_page_and_the_beginning():
    study = spa_study(target_n=1)
    client, assignment = Client(), claimed(study, "w", recruitment(study))
    mine = Assignment.objects.filter(pk=assignment.pk)
    path = f"/p/{assignment.code}/s1/"
    for again in (
        lambda: client.get(path),
        lambda: client.post(path, {"save": "auto", "s1.q1": "yes"}),
        lambda: client.post(path, {"s1.q1": "yes"}),
    ):
        client.get(path)
        PageVisit.objects.filter(assignment=assignment).delete()
        client.get(path)
        mine.update(started_at=None)
        again()
        assert mine.get().started_at
    assert PageVisit.objects.get(assignment=assignment).recorded_at
