"""The panel's own id of a person: enciphered, in a table of its own, until it is no longer needed for pay.

No other row holds it. Where a panel names a visit by the number of its person, a mark is kept in the place of that number.
"""

from collections.abc import Iterable, Mapping, Sequence

from . import Annotator, Assignment, PanelIdentity, PanelSubmission
from .crypto import Purpose, decrypt, encrypt

# What the id of a submission begins with where it is a keyed hash: of a person's own id, and of an id that was erased.
OF_PERSON, ERASED = "person-", "erased-"


def keep_identity(annotator: Annotator, person: str) -> None:
    """Remember the raw id that a panel sent. Written once a person; pay and the way back to the panel read it."""
    if person and not PanelIdentity.objects.filter(annotator=annotator, ciphertext__isnull=False).exists():
        kept = PanelIdentity(annotator=annotator, ciphertext=encrypt(Purpose.IDENTITY, person))
        PanelIdentity.objects.bulk_create(
            [kept], update_conflicts=True, unique_fields=["annotator"], update_fields=["ciphertext"]
        )


def keep_identities(people: Mapping[int, str]) -> None:
    """The same for many, whom nobody has met before: raw ids by annotator."""
    PanelIdentity.objects.bulk_create(
        (PanelIdentity(annotator_id=pk, ciphertext=encrypt(Purpose.IDENTITY, person)) for pk, person in people.items()),
        ignore_conflicts=True,
        batch_size=500,
    )


def panel_id(annotator: Annotator) -> str | None:
    """The raw id, or None where it was never known or is erased."""
    return panel_ids([annotator.pk]).get(annotator.pk)


def panel_ids(annotators: Iterable[int]) -> dict[int, str]:
    """The raw ids of many, by annotator; those that were never known or are erased are left out."""
    kept = PanelIdentity.objects.filter(annotator__in=annotators, ciphertext__isnull=False)
    return {pk: decrypt(Purpose.IDENTITY, text) for pk, text in kept.values_list("annotator", "ciphertext")}


def mark_of(annotator_key: str) -> str:
    """What is stored in the place of a person's own id. ``annotator_key``: ``Annotator.external_id``, which is a keyed hash."""
    return f"{OF_PERSON}{annotator_key[:40]}"


def kept_ids(annotator: Annotator, ids: Mapping[str, str]) -> dict[str, str]:
    """Of the ids that an address carried, those that an assignment may keep: nothing in them is the person's own id."""
    person = ids.get("person")
    others = {name: value for name, value in ids.items() if name != "person"}
    return {name: mark_of(annotator.external_id) if value == person else value for name, value in others.items()}


def ids_of(assignment: Assignment) -> dict[str, str]:
    """The ids as the address carried them, for a way back to the panel. Those that are erased are left out."""
    return whole_ids(assignment, panel_id(assignment.annotator) or "")


def whole_ids(assignment: Assignment, person: str) -> dict[str, str]:
    """The same, where ``person`` is known already: '' where it is erased."""
    ids = {name: person if value.startswith(OF_PERSON) else value for name, value in assignment.external_ids.items()}
    return {name: value for name, value in ids.items() if value} | ({"person": person} if person else {})


def name_submissions(rows: Sequence[PanelSubmission]) -> None:
    """Give each row ``named``, for a researcher's page: its id at the panel, or what is stored in the place of an erased one."""
    people = panel_ids({row.annotator_id for row in rows if row.external_id.startswith(OF_PERSON)})
    for row in rows:
        row.named = submission_id(row, people.get(row.annotator_id, "")) or row.external_id


def submission_id(row: PanelSubmission, person: str) -> str:
    """The panel's own id of a submission, where ``person`` is the id of its person; '' where it is erased."""
    if row.external_id.startswith(ERASED):
        return ""
    return person if row.external_id.startswith(OF_PERSON) else row.external_id
