"""Who sees and does what: every page of the admin by role; nobody's study is another's."""

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from annotators.models import Inquiry
from studies.models import Job, StudyMember, audit
from tests import builders, players
from tests.admin_pages import changed, form_of, logged_in, study_url
from tests.analysis.api.rest import api_of

pytestmark = pytest.mark.django_db
ROLES = ("owner", "editor", "viewer", "coder")
LOOKERS = ("owner", "editor", "viewer", "admin")
EDITORS = ("owner", "editor", "admin")


def people(study) -> dict[str, Client]:
    """A client for each role, a colleague with a study of their own, and an administrator."""
    clients = {}
    for role in ROLES:
        user = builders.user(role)
        StudyMember.objects.get_or_create(study=study, user=user, defaults={"role": role})
        clients[role] = logged_in(user)
    stranger = builders.user("stranger")
    builders.draft_study(owner=stranger, title="Quite another study", systems=("zeta", "eta"))
    clients["stranger"] = logged_in(stranger)
    clients["admin"] = logged_in(builders.user("admin", is_superuser=True))
    return clients


def pages_of(study) -> dict[str, tuple[str, ...]]:
    """Address > the roles that may open it."""
    section, output = study.sections.first(), study.systems.first().outputs.first()
    base = f"/admin/studies/study/{study.pk}"
    job = Job.objects.create(kind="launch", study=study)
    return {
        study_url(study): LOOKERS, study_url(study, "history/"): LOOKERS, study_url(study, "clone/do/"): LOOKERS,
        f"/admin/studies/section/{section.pk}/change/": LOOKERS,
        f"/admin/studies/output/{output.pk}/change/": LOOKERS,
        f"/admin/studies/prompt/{output.prompt_id}/change/": LOOKERS,
        f"{base}/collecting/": LOOKERS, f"{base}/preview/": LOOKERS, f"{base}/preview/landing/": LOOKERS,
        f"/admin/studies/job/{job.code}/": LOOKERS, f"/admin/studies/job/{job.code}.json": LOOKERS,
    }  # fmt: skip


def test_a_draft_is_opened_by_its_people_alone():
    study = builders.spa_draft(owner=builders.user("owner"), with_surveys=False)
    clients = people(study)
    section = study.sections.first()
    pages = pages_of(study) | {
        study_url(study, "delete/do/"): ("owner", "admin"),
        study_url(study, "archive/do/"): ("owner", "admin"),
        f"/admin/studies/study/{study.pk}/test-run/": EDITORS,
        f"/admin/studies/section/{section.pk}/delete/": EDITORS,
    }
    Job.objects.all().delete()
    wrong = []
    for url, allowed in pages.items():
        if "/job/" in url:
            continue
        for name, client in clients.items():
            status = client.get(url).status_code
            is_open = status == 200
            if is_open != (name in allowed) or status == 500:
                wrong.append((url, name, status))
    assert wrong == []


def test_a_launched_study_is_opened_by_its_people_alone():
    study = builders.spa_draft(owner=builders.user("owner"), with_surveys=False)
    builders.launched(study)
    recruitment = builders.panel(study)
    done = players.submitted(study, "1", recruitment=recruitment)
    clients = people(study)
    pages = pages_of(study) | {
        study_url(study, "amend/"): EDITORS,
        study_url(study, "pause/do/"): EDITORS,
        study_url(study, "close/do/"): EDITORS,
        study_url(study, "outcomes/do/"): ("owner", "admin"),
        f"/admin/annotators/assignment/{done.pk}/change/": LOOKERS,
        f"/admin/annotators/recruitment/{recruitment.pk}/change/": LOOKERS,
    }
    wrong = []
    for url, allowed in pages.items():
        for name, client in clients.items():
            status = client.get(url).status_code
            if (status == 200) != (name in allowed) or status == 500:
                wrong.append((url, name, status))
    assert wrong == []


