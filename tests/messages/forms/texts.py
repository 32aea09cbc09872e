"""The lines of characters and lengths that no text or name may have, wherever it is entered; and of what viewers may not read yet."""

from django.urls import reverse

from studies.models import StudyMember
from studies.stimuli.texts import clean_name, clean_text
from tests import builders
from tests.admin_pages import logged_in
from tests.messages.forms.scenarios import draft, said, says_refused, study_saved

TEXTS = "studies/stimuli"


def text(value, **rules):
    """What is said of a value that a program sends, since no browser can."""
    return says_refused(lambda: clean_text(value, field="Purpose", **rules))


def bundle_for_viewer():
    study, viewer = draft(), builders.user("vera")
    StudyMember.objects.create(study=study, user=viewer, role="viewer")
    return said(logged_in(viewer).get(reverse("bundle", args=[study.code])))


LINES = {
    "studies/access:check_draw_is_readable": [
        (
            "Until the study is closed, only its owners and editors read it",
            "Ask one of them, or wait",
            bundle_for_viewer,
        )
    ],
    f"{TEXTS}:clean_text": [
        ("Purpose: must be a text, not an object", "must be a text", text({})),
        ("Purpose: must be a text, not true or false", "must be a text", text(True)),
        ("contains a control character (U+0007) at character 2", "Remove it", study_saved(institution="a\x07b")),
        ("Purpose: contains a NUL character at character 2", "Remove it", text("a\0b")),
        ("Purpose: contains half of a surrogate pair (U+D800)", "Remove it", text("\ud800")),
        ("Purpose: must not be empty", "Enter a text", text(" ", is_required=True)),
        ("Purpose: has 5 characters. At most 3 are allowed", "Shorten it", text("abcde", max_length=3)),
    ],
    f"{TEXTS}:clean_name": [
        ("Title: contains an invisible character (U+200B) at character 2", "Remove it", study_saved(title="a\u200bb")),
        (
            "Key: has 5 characters. At most 3 are allowed",
            "Shorten it",
            says_refused(lambda: clean_name("abcde", max_length=3, field="Key")),
        ),
    ],
}
