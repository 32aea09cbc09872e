"""The lines of the families of comparisons on the checklist."""

from studies.models import ComparisonFamily
from tests.messages.checklist.drafts import on, spa
from tests.messages.lines import At


def families(*rows):
    """Each row is the name of a family and of the one before it."""
    return lambda study: [ComparisonFamily.objects.create(study=study, name=name, after=after) for name, after in rows]


def second_is_secondary(study):
    study.contrasts.filter(pk=study.contrasts.last().pk).update(role="secondary")


def secondary_has_another_level(study):
    study.contrasts.filter(role="secondary").update(level=0.01)


CHECKLIST = {
    "The families of comparisons": on(spa, families(("primary", "other"), ("other", "primary"))),
    "No comparison belongs": on(spa, families(("fluency", ""))),
    "The family “…” waits": on(spa, families(("primary", "fluency"))),
    "The ordered families": on(
        spa, second_is_secondary, families(("secondary", "primary")), secondary_has_another_level
    ),
    "The families “…” and “…” have no order": At("#comparison_families-group", on(spa, second_is_secondary)),
}
