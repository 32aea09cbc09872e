"""The lines of images that an archive holds, and of the settings by which texts are prepared."""

from pytest import MonkeyPatch

from studies.imports.preparation import prepare_stimuli_and_delete_dropped_prompts, preview_preparation
from studies.models import Item
from studies.stimuli import images
from tests import builders
from tests.messages.importers.scenarios import IMAGE, REFUSALS, file, shown_by, small
from tests.messages.lines import At, Shown
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


def used_output():
    """A filter would leave out an output that an item shows."""
    study = builders.spa_draft(with_surveys=False, with_rating=False)
    prompt = study.prompts.first()
    section = study.sections.first()
    item = Item.objects.create(study=study, section=section, number=1, prompt=prompt, kind="test", content="c")
    item.exposures.create(number=1, output=prompt.outputs.first())
    settings = {"output_filters": [{"filter": "begins_with", "text": "No text begins so"}]}
    return shown_by(lambda: prepare_stimuli_and_delete_dropped_prompts(study, settings, by=None))


IMPORTERS = {
    "The image is damaged": image(b"\x89PNG\r\n\x1a\nand no more"),
    "The image is empty": At("“img/a.png”", image(b"")),
    "The image has … bytes": encoded(png_with_size(8, 8), max_bytes=9),
    "An SVG image": image(b"<svg/>"),
    "This is a web": image(b"<html>"),
    "This is not an image": image(b"BM"),
    "The image has more than the … pixels": image(png_with_size(100_000, 100_000)),
    "The image has … x": image(png_with_size(20_000, 1)),
    "length: ends must be one of …, not “…”": length(ends="x"),
    "length: … must be a whole": length(manner="words", limit=0),
    "length: manner must be none": length(manner="x"),
    "length: longest_of_others needs": length(manner="longest_of_others"),
    "word_limits: minimum and maximum": filtered({"filter": "word_limits", "minimum": -1}),
    "copies_at_most: share must lie": filtered({"filter": "copies_at_most", "references": ["a"], "share": 2}),
    "…: must be a list of filters": prepared(prompt_filters={}),
    "must be an object with the name": At("prompt_filters[1]", filtered("word_limits")),
    "filter must be one of …, not ….": At("prompt_filters[1]", filtered({"filter": "x"})),
    "is missing. Add": At("prompt_filters[1] begins_with", filtered({"filter": "begins_with"})),
    "Stimuli can only be prepared": launched,
    "The filters would remove the output": used_output,
    "The filters would remove the prompt": used,
    "must be an object with names": At("length", prepared(length=3)),
    "unknown names …. Remove": At("settings", prepared(size=3)),
    "_typed: …: must be true": At("normalisation.composed", prepared(normalisation={"composed": 3})),
    "must be a whole number, not ….": At("length.limit", length(limit="x")),
    "must be a list of texts": At("length.trimmed", length(trimmed="x")),
}
