"""The lines of a study's pages: what stands beside the state, what is said after an act, and why an act is refused."""

import re
from datetime import timedelta
from decimal import Decimal
from types import SimpleNamespace

from django.urls import reverse
from django.utils import timezone

from annotators.models import Exclusion
from annotators.places.exclude import exclude, release_place, reopen_places, reverse_exclusion
from annotators.places.tries import first_batch, make_test, try_out
from studies.models import Arm, Job, Study
from studies.services import copying, drafts, lifecycle
from tests import builders, players
from tests.admin_pages import changed, form_of, logged_in, study_url

from .checklist import ready_made, study_with
from .lines import NOTHING, Shown

LIFE, ACTS, EXCLUDE = "studies/services/lifecycle", "studies/admin/acts", "annotators/places/exclude"
SECTION = "studies/admin/section"


def by_nobody(step):
    """A step of a study's life that the site itself takes."""
    return lambda study: step(study, None)


def draft(**columns):
    return builders.spa_draft(owner=builders.user(), with_surveys=False, with_rating=False, **columns)


def launched(**columns):
    return builders.launched(draft(**columns), builders.user())


def paused():
    study = launched()
    lifecycle.pause(study, by=None)
    return again(study)


def closed():
    study = launched()
    lifecycle.close(study, by=None)
    lifecycle.finish(study, by=None)
    return again(study)


def again(study):
    return Study.objects.get(pk=study.pk)


def archived():
    study = draft()
    lifecycle.archive(study, by=None)
    return again(study)


def refused(make, act):
    """What an act says that refuses."""

    def scenario():
        study = make()
        try:
            act(study)
        except lifecycle.NotNow as error:
            return [Shown(str(error))]
        return []

    return scenario


def says(make, visit):
    """The notices of the page that follows ``visit(client, study)``, with what stands beside the state."""

    def scenario():
        study = make()
        response = visit(logged_in(builders.user()), study)
        return [Shown(str(message)) for message in response.context["messages"]]

    return scenario


def act(name, **data):
    return lambda client, study: client.post(study_url(study, f"{name}/do/"), data, follow=True)


def stands(make, *changes):
    """What stands beside the state, with the address of the button."""

    def scenario():
        study = make()
        for change in changes:
            change(study)
        page = logged_in(builders.user()).get(study_url(study))
        step = page.context["next_step"]
        assert re.sub(r"\s+", " ", step.why) in re.sub(r"\s+", " ", page.content.decode().replace("&#x27;", "'"))
        return [Shown(step.why, step.url)]

    return scenario


def closing(inside=0, **columns):
    def make():
        study = launched(**columns)
        for n in range(inside):
            players.claimed(study, f"person {n}")
        lifecycle.close(study, by=None)
        return again(study)

    return make


def with_test(act, **options):
    """An act upon somebody's submitted work."""

    def scenario():
        study = options.get("make", launched)()
        done = players.submitted(study, "somebody")
        try:
            said = act(study, done)
        except lifecycle.NotNow as error:
            said = str(error)
        return [Shown(said)] if isinstance(said, str) else said

    return scenario


def excluded(make, **data):
    """What is said after an exclusion by its page."""

    def scenario():
        study = make()
        done = players.submitted(study, "somebody")
        if data.pop("is_paused", False):
            lifecycle.pause(study, by=None)
        if data.pop("is_closed", False):
            lifecycle.close(study, by=None)
        sent = {"code": [str(done.code)], "reason": "too_fast", **data}
        page = logged_in(builders.user()).post(reverse("admin:annotators_exclude"), sent, follow=True)
        return [Shown(str(message)) for message in page.context["messages"]]

    return scenario


def amend(study, **changes):
    lifecycle.amend(study, {"study": {None: changes}}, reason="Because.", by=None)


