"""The library of criteria: each is complete, differs from the others, and has a standard name."""

import re

from studies.design.criteria import CRITERIA
from studies.models import Question

CODE = re.compile(r"Q|Q[OITE][CGF]-[fcw]-\d(\.\d)*")


def test_each_criterion_has_all_that_a_question_needs():
    for one in CRITERIA:
        assert re.fullmatch(r"[a-z_]+", one.key) and len(one.name) <= Question._meta.get_field("criterion").max_length
        assert one.how.count("{it}") == 1 and one.how.endswith("?"), one.key
        assert CODE.fullmatch(one.code) and one.standard_name, one.key
        assert one.definition.endswith(".") and len(set(one.points)) == 5, one.key
        assert len({one.more, one.most, one.least}) == 3 and "{" not in one.more + one.most + one.least, one.key


def test_no_two_criteria_are_the_same():
    for name in ("key", "name", "code", "how", "more", "definition", "points"):
        values = [getattr(one, name) for one in CRITERIA]
        assert len(set(values)) == len(values), name
    assert len(CRITERIA) >= 25
