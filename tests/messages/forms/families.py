"""The lines of the table of families of comparisons."""

from tests.messages.forms.scenarios import draft, row_added
from tests.messages.forms.studies import CLEAN


def with_family():
    study = draft()
    study.comparison_families.create(name="primary", after="secondary")
    return study


def family_added(number, make=draft, **columns):
    return row_added("comparison_families", number, make, adjustment="bonferroni", **columns)


LINES = {
    CLEAN: [
        ("A family cannot wait for itself", "Enter another family", family_added(0, name="primary", after="primary")),
        (
            "These families wait for each other",
            "Empty the field",
            family_added(1, with_family, name="secondary", after="primary"),
        ),
    ],
}
