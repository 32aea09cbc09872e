"""The study whose exports are tested."""

import pytest

from analysis.coding.codebook import EXPLANATIONS_CODEBOOK
from analysis.coding.models import Coding, CodingItem, CodingSample, CodingSeat
from annotators.models import Response
from tests.analysis.api.rest import closed_study
from tests.builders import user


@pytest.fixture
def study(db):
    study = closed_study(user("owner"), 3)
    sample = CodingSample.objects.create(
        study=study,
        number=1,
        kind="explanations",
        rule="union",
        codebook=EXPLANATIONS_CODEBOOK.as_json(),
        per_arm=1,
        origin="live",
    )
    CodingSeat.objects.create(sample=sample, number=1, user=user("coder"))
    written = Response.objects.filter(assignment__study=study).exclude(text="").order_by("pk").first()
    item = CodingItem.objects.create(sample=sample, number=1, assignment=written.assignment, response=written)
    Coding.objects.create(item=item, coder=user("coder"), labels=EXPLANATIONS_CODEBOOK.keys[0])
    return study
