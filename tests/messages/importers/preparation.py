"""The lines of images that an archive holds, and of the settings by which texts are prepared."""

from pytest import MonkeyPatch

from studies.imports.preparation import prepare_stimuli_and_delete_dropped_prompts, preview_preparation
from studies.models import Item
from studies.stimuli import images
from tests import builders
from tests.messages.importers.scenarios import FILES, IMAGE, REFUSALS, file, shown_by, small
from tests.messages.lines import Shown
from tests.studies.imports.files import table, zipped
from tests.studies.stimuli.png import png_with_size


def image(data):
    """What is said of a table whose image has these bytes."""
    return file(zipped({"t.csv": table(IMAGE), "img/a.png": data}), "t.zip")


def encoded(data, max_bytes):
    """What is said of an image that comes without an archive."""

    def scenario():
        with MonkeyPatch.context() as patch:
            patch.setattr(images, "MAX_BYTES", max_bytes)
            try:
                images.encode_image(data)
            except images.ImageRefused as refused:
                return [Shown(str(refused))]

    return scenario


def prepared(**settings):
    def scenario():
        try:
            preview_preparation(small(), settings)
        except REFUSALS as refused:
            return [Shown(str(refused))]
        return []

    return scenario


def filtered(*filters):
    return prepared(prompt_filters=list(filters))


def length(**settings):
    return prepared(length=settings)


def launched():
    study = builders.launched(builders.spa_draft(with_surveys=False, with_rating=False))
    return shown_by(lambda: prepare_stimuli_and_delete_dropped_prompts(study, {}, by=None))


def used():
    """A filter would leave out a prompt that has an item."""
    study = small()
    prompt = study.prompts.create(key="p1", text="Why?")
    section = builders.add_spa(study, m=2)
    Item.objects.create(study=study, section=section, number=1, prompt=prompt, kind="test", content="c")
    return shown_by(
        lambda: prepare_stimuli_and_delete_dropped_prompts(
            study, {"prompt_filters": [{"filter": "has_no_question"}]}, by=None
        )
    )


SETTINGS = f"{FILES}:__post_init__"
LINES = {
    f"{FILES}:encode_image": [
        ("The image is damaged or cut off", "Export it again", image(b"\x89PNG\r\n\x1a\nand no more")),
    ],
    f"{FILES}:_check_signature": [
        ("“img/a.png”: The image is empty", "Export it again", image(b"")),
        ("bytes. At most 9 are allowed", "Make it smaller", encoded(png_with_size(8, 8), max_bytes=9)),
        ("An SVG image can contain a program", "Export it as PNG", image(b"<svg/>")),
        ("This is a web page or XML", "Choose an image", image(b"<html>")),
        ("This is not an image of a known kind", "Use PNG", image(b"BM")),
    ],
    f"{FILES}:_pixels": [
        ("The image has more than the", "Make it smaller", image(png_with_size(100_000, 100_000))),
        ("The image has 20,000 x 1 pixels", "Make it smaller", image(png_with_size(20_000, 1))),
    ],
    f"{FILES}:get_sentence_end_rule": [("length: ends must be one of", "not “x”", length(ends="x"))],
    f"{FILES}:require_whole_number": [
        ("length: limit must be a whole number from 1", "not 0", length(manner="words", limit=0)),
    ],
    SETTINGS: [
        ("length: manner must be none, longest_of_others", "not “x”", length(manner="x")),
        ("length: longest_of_others needs “trimmed”", "Add it", length(manner="longest_of_others")),
        (
            "word_limits: minimum and maximum must be from 0",
            "Correct them",
            filtered({"filter": "word_limits", "minimum": -1}),
        ),
        (
            "copies_at_most: share must lie between 0 and 1",
            "Correct them",
            filtered({"filter": "copies_at_most", "references": ["a"], "share": 2}),
        ),
    ],
    f"{FILES}:from_json": [("prompt_filters: must be a list", "must be a list", prepared(prompt_filters={}))],
    f"{FILES}:parse_prompt_filter": [
        ("prompt_filters[1]: must be an object", "must be an object", filtered("word_limits")),
        ("prompt_filters[1]: filter must be one of", "one of begins_with", filtered({"filter": "x"})),
    ],
    f"{FILES}:parse_record": [
        ("prompt_filters[1] begins_with: text is missing", "Add it", filtered({"filter": "begins_with"})),
    ],
    "studies/imports:prepare_stimuli_and_delete_dropped_prompts": [
        ("Stimuli can only be prepared in a draft", "Clone the study", launched)
    ],
    "studies/imports:_delete_prompts": [
        ("The filters would remove the prompt p1", "Delete these items first, or change the filters", used),
    ],
    f"{FILES}:validate_settings_object": [
        ("length: must be an object", "must be an object", prepared(length=3)),
        ("settings: unknown names size", "Remove them. Allowed are: length", prepared(size=3)),
    ],
    f"{FILES}:_typed": [
        ("normalisation.composed: must be true or false", "not 3", prepared(normalisation={"composed": 3})),
        ("length.limit: must be a whole number", "not 'x'", length(limit="x")),
        ("length.trimmed: must be a list of texts", "not 'x'", length(trimmed="x")),
    ],
}
