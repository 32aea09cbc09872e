"""The panel's own id of a person: enciphered, in a table of its own, until it is no longer needed for pay.

No other row holds it. Where a panel names a visit by the number of its person, a mark is kept in the place of that number.
"""

from collections.abc import Iterable, Mapping, Sequence

from . import Annotator, Assignment, PanelIdentity, PanelSubmission
from .crypto import Purpose, decrypt, encrypt

# What the id of a submission begins with where it is a keyed hash: of a person's own id, and of an id that was erased.
PERSON_PREFIX, ERASED_PREFIX = "person-", "erased-"


def store_person_id(annotator: Annotator, person_id: str) -> None:
    """Remember the raw id that a panel sent. Written once a person; pay and the way back to the panel read it."""
    if person_id and not PanelIdentity.objects.filter(annotator=annotator, ciphertext__isnull=False).exists():
        kept = PanelIdentity(annotator=annotator, ciphertext=encrypt(Purpose.IDENTITY, person_id))
        PanelIdentity.objects.bulk_create(
            [kept], update_conflicts=True, unique_fields=["annotator"], update_fields=["ciphertext"]
        )


def store_person_ids(person_ids: Mapping[int, str]) -> None:
    """The same for many, whom nobody has met before: raw ids by annotator."""
    PanelIdentity.objects.bulk_create(
        (
            PanelIdentity(annotator_id=pk, ciphertext=encrypt(Purpose.IDENTITY, person))
            for pk, person in person_ids.items()
        ),
        ignore_conflicts=True,
        batch_size=500,
    )


def get_person_id(annotator: Annotator) -> str | None:
    """The raw id, or None where it was never known or is erased."""
    return get_person_ids([annotator.pk]).get(annotator.pk)


def get_person_ids(annotator_ids: Iterable[int]) -> dict[int, str]:
    """The raw ids of many, by annotator; those that were never known or are erased are left out."""
    kept = PanelIdentity.objects.filter(annotator__in=annotator_ids, ciphertext__isnull=False)
    return {pk: decrypt(Purpose.IDENTITY, text) for pk, text in kept.values_list("annotator", "ciphertext")}


def person_id_placeholder(annotator_key: str) -> str:
    """What is stored in the place of a person's own id. ``annotator_key``: ``Annotator.external_id``, which is a keyed hash."""
    return f"{PERSON_PREFIX}{annotator_key[:40]}"


def storable_external_ids(annotator: Annotator, ids: Mapping[str, str]) -> dict[str, str]:
    """Of the ids that an address carried, those that an assignment may keep: nothing in them is the person's own id."""
    person = ids.get("person")
    others = {name: value for name, value in ids.items() if name != "person"}
    return {
        name: person_id_placeholder(annotator.external_id) if value == person else value
        for name, value in others.items()
    }


def full_external_ids(assignment: Assignment) -> dict[str, str]:
    """The ids as the address carried them, for a way back to the panel. Those that are erased are left out."""
    return external_ids_with_person(assignment, get_person_id(assignment.annotator) or "")


def external_ids_with_person(assignment: Assignment, person_id: str) -> dict[str, str]:
    """The same, where ``person`` is known already: '' where it is erased."""
    ids = {
        name: person_id if value.startswith(PERSON_PREFIX) else value for name, value in assignment.external_ids.items()
    }
    return {name: value for name, value in ids.items() if value} | ({"person": person_id} if person_id else {})


def attach_display_ids(submissions: Sequence[PanelSubmission]) -> None:
    """Give each row ``named``, for a researcher's page: its id at the panel, or what is stored in the place of an erased one."""
    people = get_person_ids({row.annotator_id for row in submissions if row.external_id.startswith(PERSON_PREFIX)})
    for row in submissions:
        row.named = submission_id_at_panel(row, people.get(row.annotator_id, "")) or row.external_id


def submission_id_at_panel(submission: PanelSubmission, person_id: str) -> str:
    """The panel's own id of a submission, where ``person`` is the id of its person; '' where it is erased."""
    if submission.external_id.startswith(ERASED_PREFIX):
        return ""
    return person_id if submission.external_id.startswith(PERSON_PREFIX) else submission.external_id
