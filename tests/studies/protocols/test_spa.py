"""SPA's own draw: whose outputs its pages show."""

import pytest
from django.db.models import Q

from studies.design.checklist import find_design_problems
from studies.design.draw import BatchDraw
from studies.models import System
from tests.builders import add_rating, spa_draft

pytestmark = pytest.mark.django_db


def read_by(study, section):
    """The names of the systems whose outputs a first batch shows in a section."""
    outputs = [n for pk, item in next(BatchDraw(study).batches()).items if pk == section.pk for n in item.outputs]
    return set(System.objects.filter(outputs__in=outputs).values_list("name", flat=True))


def test_planted_references_are_read_where_they_are_asked_about_or_rated():
    """The ends of another section's scale are no writers to be compared."""
    study = spa_draft(systems=("alpha", "beta", "top", "waste"), with_rating=False, with_surveys=False, m=4)
    spa = study.sections.get()
    add_rating(study, position=2, m=2)
    for name, reference in (("top", "maximal"), ("waste", "minimal")):
        study.systems.filter(name=name).update(reference=reference)
    named = Q(x__reference__in=System.EXTREME_REFERENCES) | Q(y__reference__in=System.EXTREME_REFERENCES)
    study.contrasts.filter(named).delete()
    spa.questions.filter(named & Q(x__name="waste") | named & Q(y__name="waste")).delete()
    assert read_by(study, spa) == {"alpha", "beta", "top"}, "a question still names the maximal one"
    spa.questions.filter(named).delete()
    assert read_by(study, spa) == {"alpha", "beta"}
    assert read_by(study, study.sections.get(position=2)) == {"alpha", "beta", "top", "waste"}
    assert not [one for one in find_design_problems(study) if one.name.startswith("references_read")]
    study.sections.filter(position=2).update(reuses=spa)
    assert read_by(study, spa) == {"alpha", "beta", "top", "waste"}
    assert [
        one for one in find_design_problems(study) if one.name.startswith("references_read") and not one.is_blocking
    ]
