"""A link for each person: only this site can make it, and it can be taken back."""

import pytest
from django.test import Client

from annotators.models import Assignment, Recruitment
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.channels.generic import invitation_token
from tests.builders import recruitment, spa_study, user

INVITATION = REGISTRY["invitation"]


def link(key="abc123", **settings) -> Recruitment:
    return Recruitment(channel="invitation", key=key, settings={"people": 12} | settings)


def test_each_link_names_one_person_of_this_link():
    links = [address for _, address in INVITATION.links(link(), "https://h/")]
    assert len(set(links)) == 12
    arrivals = [INVITATION.read_arrival(link(), {"i": address.partition("?i=")[2]}) for address in links]
    assert [one.person for one in arrivals] == [f"abc123:{n}" for n in range(1, 13)]
    assert {one.trust for one in arrivals} == {"keyed"} and not any(one.problem for one in arrivals)


def test_a_token_of_another_person_link_or_making_lets_nobody_in():
    mine = invitation_token("abc123", 3)
    tries = [
        "",
        "3",
        "3-",
        mine[:-1],
        mine + "0",
        mine.replace("3-", "4-", 1),
        mine.replace("3-", "03-", 1),
        mine.upper(),
        invitation_token("another", 3),
        invitation_token("abc123", 13),
        invitation_token("abc123", 0),
        "-1" + mine[1:],
        "٣" + mine[1:],
        "3-" + "0" * 32,
        "3-é",
    ]
    for sent in tries:
        arrival = INVITATION.read_arrival(link(), {"i": sent})
        assert "not complete" in arrival.problem and not arrival.person, sent
    assert INVITATION.read_arrival(link(), {"i": mine}).person == "abc123:3"


def test_a_revoked_invitation_is_no_longer_good_and_the_others_are():
    for n, words in ((3, "no longer valid"), (17, ""), (1, ""), (12, "no longer valid")):
        arrival = INVITATION.read_arrival(link(people=20, revoked="3, 12"), {"i": invitation_token("abc123", n)})
        assert (words in arrival.problem) and bool(arrival.problem) is bool(words), n


@pytest.mark.django_db
def test_nobody_starts_with_an_invitation_that_was_not_given():
    study = spa_study(user("owner"), target_n=4)
    way = recruitment(study, "invitation", pool="p", settings={"people": 2})
    start = {"start": "1", "agree": "1"}
    for wrong in (invitation_token("another", 1), "1-" + "0" * 32):
        assert Client().post(f"/e/{way.key}/?i={wrong}", start).status_code != 302
    assert not Assignment.objects.exists()
    assert Client().post(f"/e/{way.key}/?i={invitation_token(way.key, 1)}", start).status_code == 302
    assert Assignment.objects.get().trust == "keyed"