def test_lists_filters_and_choices_show_no_other_study():
    study = builders.spa_draft(owner=builders.user("owner"), with_surveys=False, title="Secret study of ours")
    builders.launched(study)
    recruitment = builders.panel(study)
    done = players.submitted(study, "1", recruitment=recruitment)
    audit.record("pause", study=study, by=None)
    outsiders = {name: client for name, client in people(study).items() if name in ("stranger", "coder")}
    for name, client in outsiders.items():
        for url in (
            "/admin/studies/study/",
            "/admin/studies/prompt/",
            "/admin/studies/output/",
            "/admin/studies/auditevent/",
            "/admin/annotators/assignment/",
            "/admin/annotators/recruitment/",
            "/admin/studies/section/add/",
            "/admin/annotators/recruitment/add/",
            "/admin/analysis/apitoken/add/",
            "/admin/analysis/analysisrun/",
            f"/admin/studies/output/?study={study.pk}",
            f"/admin/annotators/assignment/?study={study.pk}",
            f"/admin/studies/study/?q={study.code}",
            f"/admin/annotators/assignment/?q={done.code}",
        ):
            html = client.get(url).content.decode()
            for words in ("Secret study of ours", "alpha", done.code[:8] + "</a>", recruitment.key + "<"):
                assert words not in html, (name, url, words)


def test_posts_of_people_without_the_role_change_nothing():
    study = builders.spa_draft(owner=builders.user("owner"), with_surveys=False)
    clients = people(study)
    owner = clients["owner"]
    opened = changed(form_of(owner.get(study_url(study)), "study_form"), public_title="Other words")
    section = study.sections.first()
    section_form = changed(form_of(owner.get(f"/admin/studies/section/{section.pk}/change/"), "section_form"), m="9")
    for name in ("viewer", "coder", "stranger"):
        client = clients[name]
        client.post(study_url(study), opened)
        client.post(f"/admin/studies/section/{section.pk}/change/", section_form)
        client.post(
            f"/admin/studies/section/{section.pk}/generate-questions/",
            {"generate-which": "all", "generate-text": "{x}{y}"},
        )
        client.post(f"/admin/studies/section/{section.pk}/delete/", {"post": "yes"})
        client.post(study_url(study, "launch/"), {"acknowledge": builders.warnings_of(study)})
        client.post(study_url(study, "delete/do/"))
        client.post(f"/admin/studies/study/{study.pk}/test-run/")
        client.post(
            f"/admin/studies/section/add/?study={study.pk}",
            {"study": study.pk, "protocol": "survey", "purpose": "live"},
        )
        client.post("/admin/annotators/recruitment/add/", {"study": study.pk, "channel": "open_link"})
        study.refresh_from_db()
        section.refresh_from_db()
        assert (study.public_title, section.m, study.sections.count()) == ("Reading short stories", 4, 2), name
        assert not study.jobs.exists() and not study.batches.exists() and not study.recruitments.exists(), name


def test_only_owners_change_members():
    study = builders.spa_draft(owner=builders.user("owner"), with_surveys=False)
    clients = people(study)
    assert 'name="members-0-role"' in clients["owner"].get(study_url(study)).content.decode()
    editor = clients["editor"]
    data = form_of(editor.get(study_url(study)), "study_form")
    assert not any(name.startswith("members-") and name.endswith("-role") for name in data)
    row = study.members.get(user__username="editor")
    editor.post(study_url(study), changed(data, **{"members-0-id": row.pk, "members-0-role": "owner"}))
    row.refresh_from_db()
    assert row.role == "editor"


def test_decisions_about_assignments_need_the_role():
    study = builders.spa_draft(owner=builders.user("owner"), with_surveys=False)
    builders.launched(study)
    done, live = players.submitted(study, "1"), players.claimed(study, "2")
    inquiry = Inquiry.objects.create(assignment=done, kind="question", text="Why?")
    clients = people(study)
    for name in ("viewer", "coder", "stranger"):
        client = clients[name]
        client.post("/admin/annotators/assignment/exclude/", {"code": done.code, "reason": "too_fast"})
        client.post(f"/admin/annotators/assignment/{live.pk}/release/")
        client.post(f"/admin/studies/study/{study.pk}/inbox/{inquiry.pk}/")
        live.refresh_from_db()
        inquiry.refresh_from_db()
        assert not done.exclusions.exists() and live.released_at is None and inquiry.handled_at is None, name


def test_who_is_not_staff_or_not_logged_in_is_sent_to_the_login():
    study = builders.spa_draft(owner=builders.user("owner"), with_surveys=False)
    user = builders.user("annot")
    user.is_staff = False
    user.save()
    StudyMember.objects.create(study=study, user=user, role="owner")
    for client in (Client(), logged_in(user)):
        for url in pages_of(study):
            response = client.get(url)
            assert response.status_code == 302 and "/admin/login/" in response.url, url
        Job.objects.all().delete()


