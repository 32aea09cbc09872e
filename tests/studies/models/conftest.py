"""A draft with one row of everything."""

from copy import deepcopy

import pytest

from analysis.models import AnalysisRun, ApiToken, Coding, CodingItem, CodingSample, CodingSeat, Figure
from annotators.models import (
    Annotator,
    Assignment,
    Exclusion,
    PageVisit,
    RecruitmentArm,
    Response,
)
from studies.models import (
    ArmSystem,
    Batch,
    ComparisonFamily,
    Contrast,
    Design,
    ExclusionRule,
    Expected,
    Exposure,
    Item,
    Job,
    Output,
    Placement,
    SectionArm,
)
from tests.analysis.api.rest import comparison_of
from tests.builders import panel, spa_draft, user
from tests.studies.models.rows import NOW


@pytest.fixture
def world(stored_world, db) -> dict:
    """Rows of its own, so that no test sees what another did to them."""
    return deepcopy(stored_world)


@pytest.fixture(scope="module")
def stored_world(module_transaction) -> dict:
    """A draft with one row of everything, written past no guard."""
    researcher = user()
    study = spa_draft(owner=researcher, rules=[])
    spa = study.sections.get(protocol="spa")
    arm = study.arms.get()
    prompt = study.prompts.first()
    outputs = list(Output.objects.filter(prompt=prompt).order_by("system__name"))
    item = Item.objects.create(study=study, section=spa, number=1, prompt=prompt, content="c" * 64)
    exposures = [Exposure.objects.create(item=item, output=output, number=n) for n, output in enumerate(outputs)]
    batch = Batch.objects.create(study=study, arm=arm, number=0, wanted=2, key="k")
    Placement.objects.create(batch=batch, item=item, number=0)
    design = Design.objects.create(study=study, version=1, canonical="{}", sha256="0" * 64, by=researcher)
    annotator = Annotator.objects.create(pool="p", external_id="x")
    assignment = Assignment.objects.create(study=study, batch=batch, annotator=annotator, design=design, started_at=NOW)
    question = spa.questions.first()
    Expected.objects.create(item=item, question=question, low=0, high=1)
    ExclusionRule.objects.create(study=study, rule="late")
    PageVisit.objects.create(assignment=assignment, key="s1", shown={})
    response = Response.objects.create(assignment=assignment, question=question, slot="s1.q1", value=3)
    exclusion = Exclusion.objects.create(assignment=assignment, reason="r", by=researcher)
    Exclusion.objects.create(assignment=assignment, reason="back", by=researcher, reverses=exclusion)
    recruitment = panel(study)
    RecruitmentArm.objects.create(recruitment=recruitment, arm=arm)
    ArmSystem.objects.create(arm=arm, system=study.systems.first())
    SectionArm.objects.create(section=spa, arm=arm)
    run = AnalysisRun.objects.create(
        study=study, number=1, responses_n=0, responses_sha256="", code_version="", seed="", result={}, result_sha256=""
    )
    Figure.objects.create(run=run, name="f", svg="", pdf=b"")
    comparison_of(study)
    ApiToken.objects.create(user=researcher, name="t", hash="h")
    Job.objects.create(kind="x", request_token="t")
    sampled = {"study": study, "kind": "explanations", "rule": "union", "codebook": {}, "per_arm": 1, "origin": "live"}
    sample = CodingSample.objects.create(number=1, **sampled)
    CodingSeat.objects.create(sample=sample, number=1, user=researcher)
    coded = CodingItem.objects.create(sample=sample, number=1, assignment=assignment)
    Coding.objects.create(item=coded, coder=researcher, labels="grammar")
    contrast = study.contrasts.order_by("pk").first()
    Contrast.objects.create(study=study, section=spa, x=contrast.x, y=contrast.y)
    ComparisonFamily.objects.create(study=study, name="primary")
    Contrast.objects.create(study=study, x_condition="none", y_condition="examples")
    Contrast.objects.create(study=study, section=spa, x_condition="none", y_condition="examples")
    return {name: value for name, value in locals().items() if name != "module_transaction"}
