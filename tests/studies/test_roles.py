"""Who has which role in a study is set at once, and a study keeps an owner."""

import pytest
from django.core.exceptions import ValidationError

from studies import access
from studies.models import AuditEvent, StudyMember
from tests import builders

pytestmark = pytest.mark.django_db


@pytest.fixture
def study():
    return builders.draft_study(owner=builders.user("olga"))


def roles_in(study):
    return {one.user.get_username(): str(one.role) for one in access.members_of(study)}


def test_the_people_named_have_their_roles_and_nobody_else_any(study):
    olga, vera, emil = study.owner, builders.user("vera"), builders.user("emil")
    before = StudyMember.objects.get(study=study, user=olga).pk
    access.replace_member_roles(study, olga, [(olga.pk, "owner"), (vera.pk, "viewer")])
    assert roles_in(study) == {"olga": "owner", "vera": "viewer"}
    assert StudyMember.objects.get(study=study, user=olga).pk == before
    access.replace_member_roles(study, olga, [(olga.pk, "editor"), (emil.pk, "owner")])
    assert roles_in(study) == {"emil": "owner", "olga": "editor"}
    assert AuditEvent.objects.latest("pk").data["roles"] == roles_in(study)


@pytest.mark.parametrize(
    "roles, words", [(["viewer"], "at least one owner"), ([], "at least one owner"), (["owner"] * 2, "twice")]
)
def test_roles_that_cannot_be_are_refused_and_nothing_changes(study, roles, words):
    with pytest.raises(ValidationError, match=words):
        access.replace_member_roles(study, study.owner, [(study.owner.pk, role) for role in roles])
    assert roles_in(study) == {"olga": "owner"} and not AuditEvent.objects.filter(verb="change roles").exists()
