"""The lines of bundles: each fault is named by its path. The page says once for all of them to correct the file and to read it again."""

import copy
import io
import json
import tempfile
from base64 import b64encode
from pathlib import Path

from django.test import override_settings

from studies.design.draw import item_content_hash
from studies.imports import bundle_files
from studies.imports.bundle import BundleIncomplete, BundleRefused
from studies.imports.bundle_files import create_draft_from_bundle, parse_bundle_json, serialize_bundle
from studies.models import Expected, Item, Output
from studies.stimuli.images import encode_image, store_image
from tests import builders

from .lines import FILE, Shown

BUNDLE = "studies/imports"
SCALE = ("sections", 0, "questions", 0, "scale")


def whole():
    """A draft with an item that holds what should be answered, in a ready-made batch."""
    study = builders.spa_draft(prompts=4, with_surveys=False, with_rating=False)
    section, prompt = study.sections.get(), study.prompts.get(key="p000")
    outputs = list(Output.objects.filter(prompt=prompt).order_by("system__name")[:2])
    content = item_content_hash(prompt.pk, [one.pk for one in outputs], "test")
    item = Item.objects.create(study=study, section=section, number=1, prompt=prompt, kind="test", content=content)
    for number, output in enumerate(outputs):
        item.exposures.create(output=output, number=number)
    Expected.objects.create(item=item, question=section.questions.first(), low=0, high=20)
    batch = study.batches.create(number=0, key="a", wanted=1, arm=study.arms.get(), origin="imported")
    batch.placements.create(item=item, number=0)
    return study


def refused(value) -> list[Shown]:
    try:
        create_draft_from_bundle(value, None)
    except BundleRefused as error:
        return [Shown(problem) for problem in error.problems]
    return []


def with_change(change):
    def scenario():
        value = json.loads(json.dumps(serialize_bundle(whole())))
        change(value)
        return refused(value)

    return scenario


def live_with_a_type(value):
    value["items"][0] |= {"kind": "live", "test_type": "positive"}


def put(*path):
    """With another value at this place."""
    *where, name, new = path

    def change(value):
        for step in where:
            value = value[step]
        value[name] = new

    return with_change(change)


def drop(*path):
    *where, name = path

    def change(value):
        for step in where:
            value = value[step]
        del value[name]

    return with_change(change)


def twice(*path, **more):
    """With the first of a list once more."""

    def change(value):
        for step in path:
            value = value[step]
        value.append(copy.deepcopy(value[0]) | more if isinstance(value[0], dict) else copy.deepcopy(value[0]))

    return with_change(change)


def read(data):
    def scenario():
        try:
            parse_bundle_json(data)
        except BundleRefused as error:
            return [Shown(problem) for problem in error.problems]
        return []

    return scenario


def png():
    from PIL import Image

    out = io.BytesIO()
    Image.new("RGB", (9, 9), "red").save(out, "PNG")
    return out.getvalue()


def image_gone():
    with tempfile.TemporaryDirectory() as folder, override_settings(MEDIA_ROOT=Path(folder)):
        study = whole()
        picture = encode_image(png())
        store_image(Path(folder), picture)
        study.prompts.filter(key="p001").update(media=picture.name)
        for path in Path(folder).rglob("*.webp"):
            path.unlink()
        try:
            serialize_bundle(study)
        except BundleIncomplete as error:
            return [Shown(str(error))]
    return []


def too_large():
    most, bundle_files.MAX_BUNDLE_BYTES = bundle_files.MAX_BUNDLE_BYTES, 3
    try:
        return read(b"{    }")()
    finally:
        bundle_files.MAX_BUNDLE_BYTES = most


def option(**columns):
    return {"kind": "choice", "options": [columns, {"key": "b", "label": "B"}]}


def as_test(**columns):
    """With a first section that is a test, with these columns."""
    test = {"purpose": "screening", "pass_mark": 1, "qualification": None}
    return with_change(lambda value: value["sections"][0].update(test | columns))


def two_tests(value):
    value["sections"].append(value["sections"][0] | {"position": 9})
    for section in value["sections"]:
        section |= {"purpose": "screening", "pass_mark": 1, "qualification": None}


