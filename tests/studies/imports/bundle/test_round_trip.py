"""A study comes back from its bundle with the same design, and nobody in it."""

import json
from base64 import b64encode

import pytest

from studies.design.draw import draw_batches, item_content_hash
from studies.design.serialization import serialize_design, serialize_translation
from studies.imports.bundle import SCHEMA, BundleIncomplete
from studies.imports.bundle_files import bundle_text, create_draft_from_bundle, serialize_bundle
from studies.models import Output, Study, StudyMember, audit
from studies.services.translations import keep
from studies.stimuli.images import encode_image
from tests.builders import launched, user
from tests.studies.imports.bundle.bundles import png, read_again, sha

pytestmark = pytest.mark.postgres


def test_a_study_comes_back_with_the_same_design(study):
    again = read_again(study)
    assert again.pk != study.pk and again.code != study.code and again.is_draft
    assert sha(again) == sha(study)


def test_everything_of_a_design_comes_back(whole):
    again = read_again(whole)
    assert serialize_design(again) == serialize_design(whole) and sha(again) == sha(whole)
    assert serialize_bundle(again) == serialize_bundle(whole)
    value = serialize_bundle(whole)
    assert [len(value[name]) for name in ("systems", "arms", "sections", "exclusion_rules", "images")] == [
        3,
        2,
        3,
        1,
        1,
    ]
    assert len(value["batches"]) == 2 and len(value["items"]) == 5 and value["batches"][0]["key"] == "r0"
    test_item = next(item for item in value["items"] if item["kind"] == "test")
    assert [(each["low"], each["high"], each["exposure"]) for each in test_item["expected"]] in (
        [(0.0, 20.5, None), (None, None, 0)],
        [(None, None, 0), (0.0, 20.5, None)],
    )


def test_an_item_that_comes_back_is_the_same_thing_judged(whole):
    """Its content names prompt and outputs, so that a draw or an import that makes them again finds it."""
    items = list(read_again(whole).items.prefetch_related("exposures"))
    assert len(items) == 5
    for item in items:
        assert item.content == item_content_hash(item.prompt_id, [e.output_id for e in item.exposures.all()], item.kind)


def test_the_new_draft_draws_the_same_batches(study):
    def drawn(of):
        names = dict(Output.objects.filter(system__study=of).values_list("pk", "text"))
        return [[[names[o] for o in item.outputs] for _, item in batch.items] for batch in draw_batches(of, 0, 4)]

    assert drawn(read_again(study)) == drawn(study)


def test_a_launched_study_comes_back_as_a_draft_with_its_design(study):
    launched(study)
    study.refresh_from_db()
    again = read_again(study)
    # The words of its pages are those that heval has when it is launched, which are the same in this release.
    assert again.is_draft and serialize_design(again) | serialize_translation(study) == serialize_design(study)
    assert sha(study) == study.designs.get().sha256
    assert keep(again) == serialize_translation(study)
    assert not again.batches.exists() and not again.items.exists()  # they follow from seed and design


def test_the_file_is_readable_and_the_same_each_time(whole):
    text = bundle_text(whole)
    assert text == bundle_text(whole) and '"text": "Grüße, 軍は &amp; <b>\u2028x"' in text
    assert text.startswith('{\n "arms"') and json.loads(text)["schema"] == SCHEMA


def test_a_bundle_holds_no_people(study):
    owner = user("ada.lovelace")
    StudyMember.objects.create(study=study, user=owner, role="owner")
    Study.objects.filter(pk=study.pk).update(owner=owner)
    assert "lovelace" not in bundle_text(study) and str(study.code) not in bundle_text(study)


def test_who_reads_a_bundle_owns_the_draft(study):
    owner = user()
    again = create_draft_from_bundle(serialize_bundle(study), owner)
    assert again.owner == owner and again.members.get().role == "owner"
    event = audit.events_of(again).get()
    assert (event.verb, event.by, event.data["design_sha256"]) == ("import bundle", owner, sha(study))


def test_a_study_whose_image_is_gone_is_not_written_in_part(whole, settings):
    for path in settings.MEDIA_ROOT.glob("*/*.webp"):
        path.unlink()
    with pytest.raises(BundleIncomplete, match="is missing, so the study cannot be exported"):
        serialize_bundle(whole)


def test_a_bundle_that_fails_half_way_leaves_no_image(whole, settings, tmp_path, monkeypatch):
    value = serialize_bundle(whole)
    blue = encode_image(png("blue"))
    value["images"][blue.name] = b64encode(blue.data).decode()
    before = set(settings.MEDIA_ROOT.rglob("*.webp"))
    seen = []

    def broken(*_, **__):
        seen.extend(settings.MEDIA_ROOT.rglob("*.webp"))
        raise MemoryError

    monkeypatch.setattr("studies.models.audit.record", broken)
    with pytest.raises(MemoryError):
        create_draft_from_bundle(value, user())
    assert len(seen) == 2 and set(settings.MEDIA_ROOT.rglob("*.webp")) == before
