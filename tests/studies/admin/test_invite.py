"""A colleague is invited: account, role and address in one step."""

import re

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

from studies.models import StudyMember, audit
from tests.builders import draft_study, user

pytestmark = pytest.mark.django_db
NEW_PASSWORD = "forty-two brown owls"


@pytest.fixture
def study():
    return draft_study(owner=user("olga"))


@pytest.fixture
def invite(client, study):
    client.force_login(study.owner)

    def invite(name, role="editor"):
        address = reverse("admin:studies_act", args=[study.pk, "invite"])
        return client.post(address, {"account": name, "role": role}, follow=True)

    return invite


def test_a_new_colleague_gets_an_account_a_role_and_an_address(study, invite):
    page = invite("jo@example.org").content.decode()
    account = get_user_model().objects.get(username="jo@example.org")
    assert account.is_staff and not account.is_superuser and not account.has_usable_password()
    assert account.email == "jo@example.org"
    assert study.members.get(user=account).role == "editor"
    (event,) = audit.events_of(study).filter(verb="invite")
    assert event.by == study.owner and event.data["is_new_account"] is True and event.data["role"] == "editor"
    (path,) = re.findall(r"http[^\s<]*(/admin/invitation/[^\s<]+)", page)
    colleague = Client()
    form = colleague.get(path, follow=True)
    assert form.status_code == 200 and "Choose a password" in form.content.decode()
    sent = colleague.post(form.request["PATH_INFO"], {"new_password1": NEW_PASSWORD, "new_password2": NEW_PASSWORD})
    assert sent.url == reverse("admin:index")
    assert study.title in colleague.get(sent.url).content.decode()
    # The address works once, and shows no form to who finds it later.
    again = Client().get(path, follow=True).content.decode()
    assert "new_password1" not in again


def test_an_account_that_exists_gets_the_role_and_no_address(study, invite):
    ann = user("ann")
    page = invite("ann", "viewer").content.decode()
    assert "ann has the role “viewer”" in page and "/admin/invitation/" not in page
    invite("ann", "editor")
    assert list(study.members.filter(user=ann).values_list("role", flat=True)) == ["editor"]
    assert get_user_model().objects.filter(username="ann").count() == 1


@pytest.mark.parametrize(
    ("name", "role", "words"),
    [
        ("no spaces please", "editor", "Enter a valid username"),
        ("olga", "viewer", "A study needs at least one owner."),
        ("visitor", "viewer", "This account may not open the researchers&#x27; pages."),
        ("", "viewer", "This field is required."),
        ("jo", "king", "Select a valid choice."),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(study, invite, name, role, words):
    visitor = user("visitor")
    visitor.is_staff = False
    visitor.save()
    accounts, members = get_user_model().objects.count(), list(study.members.values_list("user", "role"))
    assert words in invite(name, role).content.decode()
    assert get_user_model().objects.count() == accounts
    assert list(study.members.values_list("user", "role")) == members


def test_only_owners_invite(study):
    editor = user("ed")
    StudyMember.objects.create(study=study, user=editor, role="editor")
    client = Client()
    client.force_login(editor)
    address = reverse("admin:studies_act", args=[study.pk, "invite"])
    assert client.post(address, {"account": "friend", "role": "owner"}).status_code == 403
    assert not get_user_model().objects.filter(username="friend").exists()
