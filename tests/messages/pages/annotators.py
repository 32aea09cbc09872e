"""The lines of trying a study out, of exclusions and of places."""

from types import SimpleNamespace

from django.urls import reverse

from annotators.models import Exclusion
from annotators.places.batch_plan import create_test_batch_and_assignment, draw_first_batch, start_test_run
from annotators.places.exclusions import (
    create_exclusion_reversal,
    exclude_assignments,
    open_replacement_batches,
    release_place,
)
from studies.models import Arm
from studies.services import lifecycle
from studies.services.lifecycle import refuse_other_import
from tests import builders, players
from tests.admin_pages import logged_in
from tests.messages.importers.answers import importing
from tests.messages.lines import Shown, only_informs
from tests.messages.pages.scenarios import (
    archived,
    draft,
    launched,
    one_system,
    refused,
    says,
    small_cap,
    strange_protocol,
)


def with_test(act, **options):
    """An act upon somebody's submitted work."""

    def scenario():
        study = options.get("make", launched)()
        done = players.submitted(study, "somebody")
        try:
            said = act(study, done)
        except lifecycle.ActionRefused as error:
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
            lifecycle.start_closing(study, by=None)
        sent = {"code": [str(done.code)], "reason": "too_fast", **data}
        page = logged_in(builders.user()).post(reverse("admin:annotators_exclude"), sent, follow=True)
        return [Shown(str(message)) for message in page.context["messages"]]

    return scenario


def previewed(client, study):
    return client.get(reverse("admin:annotators_preview", args=[study.pk]), follow=True)


def tried(client, study):
    return client.post(reverse("admin:annotators_test_run", args=[study.pk]), follow=True)


def tries_cleared(n):
    def visit(client, study):
        for _ in range(n):
            start_test_run(study, builders.user())
        return client.post(reverse("admin:annotators_clear_test_runs", args=[study.pk]), follow=True)

    return visit


def other_arm(study):
    from annotators.admin.preview import _create_preview_assignment

    return _create_preview_assignment(study, Arm.objects.create(study=builders.draft_study(), name="elsewhere"))


def many_chosen():
    """More than a thousand assignments are chosen in the list."""
    from django.contrib.messages.storage.fallback import FallbackStorage
    from django.test import RequestFactory

    from annotators.admin.assignments import render_exclusion_form

    request = RequestFactory().post("/")
    request.session, request.user = {}, builders.user()
    request._messages = FallbackStorage(request)
    render_exclusion_form(None, request, SimpleNamespace(values_list=lambda *_, **__: ["a"] * 1001))
    return [Shown(str(message)) for message in request._messages]


def chosen_nothing(client, study):
    return client.post(reverse("admin:annotators_exclude"), {"reason": "too_fast"}, follow=True)


def taken_back(client, study):
    exclude_assignments([players.submitted(study, "somebody")], "too_fast", builders.user())
    exclusion = Exclusion.objects.get()
    return client.post(reverse("admin:annotators_reverse_exclusion", args=[exclusion.pk]), {}, follow=True)


def place_released(client, study):
    assignment = players.claimed(study, "somebody")
    return client.post(reverse("admin:annotators_release", args=[assignment.pk]), {}, follow=True)


def reversed_twice(of_reversal):
    def act(study, done):
        (made,) = exclude_assignments([done], "too_fast", builders.user())
        back = create_exclusion_reversal(made, builders.user())
        create_exclusion_reversal(back if of_reversal else made, builders.user())

    return act


def two_studies(study, done):
    exclude_assignments([done, players.submitted(launched(), "another")], "too_fast", None)


def a_try(study):
    exclude_assignments([create_test_batch_and_assignment(study)], "too_fast", None)


PAGES = {
    "The study has no arm": refused(draft, lambda s: (s.arms.all().delete(), draw_first_batch(s))),
    "The protocol … of section": refused(draft, lambda s: (strange_protocol(s), draw_first_batch(s))),
    "Test runs are possible": refused(launched, create_test_batch_and_assignment),
    "Another file is being": refused(draft, lambda s: refuse_other_import(importing(s), None)),
    "A file is being": refused(draft, lambda s: start_test_run(importing(s), None)),
    "start_test_run: The study is archived": refused(archived, lambda s: start_test_run(s, None)),
    "There is no batch": refused(launched, other_arm),
    "Choose a reason": with_test(lambda s, done: exclude_assignments([done], "", None)),
    "Describe the other": with_test(lambda s, done: exclude_assignments([done], "other", None)),
    "Choose assignments of one study": with_test(two_studies),
    "Choose at least one assignment.": with_test(lambda s, done: exclude_assignments([], "too_fast", None)),
    "is a test": refused(draft, a_try),
    "is not submitted": refused(launched, lambda s: exclude_assignments([players.claimed(s, "x")], "too_fast", None)),
    "open again for other": only_informs(excluded(launched, reopen="on")),
    "The study is not running": only_informs(excluded(launched, is_closed=True)),
    "opened again within": excluded(lambda: launched(replaces_excluded=True)),
    "opened again when": excluded(lambda: launched(replaces_excluded=True), is_paused=True),
    "taken: no other annotator gets …. The cap": excluded(small_cap),
    "taken: no other annotator gets …. To let": excluded(launched),
    "This row already": with_test(reversed_twice(True)),
    "This exclusion is already": with_test(reversed_twice(False)),
    "Places can be opened": with_test(
        lambda s, done: (
            lifecycle.start_closing(s, by=None),
            exclude_assignments([done], "too_fast", builders.user(), should_reopen_places=True),
        )
    ),
    "The study is capped at … places, and … are open": with_test(
        lambda s, done: open_replacement_batches(s, [done], None), make=small_cap
    ),
    "This assignment holds": with_test(lambda s, done: release_place(done, None)),
    "There is nothing to preview": says(one_system, previewed),
    "A test run": says(one_system, tried),
    "test runs were": only_informs(says(draft, tries_cleared(2))),
    "One test run": only_informs(says(draft, tries_cleared(1))),
    "Choose at most 1000": many_chosen,
    "Choose at least one assignment of a study": says(launched, chosen_nothing),
    "The exclusion was taken": only_informs(says(launched, taken_back)),
    "The place is free": only_informs(says(launched, place_released)),
}
