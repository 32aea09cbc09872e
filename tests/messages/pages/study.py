"""The lines of a study's life, of its acts and of its forms."""

from datetime import timedelta
from decimal import Decimal

from django.urls import reverse
from django.utils import timezone

from analysis.metrics.store import MetricDescription, store_computed_scores
from studies.models import Job, Output, Study
from studies.services import copying, drafts, lifecycle
from tests import builders
from tests.admin_pages import changed, form_of, logged_in, study_url
from tests.messages.checklist.drafts import ready_made, study_with
from tests.messages.lines import At, Shown, only_informs
from tests.messages.pages.scenarios import (
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
    next_step_of,
    paused,
    refused,
    says,
    small_cap,
)


def practice(client, study, **data):
    section = study.sections.get(purpose="training")
    return client.post(reverse("admin:studies_section_practice", args=[section.pk]), data, follow=True)


def _beside_ann():
    builders.user("ann")
    return draft()


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


def removed_system(pk_of):
    def visit(client, study):
        sent = {"remove": pk_of(study), "confirmed": "yes"}
        return client.post(reverse("new_study_file", args=[study.pk]), sent, follow=True)

    return visit


def _scored(study):
    """A judge has scored the draft's outputs."""
    outputs = Output.objects.filter(system__study=study)
    return store_computed_scores(
        study,
        None,
        "strict",
        MetricDescription("judge", "v1", scale_low=1, scale_high=5),
        {one.pk: 1.0 for one in outputs},
        "upload",
    )


def _of_one_arm(study):
    system = study.systems.first()
    study.arms.get().systems.set([system])
    copying.remove_system(study, None, system)


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


def all_pairs(client, study):
    form = form_of(client.get(study_url(study)), "study_form")
    return client.post(study_url(study), changed(form, _all_pairs="1"), follow=True)


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


def _launch_warned(study):
    """Each output has a warning, so that everybody would get more of them than the limit."""
    Output.objects.filter(system__study=study).update(warning="Describes a death.")
    builders.launched(study)


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


def _facts_saved():
    page = logged_in(builders.user()).post("/admin/studies/study/facts/", {"facts-institution": "x"}, follow=True)
    return [Shown(str(message)) for message in page.context["messages"]]


