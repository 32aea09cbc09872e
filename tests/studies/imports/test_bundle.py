import copy
import io
import json
from base64 import b64encode
from decimal import Decimal

import pytest

from studies.design.definition import canonical, design_of, sha256_of
from studies.design.draw import content_of, drawn_batches
from studies.imports.bundle import (
    SCHEMA,
    BundleIncomplete,
    BundleRefused,
    bundle_of,
    bundle_text,
    parsed,
    read_bundle,
    write_bundle,
)
from studies.imports.preparation import prepare
from studies.imports.tables import Options, import_file
from studies.models import Arm, Expected, Exposure, Item, Output, Prompt, Section, Study, StudyMember, audit
from studies.stimuli.images import encode_image, store
from tests.builders import SCREENING, add_rating, add_spa, add_survey, draft_study, launched, spa_draft, user

pytestmark = pytest.mark.postgres


def sha(study: Study) -> str:
    return sha256_of(canonical(design_of(Study.objects.get(pk=study.pk))))


def read_again(study: Study) -> Study:
    """The study as it comes back from its own file."""
    return read_bundle(bundle_text(study).encode(), None)


@pytest.fixture
def study(db):
    return spa_draft(prompts=6)


@pytest.fixture
def whole(db, tmp_path, settings):
    """A study that has something of everything a design may hold."""
    settings.MEDIA_ROOT = tmp_path / "media"
    study = draft_study(prompts=5, reward=Decimal("2.50"), withdrawal_until="2031-12-31", wage_per_hour="12.00")
    add_survey(study, position=1, purpose="screening", questions=[SCREENING])
    spa = add_spa(study, position=2, m=2)
    rating = add_rating(study, position=3, reuses=spa, m=1)
    second = Arm.objects.create(study=study, name="second", condition="examples", reward="3.10", domain="news")
    second.systems.set(study.systems.filter(name__in=["alpha", "beta"]))
    rating.arms.set([second])
    study.exclusion_rules.create(rule="incoherent", settings={}, position=1)
    alpha, beta = study.systems.order_by("name")[:2]
    study.contrasts.create(
        x=beta,
        y=alpha,
        section=rating,
        estimand="",
        criterion="tone",
        role="secondary",
        expected="~",
        margin=0.05,
        level=0.01,
    )
    picture = encode_image(_png())
    store(settings.MEDIA_ROOT, picture)
    prompt = Prompt.objects.create(
        study=study, key="p900", text="Grüße, 軍は &amp; <b>\u2028x", source="S", domain="news", language="de", media=picture.name,
        attributes={"n": 3, "a": ["x", None, 1.5]},
    )  # fmt: skip
    Output.objects.create(system=alpha, prompt=prompt, media=picture.name, alt="a square")
    Output.objects.create(system=beta, prompt=prompt, is_empty=True)
    Output.objects.create(system=alpha, prompt=prompt, sample=1, text="**b**", format="markdown", language="fr")
    _add_ready_made(study, tmp_path)
    _add_test_item(study, spa)
    prepare(study, {"normalisation": {"tokeniser_quotes": True}}, by=None)
    return Study.objects.get(pk=study.pk)


def _png(colour="red") -> bytes:
    from PIL import Image

    out = io.BytesIO()
    Image.new("RGB", (9, 9), colour).save(out, "PNG")
    return out.getvalue()


def _add_ready_made(study, tmp_path):
    rows = [
        {"batch": f"r{b}", "position": n, "arm": "all", "section": 2, "prompt_key": f"q{n}", "prompt_text": f"Q {n}", "outputs": {
            name: f"``{name}'' {b} {n}" for name in ("alpha", "beta", "gamma")}}
        for b in range(2) for n in (2, 1)
    ]  # fmt: skip
    path = tmp_path / "b.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert import_file(study, path, options=Options(makes_batches=True), by=None).is_written


