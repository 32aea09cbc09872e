"""The lines of a study's life, of its acts and of its forms."""

from datetime import timedelta
from decimal import Decimal

from django.urls import reverse
from django.utils import timezone

from studies.models import Job, Study
from studies.services import copying, drafts, lifecycle
from tests import builders
from tests.admin_pages import changed, form_of, logged_in, study_url
from tests.messages.checklist.drafts import ready_made, study_with
from tests.messages.lines import NOTHING, Shown
from tests.messages.pages.scenarios import (
    ADMIN,
    SERVICES,
    act,
    amend,
    amended,
    archived,
    by_nobody,
    closed,
    closing,
    closing_with_third_labels,
    draft,
    launched,
    paused,
    refused,
    says,
    small_cap,
    stands,
)


def practice(client, study, **data):
    section = study.sections.get(purpose="training")
    return client.post(reverse("admin:studies_section_practice", args=[section.pk]), data, follow=True)


def trained():
    return builders.humanlike_draft(domains=("news",), conditions=("examples",), owner=builders.user())


def a_new_practice_item(client, study):
    section = study.sections.get(purpose="training")
    system = study.systems.get(name="human")
    address = reverse("admin:studies_section_practice", args=[section.pk])
    page = client.get(address)
    form = next(form_of(page, number=n) for n in range(8) if any("prompt" in name for name in form_of(page, number=n)))
    sent = {}
    for name in form:
        sent[name] = (
            "news-human-001"
            if "prompt" in name
            else str(system.pk)
            if name.startswith(("system", "first"))
            else form[name]
        )
    return client.post(address, sent, follow=True)


def cancelled(state):
    def visit(client, study):
        columns = {"ended_at": timezone.now()} if state == "done" else {}
        if state == "running":
            columns = {"holder": "a runner", "leased_until": timezone.now() + timedelta(minutes=5)}
        job = Job.objects.create(kind="launch", study=study, by=builders.user(), state=state, **columns)
        return client.post(reverse("admin:studies_job_cancel", args=[job.code]), follow=True)

    return visit


def section_added(client, study):
    address = f"{reverse('admin:studies_section_add')}?study={study.pk}"
    return client.post(address, changed(form_of(client.get(address), "section_form"), protocol="rating"), follow=True)


def section_saved(client, study):
    address = reverse("admin:studies_section_change", args=[study.sections.first().pk])
    return client.post(address, form_of(client.get(address), "section_form"), follow=True)


def section_deleted(client, study):
    section = study.sections.first()
    study.contrasts.all().delete()
    return client.post(reverse("admin:studies_section_delete", args=[section.pk]), {"post": "yes"}, follow=True)


def written(client, study):
    """The form of a section generates the questions of neighbouring systems, in both directions."""
    section = study.sections.first()
    sent = {"generate-which": "neighbours", "generate-text": "Is {x} better than {y}?", "generate-both": "on"}
    return client.post(reverse("admin:studies_section_generate_questions", args=[section.pk]), sent, follow=True)


def study_added(client, study):
    address = reverse("admin:studies_study_add")
    return client.post(address, changed(form_of(client.get(address), "study_form"), title="Another"), follow=True)


def launch_edited(study):
    """The study is edited between the reading and the freezing."""

    def edit(study):
        Study.objects.filter(pk=study.pk, state="draft").update(purpose="Something else.")

    whole = lifecycle.draw_batches

    def drawn(study, *rest):
        edit(study)
        return whole(study, *rest)

    lifecycle.draw_batches = drawn
    try:
        builders.launched(study)
    finally:
        lifecycle.draw_batches = whole


def all_open(study):
    lifecycle.open_more_places(study, 9, by=None)


def ready_made_study():
    study = draft(target_n=1, target_cap=50)
    ready_made(3)(study)
    return builders.launched(study)


def spent():
    study = builders.draft_study(systems=("alpha", "beta"), prompts=4, target_n=2, target_cap=40, owner=builders.user())
    builders.add_choice(study, m=2)
    return builders.launched(study)


