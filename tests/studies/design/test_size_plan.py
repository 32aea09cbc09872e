"""The chosen plan of a study's size is a part of its frozen design. Copies have none, and designs without one keep their hash."""

import json

import pytest

from boards.services.rounds import template_sha256
from studies.design.serialization import canonical_json, frozen_design_mismatch_text, serialize_design, sha256_of
from studies.imports.bundle_files import create_draft_from_bundle, serialize_bundle
from studies.models import Design, Study
from studies.models.guards import StudyFrozen
from studies.services.copying import clone_study
from tests.builders import launched, spa_draft, user
from tests.size_plans import choose, planned_size

pytestmark = pytest.mark.django_db


@pytest.fixture
def study():
    return spa_draft(prompts=6, owner=user("owner"))


def test_only_a_chosen_plan_is_in_the_design(study):
    before, hash_before = serialize_design(study), template_sha256(study)
    assert "size_plan" not in before
    plan = planned_size(study)
    assert serialize_design(study) == before, "a plan that nobody chose changes nothing"
    choose(study, plan)
    assert serialize_design(study)["size_plan"] == {
        "method_version": 2,
        "fingerprint": plan.fingerprint,
        "inputs": plan.inputs,
        "seed": 1,
        "promised": {
            "power": 0.78,
            "power_error": 0.009,
            "half_width": 0.072,
            "half_width_error": 0.0004,
            "value": 0.6,
            "population": "people_and_prompts",
            "runs": 2000,
            "detectable": None,
            "detectable_error": None,
        },
    }
    assert sha256_of(canonical_json(before)) != sha256_of(canonical_json(serialize_design(study)))
    assert template_sha256(study) == hash_before, "each round of a board has a target of its own"


@pytest.mark.postgres
def test_a_launch_freezes_it(study):
    other = planned_size(study, people=48)
    choose(study, planned_size(study))
    study = launched(study)
    assert json.loads(Design.objects.get(study=study).canonical)["size_plan"]["inputs"]["size"]["people"] == 36
    study.size_plan = other
    with pytest.raises(StudyFrozen):
        study.save()
    with pytest.raises(StudyFrozen):
        Study.objects.filter(pk=study.pk).update(size_plan=None)
    assert frozen_design_mismatch_text(study) == ""


def test_a_copy_and_a_bundle_have_no_chosen_plan(study):
    choose(study, planned_size(study))
    for copy in (clone_study(study, study.owner), create_draft_from_bundle(serialize_bundle(study), study.owner)):
        assert copy.size_plan is None and "size_plan" not in serialize_design(copy)