def _add_test_item(study, section):
    prompt = study.prompts.get(key="p000")
    outputs = list(Output.objects.filter(prompt=prompt).order_by("system__name")[:2])
    number = section.items.count() + 1
    content = content_of(prompt.pk, [o.pk for o in outputs], "test")
    item = Item.objects.create(study=study, section=section, number=number, prompt=prompt, kind="test", content=content)
    first, _ = [Exposure.objects.create(item=item, output=o, number=n) for n, o in enumerate(outputs)]
    questions = list(section.questions.all()[:2])
    Expected.objects.create(item=item, question=questions[0], low=0, high=20.5, explanation="It is copied.")
    Expected.objects.create(item=item, question=questions[1], exposure=first)


# There and back


def test_a_study_comes_back_with_the_same_design(study):
    again = read_again(study)
    assert again.pk != study.pk and again.code != study.code and again.is_draft
    assert sha(again) == sha(study)


def test_everything_of_a_design_comes_back(whole):
    again = read_again(whole)
    assert design_of(again) == design_of(whole) and sha(again) == sha(whole)
    assert bundle_of(again) == bundle_of(whole)
    value = bundle_of(whole)
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
        [(0.0, 20.5, None), (None, None, 0)], [(None, None, 0), (0.0, 20.5, None)],
    )  # fmt: skip


def test_an_item_that_comes_back_is_the_same_thing_judged(whole):
    """Its content names prompt and outputs, so that a draw or an import that makes them again finds it."""
    items = list(read_again(whole).items.prefetch_related("exposures"))
    assert len(items) == 5
    for item in items:
        assert item.content == content_of(item.prompt_id, [e.output_id for e in item.exposures.all()], item.kind)


def test_the_new_draft_draws_the_same_batches(study):
    def drawn(of):
        names = dict(Output.objects.filter(system__study=of).values_list("pk", "text"))
        return [[[names[o] for o in item.outputs] for _, item in batch.items] for batch in drawn_batches(of, 0, 4)]

    assert drawn(read_again(study)) == drawn(study)


def test_a_launched_study_comes_back_as_a_draft_with_its_design(study):
    launched(study)
    again = read_again(study)
    assert again.is_draft and sha(again) == sha(study) == study.designs.get().sha256
    assert not again.batches.exists() and not again.items.exists()  # they follow from seed and design


def test_the_file_is_readable_and_the_same_each_time(whole):
    text = bundle_text(whole)
    assert text == bundle_text(whole) and '"text": "Grüße, 軍は &amp; <b>\u2028x"' in text
    assert text.startswith('{\n "arms"') and json.loads(text)["schema"] == SCHEMA
    out = io.StringIO()
    write_bundle(whole, out)
    assert out.getvalue() == text


def test_a_bundle_holds_no_people(study):
    owner = user("ada.lovelace")
    StudyMember.objects.create(study=study, user=owner, role="owner")
    Study.objects.filter(pk=study.pk).update(owner=owner)
    assert "lovelace" not in bundle_text(study) and str(study.code) not in bundle_text(study)


def test_who_reads_a_bundle_owns_the_draft(study):
    owner = user()
    again = read_bundle(bundle_of(study), owner)
    assert again.owner == owner and again.members.get().role == "owner"
    event = audit.events_of(again).get()
    assert (event.verb, event.by, event.data["design_sha256"]) == ("import bundle", owner, sha(study))


def test_a_study_whose_image_is_gone_is_not_written_in_part(whole, settings):
    for path in settings.MEDIA_ROOT.glob("*/*.webp"):
        path.unlink()
    with pytest.raises(BundleIncomplete, match="not among the stored images"):
        bundle_of(whole)


def test_a_bundle_that_fails_half_way_leaves_no_image(whole, settings, tmp_path, monkeypatch):
    value = bundle_of(whole)
    blue = encode_image(_png("blue"))
    value["images"][blue.name] = b64encode(blue.data).decode()
    before = set(settings.MEDIA_ROOT.rglob("*.webp"))
    seen = []

    def broken(*_, **__):
        seen.extend(settings.MEDIA_ROOT.rglob("*.webp"))
        raise MemoryError

    monkeypatch.setattr("studies.models.audit.record", broken)
    with pytest.raises(MemoryError):
        read_bundle(value, user())
    assert len(seen) == 2 and set(settings.MEDIA_ROOT.rglob("*.webp")) == before


