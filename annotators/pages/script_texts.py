"""The texts that the scripts of annotators' pages show. A page carries those that its own scripts need."""

import json
from functools import lru_cache

from markupsafe import Markup, escape

from studies.language import PageLanguage, gettext, gettext_noop, in_language

# By what a page needs, then by the names that the scripts use. Scripts know no plural forms: no text has a word that
# follows a number. A script puts a time, a number or a text for %(name)s.
TEXTS = {
    "copy": {
        # Translators: A button's text after it has copied an address or a code.
        "copied": gettext_noop("Copied"),
    },
    "save": {
        # Translators: Answers were saved at this time of day.
        "saved": gettext_noop("Saved %(time)s"),
        "offline": gettext_noop("Not saved yet. Keep this page open; we will try again."),
        "not_saved": gettext_noop("Not saved."),
    },
    "answers": {
        # Translators: The name of a slider, with its question.
        "slider": gettext_noop("Slider: %(question)s"),
        # Translators: A slider has no value yet.
        "unset": gettext_noop("not set"),
        "keys": gettext_noop("Answer with number keys; Enter outside a field sends the page"),
        # Translators: Read out after a key has chosen an answer.
        "chosen": gettext_noop("Chosen: %(answer)s"),
        # Translators: How many characters a text has, and how many are allowed.
        "count": gettext_noop("%(number)s of %(most)s"),
        # Translators: A text is too long. The count is "2010 of 2000", for example.
        "too_long": gettext_noop("%(count)s: too long"),
    },
    "place": {
        "part_ended": gettext_noop("Your part of the study has ended. Reload this page to see why."),
        "was_kept": gettext_noop("Your place was kept until %(time)s."),
        "minutes_left": gettext_noop("Minutes left: %(minutes)s."),
        "keep_place": gettext_noop("Press More time to keep your place."),
        "failed": gettext_noop("This did not work. Please try again."),
        "no_more_time": gettext_noop("You cannot get more time."),
        "more_time": gettext_noop("You have more time now."),
    },
    "images": {
        "again": gettext_noop("Try again"),
        "failed_image": gettext_noop("This image did not load."),
        "loading_image": gettext_noop("This image is still loading."),
        "failed_images": gettext_noop(
            "Images that did not load: %(number)s. Press “Try again” beside the image, or tick “I cannot see this image” there."
        ),
        "loading_images": gettext_noop("Images that are still loading: %(number)s."),
        "sent_soon": gettext_noop("The page will be sent when all images have loaded."),
        "sendable": gettext_noop("You can send the page now."),
    },
    "marks": {
        # Translators: A part of a text between quotation marks.
        "quote": gettext_noop("“%(words)s”"),
        "sentence": gettext_noop("sentence %(number)s"),
        # Translators: An error is in no sentence, because something is missing or the whole text is wrong.
        "no_sentence": gettext_noop("no sentence"),
        "whole": gettext_noop("Mark the whole sentence"),
        "remove": gettext_noop("Remove this error"),
        "mark_sentence": gettext_noop("Mark an error in sentence %(number)s"),
        # Translators: A button that marks the selected words as an error.
        "mark_words": gettext_noop("Mark “%(words)s”"),
    },
    "look": {
        # Translators: A button that shows the texts A and B.
        "show": gettext_noop("Show %(first)s and %(second)s"),
    },
    "open-link": {
        # Translators: A link to pages that were begun in this browser. The place is "3 of 10", for example.
        "begun": gettext_noop("Go on at page %(place)s, last opened %(time)s"),
        "ended": gettext_noop("The last page of a part, last opened %(time)s"),
        "start": gettext_noop("I am somebody else: start"),
    },
}


@lru_cache(maxsize=512)
def script_texts_in(language: PageLanguage, groups: tuple[str, ...]) -> Markup:
    """Return the texts of these groups as JSON for an attribute between single quotation marks. False groups are left out."""
    with in_language(language):
        texts = {name: gettext(text) for group in groups if group for name, text in TEXTS[group].items()}
    # Escaped double quotation marks would make it half as long again.
    written = json.dumps(texts, ensure_ascii=False, separators=(",", ":"))
    return Markup('"').join(escape(part) for part in written.split('"'))
