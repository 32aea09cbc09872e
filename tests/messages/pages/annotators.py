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
from tests import builders, players
from tests.admin_pages import logged_in
from tests.messages.lines import NOTHING, Shown
from tests.messages.pages.scenarios import (
    COLLECTING,
    PLACES,
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


LINES = {
    f"{PLACES}:draw_first_batch": [
        (
            "The study has no arm",
            "Add one under Arms",
            refused(draft, lambda s: (s.arms.all().delete(), draw_first_batch(s))),
        ),
        (
            "The protocol gone of section 1 is not installed",
            "delete the section",
            refused(draft, lambda s: (strange_protocol(s), draw_first_batch(s))),
        ),
    ],
    f"{PLACES}:create_test_batch_and_assignment": [
        (
            "Test runs are possible only in a draft",
            "Open the study's link",
            refused(launched, create_test_batch_and_assignment),
        )
    ],
    f"{PLACES}:start_test_run": [
        ("The study is archived", "Bring it back first", refused(archived, lambda s: start_test_run(s, None)))
    ],
    f"{COLLECTING}:_create_preview_assignment": [
        ("There is no batch for this arm", "Choose another arm", refused(launched, other_arm))
    ],
    f"{PLACES}:exclude_assignments": [
        ("Choose a reason", "Choose a reason", with_test(lambda s, done: exclude_assignments([done], "", None))),
        (
            "Describe the other reason",
            "in the note",
            with_test(lambda s, done: exclude_assignments([done], "other", None)),
        ),
        ("Choose assignments of one study", "Choose", with_test(two_studies)),
        (
            "Choose at least one assignment",
            "Choose",
            with_test(lambda s, done: exclude_assignments([], "too_fast", None)),
        ),
        ("is a test run, and test runs are never counted", "Choose only the others", refused(draft, a_try)),
        (
            "is not submitted yet, so it cannot be excluded",
            "Choose only the others",
            refused(launched, lambda s: exclude_assignments([players.claimed(s, "x")], "too_fast", None)),
        ),
    ],
    f"{PLACES}:describe_excluded_places": [
        ("Its place is open again for other annotators", NOTHING, excluded(launched, reopen="on")),
        ("The study is not running, so its place stays closed", NOTHING, excluded(launched, is_closed=True)),
        (
            "Its place is opened again within a few minutes, up to the cap of 9 places",
            "You do not need to do anything",
            excluded(lambda: launched(replaces_excluded=True)),
        ),
        (
            "Its place is opened again when the study is resumed",
            "You do not need to do anything",
            excluded(lambda: launched(replaces_excluded=True), is_paused=True),
        ),
        (
            "Its place stays taken: no other annotator gets it. The cap of 4 places is reached",
            "Clone the study",
            excluded(small_cap),
        ),
        ("Its place stays taken: no other annotator gets it. To let", "choose “Open more places”", excluded(launched)),
    ],
    f"{PLACES}:create_exclusion_reversal": [
        (
            "This row already undoes an exclusion",
            "exclude it as before",
            with_test(reversed_twice(True)),
        ),
        ("This exclusion is already undone", "You do not need to do anything", with_test(reversed_twice(False))),
    ],
    f"{PLACES}:open_replacement_batches": [
        (
            "Places can be opened only while a study is launched or paused, but it is closing",
            "Exclude without opening the place again",
            with_test(
                lambda s, done: (
                    lifecycle.start_closing(s, by=None),
                    exclude_assignments([done], "too_fast", builders.user(), should_reopen_places=True),
                )
            ),
        ),
        (
            "The study is capped at 4 places, and 4 are open or taken",
            "clone the study",
            with_test(lambda s, done: open_replacement_batches(s, [done], None), make=small_cap),
        ),
    ],
    f"{PLACES}:release_place": [
        (
            "This assignment holds no place",
            "You do not need to do anything",
            with_test(lambda s, done: release_place(done, None)),
        )
    ],
    f"{COLLECTING}:preview_view": [
        (
            "There is nothing to preview yet. Section 1: A pair needs two systems",
            "Add a system",
            says(one_system, previewed),
        ),
    ],
    f"{COLLECTING}:start_test_run_view": [
        ("A test run is not possible yet. Section 1: A pair needs two systems", "Add a system", says(one_system, tried))
    ],
    f"{COLLECTING}:delete_test_runs_view": [
        ("2 test runs were deleted, with their answers", NOTHING, says(draft, tries_cleared(2))),
        ("One test run was deleted", NOTHING, says(draft, tries_cleared(1))),
    ],
    f"{COLLECTING}:render_exclusion_form": [
        ("Choose at most 1000 assignments at a time", "Choose at most", many_chosen)
    ],
    f"{COLLECTING}:render_exclude_page": [
        ("Choose at least one assignment of a study that you may change", "Choose", says(launched, chosen_nothing))
    ],
    f"{COLLECTING}:lift_exclusion_view": [
        ("The exclusion was taken back: the assignment counts again", NOTHING, says(launched, taken_back))
    ],
    f"{COLLECTING}:release_view": [("The place is free again", NOTHING, says(launched, place_released))],
}
