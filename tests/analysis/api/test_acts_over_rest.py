"""A study over REST alone: from texts to a launched study with a link, and every act on it."""

import pytest

from annotators.models import Recruitment
from studies.acts import ACTS
from studies.models import Job, Study
from studies.services import jobs
from tests.builders import draft_study, launched, spa_draft, user

from .rest import api_of

pytestmark = pytest.mark.django_db
FACTS = {
    "institution": "University of Graz",
    "responsible": "Ada Lovelace",
    "contact": "study@example.org",
    "ethics_contact": "ethics@example.org",
    "storage": "on a server in Graz",
    "retention": "for ten years",
}


@pytest.fixture
def olga():
    return user("olga")


@pytest.fixture
def api(olga):
    return api_of(olga)


@pytest.fixture
def at(api):
    """The address of a draft with texts of two systems."""
    code = api.post("studies/", {"title": "A checkpoint"}).json()["code"]
    for name in ("new", "old"):
        api.post(f"studies/{code}/systems/", {"name": name})
        for n in range(12):
            api.post(f"studies/{code}/prompts/", {"key": f"p{n}", "text": f"Question {n}?"})
            sent = {"system": name, "prompt": f"p{n}", "sample": 1, "text": f"The {name} answer {n}."}
            assert api.post(f"studies/{code}/outputs/", sent).status_code == 201
    return f"studies/{code}/"


def done(answer, status=200):
    assert answer.status_code == status, answer.body.decode()
    return answer.json()


def errors_of(answer, status) -> dict:
    assert answer.status_code == status, answer.body.decode()
    return {error["field"]: error["message"] for error in answer.json()["errors"]}


def launch(api, at):
    problems = done(api.get(f"{at}checklist/"))["problems"]
    job = done(api.post(f"{at}launch/", {"acknowledged": [one["key"] for one in problems]}), 202)
    jobs.run_waiting_jobs()
    assert done(api.get(f"{at}jobs/{job['code']}/"))["state"] == "done"
    assert done(api.get(at))["state"] == "launched"


def test_from_texts_to_a_launched_study_with_a_link(api, at):
    cards = {one["card"]: one for one in done(api.get(f"{at}cards/"))}
    assert cards["two_choice"]["reason"] == "" and "people" in cards["two_choice"]["cost"]
    done(api.post(f"{at}question/", {"card": "two_choice", "criterion": "overall", "m": 4}))
    written = done(api.post(f"{at}texts/", {"facts": FACTS, "public_title": "Comparing answers"}))
    assert "University of Graz" in written["consent"] and written["contact"] == FACTS["contact"]
    done(api.patch(at, {"target_n": 6, "minutes": 5, "reward": "1.00"}))
    link = done(api.post(f"{at}links/", {"channel": "open_link"}), 201)
    assert link["state"] == "unpublished" and link["address"].endswith(f"/e/{link['key']}/")
    launch(api, at)
    (link,) = done(api.get(f"{at}links/"))["results"]
    assert (link["state"], link["missing"]) == ("open", [])
    assert api.client.get(f"/e/{link['key']}/").status_code == 200


def test_a_launch_that_is_refused_lists_what_is_missing_and_what_to_acknowledge(api, at):
    first = done(api.get(f"{at}checklist/"))
    assert not first["is_ready"] and any("section" in one["text"] for one in first["problems"])
    refused = api.post(f"{at}launch/", {})
    assert refused.status_code == 409 and refused.json()["errors"]
    done(api.post(f"{at}question/", {"card": "two_choice"}))
    done(api.post(f"{at}texts/", {"facts": FACTS}))
    done(api.patch(at, {"target_n": 6, "minutes": 5}))
    second = done(api.get(f"{at}checklist/"))
    warnings = {one["key"] for one in second["problems"] if not one["is_blocking"]}
    assert second["is_ready"] and warnings
    refused = api.post(f"{at}launch/", {"acknowledged": ["of another study"]})
    assert refused.status_code == 409 and {one["key"] for one in refused.json()["errors"]} == warnings
    assert done(api.get(at))["state"] == "draft"


