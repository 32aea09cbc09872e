"""The lines of characters and lengths that no text or name may have, wherever it is entered."""

from studies.stimuli.texts import clean_name, clean_text
from tests.messages.forms.scenarios import says_refused, study_saved

TEXTS = "studies/stimuli"


def text(value, **rules):
    """What is said of a value that a program sends, since no browser can."""
    return says_refused(lambda: clean_text(value, field="Purpose", **rules))


LINES = {
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