PAGES = {
    "Saved. New studies": only_informs(_facts_saved),
    "Only a draft can be launched": refused(launched, by_nobody(lifecycle.request_launch)),
    "_refuse_launched: The study is archived": lambda: _archived_launch(),
    "The study was edited": refused(draft, launch_edited),
    "Only a draft can be frozen": refused(launched, by_nobody(lifecycle.freeze_and_close)),
    "You can open places": refused(closed, lambda s: lifecycle.open_more_places(s, 1, by=None)),
    "The study is capped at … places; … are open. You can open": refused(
        launched, lambda s: lifecycle.open_more_places(s, 4, by=None)
    ),
    "The study is capped at … places; … are open. You cannot open": refused(
        small_cap, lambda s: lifecycle.open_more_places(s, 1, by=None)
    ),
    "The study has ready-made": refused(ready_made_study, all_open),
    "There are not enough": refused(spent, all_open),
    "Only a launched": refused(draft, by_nobody(lifecycle.start_closing)),
    "The study is …, not …. Somebody": refused(draft, by_nobody(lifecycle.pause)),
    "Enter a reason. It is stored": refused(launched, lambda s: lifecycle.amend(s, {}, reason=" ", by=None)),
    "amend: You can amend": refused(closed, lambda s: amend(s, contact="x")),
    "After launch … cannot be amended": refused(launched, lambda s: amend(s, seed=4)),
    "Nothing would change": refused(launched, lambda s: amend(s, contact=s.contact)),
    "Pay can only rise": refused(launched, lambda s: _cheaper(s)),
    "Enter a reason. The report": refused(launched, lambda s: lifecycle.unblind(s, None, " ")),
    "There is nothing to unblind": only_informs(refused(draft, lambda s: lifecycle.unblind(s, None, "A look."))),
    "The study is already": refused(archived, by_nobody(lifecycle.archive)),
    "Close the study": refused(launched, by_nobody(lifecycle.archive)),
    "Only a draft can be deleted": refused(launched, lambda s: copying.delete_or_archive_draft(s, None)),
    "The study is not archived": only_informs(refused(draft, lambda s: copying.restore_archived(s, None))),
    "Another study already": refused(
        draft, lambda s: drafts.create_draft_with_default_arm(Study(title="t", code=s.code), None)
    ),
    "The study was changed": refused(draft, lambda s: drafts.update_draft(s, None, {}, version=7)),
    "The study is launched": (says(launched, written), says(lambda: builders.launched(trained()), practice)),
    "studies/admin:: The study is paused": says(launched, act("pause")),
    "The study is resumed": only_informs(says(paused, act("resume"))),
    "_said_of_closing: The study is closing": says(launched, act("close", reason="")),
    "more places are open": only_informs(says(launched, act("places", places=2))),
    "Outcomes are visible": only_informs(says(launched, act("outcomes", reason="A look."))),
    "This is the copy": says(launched, act("clone", title="Copy")),
    "has the role “…” in this study": only_informs(
        says(lambda: _beside_ann(), act("invite", account="ann", role="viewer"))
    ),
    "is made, as": says(draft, act("invite", account="jo@example.org", role="viewer")),
    "The template is kept": only_informs(says(draft, act("keep-template", title="Kept", texts="without"))),
    "A person could get": refused(lambda: draft(warning_limit=1), _launch_warned),
    "Something else refers": refused(draft, lambda s: _scored(s) and copying.remove_texts(s, None)),
    "shows only “…”. Delete the arm": refused(draft, lambda s: _of_one_arm(s)),
    "This system is no longer": only_informs(says(draft, removed_system(lambda study: 0))),
    "_remove_system: “…” is removed": only_informs(says(draft, removed_system(lambda study: study.systems.first().pk))),
    "Removed: ": says(draft, act("remove-texts")),
    "The study is archived. To see": says(draft, act("archive")),
    "The study is back": only_informs(says(archived, act("restore"))),
    "_said_of_deletion: “…” is deleted": only_informs(
        says(lambda: builders.draft_study(owner=builders.user()), act("delete"))
    ),
    "has records that must be kept": says(lambda: _on_record(), act("delete")),
    "You cannot do": says(draft, act("pause")),
    "amend_page: You can amend": says(draft, lambda client, study: client.get(study_url(study, "amend/"), follow=True)),
    "Version … of the design": only_informs(says(launched, amended)),
    "This job has already": only_informs(says(draft, cancelled("done"))),
    "The job will": only_informs(says(draft, cancelled("running"))),
    "The job is cancelled": only_informs(says(draft, cancelled("waiting"))),
    "things are missing": At("#id_contact", next_step_of(draft, study_with(contact="", minutes=None))),
    "One thing is missing": At("#id_minutes", next_step_of(draft, study_with(minutes=None))),
    "Nothing is missing": At("/launch/", next_step_of(draft)),
    "Nothing blocks the launch": At("/launch/", next_step_of(draft, study_with(consent=""))),
    "The study is closed": At("/", next_step_of(closed)),
    "Annotators can start.": At("/collecting/", next_step_of(launched)),
    "next_step: The study is paused": next_step_of(paused),
    "The study is closing. 1": next_step_of(closing(1)),
    "The study is closing. … annotators": next_step_of(closing(2)),
    "The study is closing. No annotators are still answering. The study closes in a minute": next_step_of(closing()),
    "The study is closing. No annotators are still answering. The study closes at the latest": next_step_of(
        closing_with_third_labels
    ),
    "The practice item is stored": only_informs(says(trained, a_new_practice_item)),
    "The practice item is deleted": only_informs(
        says(trained, lambda c, s: practice(c, s, delete=str(s.items.filter(kind="practice").first().pk)))
    ),
    "That practice item": only_informs(says(trained, lambda c, s: practice(c, s, delete="999999"))),
    "The section is added": says(draft, section_added),
    "Comparisons added": only_informs(says(draft, all_pairs)),
    "Section … is saved": only_informs(says(draft, section_saved)),
    "Section … is deleted": only_informs(says(draft, section_deleted)),
    "Added: … question": only_informs(
        says(
            draft, lambda c, s: (s.sections.first().questions.filter(key__startswith="beta").delete(), written(c, s))[1]
        )
    ),
    "Nothing was missing": only_informs(says(draft, written)),
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