LINES = {
    f"{BUNDLE}:check_sections": [("only one section of a study", FILE, with_change(two_tests))],
    f"{BUNDLE}:_test": [
        ("must be a number. Leave it out", FILE, as_test(pass_mark=None)),
        ("is only for the purposes training and screening", FILE, as_test(purpose="live")),
    ],
    f"{BUNDLE}:check": [
        ("The bundle must be an object", "must be an object", lambda: refused([])),
        (
            "schema: must be heval.bundle/1, not 'heval.bundle/9'",
            "must be heval.bundle/1",
            put("schema", "heval.bundle/9"),
        ),
    ],
    f"{BUNDLE}:_check_images": [
        ("images: must be an object of base64 by name", FILE, put("images", [])),
        (
            "is not an image as heval stores it",
            "Import images in a zip",
            put("images", {"a.webp": b64encode(png()).decode()}),
        ),
        ("images.a.webp: is not base64", FILE, put("images", {"a.webp": "!"})),
    ],
    f"{BUNDLE}:_check_stimuli": [
        ("outputs[0]: must have exactly one of text, media and is_empty", FILE, put("outputs", 0, "is_empty", True)),
        ("alpha on p000, sample 0, occurs twice", FILE, twice("outputs")),
    ],
    f"{BUNDLE}:_check_media": [
        ("prompts[0].media: the image 'x.webp' is not among images", FILE, put("prompts", 0, "media", "x.webp"))
    ],
    f"{BUNDLE}:_check_items_and_batches": [
        ("items[1]: another item of the section has the same number or the same content", FILE, twice("items")),
        ("batches[0].items[0]: must be [section, number] of one of items", FILE, put("batches", 0, "items", [[9, 9]])),
        ("batches[0].items: an item occurs twice", FILE, twice("batches", 0, "items")),
        ("items[0].test_type: must be empty unless kind is test", FILE, with_change(live_with_a_type)),
    ],
    f"{BUNDLE}:_item_outputs": [
        (
            "items[0].outputs[0]: must be [system, prompt, sample] of one of outputs",
            FILE,
            put("items", 0, "outputs", [["zoe", "p000", 0]]),
        ),
        ("items[0].outputs: an output occurs twice", FILE, twice("items", 0, "outputs")),
    ],
    f"{BUNDLE}:_expected": [
        (
            "must be a range from low to high, or the number of an exposure",
            FILE,
            put("items", 0, "expected", 0, "high", -1.0),
        ),
        (
            "expected[0].about: must be null, or the number of an exposure",
            FILE,
            put("items", 0, "expected", 0, "about", 9),
        ),
    ],
    f"{BUNDLE}:check_study": [("study.target_cap: must not be below target_n", FILE, put("study", "target_cap", 1))],
    f"{BUNDLE}:_check_scale": [
        ("scale.points: is not a part of a scale", FILE, put(*SCALE, {"kind": "likert", "points": 5})),
        ("scale.maximum: must be a whole number", FILE, put(*SCALE, {"kind": "likert", "maximum": "9"})),
        ("scale.labels[0]: must be a text", FILE, put(*SCALE, {"kind": "likert", "labels": [1, 2]})),
        ("scale.options[0]: must be an object with key, label", FILE, put(*SCALE, option(key="a"))),
        ("scale.options[0]: key and label must be texts", FILE, put(*SCALE, option(key="a", label=7))),
        (
            "scale.options[0].screens_out: must be true or false",
            FILE,
            put(*SCALE, option(key="a", label="A", screens_out="x")),
        ),
    ],
    f"{BUNDLE}:_check_skip_reasons": [
        ("skip_reasons: must be a list", FILE, put("sections", 0, "questions", 0, "skip_reasons", {})),
        (
            "skip_reasons[0]: must be an object with the texts key and label",
            FILE,
            put("sections", 0, "questions", 0, "skip_reasons", ["x"]),
        ),
    ],
    f"{BUNDLE}:_check_settings": [
        (
            "sections[0].settings.nuon: is not a setting; the settings are",
            "the settings are",
            put("sections", 0, "settings", "nuon", "x"),
        )
    ],
    f"{BUNDLE}:_pair": [
        ("questions[0]: must have both x and y, or neither", FILE, put("sections", 0, "questions", 0, "x", None)),
        ("questions[0].y: must be another system than x", FILE, put("sections", 0, "questions", 0, "x", "alpha")),
    ],
    f"{BUNDLE}:check_contrasts_and_rules": [
        (
            "contrasts[0]: must compare two systems, or two different conditions, or neither",
            FILE,
            put("contrasts", 0, "x_condition", "none"),
        ),
        ("contrasts[0].margin: must be above 0, or null", FILE, put("contrasts", 0, "margin", 0)),
        ("contrasts[2]: occurs twice, perhaps reversed", FILE, twice("contrasts")),
    ],
    f"{BUNDLE}:parse_bundle_json": [
        ("The file has 6 bytes. At most 3 are allowed", FILE, too_large),
        ("The file must contain one JSON object", "must contain one JSON object", read(b"[]")),
        ("The file is not JSON at character 2", FILE, read(b"{")),
    ],
    f"{BUNDLE}:listed_rows_with_paths": [
        ("systems: must be a list", FILE, put("systems", {})),
        ("systems: is missing", FILE, drop("systems")),
    ],
    f"{BUNDLE}:check_object": [
        ("study: must be an object", FILE, put("study", [])),
        ("study.titel: is not allowed here", FILE, put("study", "titel", "x")),
        ("study.seed: is missing", FILE, drop("study", "seed")),
    ],
    f"{BUNDLE}:check_reference": [
        ("outputs[0].system: there is no system 'zoe'", FILE, put("outputs", 0, "system", "zoe"))
    ],
    f"{BUNDLE}:check_references": [
        ("arms[0].systems: must be a list", FILE, put("arms", 0, "systems", "alpha")),
        ("arms[0].systems: contains the same name twice", FILE, put("arms", 0, "systems", ["alpha", "alpha"])),
    ],
    f"{BUNDLE}:check_unique": [("systems[1].name: 'beta' occurs twice", FILE, put("systems", 0, "name", "BETA"))],
    f"{BUNDLE}:json_to_column_value": [
        ("study.preparation: must be an object", FILE, put("study", "preparation", [])),
        ("study.replaces_excluded: must be true or false", FILE, put("study", "replaces_excluded", 1)),
        ("study.seed: must be a whole number", FILE, put("study", "seed", "7")),
        ("study.reward: must be a decimal number in quotes", "such as", put("study", "reward", "x")),
        ("study.withdrawal_until: must be a date", "such as 2026-12-31", put("study", "withdrawal_until", "tomorrow")),
    ],
    f"{BUNDLE}:_wrong": [("study.title: must be a text", FILE, put("study", "title", 7))],
    f"{BUNDLE}:check_json_is_storable": [
        (
            "is nested more than 32 levels deep",
            FILE,
            put("prompts", 0, "attributes", {"a": json.loads("[" * 40 + "]" * 40)}),
        )
    ],
    f"{BUNDLE}:_image": [("is missing, so the study cannot be exported", "import it again", image_gone)],
}
