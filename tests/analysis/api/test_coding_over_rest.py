"""Coding over REST: a sample is drawn, and its coders code it without seeing arms, systems, people or each other."""

import random

import pytest

from studies.models import StudyMember
from tests.builders import humanlike_draft, launched, user
from tests.players import submitted

from .rest import api_of

pytestmark = pytest.mark.django_db


def done(answer, status=200):
    assert answer.status_code == status, answer.body.decode()
    return answer.json()


def test_a_sample_is_coded_blind_by_its_coders(owner):
    study = launched(humanlike_draft(conditions=("none", "examples"), domains=("news",), target_n=4, owner=owner, m=2))
    for n in range(4):
        submitted(study, f"w{n}", rng=random.Random(n), comment=f"It reads well, number {n}.")
    coders = [user(name) for name in ("ann", "ben")]
    for coder in coders:
        StudyMember.objects.create(study=study, user=coder, role="coder")
    api, (ann, ben) = api_of(owner), map(api_of, coders)
    at = f"studies/{study.code}/coding-samples/"
    refused = done(api.post(at, {"kind": "explanations", "coders": ["ann", "eve"]}), 400)
    assert refused["errors"][0]["field"] == "coders" and "“eve” may not code" in refused["errors"][0]["message"]
    sample = done(api.post(at, {"kind": "explanations", "coders": ["ann", "ben"]}), 201)
    assert [(seat["coder"], seat["done"], seat["items"]) for seat in sample["seats"]] == [("ann", 0, 4), ("ben", 0, 4)]
    (own,) = done(ann.get(at))["results"]
    assert [seat["coder"] for seat in own["seats"]] == ["ann"]
    assert [own[name] for name in ("rule", "per_arm", "origin")] == [None, None, None]
    items = done(ann.get(f"{at}1/items/"))["results"]
    item = done(ann.get(f"{at}1/items/{items[0]['number']}/"))
    assert set(item) == {"number", "labels", "is_none", "revision", "texts", "others"}
    (text,) = item["texts"]
    assert text["said"].startswith("It reads well, number") and (text["text"], text["answers"]) == ("", [])
    label = own["labels"][0]["key"]
    coded = done(ann.post(f"{at}1/items/1/", {"labels": [label], "revision": 0}))
    assert (coded["labels"], coded["revision"]) == ([label], 1)
    done(ann.post(f"{at}1/items/1/", {"labels": [], "is_none": True, "revision": 0}), 409)
    assert "no label" in done(ann.post(f"{at}1/items/2/", {"labels": ["nothing"], "revision": 0}), 409)["detail"]
    assert done(ben.get(f"{at}1/items/1/"))["labels"] == []
    done(api.get(f"{at}1/items/"), 404)
    assert [seat["done"] for seat in done(api.get(f"{at}1/"))["seats"]] == [1, 0]
