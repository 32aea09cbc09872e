"""Annotators are asked apart from their consent whether others may train models with their preferences."""

import pytest
from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from django.test import Client

from annotators.models import Assignment
from studies.models import Study
from tests.builders import panel, spa_study, user
from tests.players import claimed, submitted

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]
QUESTION = "Others may use my choices"


def asking(**columns) -> Study:
    return spa_study(user("owner"), asks_to_share_preferences=True, batches_per_annotator=2, **columns)


def entered(study, person, **fields):
    """Open the link as a person, and press Start with these fields. Return the page before, and the answer."""
    address, client = f"/e/{panel(study).key}/?who={person}", Client()
    return client.get(address).content.decode(), client.post(address, {"start": "1", **fields})


@pytest.mark.parametrize("share", [True, False])
def test_the_answer_is_stored_and_shown_again(share):
    study = asking()
    before, answer = entered(study, "a", agree="1", **({"share": "1"} if share else {}))
    assert QUESTION in before and "checked" not in before
    assignment = Assignment.objects.get(study=study)
    assert answer.status_code == 302 and assignment.shares_preferences is share
    shown = Client().get(f"/p/{assignment.code}/consent/").content.decode()
    assert ("You agreed that others" in shown, "You did not agree that others" in shown) == (share, not share)


def test_the_answer_is_kept_when_the_consent_is_missing():
    study = asking()
    _, answer = entered(study, "a", share="1")
    assert (
        answer.status_code == 422
        and 'name="share" value="1" aria-describedby="share-d" checked' in answer.content.decode()
    )
    assert not Assignment.objects.filter(study=study).exists()


def test_nobody_is_asked_if_the_study_does_not_ask():
    study = spa_study(user("owner"))
    before, _ = entered(study, "a", agree="1", share="1")
    assert QUESTION not in before
    assert not Assignment.objects.get(study=study).shares_preferences
    assert not claimed(study, "b", is_consented=True).shares_preferences


def test_the_answer_holds_for_later_batches():
    study = asking()
    first = submitted(study, "a", is_consented=True, shares_preferences=True)
    second = claimed(study, "a", is_consented=True)
    assert second.pk != first.pk and second.shares_preferences


def test_without_a_consent_nothing_is_shared():
    study = asking()
    silent = claimed(study, "a", shares_preferences=True)
    assert not silent.shares_preferences
    with pytest.raises(IntegrityError, match="assignment_shares_preferences_only_with_a_consent"), transaction.atomic():
        Assignment.objects.filter(pk=silent.pk).update(shares_preferences=True)
    Assignment.objects.filter(pk=silent.pk).update(shares_preferences=True, consented_at=Now())
