"""Texts leave a draft together: chosen ones or all, with what shows them; and a clone may come without them or get others."""

import pytest
from django.urls import reverse
from django.utils.html import escape

from annotators.models import Assignment
from annotators.places.batch_plan import start_test_run
from studies.design.draw import draw_batches, store_drawn_batches
from studies.imports.tables import Options, import_stimuli_file
from studies.models import Batch, Item, Output, Prompt, Question, Study, audit
from studies.services import copying, drafts, lifecycle
from tests import builders
from tests.admin_pages import form_of, logged_in, study_url
from tests.builders import user

pytestmark = pytest.mark.django_db


@pytest.fixture
def draft():
    return builders.spa_draft(owner=user("owner"), with_surveys=False, with_rating=False, prompts=6)


def changelist(study, kind="prompt") -> str:
    return f"{reverse(f'admin:studies_{kind}_changelist')}?study={study.pk}"


def confirmed(client, url, rows, **more):
    asked = {"action": "remove", "_selected_action": [row.pk for row in rows], "select_across": "0"} | more
    page = client.post(url, asked | {"index": "0"})
    assert page.status_code == 200, page
    return page.content.decode(), client.post(url, asked | {"confirmed": "yes"}, follow=True)


def test_chosen_prompts_leave_after_a_question_with_their_outputs_and_test_runs(draft):
    start_test_run(draft, None)
    client, version, (first, second, *others) = logged_in(draft.owner), draft.version, draft.prompts.all()
    page, after = confirmed(client, changelist(draft), [first, second])
    assert "6 outputs, 2 prompts" in page and "Removed: 6 outputs, 2 prompts." in after.content.decode()
    assert list(draft.prompts.all()) == others and Output.objects.filter(system__study=draft).count() == 3 * len(others)
    assert not Assignment.objects.exists() and not Item.objects.exists()
    draft.refresh_from_db()
    event = audit.events_of(draft).latest("pk")
    assert draft.version == version + 1 and event.verb == "edit"
    assert event.data["removed"] == {"batches": 0, "items": 0, "outputs": 6, "prompts": 2}


def test_nothing_leaves_before_the_question_is_answered(draft):
    client = logged_in(draft.owner)
    client.post(changelist(draft), {"action": "remove", "_selected_action": [draft.prompts.first().pk], "index": "0"})
    assert draft.prompts.count() == 6 and not audit.events_of(draft).filter(verb="edit").exists()


def test_a_whole_list_and_single_outputs(draft):
    client = logged_in(draft.owner)
    output = Output.objects.filter(system__study=draft).first()
    _, after = confirmed(client, changelist(draft, "output"), [output])
    assert "Removed: 1 output." in after.content.decode() and draft.prompts.count() == 6
    other = builders.spa_draft(owner=draft.owner, prompts=4, title="Another")
    confirmed(client, changelist(draft), [draft.prompts.first()], select_across="1")
    assert not draft.prompts.exists() and other.prompts.count() == 4


def test_ready_made_batches_leave_whole_and_others_stay():
    study = builders.spa_draft(owner=user("owner"), systems=("a", "b"), prompts=12, m=2, with_surveys=False)
    made = draw_batches(study, 0, 3)
    store_drawn_batches(study, made, places_per_batch=2, origin=Batch.Origin.IMPORTED, keys=["k1", "k2", "k3"])
    gone = study.batches.get(key="k2")
    shown = Prompt.objects.filter(items__placements__batch=gone).first()
    in_batches = set(Batch.objects.filter(placements__item__prompt=shown).values_list("key", flat=True))
    stay = {key: count(study, key) for key in {"k1", "k2", "k3"} - in_batches}
    counts = copying.remove_texts(study, None, Prompt.objects.filter(pk=shown.pk))
    assert counts["batches"] == len(in_batches) and "k2" in in_batches and stay
    assert {key: count(study, key) for key in stay} == stay
    assert set(study.batches.values_list("key", flat=True)) == set(stay)
    assert not study.items.filter(placements=None).exists()


