"""An amount beyond its limit is refused wherever it comes from."""

import pytest
from django.core.validators import MaxValueValidator
from django.db import models

from annotators.models import Recruitment
from studies.design import checklist
from studies.imports.bundle import BundleRefused
from studies.imports.bundle_files import create_draft_from_bundle, serialize_bundle
from studies.models import Arm, Batch, ExclusionRule, Item, Output, Placement, Prompt, Question, Section, Study
from tests.admin_pages import errors_of, study_url
from tests.analysis.api.rest import api_of
from tests.bad_input.studies.forms import save

pytestmark = pytest.mark.django_db


BURDENS = {
    "m 0": (lambda s: s.sections.filter(protocol="spa").update(m=0), "Annotators must see at least one prompt", "m"),
    "more than prompts": (
        lambda s: s.sections.filter(protocol="spa").update(m=13),
        "A batch needs 13 prompts",
        "prompts",
    ),
    "no system": (lambda s: (_no_stimuli(s), s.systems.all().delete()), "The study has no systems", "systems"),
    "one system": (
        lambda s: (_no_stimuli(s), s.systems.exclude(name="alpha").delete()),
        "The study has only 1 system",
        "systems",
    ),
}


def _no_stimuli(study):
    study.contrasts.all().delete()
    for section in study.sections.all():
        section.questions.all().delete()
    Output.objects.filter(system__study=study).delete()


@pytest.mark.parametrize(("change", "said", "field"), BURDENS.values(), ids=BURDENS)
def test_what_no_batch_can_be_drawn_from_is_in_the_checklist_and_stops_the_launch(client, study, change, said, field):
    change(study)
    found = {problem.text: problem.field for problem in checklist.find_design_problems(study)}
    assert any(said in text and where == field for text, where in found.items()), found
    assert said in client.get(study_url(study)).content.decode()
    response = client.post(study_url(study, "launch/"))
    assert response.status_code == 422 and said in errors_of(response)


# One way over what a column may hold, by the form, by the REST interface and by a bundle.
OVER_LIMITS = {
    "reward": ("-0.01", "greater than or equal to 0"),
    "wage_per_hour": ("-1", "greater than or equal to 0"),
    "minutes": (1441, "less than or equal to 1440"),
    "target_n": (1_000_001, "less than or equal to 1000000"),
    "target_cap": (2**31, "less than or equal to 1000000"),
    "start_window_seconds": (604_801, "less than or equal to 604800"),
    "idle_seconds": (2**31, "less than or equal to 2592000"),
    "grace_seconds": (2**31, "less than or equal to 2592000"),
    "erase_after_days": (3651, "less than or equal to 3650"),
    "annotators_per_batch": (32_768, "less than or equal to 32767"),
    "batches_per_annotator": (32_768, "less than or equal to 32767"),
    "language": ("en_GB!", "language tag"),
    "currency": ("€", "three letters"),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("field", "value", "said"), [(name, *rest) for name, rest in OVER_LIMITS.items()], ids=OVER_LIMITS
)
def test_an_amount_beyond_its_limit_is_refused_wherever_it_comes_from(client, owner, study, field, value, said):
    response = save(client, study, **{field: str(value)})
    assert response.status_code == 200 and said in errors_of(response)
    answer = api_of(owner).patch(f"studies/{study.code}/", {field: value})
    told = {each["field"]: each["message"] for each in answer.json()["errors"]}
    assert answer.status_code == 400 and said in told[field]
    bundle = serialize_bundle(study) | {"exclusion_rules": []}
    bundle["study"][field] = value
    with pytest.raises(BundleRefused, match=f"study.{field}: .*{said}"):
        create_draft_from_bundle(bundle, owner)


ROWS_OVER_LIMITS = [
    ("arms", "reward", "-1", "greater than or equal to 0"),
    ("arms", "wanted", 1_000_001, "less than or equal to 1000000"),
    ("arms", "minutes", 1441, "less than or equal to 1440"),
    ("sections", "position", 32_768, "less than or equal to 32767"),
    ("prompts", "language", "english please", "language tag"),
    ("outputs", "language", "en\n", "language tag"),
    ("outputs", "sample", 32_768, "less than or equal to 32767"),
    ("items", "number", 1_000_000_000, "less than or equal to 999999999"),
    ("batches", "number", 1_000_000_000, "less than or equal to 999999999"),
    ("batches", "wanted", 32_768, "less than or equal to 32767"),
]


@pytest.mark.parametrize(("part", "field", "value", "said"), ROWS_OVER_LIMITS)
def test_a_bundle_with_an_amount_beyond_its_limit_is_refused(owner, study, part, field, value, said):
    spa = study.sections.get(protocol="spa")
    item = Item.objects.create(
        study=study, section=spa, number=1, prompt=study.prompts.first(), kind=Item.Kind.TEST, content="x"
    )
    batch = Batch.objects.create(study=study, arm=study.arms.get(), number=0, origin=Batch.Origin.IMPORTED)
    Placement.objects.create(batch=batch, item=item, number=0)
    bundle = serialize_bundle(study) | {"exclusion_rules": []}
    bundle[part][0][field] = value
    with pytest.raises(BundleRefused, match=rf"{part}\[0\].{field}: .*{said}"):
        create_draft_from_bundle(bundle, owner)


@pytest.mark.parametrize("kind", ["prompts", "outputs"])
def test_the_rest_interface_refuses_what_is_no_language(owner, study, kind):
    row = (
        {"key": "new", "text": "One."}
        if kind == "prompts"
        else {"system": "alpha", "prompt": "p000", "sample": 1, "text": "One."}
    )
    answer = api_of(owner).post(f"studies/{study.code}/{kind}/", [row | {"language": "en_GB!"}])
    assert answer.status_code == 400 and "language tag" in answer.content.decode()


@pytest.mark.postgres
def test_every_number_that_people_give_has_a_limit_that_each_database_holds():
    limits = {
        models.PositiveSmallIntegerField: 32_767,
        models.PositiveIntegerField: 2**31 - 1,
        models.PositiveBigIntegerField: 2**63 - 1,
    }
    given = [Study, Arm, Section, Question, ExclusionRule, Prompt, Output, Item, Batch, Recruitment]
    fields = [f for model in given for f in model._meta.concrete_fields if type(f) in limits and f.editable]
    assert len(fields) > 20
    without = [
        f
        for f in fields
        if not any(v.limit_value <= limits[type(f)] for v in f._validators if isinstance(v, MaxValueValidator))
    ]
    # How many places of a batch are taken is counted, never given.
    assert [str(f) for f in without] == ["studies.Batch.claimed"]