def test_every_act_has_an_operation_and_says_when_it_cannot_be_done(api, olga):
    draft = spa_draft(owner=olga, with_surveys=False, with_rating=False)
    at = f"studies/{draft.code}/"
    assert api.post(f"{at}pause/", None).status_code == 409
    launched(draft, olga)
    assert done(api.post(f"{at}pause/", None))["state"] == "paused"
    refused = api.post(f"{at}pause/", None)
    assert refused.status_code == 409 and "paused" in refused.json()["detail"]
    assert done(api.post(f"{at}resume/", None))["state"] == "launched"
    before = done(api.get(at))["opened_batches"]
    assert done(api.post(f"{at}places/", {"places": 2}))["opened_batches"] == before + 2
    assert errors_of(api.post(f"{at}places/", {"places": 0}), 400).keys() == {"places"}
    assert errors_of(api.post(f"{at}outcomes/", {}), 400).keys() == {"reason"}
    assert done(api.post(f"{at}outcomes/", {"reason": "The board asked."}))["unblinded_at"]
    copy = done(api.post(f"{at}clone/", {"title": "Again"}), 201)
    assert copy["title"] == "Again" and copy["state"] == "draft" and copy["clone_of"] == str(draft.code)
    kept = done(api.post(f"{at}keep-template/", {"title": "Ours"}), 201)
    assert kept["key"] in {one["key"] for one in done(api.get("templates/")) if one["is_own"]}
    invited = done(api.post(f"{at}invite/", {"account": "emil@example.org", "role": "viewer"}), 201)
    assert invited["address"] and invited["role"] == "viewer"
    assert {one["role"] for one in done(api.get(f"{at}members/"))["results"]} == {"owner", "viewer"}
    assert done(api.post(f"{at}close/", {"reason": "Enough."}))["state"] == "closing"
    verbs = [one["verb"] for one in done(api.get(f"{at}log/"))["results"]]
    assert verbs[-1] == "close" and {"pause", "resume", "draw more", "unblind", "keep template"} <= set(verbs)
    there = f"studies/{copy['code']}/"
    assert done(api.post(f"{there}remove-texts/", None))["removed"]["prompts"] > 0
    assert done(api.post(f"{there}archive/", None))["archived_at"]
    assert done(api.post(f"{there}restore/", None))["archived_at"] is None
    assert done(api.send("DELETE", there))["outcome"] in ("deleted", "archived")
    assert set(ACTS) == {
        "pause",
        "resume",
        "places",
        "close",
        "outcomes",
        "clone",
        "invite",
        "keep-template",
        "remove-texts",
        "archive",
        "restore",
        "delete",
    }


def test_a_study_is_made_of_a_bundle_or_a_template(api, olga):
    study = draft_study(owner=olga)
    bundle = done(api.get(f"studies/{study.code}/bundle/"))
    made = done(api.post("studies/", {"bundle": bundle, "title": "From a bundle", "target_n": 7}), 201)
    assert (made["title"], made["target_n"]) == ("From a bundle", 7)
    assert Study.objects.get(code=made["code"]).systems.count() == study.systems.count()
    for template in done(api.get("templates/")):
        assert done(api.post("studies/", {"template": template["key"]}), 201)["state"] == "draft"
    before = Study.objects.count()
    assert errors_of(api.post("studies/", {"template": "none"}), 400).keys() == {"template"}
    assert errors_of(api.post("studies/", {"template": "none", "bundle": {}}), 400).keys() == {"template"}
    newer = api.post("studies/", {"bundle": bundle | {"schema": "heval.bundle/9"}})
    assert newer.status_code == 400 and "schema" in errors_of(newer, 400)
    # What replaces a field of the bundle is checked too, and nothing is left of the draft.
    assert errors_of(api.post("studies/", {"bundle": bundle, "target_n": 0}), 400).keys() == {"target_n"}
    assert Study.objects.count() == before


def test_a_link_has_settings_pay_and_arms(api, at, olga):
    link = done(api.post(f"{at}links/", {"channel": "generic", "settings": {"person_parameter": "worker"}}), 201)
    there = f"{at}links/{link['key']}/"
    assert any("worker=" in address for address in link["addresses"].values())
    changed = done(api.patch(there, {"early_ends": {"full": {"rule": "amount", "amount": "0.10"}}, "reward": "2.00"}))
    assert changed["early_ends"]["full"] == {"rule": "amount", "amount": "0.10"} and changed["reward"] == "2.00"
    assert errors_of(api.patch(there, {"settings": {"colour": "red"}}), 400).keys() == {"settings.colour"}
    assert errors_of(api.patch(there, {"early_ends": {"full": {"rule": "nothing", "amount": "1.00"}}}), 400).keys() == {
        "early_ends.full.amount"
    }
    assert errors_of(api.patch(there, {"early_ends": {"full": {}}}), 400).keys() == {"early_ends.full.rule"}
    assert errors_of(api.patch(there, {"early_ends": {"bored": {"rule": "nothing"}}}), 400).keys() == {
        "early_ends.bored"
    }
    assert errors_of(api.patch(there, {"reward": "-1"}), 400).keys() == {"reward"}
    assert errors_of(api.patch(there, {"arms": ["nowhere"]}), 400).keys() == {"arms"}
    assert done(api.patch(there, {"arms": ["all"]}))["arms"] == ["all"]
    assert done(api.post(f"{there}stop/", None))["stopped_at"]
    assert done(api.post(f"{there}open/", None))["stopped_at"] is None
    assert errors_of(api.post(f"{at}links/", {"channel": "carrier pigeon"}), 400).keys() == {"channel"}
    assert Recruitment.objects.count() == 1
    done(api.send("DELETE", there))
    assert not Recruitment.objects.exists()


