"""The lines of the families of comparisons on the checklist."""

from studies.models import ComparisonFamily
from tests.messages.checklist.drafts import on, spa

CHECKS = "analysis/protocols/families"


def families(*rows):
    """Each row is the name of a family and of the one before it."""
    return lambda study: [ComparisonFamily.objects.create(study=study, name=name, after=after) for name, after in rows]


def second_is_secondary(study):
    study.contrasts.filter(pk=study.contrasts.last().pk).update(role="secondary")


def secondary_has_another_level(study):
    study.contrasts.filter(role="secondary").update(level=0.01)


LINES = {
    f"{CHECKS}:find_family_problems": [
        (
            "must not wait for each other: primary after other after primary",
            "Empty one of the fields",
            on(spa, families(("primary", "other"), ("other", "primary"))),
        ),
        (
            "No comparison belongs to the family “fluency”",
            "Correct its name",
            on(spa, families(("fluency", ""))),
        ),
        (
            "The family “primary” waits for “fluency”",
            "Correct the name",
            on(spa, families(("primary", "fluency"))),
        ),
    ],
    f"{CHECKS}:_unequal_levels": [
        (
            "The ordered families “primary” and “secondary” have different significance levels",
            "enter the same",
            on(spa, second_is_secondary, families(("secondary", "primary")), secondary_has_another_level),
        ),
    ],
    f"{CHECKS}:_unordered_families": [
        (
            "The families “primary” and “secondary” have no order",
            "#comparison_families-group",
            on(spa, second_is_secondary),
        ),
    ],
}
