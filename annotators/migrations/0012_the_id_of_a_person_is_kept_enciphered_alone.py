"""The panel's id of a person leaves every row but the enciphered one.

It was also part of the ids of an assignment, and the id of a submission where a panel names a work by its person. The enciphered row is
made first where the id is still needed: for people who have not left, and for people who are owed something.
"""

import re
from collections import defaultdict

from django.db import migrations, models

from annotators.crypto import Purpose, decrypt, encrypt, keyed
from annotators.identity import ERASED, mark_of

CHUNK = 500


def clean(apps, schema_editor):
    model = {name: apps.get_model("annotators", name) for name in (
        "Assignment", "PanelIdentity", "PanelSubmission", "PanelOrder", "Payment", "SampleValue",
    )}  # fmt: skip
    keys = dict(apps.get_model("annotators", "Annotator").objects.values_list("pk", "external_id"))
    people = ids_in_clear(model["Assignment"])
    keep_what_is_needed(model, people)
    clean_assignments(model["Assignment"], people, keys)
    for pk, text in model["PanelIdentity"].objects.exclude(ciphertext=None).values_list("annotator", "ciphertext"):
        people[pk].add(decrypt(Purpose.IDENTITY, text))
    clean_submissions(model["PanelSubmission"], people, keys)
    clean_words(model["PanelOrder"], people)
    for value in model["SampleValue"].objects.filter(annotator__in=list(people)):
        if value.value.strip() in people[value.annotator_id]:
            value.delete()


def ids_in_clear(assignments):
    """The ids of each annotator that stand in their assignments."""
    people = defaultdict(set)
    rows = assignments.objects.exclude(external_ids={}).values_list("annotator", "external_ids")
    for annotator, ids in rows.iterator(CHUNK):
        if person := ids.get("person"):
            people[annotator].add(person)
    return people


def keep_what_is_needed(model, people):
    """The enciphered row of those who are still in a study or are owed something, where there is none."""
    assignments = model["Assignment"].objects.filter(annotator__in=list(people))
    needed = set(assignments.filter(withdrawn_at=None).values_list("annotator", flat=True))
    unpaid = model["Payment"].objects.filter(state__in=["due", "ordered"], assignment__annotator__in=list(people))
    needed |= set(unpaid.values_list("assignment__annotator", flat=True))
    identities = model["PanelIdentity"]
    needed -= set(identities.objects.exclude(ciphertext=None).values_list("annotator", flat=True))
    identities.objects.bulk_create(
        (identities(annotator_id=pk, ciphertext=encrypt(Purpose.IDENTITY, min(people[pk]))) for pk in sorted(needed)),
        update_conflicts=True, unique_fields=["annotator"], update_fields=["ciphertext"], batch_size=CHUNK,
    )  # fmt: skip


def clean_assignments(assignments, people, keys):
    rows = (
        assignments.objects.exclude(external_ids={})
        .filter(annotator__in=list(people))
        .only("annotator", "external_ids")
    )
    changed = []
    for row in rows.iterator(CHUNK):
        ids = {name: value for name, value in row.external_ids.items() if name != "person"}
        mine = people[row.annotator_id]
        ids = {name: mark_of(keys[row.annotator_id]) if value in mine else value for name, value in ids.items()}
        if ids != row.external_ids:
            row.external_ids = ids
            changed.append(row)
    assignments.objects.bulk_update(changed, ["external_ids"], batch_size=CHUNK)


def clean_submissions(submissions, people, keys):
    """A submission that is called like its person, and a receipt that a person typed as their own id."""
    rows = submissions.objects.exclude(external_id__startswith=ERASED).select_related("annotator")
    taken = set()
    changed = []
    for row in rows.order_by("pk").iterator(CHUNK):
        mark, mine = mark_of(keys[row.annotator_id]), people.get(row.annotator_id, ())
        is_person = (
            row.external_id in mine or keyed("person", row.annotator.pool, row.external_id) == row.annotator.external_id
        )
        if is_person:
            place = (row.recruitment_id, row.annotator_id)
            # One person with two spellings of one number: the first is the one that is ordered for.
            other = f"{ERASED}{keyed('submission', str(row.recruitment_id), row.external_id)[:40]}"
            row.external_id = other if place in taken else mark
            taken.add(place)
        is_typed = bool(row.receipt) and (row.receipt.strip() in mine)
        row.receipt = mark if is_typed else row.receipt
        if is_person or is_typed:
            changed.append(row)
    submissions.objects.bulk_update(changed, ["external_id", "receipt"], batch_size=CHUNK)


def clean_words(orders, people):
    """What panels said of orders, where they repeated the id."""
    rows = orders.objects.exclude(words="").exclude(submission=None).select_related("submission")
    changed = []
    for row in rows.iterator(CHUNK):
        words = row.words
        for person in people.get(row.submission.annotator_id, ()):
            words = re.sub(rf"(?<!\w){re.escape(person)}(?!\w)", "…", words, flags=re.IGNORECASE)
        if words != row.words:
            row.words = words
            changed.append(row)
    orders.objects.bulk_update(changed, ["words"], batch_size=CHUNK)


class Migration(migrations.Migration):
    dependencies = [("annotators", "0011_when_a_page_was_shown_may_be_unknown")]
    operations = [
        migrations.RunPython(clean, migrations.RunPython.noop),
        migrations.AddConstraint(
            model_name="assignment",
            constraint=models.CheckConstraint(
                condition=models.Q(("external_ids__has_key", "person"), _negated=True),
                name="assignment_holds_no_id_of_a_person",
            ),
        ),
    ]