# Strictness: each fault is named by its path, and nothing is written


def _with(change):
    def changed(value):
        change(value)
        return value

    return changed


def _put(*path):
    """Set the last of `path` at the place that the others lead to."""
    *where, name, new = path

    def change(value):
        for step in where:
            value = value[step]
        value[name] = new

    return change


def _drop(*path):
    *where, name = path

    def change(value):
        for step in where:
            value = value[step]
        del value[name]

    return change


def _twice(name):
    return lambda value: value[name].append(copy.deepcopy(value[name][0]))


FAULTS = [
    (_put("schema", "heval.bundle/9"), "schema: must be heval.bundle/1"),
    (_put("annotators", []), "annotators: is not known here"),
    (_drop("systems"), "systems: is missing"),
    (_put("systems", {}), "systems: must be a list"),
    (_put("study", []), "study: must be an object"),
    (_put("study", "titel", "x"), "study.titel: is not known here"),
    (_drop("study", "seed"), "study.seed: is missing"),
    (_put("study", "title", ""), "study.title: This field cannot be blank"),
    (_put("study", "title", "x" * 201), "study.title: Ensure this value has at most 200"),
    (_put("study", "title", 7), "study.title: must be a text"),
    (_put("study", "seed", "7"), "study.seed: must be a whole number"),
    (_put("study", "seed", True), "study.seed: must be a whole number"),
    (_put("study", "seed", -1), "study.seed: "),
    (_put("study", "reward", 2.5), "study.reward: must be a text"),
    (_put("study", "reward", "NaN"), "study.reward: must be a decimal number"),
    (_put("study", "reward", "x"), "study.reward: must be a decimal number"),
    (_put("study", "reward", "123456789.00"), "study.reward: Ensure"),
    (_put("study", "withdrawal_until", "tomorrow"), "study.withdrawal_until: must be a date"),
    (_put("study", "coverage", "half"), "study.coverage: Value 'half' is not a valid choice"),
    (_put("study", "replaces_excluded", 1), "study.replaces_excluded: must be true or false"),
    (_put("study", "purpose", "a\0b"), "study.purpose: holds a NUL"),
    (_put("study", "purpose", "\ud800"), "study.purpose: holds half of a surrogate"),
    (_put("study", "preparation", []), "study.preparation: must be an object"),
    (_put("study", "preparation", {"normalization": {}}), "study.preparation: settings: does not know normalization"),
    (_put("study", "target_cap", 1), "study.target_cap: must not be below"),
    (_put("systems", 0, "name", "BETA"), "systems[1].name: 'beta' stands there twice"),
    (_put("systems", 0, "is_human", "yes"), "systems[0].is_human: must be true or false"),
    (_put("arms", 0, "systems", ["zoe"]), "arms[0].systems[0]: there is no system 'zoe'"),
    (_put("arms", 0, "condition", "x"), "arms[0].condition: Value 'x'"),
    (_put("sections", 1, "protocol", "tarot"), "sections[1].protocol: Value 'tarot' is not a valid choice"),
    (_put("sections", 1, "m", 101), "sections[1].m: Ensure"),
    (_put("sections", 1, "settings", "nuon", "x"), "sections[1].settings.nuon: there is no such setting"),
    (_put("sections", 1, "settings", []), "sections[1].settings: must be an object"),
    (_put("sections", 1, "position", 1), "sections[1].position: 1 stands there twice"),
    (_put("sections", 1, "position", []), "sections[1].position: must be a whole number"),
    (_put("sections", 2, "reuses", 9), "sections[2].reuses: there is no other section 9"),
    (_put("sections", 2, "reuses", 3), "sections[2].reuses: there is no other section 3"),
    (_put("sections", 1, "arms", ["none"]), "sections[1].arms[0]: there is no arm 'none'"),
    (_put("sections", 1, "arms", [["all"]]), "sections[1].arms[0]: there is no arm ['all']"),
    (_put("sections", 1, "questions", 0, "scale", {"kind": "stars"}), "sections[1].questions[0].scale.kind: There is no scale 'stars'"),
    (_put("sections", 1, "questions", 0, "scale", {"kind": ["likert"]}), "sections[1].questions[0].scale.kind: must be a text"),
    (_put("sections", 1, "questions", 0, "scale", {"kind": "likert", "maximum": "9"}), "questions[0].scale.maximum: must be a whole number"),
    (_put("sections", 1, "questions", 0, "scale", {"kind": "choice", "options": [{"key": "a"}]}), "questions[0].scale.options[0]: must be"),
    (_put("sections", 1, "questions", 0, "scale", {"kind": "likert", "points": 5}), "questions[0].scale.points: a scale has no such part"),
    (_put("sections", 1, "questions", 0, "scale", "percent"), "sections[1].questions[0].scale: must be an object"),
    (_put("sections", 1, "questions", 0, "skip_reasons", ["x"]), "questions[0].skip_reasons[0]: must be an object"),
    (_put("sections", 1, "questions", 0, "x", "zoe"), "sections[1].questions[0].x: there is no system 'zoe'"),
    (_put("sections", 1, "questions", 0, "x", None), "sections[1].questions[0]: has x and y, or neither"),
    (_put("sections", 1, "questions", 0, "key", "two words"), "sections[1].questions[0].key: "),
    (_put("sections", 1, "questions", 0, "text", ""), "sections[1].questions[0].text: This field cannot be blank"),
    (_drop("sections", 1, "questions"), "sections[1].questions: is missing"),
    (_put("contrasts", 0, "section", 9), "contrasts[0].section: there is no section 9"),
    (_put("contrasts", 0, "level", 0), "contrasts[0].level: Ensure"),
    (_put("contrasts", 0, "level", 0.5), "contrasts[0].level: Ensure"),
    (_put("contrasts", 0, "level", "0.05"), "contrasts[0].level: must be a number"),
    (_put("contrasts", 0, "margin", 0), "contrasts[0].margin: must be above 0"),
    (_put("contrasts", 0, "x_condition", "none"), "contrasts[0]: compares two systems, or"),
    (_twice("contrasts"), "contrasts[2]: stands there already"),
    (_put("exclusion_rules", [{"position": 1, "rule": "ugly", "settings": {}, "role": "primary"}]), "exclusion_rules[0].rule: Value 'ugly'"),
    (_twice("prompts"), "prompts[6].key: 'p000' stands there twice"),
    (_put("prompts", 0, "attributes", []), "prompts[0].attributes: must be an object"),
    (_put("prompts", 0, "media", "x.webp"), "prompts[0].media: the image 'x.webp' is not among images"),
    (_twice("outputs"), "outputs[18]: alpha on p000, sample 0, stands there twice"),
    (_put("outputs", 0, "system", "zoe"), "outputs[0].system: there is no system 'zoe'"),
    (_put("outputs", 0, "prompt", "p999"), "outputs[0].prompt: there is no prompt 'p999'"),
    (_put("outputs", 0, "is_empty", True), "outputs[0]: must have exactly one of"),
    (_put("outputs", 0, "format", "html"), "outputs[0].format: Value 'html'"),
    (_put("images", []), "images: must be an object"),
    (_put("images", {"a.webp": "!"}), "images.a.webp: is not base64"),
    (_put("images", {"a.webp": b64encode(_png()).decode()}), "images.a.webp: is not an image as a study stores it"),
    (_put("items", [{"section": 2}]), "items[0].kind: is missing"),
    (_put("items", [{"section": 9, "number": 1, "kind": "live", "prompt": "p000", "outputs": [], "expected": []}]), "items[0].section: there is no section 9"),
    (_put("items", [{"section": 2, "number": 1, "kind": "live", "prompt": "p000", "outputs": [["zoe", "p000", 0]], "expected": []}]), "items[0].outputs[0]: must be"),
    (_put("batches", [{"number": 0, "key": "a", "wanted": 1, "arm": "all", "items": [[2, 1]]}]), "batches[0].items[0]: must be"),
    (_put("batches", [{"number": 0, "key": "a", "wanted": 1, "arm": "none", "items": []}]), "batches[0].arm: there is no arm 'none'"),
    (_put("batches", [{"number": 0, "key": "a", "wanted": 1, "arm": "all", "items": [[{}]]}]), "batches[0].items[0]: must be"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "said"), FAULTS, ids=[said[:60] for _, said in FAULTS])