LINES = {
    f"{SERVICES}:_refuse_launched": [
        (
            "Only a draft can be launched, and the study is launched",
            "Clone it",
            refused(launched, by_nobody(lifecycle.request_launch)),
        ),
        ("The study is archived", "Bring it back first", lambda: _archived_launch()),
    ],
    f"{SERVICES}:launch": [
        (
            "The study was edited during the launch",
            "Check it and launch it again",
            refused(draft, launch_edited),
        ),
    ],
    f"{SERVICES}:freeze_and_close": [
        (
            "Only a draft can be frozen, and the study is launched",
            "Clone it",
            refused(launched, by_nobody(lifecycle.freeze_and_close)),
        )
    ],
    f"{SERVICES}:open_more_places": [
        (
            "You can open places only while a study is launched or paused, and it is closed",
            "Clone it",
            refused(closed, lambda s: lifecycle.open_more_places(s, 1, by=None)),
        ),
        (
            "The study is capped at 9 places; 6 are open. You can open at most 3 more",
            "Clone the study",
            refused(launched, lambda s: lifecycle.open_more_places(s, 4, by=None)),
        ),
        (
            "The study is capped at 4 places; 4 are open. You cannot open any more",
            "Clone the study",
            refused(small_cap, lambda s: lifecycle.open_more_places(s, 1, by=None)),
        ),
        (
            "The study has ready-made batches, and all of them are open",
            "clone the study",
            refused(ready_made_study, all_open),
        ),
        (
            "There are not enough items left for 9 more batches. Batch 3 cannot be filled",
            "clone it",
            refused(spent, all_open),
        ),
    ],
    f"{SERVICES}:start_closing": [
        (
            "Only a launched or paused study can be closed, and this one is draft",
            "You need not do anything",
            refused(draft, by_nobody(lifecycle.start_closing)),
        )
    ],
    f"{SERVICES}:_change_state": [
        ("The study is draft, not launched", "Reload its page", refused(draft, by_nobody(lifecycle.pause)))
    ],
    f"{SERVICES}:amend": [
        (
            "Enter a reason",
            "stored with the new version",
            refused(launched, lambda s: lifecycle.amend(s, {}, reason=" ", by=None)),
        ),
        ("You can amend only a launched or paused study", "clone it", refused(closed, lambda s: amend(s, contact="x"))),
        ("After launch seed cannot be amended", "clone the study", refused(launched, lambda s: amend(s, seed=4))),
        ("Nothing would change", "Change at least one value", refused(launched, lambda s: amend(s, contact=s.contact))),
    ],
    f"{SERVICES}:_refuse_lower_pay": [
        (
            "Pay can only rise after launch",
            "Enter at least the promised amount",
            refused(launched, lambda s: _cheaper(s)),
        )
    ],
    f"{SERVICES}:unblind": [
        (
            "Enter a reason. The report shows it",
            "Enter a reason",
            refused(launched, lambda s: lifecycle.unblind(s, None, " ")),
        ),
        (
            "There is nothing to unblind: the study is a draft",
            NOTHING,
            refused(draft, lambda s: lifecycle.unblind(s, None, "A look.")),
        ),
    ],
    f"{SERVICES}:archive": [
        ("The study is already archived", "You need not do anything", refused(archived, by_nobody(lifecycle.archive))),
        (
            "only a draft or a closed study can be archived, and this one is launched",
            "Close the study first",
            refused(launched, by_nobody(lifecycle.archive)),
        ),
    ],
    f"{SERVICES}:delete_or_archive_draft": [
        (
            "Only a draft can be deleted",
            "archive it instead",
            refused(launched, lambda s: copying.delete_or_archive_draft(s, None)),
        )
    ],
    f"{SERVICES}:restore_archived": [
        (
            "The study is not archived: it is in the list already",
            NOTHING,
            refused(draft, lambda s: copying.restore_archived(s, None)),
        )
    ],
    f"{SERVICES}:create_draft_with_default_arm": [
        (
            "Another study already has this code",
            NOTHING,
            refused(draft, lambda s: drafts.create_draft_with_default_arm(Study(title="t", code=s.code), None)),
        )
    ],
    f"{SERVICES}:update_draft": [
        (
            "The study was changed meanwhile (revision 0)",
            "Read it again",
            refused(draft, lambda s: drafts.update_draft(s, None, {}, version=7)),
        )
    ],
    f"{SERVICES}:refuse_if_launched": [
        ("The study is launched, so its design cannot change", "Clone it", says(launched, written)),
        (
            "The study is launched, so its design cannot change",
            "Clone it",
            says(lambda: builders.launched(trained()), practice),
        ),
    ],
    f"{ADMIN}:_pause": [
        ("The study is paused. No new annotators can start", "until you resume it", says(launched, act("pause")))
    ],
    f"{ADMIN}:_resume": [("The study is resumed", NOTHING, says(paused, act("resume")))],
    f"{ADMIN}:_close": [
        (
            "The study is closing. No annotators are still answering.",
            "You need not do anything",
            says(launched, act("close", reason="")),
        )
    ],
    f"{ADMIN}:_draw_more": [("2 more places are open", NOTHING, says(launched, act("draw-more", places=2)))],
    f"{ADMIN}:_unblind": [
        ("Outcomes are visible from now on", NOTHING, says(launched, act("unblind", reason="A look.")))
    ],
    f"{ADMIN}:_clone": [
        (
            "This is the copy: a draft with the same design and a new seed",
            "target",
            says(launched, act("clone", title="Copy")),
        )
    ],
    f"{ADMIN}:_archive": [
        ("The study is archived", "filter the list of studies by “Archived”", says(draft, act("archive")))
    ],
    f"{ADMIN}:_restore": [("The study is back in the list", NOTHING, says(archived, act("restore")))],
    f"{ADMIN}:_delete": [
        (
            "“Which writer is better (secret hypothesis)” is deleted",
            NOTHING,
            says(lambda: builders.draft_study(owner=builders.user()), act("delete")),
        ),
        ("has records that must be kept. It was archived instead", NOTHING, says(lambda: _on_record(), act("delete"))),
    ],
    f"{ADMIN}:act_page": [
        ("You cannot do this now: the study is a draft", "The buttons below show", says(draft, act("pause")))
    ],
    f"{ADMIN}:amend_page": [
        (
            "You can amend only a launched or paused study",
            "clone it",
            says(draft, lambda client, study: client.get(study_url(study, "amend/"), follow=True)),
        ),
        ("Version 2 of the design applies to everybody who starts from now on", NOTHING, says(launched, amended)),
    ],
    f"{ADMIN}:cancel_view": [
        ("This job has already ended. There is nothing to cancel", NOTHING, says(draft, cancelled("done"))),
        ("The job will stop at its next step", NOTHING, says(draft, cancelled("running"))),
        ("The job is cancelled. It had not started", NOTHING, says(draft, cancelled("waiting"))),
    ],
    f"{ADMIN}:next_step": [
        (
            "2 things are missing before you can launch the study",
            "#id_contact",
            stands(draft, study_with(contact="", minutes=None)),
        ),
        (
            "One thing is missing before you can launch the study",
            "#id_minutes",
            stands(draft, study_with(minutes=None)),
        ),
        ("Nothing is missing", "/launch/", stands(draft)),
        ("Nothing blocks the launch. The checklist has one", "/launch/", stands(draft, study_with(consent=""))),
        ("The study is closed", "/", stands(closed)),
        ("Annotators can start", "/collecting/", stands(launched)),
        ("The study is paused. No new annotators can start", "until you resume it", stands(paused)),
        ("1 annotator is still answering and may finish until", "You need not do anything", stands(closing(1))),
        ("2 annotators are still answering and may finish until", "You need not do anything", stands(closing(2))),
        (
            "No annotators are still answering. The study closes in a minute",
            "You need not do anything",
            stands(closing()),
        ),
        (
            "No annotators are still answering. The study closes at the latest at",
            "You need not do anything",
            stands(closing_with_third_labels),
        ),
    ],
    f"{ADMIN}:_create_item": [("The practice item is stored", NOTHING, says(trained, a_new_practice_item))],
    f"{ADMIN}:_delete_item": [
        (
            "The practice item is deleted",
            NOTHING,
            says(trained, lambda c, s: practice(c, s, delete=str(s.items.filter(kind="practice").first().pk))),
        ),
        ("That practice item is already deleted", NOTHING, says(trained, lambda c, s: practice(c, s, delete="999999"))),
    ],
    f"{ADMIN}:response_add": [
        ("The section is added", "enter the settings of its protocol", says(draft, section_added)),
        ("The draft is created", "Its checklist shows what is missing", says(draft, study_added)),
    ],
    f"{ADMIN}:response_change": [("Section 1 is saved", NOTHING, says(draft, section_saved))],
    f"{ADMIN}:response_delete": [("Section 1", NOTHING, says(draft, section_deleted))],
    f"{ADMIN}:generate_questions_view": [
        (
            "Added: 2 questions, 0 comparisons",
            NOTHING,
            says(
                draft,
                lambda c, s: (s.sections.first().questions.filter(key__startswith="beta").delete(), written(c, s))[1],
            ),
        ),
        ("Nothing was missing", NOTHING, says(draft, written)),
    ],
}


def _on_record():
    from studies.models import audit

    study = draft()
    audit.record("import", study=study, by=None)
    return study


def _cheaper(study):
    lifecycle.amend(study, {"arm": {study.arms.get().pk: {"reward": Decimal("0.10")}}}, reason="Because.", by=None)


def _archived_launch():
    study = archived()
    page = logged_in(builders.user()).post(study_url(study, "launch/"))
    return [Shown(text) for text in page.context["launch_errors"]]
