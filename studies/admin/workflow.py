"""The tabs of a study, its next step, and its checklist with links to the fields to correct."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.urls import NoReverseMatch, reverse

from studies import signals
from studies.access import Action
from studies.design.checklist import check_design
from studies.design.workload import BatchWorkload, estimate_stored_or_trial_batch_workloads, median_workload
from studies.models import Study
from studies.protocols import REGISTRY, Problem
from studies.services import lifecycle

from .field_labels import PARTS_OF_FIELDS
from .permissions import is_request_allowed

# The tabs of a study: (name, its pages). The first page is that of the tab. A page is its name, the name of its URL, and the page of
# the documentation about it. This module knows pages of other apps only by the names of their URLs.
TABS = (
    (
        "Design",
        (
            ("Settings", "admin:studies_study_change", "explanation/life-of-a-study"),
            ("Import", "import", "how-to/import-outputs"),
            ("Preparation", "import_preparation", "how-to/import-outputs"),
            ("Answers from elsewhere", "import_answers", "how-to/import-answers"),
        ),
    ),
    ("Preview", (("Preview", "admin:annotators_preview", "how-to/rehearse-a-study"),)),
    (
        "Plan",
        (
            ("Size", "admin:studies_plan", "how-to/plan-a-study"),
            ("Strategies", "admin:studies_plan_strategies", "how-to/plan-a-study"),
            ("Test questions", "admin:studies_plan_test_questions", "how-to/use-test-questions"),
        ),
    ),
    ("Launch", (("Launch", "study_launch", "explanation/life-of-a-study"),)),
    (
        "Collect",
        (
            ("Progress", "admin:annotators_collecting", "reference/states"),
            ("Annotators", "study_annotators", "how-to/find-inattentive-annotators"),
            ("Pay", "admin:annotators_study_pay", "how-to/pay-people-fairly"),
            ("Events", "study_events", "how-to/hear-of-events"),
        ),
    ),
    (
        "Analyse",
        (
            ("Reports", "analyses", "explanation/statistics"),
            ("Metrics", "study_metrics", "how-to/compare-metrics-with-people"),
            ("Judges", "study_calibrated", "how-to/combine-people-and-judges"),
        ),
    ),
    (
        "Share",
        (
            ("Share", "share", "how-to/take-results-where-you-work"),
            ("Report it", "report_forms", "how-to/report-a-study"),
        ),
    ),
)
ONLY_FOR_EDITORS = {"study_launch", "import", "import_preparation", "import_answers"}
ONLY_OF_DRAFTS = {"study_launch", "import", "import_preparation"}
ONLY_AFTER_LAUNCH = {"analyses", "share", "study_calibrated", "study_annotators"}


@dataclass(frozen=True, slots=True)
class TabPage:
    """A page below a tab. ``url`` is empty if the study does not have it now."""

    name: str
    url: str
    is_current: bool
    help: str


@dataclass(frozen=True, slots=True)
class Tab:
    """A tab of a study. ``is_current``: it has the page that is shown. ``is_stage``: the study is there."""

    name: str
    url: str
    is_current: bool
    is_stage: bool
    pages: tuple[TabPage, ...]


@dataclass(frozen=True, slots=True)
class NextStep:
    """The recommended next step: the button beside the line."""

    label: str
    url: str
    why: str = ""


def reverse_or_empty(name: str, *args) -> str:
    """Return the URL of a page, or '' if no app provides it."""
    try:
        return reverse(name, args=args)
    except NoReverseMatch:
        return ""


def stage_of(study: Study) -> str:
    """Return the name of the tab where the study is."""
    if study.is_draft:
        return "Design"
    if study.state == Study.State.LAUNCHING:
        return "Launch"
    return "Analyse" if study.state == Study.State.CLOSED else "Collect"


def study_tabs(request, study: Study, here: str = "") -> list[Tab]:
    """Return the tabs of a study. The page whose URL is the longest beginning of the request's is current, or else the tab ``here``."""
    path, may_edit = request.path, is_request_allowed(request, Action.EDIT, study.pk)
    offered = {
        url: _offered_url(study, url) if may_edit or url not in ONLY_FOR_EDITORS else ""
        for _, pages in TABS
        for _, url, _ in pages
    }
    beginnings = {url: address.removesuffix("change/") for url, address in offered.items() if address}
    fitting = [url for url, address in beginnings.items() if path.startswith(address)]
    home = TABS[0][1][0][1]
    current = max(fitting, key=lambda url: len(beginnings[url])) if fitting else ""
    if current == home and path != offered[home]:  # an address below the study that no tab has
        current = ""
    stage = stage_of(study)
    tabs = []
    for name, pages in TABS:
        below = tuple(
            TabPage(label, offered[url], url == current, about) for label, url, about in pages if offered[url]
        )
        is_current = any(page.is_current for page in below) or (not current and name == here)
        tabs.append(Tab(name, below[0].url if below else "", is_current, name == stage, below))
    return tabs