def test_a_wrong_bundle_is_refused_by_the_path_of_its_fault(study, change, said):
    value = json.loads(bundle_text(study))
    change(value)
    before = Study.objects.count()
    with pytest.raises(BundleRefused) as refused:
        read_bundle(value, None)
    assert any(said in problem for problem in refused.value.problems), refused.value.problems
    assert Study.objects.count() == before
    "\n".join(refused.value.problems).encode()  # a page can show it


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "empty"),
        (b"\xff", "not UTF-8"),
        (b"[]", "one JSON object"),
        (b"{", "The file is not JSON at character 2"),
        (b'{\n"a": 1,}', "The file is not JSON at line 2, character"),
        (b'{"a": 1, "a": 2}', "The file has the key “a” more than once"),
        (b'{"x": [0, {"a": {"b": 1, "b": 2}}]}', r"x\[1\].a: has the key “b” more than once"),
        (b'{"a": NaN}', "a: holds NaN, which is no number"),
        (b'{"a": 1e400}', "too large"),
        (b'{"a": ' + b"9" * 5000 + b"}", "digits"),
        (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "levels deep"),
        (b'{"\\ud800": 1, "\\ud800": 2}', "more than once"),
    ],
)
def test_what_is_no_bundle_is_refused(data, said):
    with pytest.raises(BundleRefused, match=said) as refused:
        parsed(data)
    str(refused.value).encode()