def test_every_post_needs_its_token():
    owner = builders.user("owner")
    study = builders.spa_draft(owner=owner, with_surveys=False)
    client = Client(enforce_csrf_checks=True)
    client.force_login(owner)
    for url in (
        study_url(study),
        study_url(study, "launch/"),
        study_url(study, "delete/do/"),
        "/admin/studies/study/preview-text/",
        f"/admin/studies/study/{study.pk}/test-run/",
        "/admin/annotators/assignment/exclude/",
        "/admin/analysis/apitoken/add/",
    ):
        assert client.post(url, {}).status_code == 403, url


def test_images_are_for_the_studys_people(settings, tmp_path):
    from io import BytesIO

    from PIL import Image

    from studies.models import Output
    from studies.stimuli.images import encode_image, store_image

    settings.MEDIA_ROOT = tmp_path
    study = builders.spa_draft(owner=builders.user("owner"), with_surveys=False)
    data = BytesIO()
    Image.new("RGB", (40, 30), "red").save(data, "PNG")
    image = encode_image(data.getvalue())
    store_image(tmp_path, image)
    output = Output.objects.filter(system__study=study).first()
    Output.objects.filter(pk=output.pk).update(text="", media=image.name, alt="A red field")
    clients = people(study)
    url = f"/admin/studies/prompt/media/{study.pk}/{image.name}"
    html = clients["viewer"].get(f"/admin/studies/output/?study={study.pk}").content.decode()
    assert f'src="{url}" alt="A red field"' in html
    assert clients["viewer"].get(url)["Content-Type"] == "image/webp"
    assert clients["stranger"].get(url).status_code == 404 and clients["coder"].get(url).status_code == 403
    theirs = builders.draft_study(owner=builders.user("stranger"))
    by_name = f"/admin/studies/prompt/media/{theirs.pk}/{image.name}"
    assert clients["stranger"].get(by_name).status_code == 404, "an image is its study's, whoever knows its name"
    for name in ("..%2f..%2fsecret", "x" * 64 + ".webp", "%00"):
        response = clients["owner"].get(f"/admin/studies/prompt/media/{study.pk}/{name}")
        assert response.status_code in (301, 404) and response["Content-Type"] != "image/webp"


@pytest.mark.parametrize("place", ["/admin/annotators/assignment/", "/admin/studies/auditevent/"])
def test_a_search_does_not_tell_a_code_letter_by_letter(place):
    study = builders.spa_study(by=builders.user("owner"))
    code = players.claimed(study, "1").code
    audit.record("note", study=study, by=None, assignment_code=code)
    viewer = people(study)["viewer"]

    def finds(term):
        return viewer.get(place, {"q": term}).context["cl"].result_count

    assert finds(code[:8]) == finds(code[:3]) == finds(code) == 1
    for part in (code[:9], code[:-1], code[1:], code[4:12]):
        assert finds(part) == 0, part


def test_who_may_only_look_is_given_nobodys_link():
    study = builders.spa_study(by=builders.user("owner"))
    doors = [builders.recruitment(study, "invitation", settings={"people": 30}), builders.panel(study)]
    clients = people(study)
    pages = [f"/admin/studies/study/{study.pk}/collecting/"]
    pages += [f"/admin/annotators/recruitment/{door.pk}/change/" for door in doors]
    for name, sees in (("editor", True), ("viewer", False)):
        for url in pages:
            html = clients[name].get(url).content.decode()
            assert any(f"/e/{door.key}/" in html for door in doors) is sees, (name, url)


def test_whose_staff_status_was_taken_has_no_study_any_more():
    owner = builders.user("owner")
    study = builders.spa_draft(owner=owner)
    client, token = logged_in(owner), api_of(owner)
    pages = [f"/admin/studies/study/{study.pk}/{page}/" for page in ("analyses", "share", "import", "bundle")]
    for taken in (False, True):
        if taken:
            get_user_model().objects.filter(pk=owner.pk).update(is_staff=False)
        assert [client.get(page).status_code for page in pages] == [404 if taken else 200] * 4
        assert token.get(f"studies/{study.code}/").status_code == (404 if taken else 200)
        assert token.send("PATCH", f"studies/{study.code}/", {"contact": f"{taken}"}).status_code == (
            404 if taken else 200
        )