def test_a_launched_study_is_amended_by_names(api, olga):
    study = launched(spa_draft(owner=olga, with_surveys=False, with_rating=False), olga)
    at = f"studies/{study.code}/amend/"
    question = study.sections.get().questions.first()
    sent = {
        "study": {"contact": "b@example.org"},
        "questions": {f"1.{question.key}": {"help": "Slowly."}},
        "arms": {"all": {"reward": "3.00"}},
    }
    design = done(api.post(at, {"reason": "People took longer.", **sent}), 201)
    assert (design["version"], design["reason"]) == (2, "People took longer.")
    question.refresh_from_db()
    assert (question.help, Study.objects.get().contact) == ("Slowly.", "b@example.org")
    assert str(study.arms.get().reward) == "3.00"
    assert errors_of(api.post(at, {"reason": "x", "arms": {"none": {}}}), 400).keys() == {"arms.none"}
    assert errors_of(api.post(at, {"reason": "x", "questions": {"9.x": {}}}), 400).keys() == {"questions.9.x"}
    assert errors_of(api.post(at, sent), 400).keys() == {"reason"}
    for changes in (
        {"study": {"seed": 1}},
        {"arms": {"all": {"reward": "1.00"}}},
        {"arms": {"all": {"reward": "-1"}}},
        {},
    ):
        refused = api.post(at, {"reason": "x", **changes})
        assert refused.status_code == 409, (changes, refused.body)
    for changes in (
        {"arms": {"all": {"reward": "much"}}},
        {"arms": {"all": {"minutes": []}}},
        {"study": {"contact": 5}},
    ):
        assert len(errors_of(api.post(at, {"reason": "x", **changes}), 400)) == 1, changes
    assert study.designs.count() == 2


def test_the_pages_are_looked_at_and_a_report_is_invented_and_a_link_rehearsed_by_jobs(olga, api, client):
    study = spa_draft(owner=olga)
    at = f"studies/{study.code}/"
    client.force_login(olga)
    for address in api.get(f"{at}preview/").json().values():
        assert client.get(address).status_code == 200, address
    made = api.post(f"{at}preview/", {"are_systems_equal": True})
    assert made.status_code == 202 and made.json()["kind"] == "invented_report"
    key = Recruitment.objects.create(study=study, channel="open_link").key
    for _ in range(2):  # two requests are one rehearsal
        made = api.post(f"{at}links/{key}/rehearse/", {"people": 9, "seed": 4})
        assert made.status_code == 202 and made.json()["kind"] == "rehearsal"
    arguments = Job.objects.get(kind="rehearsal").arguments
    assert (arguments["people"], arguments["seed"]) == (9, 4)
    assert api.post(f"{at}links/{key}/rehearse/", {"people": 2}).status_code == 400


def test_a_bundle_replaces_a_draft_or_changes_nothing(api, olga):
    study = spa_draft(owner=olga)
    at, other = f"studies/{study.code}/bundle/", draft_study(owner=olga, title="Other")
    sent = done(api.get(at))
    sent["study"]["title"] = "Of a file"
    sent["sections"][0]["questions"][0]["text"] = "Which is clearer, {x} or {y}?"
    shown = done(api.send("PUT", at, sent))
    assert (shown["code"], shown["title"], shown["owner"]) == (str(study.code), "Of a file", "olga")
    assert shown["revision"] == study.version + 1
    assert done(api.get(at)) == sent
    assert errors_of(api.send("PUT", at, sent | {"sections": [{}]}), 400)
    assert done(api.get(at)) == sent
    assert done(api.get(f"studies/{other.code}/"))["title"] == "Other"
    launched(study, olga)
    assert "launched" in done(api.send("PUT", at, sent), 409)["detail"]


def test_pairs_are_asked_in_both_directions(api, olga):
    study = spa_draft(owner=olga, both=False)
    (section,) = study.sections.filter(protocol="spa")
    at = f"studies/{study.code}/sections/{section.position}/both-directions/"
    asked = section.questions.count()
    assert done(api.post(at, {"with_tau": True})) == {"added": asked}
    assert (section.questions.count(), study.exclusion_rules.count()) == (2 * asked, 1)
    assert done(api.post(at, {})) == {"added": 0}
    done(api.post(f"studies/{study.code}/sections/9/both-directions/", {}), 404)


def test_a_wrong_choice_names_the_right_ones(api, olga):
    study = draft_study(owner=olga, systems=("new", "old"))
    sent = {"card": "two_choice", "criterion": "niceness", "m": 2}
    (fault,) = done(api.post(f"studies/{study.code}/question/", sent), 400)["errors"]
    assert fault["field"] == "criterion" and "There is no choice “niceness”. Choose one of: overall" in fault["message"]
