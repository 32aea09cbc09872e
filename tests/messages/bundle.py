"""The lines of bundles: each fault is named by its path. The page says once for all of them to correct the file and to read it again."""

import copy
import io
import json
import tempfile
from base64 import b64encode
from pathlib import Path

from django.test import override_settings

from annotators.models import RecruitmentArm
from studies.design.draw import item_content_hash
from studies.imports import bundle_files
from studies.imports.bundle import BundleIncomplete, BundleRefused
from studies.imports.bundle_files import (
    create_draft_from_bundle,
    parse_bundle_json,
    replace_draft_by_bundle,
    serialize_bundle,
)
from studies.models import Expected, Item, Output
from studies.services.lifecycle import ActionRefused
from studies.stimuli.images import encode_image, store_image
from tests import builders

from .lines import At, Shown, of_file


def held():
    """A draft whose link is for one of its arms."""
    study = whole()
    RecruitmentArm.objects.create(recruitment=builders.recruitment(study), arm=study.arms.get())
    try:
        replace_draft_by_bundle(study, serialize_bundle(study), None)
    except ActionRefused as refused:
        return [Shown(str(refused))]
    return []


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
        return of_file(error.problems)
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
            return of_file(error.problems)
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


BUNDLE = {
    "only one section": with_change(two_tests),
    "must be a number": as_test(pass_mark=None),
    "is only for the purposes": as_test(purpose="live"),
    "The bundle must be an object": lambda: refused([]),
    "schema: must be heval.bundle/1": put("schema", "heval.bundle/9"),
    "must be an object of base64": At("images", put("images", [])),
    "is not an image": put("images", {"a.webp": b64encode(png()).decode()}),
    "is not base64": At("images.a.webp", put("images", {"a.webp": "!"})),
    "must have exactly": At("outputs[0]", put("outputs", 0, "is_empty", True)),
    "on …, sample": twice("outputs"),
    "the image … is not among": At("prompts[0].media", put("prompts", 0, "media", "x.webp")),
    "another item of the section": At("items[1]", twice("items")),
    "must be [section": At("batches[0].items[0]", put("batches", 0, "items", [[9, 9]])),
    "an item occurs": At("batches[0].items", twice("batches", 0, "items")),
    "must be empty": At("items[0].test_type", with_change(live_with_a_type)),
    "must be [system": At("items[0].outputs[0]", put("items", 0, "outputs", [["zoe", "p000", 0]])),
    "an output occurs": At("items[0].outputs", twice("items", 0, "outputs")),
    "must be a range": put("items", 0, "expected", 0, "high", -1.0),
    "must be null": At("expected[0].about", put("items", 0, "expected", 0, "about", 9)),
    "must not be below": At("study.target_cap", put("study", "target_cap", 1)),
    "is not a part": At("scale.points", put(*SCALE, {"kind": "likert", "points": 5})),
    "_check_scale: must be ….": At("scale.maximum", put(*SCALE, {"kind": "likert", "maximum": "9"})),
    "must be a text": At("scale.labels[0]", put(*SCALE, {"kind": "likert", "labels": [1, 2]})),
    "must be an object with key": At("scale.options[0]", put(*SCALE, option(key="a"))),
    "key and label must be texts": At("scale.options[0]", put(*SCALE, option(key="a", label=7))),
    "must be true": At("scale.options[0].screens_out", put(*SCALE, option(key="a", label="A", screens_out="x"))),
    "_check_skip_reasons: must be a list": At("skip_reasons", put("sections", 0, "questions", 0, "skip_reasons", {})),
    "must be an object with the texts": At(
        "skip_reasons[0]", put("sections", 0, "questions", 0, "skip_reasons", ["x"])
    ),
    "is not a setting": At("sections[0].settings.nuon", put("sections", 0, "settings", "nuon", "x")),
    "must have both": At("questions[0]", put("sections", 0, "questions", 0, "x", None)),
    "must be another system": At("questions[0].y", put("sections", 0, "questions", 0, "x", "alpha")),
    "must compare two": At("contrasts[0]", put("contrasts", 0, "x_condition", "none")),
    "must be above": At("contrasts[0].margin", put("contrasts", 0, "margin", 0)),
    "occurs twice, perhaps": At("contrasts[2]", twice("contrasts")),
    "The file has … bytes": too_large,
    "The file must contain": read(b"[]"),
    "The file …": read(b"{"),
    "listed_rows_with_paths: must be a list": At("systems", put("systems", {})),
    "listed_rows_with_paths: is missing.": At("systems", drop("systems")),
    "check_object: must be an object": At("study", put("study", [])),
    "is not allowed": At("study.titel", put("study", "titel", "x")),
    "check_object: is missing.": At("study.seed", drop("study", "seed")),
    "there is no … ….": At("outputs[0].system", put("outputs", 0, "system", "zoe")),
    "check_references: must be a list": At("arms[0].systems", put("arms", 0, "systems", "alpha")),
    "contains the same": At("arms[0].systems", put("arms", 0, "systems", ["alpha", "alpha"])),
    "occurs twice (names": At("systems[1].name", put("systems", 0, "name", "BETA")),
    "json_to_column_value: an object": At("study.preparation", put("study", "preparation", [])),
    "json_to_column_value: true or false": At("study.replaces_excluded", put("study", "replaces_excluded", 1)),
    "a whole number": At("study.seed", put("study", "seed", "7")),
    "a decimal number": At("study.reward", put("study", "reward", "x")),
    "a date such": At("study.withdrawal_until", put("study", "withdrawal_until", "tomorrow")),
    "_wrong: must be ….": At("study.title", put("study", "title", 7)),
    "is nested more than … levels": put("prompts", 0, "attributes", {"a": json.loads("[" * 40 + "]" * 40)}),
    "The stored image": image_gone,
    "The draft has … that name": held,
}
