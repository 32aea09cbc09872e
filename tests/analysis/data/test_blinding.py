"""What tells of outcomes is refused while a study collects, by the services that give it."""

import pytest
from django.core.exceptions import PermissionDenied

from analysis.data.exports import BadOrigins, build_permitted_selection, request_export
from studies.models import Job, Study
from studies.services import lifecycle
from tests import builders

pytestmark = pytest.mark.django_db


@pytest.fixture
def study():
    owner = builders.user("olga")
    draft = builders.spa_draft(owner=owner, with_surveys=False, with_rating=False, target_n=3, target_cap=9)
    return builders.launched(draft, owner)


def asked(study, **options):
    return request_export(study, by=study.owner, format="parquet", **options)


def test_an_export_of_outcomes_is_refused_while_the_study_collects(study):
    for table in ("responses", "codings"):
        with pytest.raises(PermissionDenied, match="still collecting"):
            build_permitted_selection(table, study, by=study.owner)
        with pytest.raises(PermissionDenied, match="still collecting"):
            asked(study, table=table)
    assert not Job.objects.filter(kind="export").exists()
    assert build_permitted_selection("responses", study, ["robot"], by=study.owner).origins == ("robot",)
    assert asked(study, table="assignments").arguments["origins"] == ["live", "imported"]
    lifecycle.unblind(study, study.owner, "A look.")
    assert asked(Study.objects.get(pk=study.pk), table="responses", origins=["live"]).arguments["origins"] == ["live"]


def test_an_origin_that_is_none_is_named(study):
    with pytest.raises(BadOrigins, match="'lives' is not an origin"):
        asked(study, table="items", origins=["live", "lives"])
