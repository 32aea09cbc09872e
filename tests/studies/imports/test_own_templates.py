"""A study becomes a template of its members: kept once, used for new studies, hidden when it is archived."""

import json
import re

import pytest
from django.db import connection
from django.http import Http404
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from studies.design.serialization import serialize_design
from studies.imports import study_templates
from studies.imports.study_templates import create_draft_from_own_template, keep_as_template, own_templates_of
from studies.models import OwnTemplate, Study
from studies.services import copying
from studies.services.lifecycle import ActionRefused
from tests import builders
from tests.admin_pages import logged_in, study_url
from tests.builders import user

pytestmark = pytest.mark.django_db
PAGE = "/admin/studies/study/new/templates/"


@pytest.fixture
def study():
    return builders.spa_study(user("owner"), title="Vivid stories", rules=[("incoherent", {"tau": 1.1})])


def keep(study, **answers) -> OwnTemplate:
    page = logged_in(study.owner).post(
        study_url(study, "keep-template/do/"), {"title": "Stories"} | answers, follow=True
    )
    template = OwnTemplate.objects.latest("pk")
    there = f"{reverse('study_templates')}#own-{template.pk}"
    # At the top, where the message is.
    assert (
        page.redirect_chain == [(there.partition("#")[0], 302)] and f'id="own-{template.pk}"' in page.content.decode()
    )
    assert f'The template is kept. <a href="{there}">New study from “{template.title}”</a>' in page.content.decode()
    assert re.search(r'class="first">New study<span class="heard"> from Stories', page.content.decode())
    return OwnTemplate.objects.latest("pk")


def test_a_second_study_has_the_design_its_own_title_and_seed_and_no_text(study):
    client = logged_in(study.owner)
    assert "keep-template" in client.get(study_url(study, "change/")).content.decode()
    template = keep(study)
    page = client.get(PAGE).content.decode()
    assert page.index("Your templates") < page.index("Stories") < page.index("Story writers")
    answer = client.post(PAGE, {"own": template.pk, "title": "Second round"})
    copy = Study.objects.get(title="Second round")
    assert answer.status_code == 302 and str(copy.pk) in answer["Location"]
    assert not copy.prompts.exists() and copy.is_draft and copy.members.get().user == study.owner

    def told(one):
        design = json.loads(json.dumps(serialize_design(one), default=str))
        design["study"] = {name: value for name, value in design["study"].items() if name not in ("seed", "title")}
        # The words of its pages are those that heval has when it is launched.
        own = ("prompts", "outputs", "items", "batches", "translation")
        return {name: value for name, value in design.items() if name not in own}

    assert copy.translation is None and told(copy) == told(study)
    assert copy.seed not in (0, study.seed) and template.bundle["study"]["seed"] == 0


def test_templates_of_others_are_below_ones_own_with_their_names(study):
    keep(study)
    colleague = user("colleague")
    study.members.create(user=colleague, role="editor")
    own = OwnTemplate.objects.get()
    own.pk, own.title, own.by = None, "Mine", colleague
    own.save(force_insert=True)
    page = logged_in(colleague).get(PAGE).content.decode()
    order = ["Your templates", ">Mine<", "Templates of owner", ">Stories<", "Templates of experiments"]
    assert [page.count(words) for words in order] == [1, 1, 1, 1, 1]
    assert sorted(order, key=page.index) == order


def test_a_template_with_texts_makes_a_study_that_can_be_launched(study):
    template = keep(study, texts="with")
    page = logged_in(study.owner).get(PAGE).content.decode()
    assert template.has_texts and ", with its texts" in " ".join(page.split())
    copy = create_draft_from_own_template(template, study.owner, "Third round")
    assert copy.prompts.count() == study.prompts.count()
    builders.launched(copy, study.owner)


def test_members_use_it_and_nobody_else_knows_of_it(study):
    template = keep(study)
    study.members.create(user=user("looker"), role="viewer")
    study.members.create(user=user("coder"), role="coder")
    assert list(own_templates_of(user("looker"))) == [template]
    assert logged_in(user("looker")).post(PAGE, {"own": template.pk, "title": "Mine"}).status_code == 302
    for name in ("coder", "stranger"):
        assert not own_templates_of(user(name)) and "Stories" not in logged_in(user(name)).get(PAGE).content.decode()
        assert logged_in(user(name)).post(PAGE, {"own": template.pk, "title": "No"}).status_code == 400
    with pytest.raises(Http404):
        create_draft_from_own_template(template, user("stranger"), "No")
    assert not Study.objects.filter(title="No").exists()


def test_an_archived_template_is_hidden_and_only_its_maker_and_owners_hide_it(study):
    template = keep(study)
    study.members.create(user=user("looker"), role="viewer")
    looker, owner = logged_in(user("looker")), logged_in(study.owner)
    assert 'name="archive"' not in looker.get(PAGE).content.decode()
    assert looker.post(PAGE, {"archive": template.pk}).status_code == 403 and own_templates_of(study.owner)
    assert owner.post(PAGE, {"archive": template.pk}).status_code == 302
    assert not own_templates_of(study.owner) and "Stories" not in owner.get(PAGE).content.decode()
    assert owner.post(PAGE, {"own": template.pk, "title": "Late"}).status_code == 400
    own = keep_as_template(study, user("looker"), "Own")
    assert looker.post(PAGE, {"archive": own.pk}).status_code == 302 and not own_templates_of(user("looker"))


@pytest.mark.parametrize(
    "sent", [{"title": " "}, {"title": "x" * 201}, {"own": "seven", "title": "t"}, {"archive": ""}]
)
def test_bad_input_makes_nothing(study, sent):
    template, n = keep(study), Study.objects.count()
    answer = logged_in(study.owner).post(PAGE, {"own": template.pk} | sent)
    assert answer.status_code == 400 and Study.objects.count() == n and own_templates_of(study.owner)
    assert "No draft was made" in answer.content.decode()


def test_a_draft_with_a_template_is_archived_and_not_deleted():
    draft = builders.spa_draft(owner=user("owner"))
    template = keep_as_template(draft, draft.owner, "Stories")
    assert copying.delete_or_archive_draft(draft, draft.owner) == "archived"
    assert create_draft_from_own_template(template, draft.owner, "Again").sections.exists()


def test_texts_that_are_too_large_are_refused(study, monkeypatch):
    monkeypatch.setattr(study_templates, "MAX_BUNDLE_BYTES", 15_000)
    with pytest.raises(ActionRefused, match="Keep the template without them"):
        keep_as_template(study, study.owner, "Stories", has_texts=True)
    assert not OwnTemplate.objects.exists()


def test_the_list_reads_no_bundle(study):
    client = logged_in(study.owner)
    for n in range(3):
        keep_as_template(study, study.owner, f"Template {n}")
    client.get(PAGE)
    with CaptureQueriesContext(connection) as few:
        client.get(PAGE)
    for n in range(9):
        keep_as_template(study, study.owner, f"More {n}")
    with CaptureQueriesContext(connection) as many:
        client.get(PAGE)
    assert len(few) == len(many) and not any('"bundle"' in one["sql"] for one in many.captured_queries)