def test_every_fault_is_told_at_once_and_a_hundred_at_most(study):
    value = bundle_of(study)
    for row in value["outputs"]:
        row["format"] = "html"
    value["outputs"] *= 10
    with pytest.raises(BundleRefused) as refused:
        read_bundle(value, None)
    assert len(refused.value.problems) == 100


def test_an_image_of_another_name_or_with_more_in_it_is_refused(whole):
    value = bundle_of(whole)
    ((name, text),) = value["images"].items()
    value["images"] = {"0" * 64 + ".webp": text}
    with pytest.raises(BundleRefused, match="named by its sha256"):
        read_bundle(value, None)


def test_an_arm_may_be_shown_a_section_of_its_own(whole):
    again = read_again(whole)
    assert [arm.name for arm in Section.objects.get(study=again, position=3).arms.all()] == ["second"]
    assert Section.objects.get(study=again, position=3).reuses.position == 2


def test_references_come_through_a_bundle_and_an_older_one_is_understood(study):
    study.systems.filter(name="alpha").update(reference="maximal")
    assert read_again(study).systems.get(name="alpha").reference == "maximal"
    bundle = bundle_of(study)
    for system in bundle["systems"]:
        del system["reference"]
        system["is_reference"] = system["name"] == "beta"
    old = read_bundle(bundle, None)
    assert dict(old.systems.values_list("name", "reference")) == {"alpha": "", "beta": "reference", "gamma": ""}
    bundle["systems"][0] = {"name": "alpha", "is_human": False, "reference": "best"}
    with pytest.raises(BundleRefused, match=r"systems\[0\].reference: .*best"):
        read_bundle(bundle, None)
