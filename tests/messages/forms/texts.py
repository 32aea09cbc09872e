"""The lines of characters and lengths that no text or name may have, wherever it is entered; and of what viewers may not read yet."""

from django.urls import reverse

from studies.models import StudyMember
from studies.stimuli.texts import clean_name, clean_text
from tests import builders
from tests.admin_pages import logged_in
from tests.messages.forms.scenarios import draft, said, says_refused, study_saved
from tests.messages.lines import At


def text(value, **rules):
    """What is said of a value that a program sends, since no browser can."""
    return says_refused(lambda: clean_text(value, field="Purpose", **rules))


def bundle_for_viewer():
    study, viewer = draft(), builders.user("vera")
    StudyMember.objects.create(study=study, user=viewer, role="viewer")
    return said(logged_in(viewer).get(reverse("bundle", args=[study.pk])))


FORMS = {
    "This shows how": bundle_for_viewer,
    "must be a text, not an object": At("Purpose", text({})),
    "must be a text, not true": At("Purpose", text(True)),
    "contains a control": study_saved(institution="a\x07b"),
    "contains a NUL": At("Purpose", text("a\0b")),
    "contains half of a surrogate": At("Purpose", text("\ud800")),
    "must not be empty": At("Purpose", text(" ", is_required=True)),
    "clean_text: …: has … characters": At("Purpose", text("abcde", max_length=3)),
    "contains an invisible": At("Title", study_saved(title="a\u200bb")),
    "clean_name: …: has … characters": At("Key", says_refused(lambda: clean_name("abcde", max_length=3, field="Key"))),
}