def _offered_url(study: Study, url: str) -> str:
    if url in ONLY_OF_DRAFTS and not study.is_draft or url in ONLY_AFTER_LAUNCH and study.launched_at is None:
        return ""
    if url == "import_answers" and not (study.is_draft or (study.state == Study.State.CLOSED and not study.open_to)):
        return ""
    return reverse_or_empty(url, study.pk)


def closing_status_text(study: Study) -> str:
    """Return how long a closing study takes answers, and how many annotators are still answering. Return '' for other studies."""
    until = lifecycle.closes_at(study)
    if until is None:
        return ""
    answering = 0
    for _, counted in signals.counting_progress.send(Study, study_ids=[study.pk]):
        progress = counted.get(study.pk)
        answering = progress.in_progress if progress else 0
    until_when = f"until {until:%d %B %Y at %H:%M} UTC"
    if not answering:
        may_wait = any(
            one.protocol in REGISTRY and REGISTRY[one.protocol].may_need_top_ups(one) for one in study.sections.all()
        )
        closes = f"closes at the latest at {until:%H:%M on %d %B %Y} UTC" if may_wait else "closes in a minute"
        return f"No annotators are still answering. The study {closes}. You need not do anything."
    people = "1 annotator is" if answering == 1 else f"{answering} annotators are"
    return f"{people} still answering and may finish {until_when}. Then the study closes. You need not do anything."


def next_step(study: Study, problems: "Iterable[LinkedProblem]", may_edit: bool) -> NextStep:
    """Return the step that the button beside the line offers."""
    State = Study.State
    if study.state == State.DRAFT:
        problems = list(problems)
        blocking = [problem for problem in problems if problem.is_blocking]
        if not may_edit:
            return NextStep("Preview as annotator", reverse_or_empty("admin:annotators_preview", study.pk))
        if blocking:
            many = f"{len(blocking)} things are missing" if len(blocking) > 1 else "One thing is missing"
            return NextStep("Complete the design", blocking[0].url, f"{many} before you can launch the study.")
        launch = reverse_or_empty("study_launch", study.pk)
        if problems:
            things = "one thing" if len(problems) == 1 else f"{len(problems)} things"
            return NextStep("Launch…", launch, f"Nothing blocks the launch. The checklist has {things} to think about.")
        return NextStep("Launch…", launch, "Nothing is missing.")
    if study.state == State.LAUNCHING:
        return NextStep("Watch the launch", reverse_or_empty("study_launch", study.pk))
    if study.state == State.CLOSED:
        url = reverse_or_empty("analyses", study.pk)
        return NextStep("Analyse", url, "The study is closed.")
    reasons = {
        State.LAUNCHED: "Annotators can start.",
        State.PAUSED: "The study is paused. No new annotators can start until you resume it.",
        State.CLOSING: f"The study is closing. {closing_status_text(study)}",
    }
    return NextStep(
        "Watch progress", reverse_or_empty("admin:annotators_collecting", study.pk), reasons[State(study.state)]
    )


@dataclass(frozen=True, slots=True)
class LinkedProblem:
    text: str
    key: str
    is_blocking: bool
    url: str
    field: str


# Problems with the rows of a group of the study's page. The group is a part of the page with an address of its own.
_GROUPS = {"systems", "arms", "contrasts", "comparison_families", "sections", "exclusion_rules"}
# A field of a problem > the page of a new study that asks for it.
_NEW_STUDY_PAGES = {
    **dict.fromkeys(("prompts", "outputs", "systems"), "new_study_file"),
    **dict.fromkeys(("target_n", "minutes", "reward", "annotators_per_batch", "wage_per_hour"), "new_study_people"),
    **dict.fromkeys(("public_title", "purpose", "consent", "contact", "instructions"), "new_study_texts"),
}
# In the address of such a page: saving leads back to the launch.
BACK_TO_LAUNCH = "launch"
_LISTS = {
    "prompts": "admin:studies_prompt_changelist",
    "outputs": "admin:studies_output_changelist",
    "batches": "admin:studies_prompt_changelist",
}
# Fields of a section's own page. Other fields that a section's problem names are on the study's page.
_OF_A_SECTION = {"", "questions", "m", "settings", "reuses", "sections"}
_SECTION = re.compile(r"Section (\d+)\b")