def count(study, key) -> int:
    return study.items.filter(placements__batch__key=key).count()


def test_practice_items_leave_with_their_texts():
    study = builders.humanlike_draft(owner=user("owner"), conditions=("none", "examples"))
    section = study.sections.get(purpose="training")
    outputs = Output.objects.filter(system__study=study, system__is_human=True, prompt__key__startswith="news")
    builders.add_practice(section, [outputs.first()])
    copying.remove_texts(study, None)
    assert not study.items.exists() and not study.prompts.exists() and study.systems.exists()


def test_only_an_editor_of_a_draft_removes_texts(draft):
    prompt = draft.prompts.first()
    asked = {"action": "remove", "_selected_action": [prompt.pk], "confirmed": "yes", "select_across": "0"}
    assert "Remove the chosen prompts" in logged_in(draft.owner).get(changelist(draft)).content.decode()
    draft.members.create(user=user("looker"), role="viewer")
    logged_in(user("looker")).post(changelist(draft), asked)
    logged_in(user("stranger")).post(changelist(draft), asked)
    # Without the study in the address, the list may hold several studies.
    logged_in(draft.owner).post(reverse("admin:studies_prompt_changelist"), asked)
    assert draft.prompts.count() == 6
    builders.launched(draft, draft.owner)
    assert "Remove the chosen" not in logged_in(draft.owner).get(changelist(draft)).content.decode()
    logged_in(draft.owner).post(changelist(draft), asked)
    assert draft.prompts.count() == 6
    with pytest.raises(lifecycle.ActionRefused):
        copying.remove_texts(draft, draft.owner)


def test_a_refused_removal_leaves_everything(draft, monkeypatch):
    def fail(*_, **__):
        raise lifecycle.ActionRefused("No.")

    monkeypatch.setattr(drafts, "record_edit_and_raise_version", fail)
    with pytest.raises(lifecycle.ActionRefused):
        copying.remove_texts(draft, None)
    assert draft.prompts.count() == 6


def test_all_texts_leave_by_an_act_of_the_study(draft):
    client = logged_in(draft.owner)
    url = study_url(draft, "remove-texts/do/")
    assert url in client.get(changelist(draft)).content.decode()
    assert "test runs" in client.get(url).content.decode() and draft.prompts.exists()
    assert "Removed: 18 outputs, 6 prompts." in client.post(url, follow=True).content.decode()
    assert not draft.prompts.exists() and draft.sections.exists()


def test_a_clone_asks_for_its_texts(draft):
    client = logged_in(draft.owner)
    url = study_url(draft, "clone/do/")
    assert 'value="without"' in client.get(url).content.decode()
    for title, texts, n in (("With", "with", 6), ("Without", "without", 0), ("As before", "", 6)):
        client.post(url, {"title": title, "texts": texts})
        copy = Study.objects.get(title=title)
        assert (
            copy.prompts.count() == n
            and copy.systems.count() == 3
            and copy.contrasts.count() == draft.contrasts.count()
        )
        assert copy.sections.get().questions.count() == draft.sections.get().questions.count()


def test_a_clone_gets_other_texts_under_the_same_keys(draft, tmp_path):
    copy = copying.clone_study(draft, draft.owner)
    rows = [
        f"{prompt.key},{system.name},New {system.name} {prompt.key}"
        for prompt in copy.prompts.all()
        for system in copy.systems.all()
    ]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(["prompt_key,system,text", *rows]) + "\n")
    report = import_stimuli_file(copy, path, options=Options(replaces_changed=True), by=draft.owner)
    assert report.is_written, report.problems
    texts = Output.objects.filter(system__study=copy).values_list("text", flat=True)
    assert len(texts) == 18 and all(text.startswith("New ") for text in texts)
    assert not Output.objects.filter(system__study=draft, text__startswith="New ").exists()


