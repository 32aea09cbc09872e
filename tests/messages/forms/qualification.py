"""The lines of a section's form about the test before the work."""

from tests.messages.forms.studies import section_saved, surveyed


def tested():
    """A survey in a study that has a test already."""
    study = surveyed()
    study.sections.create(position=3, protocol="rating", purpose="training", pass_mark=1)
    return study


def without_an_owner():
    study = surveyed()
    type(study).objects.filter(pk=study.pk).update(owner=None)
    return study


FORMS = {
    "Only a test": section_saved(surveyed, "survey", qualification_name="reads"),
    "Only training and screening": section_saved(surveyed, "survey", pass_mark="1", purpose="live"),
    "Another section is the test": section_saved(tested, "survey", pass_mark="1", purpose="training"),
    "The study has no owner": section_saved(
        without_an_owner, "survey", pass_mark="1", purpose="training", qualification_name="r"
    ),
    "A qualification needs": section_saved(
        surveyed, "survey", pass_mark="1", purpose="training", qualification_name="r", valid_days=""
    ),
}
