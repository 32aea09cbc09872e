"""Each fault of a bundle is named by its path, and nothing is written."""

import copy
import json
from base64 import b64encode

import pytest

from studies.imports.bundle import BundleRefused
from studies.imports.bundle_files import bundle_text, create_draft_from_bundle, parse_bundle_json, serialize_bundle
from studies.models import Section, Study
from tests.studies.imports.bundle.bundles import png, read_again


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


def _rename(step, name, other):
    def change(value):
        value[step][other] = value[step].pop(name)

    return change


def _twice(name):
    return lambda value: value[name].append(copy.deepcopy(value[name][0]))


FAULTS = [
    (_put("schema", "heval.bundle/9"), "schema: must be heval.bundle/1"),
    (_put("annotators", []), "annotators: is not allowed here"),
    (_drop("systems"), "systems: is missing"),
    (_put("systems", {}), "systems: must be a list"),
    (_put("study", []), "study: must be an object"),
    (_put("study", "titel", "x"), "study.titel: is not allowed here. Remove it."),
    (_rename("study", "title", "titel"), "study.titel: is not allowed here. Write “title” instead, or remove it."),
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
    (_put("study", "purpose", "a\0b"), "study.purpose: contains a NUL"),
    (_put("study", "purpose", "\ud800"), "study.purpose: contains half of a surrogate"),
    (_put("study", "preparation", []), "study.preparation: must be an object"),
    (_put("study", "preparation", {"normalization": {}}), "study.preparation: settings: unknown names normalization"),
    (_put("study", "target_cap", 1), "study.target_cap: must not be below"),
    (_put("systems", 0, "name", "BETA"), "systems[1].name: 'beta' occurs twice"),
    (_put("systems", 0, "is_human", "yes"), "systems[0].is_human: must be true or false"),
    (_put("arms", 0, "systems", ["zoe"]), "arms[0].systems[0]: there is no system 'zoe'"),
    (_put("arms", 0, "condition", "x"), "arms[0].condition: Value 'x'"),
    (_put("sections", 1, "protocol", "tarot"), "sections[1].protocol: Value 'tarot' is not a valid choice"),
    (_put("sections", 1, "m", 101), "sections[1].m: Ensure"),
    (_put("sections", 1, "settings", "nuon", "x"), "sections[1].settings.nuon: is not a setting"),
    (_put("sections", 1, "settings", []), "sections[1].settings: must be an object"),
    (_put("sections", 1, "position", 1), "sections[1].position: 1 occurs twice"),
    (_put("sections", 1, "position", []), "sections[1].position: must be a whole number"),
    (_put("sections", 2, "reuses", 9), "sections[2].reuses: there is no other section 9"),
    (_put("sections", 2, "reuses", 3), "sections[2].reuses: there is no other section 3"),
    (_put("sections", 1, "arms", ["none"]), "sections[1].arms[0]: there is no arm 'none'"),
    (_put("sections", 1, "arms", [["all"]]), "sections[1].arms[0]: there is no arm ['all']"),
    (
        _put("sections", 1, "questions", 0, "scale", {"kind": "stars"}),
        "sections[1].questions[0].scale.kind: The scale 'stars' does not exist",
    ),
    (
        _put("sections", 1, "questions", 0, "scale", {"kind": ["likert"]}),
        "sections[1].questions[0].scale.kind: must be a text",
    ),
    (
        _put("sections", 1, "questions", 0, "scale", {"kind": "likert", "maximum": "9"}),
        "questions[0].scale.maximum: must be a whole number",
    ),
    (
        _put("sections", 1, "questions", 0, "scale", {"kind": "choice", "options": [{"key": "a"}]}),
        "questions[0].scale.options[0]: must be",
    ),
    (
        _put("sections", 1, "questions", 0, "scale", {"kind": "likert", "points": 5}),
        "questions[0].scale.points: is not a part of a scale",
    ),
    (_put("sections", 1, "questions", 0, "scale", "percent"), "sections[1].questions[0].scale: must be an object"),
    (_put("sections", 1, "questions", 0, "skip_reasons", ["x"]), "questions[0].skip_reasons[0]: must be an object"),
    (_put("sections", 1, "questions", 0, "x", "zoe"), "sections[1].questions[0].x: there is no system 'zoe'"),
    (_put("sections", 1, "questions", 0, "x", None), "sections[1].questions[0]: must have both x and y, or neither"),
    (_put("sections", 1, "questions", 0, "key", "two words"), "sections[1].questions[0].key: "),
    (_put("sections", 1, "questions", 0, "text", ""), "sections[1].questions[0].text: This field cannot be blank"),
    (_drop("sections", 1, "questions"), "sections[1].questions: is missing"),
    (_put("contrasts", 0, "section", 9), "contrasts[0].section: there is no section 9"),
    (_put("contrasts", 0, "level", 0), "contrasts[0].level: Ensure"),
    (_put("contrasts", 0, "level", 0.5), "contrasts[0].level: Ensure"),
    (_put("contrasts", 0, "level", "0.05"), "contrasts[0].level: must be a number"),
    (_put("contrasts", 0, "margin", 0), "contrasts[0].margin: must be above 0"),
    (_put("contrasts", 0, "population", "all"), "contrasts[0].population: Value 'all'"),
    (_put("comparison_families", [{"name": "a", "adjustment": "none", "after": ""}]), "adjustment: Value 'none'"),
    (_put("comparison_families", [{"name": "a", "adjustment": "holm"}]), "comparison_families[0].after: is missing"),
    (
        _put("comparison_families", [{"name": "a", "adjustment": "holm", "after": "a"}]),
        "comparison_families: must not wait for each other: a after a",
    ),
    (
        _put("comparison_families", [{"name": n, "adjustment": "holm", "after": ""} for n in ("a", "A")]),
        "comparison_families[1].name: 'A' occurs twice",
    ),
    (_put("comparison_families", {}), "comparison_families: must be a list"),
    (_put("contrasts", 0, "x_condition", "none"), "contrasts[0]: must compare two systems, or"),
    (_twice("contrasts"), "contrasts[2]: occurs twice"),
    (
        _put("exclusion_rules", [{"position": 1, "rule": "ugly", "settings": {}, "role": "primary"}]),
        "exclusion_rules[0].rule: Value 'ugly'",
    ),
    (_twice("prompts"), "prompts[6].key: 'p000' occurs twice"),
    (_put("prompts", 0, "attributes", []), "prompts[0].attributes: must be an object"),
    (_put("prompts", 0, "media", "x.webp"), "prompts[0].media: the image 'x.webp' is not among images"),
    (_twice("outputs"), "outputs[18]: alpha on p000, sample 0, occurs twice"),
    (_put("outputs", 0, "system", "zoe"), "outputs[0].system: there is no system 'zoe'"),
    (_put("outputs", 0, "prompt", "p999"), "outputs[0].prompt: there is no prompt 'p999'"),
    (_put("outputs", 0, "is_empty", True), "outputs[0]: must have exactly one of"),
    (_put("outputs", 0, "format", "html"), "outputs[0].format: Value 'html'"),
    (_put("images", []), "images: must be an object"),
    (_put("images", {"a.webp": "!"}), "images.a.webp: is not base64"),
    (_put("images", {"a.webp": b64encode(png()).decode()}), "images.a.webp: is not an image as heval stores it"),
    (_put("items", [{"section": 2}]), "items[0].kind: is missing"),
    (
        _put("items", [{"section": 9, "number": 1, "kind": "live", "prompt": "p000", "outputs": [], "expected": []}]),
        "items[0].section: there is no section 9",
    ),
    (
        _put(
            "items",
            [
                {
                    "section": 2,
                    "number": 1,
                    "kind": "live",
                    "prompt": "p000",
                    "outputs": [["zoe", "p000", 0]],
                    "expected": [],
                }
            ],
        ),
        "items[0].outputs[0]: must be",
    ),
    (
        _put("batches", [{"number": 0, "key": "a", "wanted": 1, "arm": "all", "items": [[2, 1]]}]),
        "batches[0].items[0]: must be",
    ),
    (
        _put("batches", [{"number": 0, "key": "a", "wanted": 1, "arm": "none", "items": []}]),
        "batches[0].arm: there is no arm 'none'",
    ),
    (
        _put("batches", [{"number": 0, "key": "a", "wanted": 1, "arm": "all", "items": [[{}]]}]),
        "batches[0].items[0]: must be",
    ),
]


