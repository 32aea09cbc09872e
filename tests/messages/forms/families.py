"""The lines of the table of families of comparisons."""

from tests.messages.forms.scenarios import draft, row_added


def with_family():
    study = draft()
    study.comparison_families.create(name="primary", after="secondary")
    return study


def family_added(number, make=draft, **columns):
    return row_added("comparison_families", number, make, adjustment="bonferroni", **columns)


FORMS = {
    "A family cannot wait": family_added(0, name="primary", after="primary"),
    "These families wait": family_added(1, with_family, name="secondary", after="primary"),
}