def problems_with_correction_urls(
    study: Study, problems: Iterable[Problem], section_ids_by_position: dict[int, int] | None = None
) -> list[LinkedProblem]:
    """Return the problems, each with the URL of the field or page that corrects it."""
    problems = list(problems)
    if section_ids_by_position is None:
        section_ids_by_position = dict(study.sections.values_list("position", "pk"))
    page = reverse_or_empty("admin:studies_study_change", study.pk)
    return [
        LinkedProblem(p.text, p.key, p.is_blocking, _correction_url(study, p, page, section_ids_by_position), p.field)
        for p in problems
    ]


def _correction_url(study: Study, problem: Problem, page: str, sections: dict[int, int]) -> str:
    if problem.field == "translation":
        return reverse("admin:studies_study_words", args=[study.pk])
    if study.guide is not None and study.is_draft:
        name = _NEW_STUDY_PAGES.get(problem.field, "" if sections else "new_study_question")
        if url := reverse_or_empty(name, study.pk):
            if name not in ("new_study_people", "new_study_texts"):
                return url
            is_fact = problem.field == "contact" or problem.name.startswith("unfilled")
            return f"{url}?{BACK_TO_LAUNCH}#{'facts' if is_fact else f'id_{problem.field}'}"
    if problem.name == "not_compared":
        return reverse_or_empty("new_study_file", study.pk)  # where a system is removed with its outputs
    # The text of a section's problem begins with "Section" and its number. Its field is on the section's page.
    section_match = _SECTION.match(problem.text)
    if section_match and int(section_match[1]) in sections and problem.field in _OF_A_SECTION:
        url = reverse_or_empty("admin:studies_section_change", sections[int(section_match[1])])
        anchors = {"questions": "questions-group", "m": "id_m"}
        return f"{url}#{anchors[problem.field]}" if problem.field in anchors else url
    if problem.field in _LISTS:
        importing = reverse_or_empty("import", study.pk)
        return importing or f"{reverse_or_empty(_LISTS[problem.field])}?study={study.pk}"
    if problem.field in _GROUPS:
        return f"{page}?part={problem.field}#{problem.field}-group"
    part = PARTS_OF_FIELDS.get(problem.field)
    return f"{page}?part={part}#id_{problem.field}" if part else page


@dataclass(frozen=True, slots=True)
class BatchBurden:
    """The workload of one batch, with its name in the checklist."""

    name: str
    burden: BatchWorkload
    is_below_wage: bool


def min_median_max_batch_burdens(study: Study, workloads: Sequence[BatchWorkload]) -> list[BatchBurden]:
    """Return the workloads of the smallest, the median and the largest batch."""
    median = median_workload(workloads)
    if median is None:
        return []
    smallest, largest = (pick(workloads, key=lambda burden: burden.minutes) for pick in (min, max))
    named = (
        {"every batch": median} if smallest == largest else {"smallest": smallest, "median": median, "largest": largest}
    )
    aim = float(study.wage_per_hour) if study.wage_per_hour is not None else None
    # An unpaid study aims at no pay.
    return [
        BatchBurden(name, burden, aim is not None and burden.per_hour is not None and 0 < burden.per_hour < aim)
        for name, burden in named.items()
    ]


def design_forecast(study: Study) -> dict[str, Any]:
    """Return what the pages Design and Launch show of a draft's workload, and what it can find."""
    workloads = estimate_stored_or_trial_batch_workloads(study)
    found = signals.describing_forecast.send(Study, study=study, workloads=workloads)
    return {
        "batch_burdens": min_median_max_batch_burdens(study, workloads),
        "forecast": [sentence for _, sentences in found for sentence in sentences],
    }


def check_linked_design(study: Study) -> tuple[list[LinkedProblem], list[str]]:
    """Return the checklist of a draft, and what its planned comparisons can be about."""
    check = check_design(study)
    return problems_with_correction_urls(study, check.problems), check.populations


def planned_families(study: Study) -> list[dict[str, Any]]:
    """Return what the report will say of each family of planned comparisons."""
    return [family for _, families in signals.describing_families.send(Study, study=study) for family in families]