@pytest.mark.parametrize(("change", "said"), FAULTS, ids=[said[:60] for _, said in FAULTS])
def test_a_wrong_bundle_is_refused_by_the_path_of_its_fault(study, change, said):
    value = json.loads(bundle_text(study))
    change(value)
    before = Study.objects.count()
    with pytest.raises(BundleRefused) as refused:
        create_draft_from_bundle(value, None)
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
        (b'{"a": NaN}', "a: contains NaN, which is not a number"),
        (b'{"a": 1e400}', "too large"),
        (b'{"a": ' + b"9" * 5000 + b"}", "digits"),
        (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "levels deep"),
        (b'{"\\ud800": 1, "\\ud800": 2}', "more than once"),
    ],
)
def test_what_is_no_bundle_is_refused(data, said):
    with pytest.raises(BundleRefused, match=said) as refused:
        parse_bundle_json(data)
    str(refused.value).encode()


def test_every_fault_is_listed_at_once_and_a_hundred_at_most(study):
    value = serialize_bundle(study)
    for row in value["outputs"]:
        row["format"] = "html"
    value["outputs"] *= 10
    with pytest.raises(BundleRefused) as refused:
        create_draft_from_bundle(value, None)
    assert len(refused.value.problems) == 100


def test_an_image_of_another_name_or_with_more_in_it_is_refused(whole):
    value = serialize_bundle(whole)
    ((name, text),) = value["images"].items()
    value["images"] = {"0" * 64 + ".webp": text}
    with pytest.raises(BundleRefused, match="named by its sha256"):
        create_draft_from_bundle(value, None)


def test_an_arm_may_be_shown_a_section_of_its_own(whole):
    again = read_again(whole)
    assert [arm.name for arm in Section.objects.get(study=again, position=3).arms.all()] == ["second"]
    assert Section.objects.get(study=again, position=3).reuses.position == 2


def test_references_come_through_a_bundle_and_an_older_one_is_understood(study):
    study.systems.filter(name="alpha").update(reference="maximal")
    assert read_again(study).systems.get(name="alpha").reference == "maximal"
    bundle = serialize_bundle(study)
    for system in bundle["systems"]:
        del system["reference"]
        system["is_reference"] = system["name"] == "beta"
    old = create_draft_from_bundle(bundle, None)
    assert dict(old.systems.values_list("name", "reference")) == {"alpha": "", "beta": "reference", "gamma": ""}
    bundle["systems"][0] = {"name": "alpha", "is_human": False, "reference": "best"}
    with pytest.raises(BundleRefused, match=r"systems\[0\].reference: .*best"):
        create_draft_from_bundle(bundle, None)