def amended(client, study):
    address = study_url(study, "amend/")
    page = client.get(address)
    form = next(form_of(page, number=n) for n in range(5) if "reason" in form_of(page, number=n))
    name = next(name for name in form if "contact" in name)
    sent = changed(form, **{name: "other@example.org", "reason": "A new address."})
    return client.post(address, sent | {"confirm": "1"}, follow=True)


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
    """The pen of a section writes the questions of neighbouring systems, in both directions."""
    section = study.sections.first()
    pen = {"pen-which": "neighbours", "pen-text": "Is {x} better than {y}?", "pen-both": "on"}
    return client.post(reverse("admin:studies_section_write", args=[section.pk]), pen, follow=True)


def study_added(client, study):
    address = reverse("admin:studies_study_add")
    return client.post(address, changed(form_of(client.get(address), "study_form"), title="Another"), follow=True)


def previewed(client, study):
    return client.get(reverse("admin:annotators_preview", args=[study.pk]), follow=True)


def tried(client, study):
    return client.post(reverse("admin:annotators_try", args=[study.pk]), follow=True)


def tries_cleared(n):
    def visit(client, study):
        for _ in range(n):
            try_out(study, builders.user())
        return client.post(reverse("admin:annotators_clear_tries", args=[study.pk]), follow=True)

    return visit


def one_system():
    study = builders.draft_study(systems=("alpha",), owner=builders.user())
    builders.add_choice(study)
    return study


def strange_protocol(study):
    study.sections.update(protocol="gone")


def launch_edited(study):
    """The study is edited between the reading and the freezing."""

    def edit(study):
        Study.objects.filter(pk=study.pk, state="draft").update(purpose="Something else.")

    whole = lifecycle.drawn_batches

    def drawn(study, *rest):
        edit(study)
        return whole(study, *rest)

    lifecycle.drawn_batches = drawn
    try:
        builders.launched(study)
    finally:
        lifecycle.drawn_batches = whole


def small_cap():
    return launched(target_n=4, target_cap=4)


def other_arm(study):
    from annotators.admin.preview import _assignment

    return _assignment(study, Arm.objects.create(study=builders.draft_study(), name="elsewhere"))


def many_chosen():
    """More than a thousand assignments are chosen in the list."""
    from django.contrib.messages.storage.fallback import FallbackStorage
    from django.test import RequestFactory

    from annotators.admin.assignments import exclude_chosen

    request = RequestFactory().post("/")
    request.session, request.user = {}, builders.user()
    request._messages = FallbackStorage(request)
    exclude_chosen(None, request, SimpleNamespace(values_list=lambda *_, **__: ["a"] * 1001))
    return [Shown(str(message)) for message in request._messages]


def chosen_nothing(client, study):
    return client.post(reverse("admin:annotators_exclude"), {"reason": "too_fast"}, follow=True)


def taken_back(client, study):
    exclude([players.submitted(study, "somebody")], "too_fast", builders.user())
    exclusion = Exclusion.objects.get()
    return client.post(reverse("admin:annotators_reverse_exclusion", args=[exclusion.pk]), {}, follow=True)


def place_released(client, study):
    assignment = players.claimed(study, "somebody")
    return client.post(reverse("admin:annotators_release", args=[assignment.pk]), {}, follow=True)


def reversed_twice(of_reversal):
    def act(study, done):
        (made,) = exclude([done], "too_fast", builders.user())
        back = reverse_exclusion(made, builders.user())
        reverse_exclusion(back if of_reversal else made, builders.user())

    return act


def two_studies(study, done):
    exclude([done, players.submitted(launched(), "another")], "too_fast", None)


def a_try(study):
    exclude([make_test(study)], "too_fast", None)


def all_open(study):
    lifecycle.draw_more(study, 9, by=None)


def ready_made_study():
    study = draft(target_n=1, target_cap=50)
    ready_made(3)(study)
    return builders.launched(study)


def spent():
    study = builders.draft_study(systems=("alpha", "beta"), prompts=4, target_n=2, target_cap=40, owner=builders.user())
    builders.add_choice(study, m=2)
    return builders.launched(study)


