"""Rows from the time when ids of people stood in clear: the migration cleans them, and keeps what is still needed for pay."""

from decimal import Decimal

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from annotators import assign
from annotators.identity import ids_of, keep_identity, panel_id
from annotators.models import Annotator, Assignment, PanelOrder, PanelSubmission, Payment, SampleColumn, SampleValue
from annotators.withdraw import withdraw
from tests.builders import recruitment, spa_study, user
from tests.traces import Hunt

pytestmark = pytest.mark.postgres

NAME = "the_id_of_a_person_is_kept_enciphered_alone"
PEOPLE = ("WORKS-marked", "LEFT-marked", "OWED-marked", "7391840", "FILE-marked", "0739184", "739184")


def migrated(before: bool) -> None:
    """The database as it was before that migration, or as it is after all of them."""
    executor = MigrationExecutor(connection)
    (ours,) = [key for key in executor.loader.graph.nodes if key[0] == "annotators" and key[1].endswith(NAME)]
    (parent,) = [key for key in executor.loader.graph.node_map[ours].parents if key.key[0] == "annotators"]
    executor.migrate([parent.key] if before else executor.loader.graph.leaf_nodes())


@pytest.mark.django_db(transaction=True)
def test_ids_in_clear_go_from_every_row_and_stay_enciphered_where_they_are_needed():
    study = spa_study(user("owner"), target_n=9, prompts=40)
    door = recruitment(study, "generic", pool="panel")
    made = {}
    for person in PEOPLE[:5]:
        annotator = assign.annotator_of("panel", person)
        made[person] = assign.claim_batch(study, annotator, door).assignment
    works, left, owed, sign_up, by_file = made.values()
    nought = assign.annotator_of("panel", "739184")
    for one in (left, owed):
        withdraw(one)
    keep_identity(sign_up.annotator, "7391840"), keep_identity(nought, "0739184")
    Payment.objects.create(assignment=owed, kind="outcome", amount=Decimal(1), currency="USD", way="hand")
    shown = {"recruitment": door, "state": "submitted", "source": "file"}
    rows = [
        PanelSubmission.objects.create(external_id=name, annotator=annotator, receipt=receipt, **shown)
        for name, annotator, receipt in (
            ("7391840", sign_up.annotator, ""), ("FILE-marked", by_file.annotator, ""), ("S-1", works.annotator, "WORKS-marked"),
            ("0739184", nought, ""), ("739184", nought, ""),
        )
    ]  # fmt: skip
    PanelOrder.objects.create(
        recruitment=door, submission=rows[2], operation="approve", token="approve-1", state="refused", words="No “works-marked” here.",
        sent_at=timezone.now(), ended_at=timezone.now(),
    )  # fmt: skip
    column = SampleColumn.objects.create(study=study, name="Nick", kind="category")
    SampleValue.objects.create(column=column, annotator=works.annotator, value="WORKS-marked")
    SampleValue.objects.create(column=column, annotator=left.annotator, value="Kim")
    try:
        migrated(before=True)
        for person, one in made.items():
            session = person if one == sign_up else f"S-{one.pk}"
            Assignment.objects.filter(pk=one.pk).update(
                external_ids={"person": person, "session": session, "task": "T"}
            )
        assert Hunt({"it": "WORKS-marked"}).database(), "the ids stand there before"
    finally:
        migrated(before=False)
    found = Hunt({person: person for person in PEOPLE}).database()
    assert not found, found
    assert [panel_id(one.annotator) for one in made.values()] == [
        "WORKS-marked",
        None,
        "OWED-marked",
        "7391840",
        "FILE-marked",
    ]
    assert ids_of(Assignment.objects.get(pk=works.pk)) == {
        "person": "WORKS-marked",
        "session": f"S-{works.pk}",
        "task": "T",
    }
    assert ids_of(Assignment.objects.get(pk=sign_up.pk)) == {"person": "7391840", "session": "7391840", "task": "T"}
    assert "person" not in Assignment.objects.get(pk=left.pk).external_ids
    names = [row.external_id[:7] for row in PanelSubmission.objects.order_by("pk")]
    assert names == ["person-", "person-", "S-1", "person-", "erased-"]
    assert PanelOrder.objects.get().words == "No “…” here." and SampleValue.objects.get().value == "Kim"
    # What the migration took away nothing writes again.
    with pytest.raises(IntegrityError), transaction.atomic():
        Assignment.objects.filter(pk=works.pk).update(external_ids={"person": "WORKS-marked"})
    assert Annotator.objects.count() == 6