def test_a_system_leaves_with_its_outputs_and_all_that_names_it(draft):
    client, (gone, *others) = logged_in(draft.owner), draft.systems.order_by("name")
    arm = draft.arms.get()
    arm.systems.set([gone, others[0]])
    start_test_run(draft, None)
    address, version = reverse("new_study_file", args=[draft.pk]), draft.version
    n_named = draft.contrasts.filter(x=gone).count() + draft.contrasts.filter(y=gone).count()
    assert n_named and f'name="remove" value="{gone.pk}"' in client.get(address).content.decode()
    asked = client.post(address, {"remove": gone.pk}).content.decode()
    assert "1 system, 6 outputs" in asked and f"{n_named} comparison" in asked and "1 arm" in asked
    named = draft.contrasts.filter(x=gone).first() or draft.contrasts.filter(y=gone).first()
    assert escape(str(named)) in asked
    assert draft.systems.count() == 3 and not audit.events_of(draft).filter(verb="edit").exists()
    done = client.post(address, {"remove": gone.pk, "confirmed": "yes"}, follow=True).content.decode()
    assert f"“{gone.name}” is removed" in done and "6 outputs" in done
    assert list(draft.systems.order_by("name")) == others and draft.prompts.count() == 6
    assert Output.objects.filter(system__study=draft).count() == 12 and list(arm.systems.all()) == [others[0]]
    assert not draft.contrasts.exclude(x__in=others, y__in=others).exists() and draft.contrasts.exists()
    assert not Question.objects.filter(section__study=draft, x=gone).exists()
    draft.refresh_from_db()
    event = audit.events_of(draft).latest("pk")
    assert draft.version == version + 1 and event.data["system"] == gone.name and event.data["removed"]["outputs"] == 6
    again = client.post(address, {"remove": gone.pk, "confirmed": "yes"}, follow=True)
    assert "This system is no longer in the study." in again.content.decode()
    assert client.post(address, {"remove": "x", "confirmed": "yes"}).status_code == 302 and draft.systems.count() == 2


def test_the_only_system_of_an_arm_stays(draft):
    client, gone = logged_in(draft.owner), draft.systems.first()
    draft.arms.get().systems.set([gone])
    page = client.post(
        reverse("new_study_file", args=[draft.pk]), {"remove": gone.pk, "confirmed": "yes"}, follow=True
    ).content.decode()
    assert f"shows only “{gone.name}”" in page and draft.systems.count() == 3 and gone.outputs.count() == 6


def test_after_a_removal_the_question_can_be_chosen_again():
    study = builders.draft_study(owner=user("owner"), prompts=4)
    Study.objects.filter(pk=study.pk).update(guide={})
    client, (gone, *_) = logged_in(study.owner), study.systems.order_by("name")
    question = reverse("new_study_question", args=[study.pk])
    client.post(question, {"card": "two_choice", "criterion": "overall", "baseline": gone.pk})
    assert study.contrasts.count() == 2
    client.post(reverse("new_study_file", args=[study.pk]), {"remove": gone.pk, "confirmed": "yes"})
    page = client.get(question).content.decode()
    assert study.systems.count() == 2 and "under All settings" not in page
    client.post(question, {"card": "two_choice", "criterion": "overall"})
    assert study.contrasts.count() == 1


def test_all_settings_lead_to_the_page_that_removes_a_system(draft):
    system = draft.systems.first()
    client, url = logged_in(draft.owner), study_url(draft, "change/")
    sent = form_of(client.get(url), "study_form")
    row = next(name for name, value in sent.items() if name.startswith("systems-") and value == [str(system.pk)])
    page = client.post(url, sent | {row.replace("-id", "-DELETE"): ["on"]}).content.decode()
    assert reverse("new_study_file", args=[draft.pk]) in page and "protected related" not in page
    assert "has outputs or is named in the design" in page and draft.systems.count() == 3