LINES = {
    f"{LIFE}:_refuse_launched": [("Only a draft can be launched, and the study is launched", "Clone it", refused(launched, by_nobody(lifecycle.request_launch))), ("The study is archived", "bring it back first", lambda: _archived_launch())],
    f"{LIFE}:launch": [
        ("The study was edited while it was being launched", "Look at it and launch again", refused(draft, launch_edited)),
    ],
    f"{LIFE}:freeze": [("Only a draft can be frozen, and the study is launched", "Clone it", refused(launched, by_nobody(lifecycle.freeze)))],
    f"{LIFE}:draw_more": [
        ("Batches can be added while a study is launched or paused, and it is closed", "Clone it", refused(closed, lambda s: lifecycle.draw_more(s, 1, by=None))),
        ("The study is capped at 9 places; 6 are open. You can open at most 3 more", "clone the study", refused(launched, lambda s: lifecycle.draw_more(s, 4, by=None))),
        ("The study is capped at 4 places; 4 are open. You cannot open any more", "clone the study", refused(small_cap, lambda s: lifecycle.draw_more(s, 1, by=None))),
        ("The study's batches were ready-made, and all of them are open", "clone the study", refused(ready_made_study, all_open)),
        ("There are not enough items left for 9 more batches. Batch 3 cannot be filled", "clone it", refused(spent, all_open)),
    ],
    f"{LIFE}:close": [("Only a launched study can be closed, and this one is draft", "You need not do anything", refused(draft, by_nobody(lifecycle.close)))],
    f"{LIFE}:_step": [("The study is draft, not launched", "Load its page again", refused(draft, by_nobody(lifecycle.pause)))],
    f"{LIFE}:amend": [
        ("Say why", "the reason is kept", refused(launched, lambda s: lifecycle.amend(s, {}, reason=" ", by=None))),
        ("A launched or paused study can be amended", "clone it", refused(closed, lambda s: amend(s, contact="x"))),
        ("After launch seed cannot be amended", "clone the study", refused(launched, lambda s: amend(s, seed=4))),
        ("Nothing would change", "change at least one value", refused(launched, lambda s: amend(s, contact=s.contact))),
    ],
    f"{LIFE}:_refuse_lower_pay": [("Pay can only rise once a study is launched", "enter at least what was promised", refused(launched, lambda s: _cheaper(s)))],
    f"{LIFE}:unblind": [
        ("Say why: the report names the reason", "Say why", refused(launched, lambda s: lifecycle.unblind(s, None, " "))),
        ("There is nothing to unblind: the study is a draft", NOTHING, refused(draft, lambda s: lifecycle.unblind(s, None, "A look."))),
    ],
    f"{LIFE}:archive": [("The study is archived already", "You need not do anything", refused(archived, by_nobody(lifecycle.archive))), ("only a draft or a closed study can be archived, and this one is launched", "Close the study first", refused(launched, by_nobody(lifecycle.archive)))],
    "studies/services/copying:delete_draft": [("Only a draft can be deleted", "archive it instead", refused(launched, lambda s: copying.delete_draft(s, None)))],
    "studies/services/copying:restore": [("The study is not archived: it is in the list already", NOTHING, refused(draft, lambda s: copying.restore(s, None)))],
    "studies/services/drafts:create": [("There is a study with this code already", NOTHING, refused(draft, lambda s: drafts.create(Study(title="t", code=s.code), None)))],
    "studies/services/drafts:change": [("The study was changed meanwhile (version 0)", "Read it again", refused(draft, lambda s: drafts.change(s, None, {}, version=7)))],
    "studies/services/drafts:refuse_launched": [
        ("The study is launched: its design does not change", "Clone it", says(launched, written)),
        ("The study is launched: its design does not change", "Clone it", says(lambda: builders.launched(trained()), practice)),
    ],
    f"{ACTS}:_pause": [("The study is paused: nobody new comes in", "until you resume it", says(launched, act("pause")))],
    f"{ACTS}:_resume": [("The study goes on", NOTHING, says(paused, act("resume")))],
    f"{ACTS}:_close": [("The study is closing: nobody new comes in. Nobody is inside.", "You need not do anything", says(launched, act("close", reason="")))],
    f"{ACTS}:_draw_more": [("2 more places are open", NOTHING, says(launched, act("draw-more", places=2)))],
    f"{ACTS}:_unblind": [("Outcomes are shown from now on", NOTHING, says(launched, act("unblind", reason="A look.")))],
    f"{ACTS}:_clone": [("This is the copy: a draft with the same design and a new seed", "target", says(launched, act("clone", title="Copy")))],
    f"{ACTS}:_archive": [("The study is archived", "The list's filter “archived” shows it", says(draft, act("archive")))],
    f"{ACTS}:_restore": [("The study is back in the list", NOTHING, says(archived, act("restore")))],
    f"{ACTS}:_delete": [
        ("“Which writer is better (secret hypothesis)” is deleted", NOTHING, says(lambda: builders.draft_study(owner=builders.user()), act("delete"))),
        ("is on record, so it was archived instead", NOTHING, says(lambda: _on_record(), act("delete"))),
    ],
    f"{ACTS}:do": [("That cannot be done now: the study is a draft", "The buttons below say", says(draft, act("pause")))],
    "studies/admin/amend:amend": [
        ("A launched or paused study can be amended", "clone it", says(draft, lambda client, study: client.get(study_url(study, "amend/"), follow=True))),
        ("Version 2 of the design holds for those who come from now on", NOTHING, says(launched, amended)),
    ],
    "studies/admin/jobs:cancel": [
        ("This has ended already, so there is nothing to cancel", NOTHING, says(draft, cancelled("done"))),
        ("It will stop at its next step", NOTHING, says(draft, cancelled("running"))),
        ("It is cancelled. It had not begun", NOTHING, says(draft, cancelled("waiting"))),
    ],
    "studies/admin/life:next_step": [
        ("2 things are missing before it can be launched", "#id_contact", stands(draft, study_with(contact="", minutes=None))),
        ("One thing is missing before it can be launched", "#id_minutes", stands(draft, study_with(minutes=None))),
        ("Nothing is missing", "/launch/", stands(draft)),
        ("The study is closed", "/", stands(closed)),
        ("Annotators may come", "/collecting/", stands(launched)),
        ("The study is paused: nobody new comes in", "until you resume it", stands(paused)),
        ("1 person is inside and may finish until", "You need not do anything", stands(closing(1))),
        ("2 people are inside and may finish until", "You need not do anything", stands(closing(2))),
        ("Nobody is inside. The study takes answers until", "You need not do anything", stands(closing())),
    ],
    "studies/admin/practice:_made": [("The practice item is there", NOTHING, says(trained, a_new_practice_item))],
    "studies/admin/practice:_deleted": [
        ("The practice item is deleted", NOTHING, says(trained, lambda c, s: practice(c, s, delete=str(s.items.filter(kind="practice").first().pk)))),
        ("That practice item is gone already", NOTHING, says(trained, lambda c, s: practice(c, s, delete="999999"))),
    ],
    f"{SECTION}:response_add": [("The section is there", "this is what its protocol asks for", says(draft, section_added))],
    f"{SECTION}:response_change": [("Section 1 is saved", NOTHING, says(draft, section_saved))],
    f"{SECTION}:response_delete": [("Section 1", NOTHING, says(draft, section_deleted))],
    f"{SECTION}:write": [
        ("Written: 2 questions, 0 comparisons", NOTHING, says(draft, lambda c, s: (s.sections.first().questions.filter(key__startswith="beta").delete(), written(c, s))[1])),
        ("Nothing was missing", NOTHING, says(draft, written)),
    ],
    "studies/admin/study:response_add": [("The draft is there", "Its checklist says what it still needs", says(draft, study_added))],
    "annotators/places/tries:first_batch": [
        ("There is no arm", "add one under Arms", refused(draft, lambda s: (s.arms.all().delete(), first_batch(s)))),
        ("The protocol gone of section 1 is not installed", "delete the section", refused(draft, lambda s: (strange_protocol(s), first_batch(s)))),
    ],
    "annotators/places/tries:make_test": [("A launched study is not tried out any more", "open its link", refused(launched, make_test))],
    "annotators/places/tries:try_out": [("The study is archived", "bring it back first", refused(archived, lambda s: try_out(s, None)))],
    "annotators/admin/preview:_assignment": [("No batch is drawn for this arm", "choose another arm", refused(launched, other_arm))],
    f"{EXCLUDE}:exclude": [
        ("Choose a reason", "Choose a reason", with_test(lambda s, done: exclude([done], "", None))),
        ("Say which reason", "Say which", with_test(lambda s, done: exclude([done], "other", None))),
        ("Choose assignments of one study", "Choose", with_test(two_studies)),
        ("Choose at least one assignment", "Choose", with_test(lambda s, done: exclude([], "too_fast", None))),
        ("is a try: tries are never counted", "Choose the others alone", refused(draft, a_try)),
        ("is not submitted: there is nothing to leave out yet", "Choose the others alone", refused(launched, lambda s: exclude([players.claimed(s, "x")], "too_fast", None))),
    ],
    f"{EXCLUDE}:became_of_places": [
        ("Its place is open again for somebody else", NOTHING, excluded(launched, reopen="on")),
        ("The study takes nobody new, so its place stays closed", NOTHING, excluded(launched, is_closed=True)),
        ("Its place is opened again within a few minutes, as far as the cap of 9 places allows", "You need not do anything", excluded(lambda: launched(replaces_excluded=True))),
        ("Its place is opened again when the study is resumed", "You need not do anything", excluded(lambda: launched(replaces_excluded=True), is_paused=True)),
        ("Its place stays taken: nobody else gets it. The cap of 4 places is reached", "clone the study", excluded(small_cap)),
        ("Its place stays taken: nobody else gets it. To let", "choose “Open more places”", excluded(launched)),
    ],
    f"{EXCLUDE}:reverse_exclusion": [
        ("That is the taking back of an exclusion, not one", "Exclude the assignment once more", with_test(reversed_twice(True))),
        ("It was taken back already", "You need not do anything", with_test(reversed_twice(False))),
    ],
    f"{EXCLUDE}:reopen_places": [
        ("Places can be opened while a study is launched or paused, and it is closing", "Exclude without opening the place again", with_test(
            lambda s, done: (lifecycle.close(s, by=None), exclude([done], "too_fast", builders.user(), reopen=True)))),
        ("The study is capped at 4 places, and 4 are open or taken, so 1 more cannot be opened", "clone the study", with_test(
            lambda s, done: reopen_places(s, [done], None), make=small_cap)),
    ],
    f"{EXCLUDE}:release_place": [("There is no place to give back", "You need not do anything", with_test(lambda s, done: release_place(done, None)))],
    "annotators/admin/collecting:preview_view": [
        ("There is nothing to preview yet. Section 1: Two systems are needed to be shown side by side", "Add a system", says(one_system, previewed)),
    ],
    "annotators/admin/collecting:try_view": [("It cannot be tried out yet. Section 1: Two systems are needed", "Add a system", says(one_system, tried))],
    "annotators/admin/collecting:clear_view": [
        ("2 tries are deleted, with their answers", NOTHING, says(draft, tries_cleared(2))),
        ("One try is deleted", NOTHING, says(draft, tries_cleared(1))),
    ],
    "annotators/admin/assignments:exclude_chosen": [("Choose at most 1000 at a time", "Choose at most", many_chosen)],
    "annotators/admin/assignments:exclude_page": [("Choose at least one assignment of a study that you may change", "Choose", says(launched, chosen_nothing))],
    "annotators/admin/assignments:reverse_view": [("The exclusion is taken back: the assignment counts again", NOTHING, says(launched, taken_back))],
    "annotators/admin/assignments:release_view": [("The place is free again", NOTHING, says(launched, place_released))],
}  # fmt: skip


def _on_record():
    from studies.models import audit

    study = draft()
    audit.record("import", study=study)
    return study


def _cheaper(study):
    lifecycle.amend(study, {"arm": {study.arms.get().pk: {"reward": Decimal("0.10")}}}, reason="Because.", by=None)


def _archived_launch():
    study = archived()
    page = logged_in(builders.user()).post(study_url(study, "launch/"))
    return [Shown(text) for text in page.context["unmet"]]
