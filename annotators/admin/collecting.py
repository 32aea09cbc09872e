"""Admin pages for preparing and collecting: collecting page, inbox, preview and test runs."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, quantiles
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import admin, messages
from django.http import Http404, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.middleware.csrf import get_token
from django.shortcuts import get_object_or_404
from django.template.loader import render_to_string
from django.urls import path, reverse
from django.utils.html import escape

from annotators.pages.sequence import describe_page_key
from annotators.participation.withdrawal import answer_inquiry, mark_inquiry_handled
from annotators.pay import statement
from annotators.pay.decisions import appeals_awaiting_answer
from annotators.places import monitor
from annotators.places.assign import count_qualification_results
from annotators.places.batch_plan import delete_test_runs, start_test_run
from annotators.places.monitor import latest_stopping_figures
from annotators.views.lookup import content_security_policy
from studies.access import Action, get_study
from studies.admin import acts, study_page, workflow
from studies.admin.permissions import ReadOnlyAdmin, is_request_allowed
from studies.figures import Axis, Frame, RangeBar, Tick, at, path_of, shortened
from studies.models import Section, Study
from studies.services import lifecycle
from studies.services.lifecycle import ActionRefused

from ..models import Inquiry
from .preview import build_preview_html, render_preview_page
from .recruitment import LINKS_SHOWN, labelled_link_urls


@admin.register(Inquiry)
class InquiryAdmin(ReadOnlyAdmin):
    """Registered for the pages of a study; the collecting page lists its rows."""

    def has_module_permission(self, request):
        return False

    def changelist_view(self, request, extra_context=None):
        return HttpResponseRedirect(reverse("admin:studies_study_changelist"))

    def study_urls(self):
        wrap = self.admin_site.admin_view
        return [
            path("<int:pk>/collecting/", wrap(self.collecting_view), name="annotators_collecting"),
            path(
                "<int:pk>/inbox/<int:inquiry>/",
                wrap(self.mark_inquiry_handled_view),
                name="annotators_handle_inquiry",
            ),
            path("<int:pk>/preview/", wrap(self.preview_view), name="annotators_preview"),
            path("<int:pk>/preview/<str:key>/", wrap(self.preview_view), name="annotators_preview_page"),
            path("<int:pk>/test-run/", wrap(self.start_test_run_view), name="annotators_test_run"),
            path("<int:pk>/test-runs/clear/", wrap(self.delete_test_runs_view), name="annotators_clear_test_runs"),
        ]

    # Collecting

    def collecting_view(self, request, pk, refused_answer=None):
        """Show how collecting goes. ``refused_answer``: what was not sent to an annotator, and why."""
        study = get_study(request.user, Action.VIEW, pk=pk)
        total, arms = monitor.count_places_by_arm(study)
        overall_pay, by_arm = statement.pay_overall_and_by_arm(study)
        recruitments = list(study.recruitments.order_by("pk"))
        may_edit = is_request_allowed(request, Action.RECRUIT, study.pk)
        inquiries = list(monitor.inquiries_unhandled_first(study)[:200])
        last_check, evidence = latest_stopping_figures(study)
        context = {
            "title": "Collecting",
            "total": total,
            "test": count_qualification_results(study),
            "counted": total.submitted - (total.replaced if study.target_kind == Study.Target.KEPT else 0),
            "arms": arms if len(arms) > 1 else [],
            "robots": study.assignments.filter(origin="robot", submitted_at__isnull=False).count(),
            **figures_of_people(study),
            "median_times": monitor.median_working_times(study),
            "devices": monitor.count_devices(study),
            "comments": list(monitor.latest_survey_comments(study)),
            "appeals": list(appeals_awaiting_answer(recruitments)),
            "inquiries": [(inquiry, describe_page_key(inquiry.page_key)) for inquiry in inquiries],
            "refused_answer": refused_answer,
            "waiting": sum(inquiry.handled_at is None for inquiry in inquiries),
            "recruitments": [
                (
                    recruitment,
                    (links := labelled_link_urls(recruitment) if may_edit else [])[:3],
                    max(0, len(links) - 3),
                )
                for recruitment in recruitments
            ],
            "links_shown": LINKS_SHOWN,
            "add_url": f"{reverse('admin:annotators_recruitment_add')}?study={study.pk}",
            "list_url": f"{reverse('admin:annotators_assignment_changelist')}?study={study.pk}",
            "may_edit": may_edit,
            "is_blind": study.is_draft or study.is_blind,
            "last_check": last_check,
            "evidence": evidence,
            **acts.available_acts_by_weight(request, study),
            "closing_words": workflow.closing_status_text(study),
            "per_hour_aim": study.wage_per_hour,
            "everybody": overall_pay,
            "pay_warning": statement.low_wage_warning(study, by_arm),
            "is_capped": study.cap is not None and lifecycle.count_opened_places_towards_cap(study) >= study.cap,
        }
        status = 422 if refused_answer else 200
        return study_page.render_study_page(request, "admin/annotators/collecting.html", study, context, status=status)

    def mark_inquiry_handled_view(self, request, pk, inquiry):
        """Answer an inquiry, or mark it as handled or not handled."""
        study = get_study(request.user, Action.MANAGE_ASSIGNMENTS, pk=pk)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        chosen = get_object_or_404(Inquiry, assignment__study=study, pk=inquiry)
        if "answer" in request.POST:
            try:
                answer_inquiry(chosen, request.POST["answer"], request.user)
            except ActionRefused as refused:
                return self.collecting_view(
                    request, pk, {"pk": inquiry, "text": request.POST["answer"], "reason": refused}
                )
        else:
            mark_inquiry_handled(chosen, request.user, "again" not in request.POST)
        return HttpResponseRedirect(f"{reverse('admin:annotators_collecting', args=[study.pk])}#inbox")

    # Preview and test runs

    def preview_view(self, request, pk, key=""):
        """Show one page as annotators will see it. The preview discards everything that is sent from it."""
        study = get_study(request.user, Action.VIEW, pk=pk)
        arms = list(study.arms.order_by("name"))
        arm = next((arm for arm in arms if str(arm.pk) == request.GET.get("arm", "")), None)
        framed = {
            "Content-Security-Policy": content_security_policy(frame_ancestors=("'self'",)),
            "X-Frame-Options": "SAMEORIGIN",
            "Cache-Control": "no-store",
        }
        # Another page shows this one in a frame, without the bar.
        is_bare = "bare" in request.GET
        options = ({"arm": arm.pk} if arm else {}) | ({"bare": 1} if is_bare else {})
        query = f"?{urlencode(options)}" if options else ""

        def nothing_yet(refused):
            if is_bare:
                return HttpResponse(
                    f"There is nothing to preview yet. {refused}", content_type="text/plain", headers=framed
                )
            messages.warning(request, f"There is nothing to preview yet. {refused}")
            return HttpResponseRedirect(f"{reverse('admin:studies_study_change', args=[study.pk])}#checklist")

        def address(name):
            return f"{reverse('admin:annotators_preview_page', args=[study.pk, name])}{query}"

        if request.method not in ("GET", "HEAD", "POST"):
            return HttpResponseNotAllowed(["GET", "POST"])
        if request.method == "POST":
            return HttpResponseRedirect(address(key) if key else address("landing"))
        try:
            page = render_preview_page(request, study, key, arm)
        except ActionRefused as refused:
            return nothing_yet(refused)
        except KeyError:
            raise Http404("The study has no such page.") from None
        except (ValueError, TypeError) as refused:  # a scale or a setting cannot be read: the checklist names it
            return nothing_yet(refused)
        index = page.keys.index(page.key)
        bar = render_to_string(
            "admin/annotators/preview_bar.html",
            {
                "study": study,
                "pages": [(address(name), page.names[name], name == page.key) for name in page.keys],
                "previous": address(page.keys[index - 1]) if index else "",
                "following": address(page.keys[index + 1]) if index + 1 < len(page.keys) else "",
                "arms": [(choice, choice == arm) for choice in arms] if len(arms) > 1 else [],
                "here": reverse("admin:annotators_preview_page", args=[study.pk, page.key]),
                "home": study_page.url_beside_new_study(request, study),
                "has_sliders": "data-has-range" in page.html,
                "test_run_url": reverse("admin:annotators_test_run", args=[study.pk])
                if study.is_draft and is_request_allowed(request, Action.EDIT, study.pk)
                else "",
            },
            request,
        )
        head = f'<link rel="stylesheet" href="{escape(settings.STATIC_URL)}preview-bar.css">'

        def image(name):
            return reverse("admin:studies_media", args=[study.pk, name]) if name else ""

        html = build_preview_html(page, address, image, "" if is_bare else bar, head, get_token(request))
        return HttpResponse(html, headers=framed)

    def start_test_run_view(self, request, pk):
        """Take part on the real pages, marked as a test run. GET explains this and offers a button."""
        study = get_study(request.user, Action.EDIT, pk=pk)
        if request.method == "POST":
            arm = next((arm for arm in study.arms.all() if str(arm.pk) == request.POST.get("arm", "")), None)
            try:
                assignment = start_test_run(study, request.user, arm)
                return HttpResponseRedirect(f"/p/{assignment.code}/")
            except (ActionRefused, ValueError, TypeError) as refused:
                messages.warning(request, f"A test run is not possible yet. {refused}")
                return HttpResponseRedirect(f"{reverse('admin:studies_study_change', args=[study.pk])}#checklist")
        context = {
            "title": "Test run",
            "arms": list(study.arms.order_by("name")),
            "test_runs": study.assignments.filter(origin="test", source=None).order_by("-pk")[:50],
            "clear_url": reverse("admin:annotators_clear_test_runs", args=[study.pk]),
            "home": study_page.url_beside_new_study(request, study),
        }
        return study_page.render_study_page(request, "admin/annotators/test_run.html", study, context)

    def delete_test_runs_view(self, request, pk):
        study = get_study(request.user, Action.EDIT, pk=pk)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        try:
            n = delete_test_runs(study, request.user)
            message = f"{n} test runs were deleted, with their answers." if n != 1 else "One test run was deleted."
            messages.success(request, message)
        except ActionRefused as refused:
            messages.warning(request, str(refused))
        return HttpResponseRedirect(reverse("admin:annotators_test_run", args=[study.pk]))


# Figures of people: when they answer, after which page they leave, and how long pages take. Each has a table of the same numbers.

WIDTH, LEFT, RIGHT, TOP, ROW = 420, 44, 396, 4, 22
NAMES_END = 172  # where the rows of pages begin, after their names
MAX_LABEL, MAX_BAR = 27, 40.0
MIN_PEOPLE = 5  # fewer have no median here
MAX_PAGE_ROWS, BLOCKS = 14, (1, 2, 5, 10, 20, 50, 100, 1000)
BEFORE_FIRST = "before the first page"
PAGE_KEY = re.compile(r"s(\d+)(?:\.(?:p(\d+))?(.*))?")


@dataclass(frozen=True, slots=True)
class OverTimeFigure:
    """The submitted work until each time, above that of each period. ``target`` is the height of the line of the target."""

    unit: str
    n: int
    until: Frame
    line: str
    target: str
    each: Frame
    bars: tuple[tuple[str, str, str, str], ...]
    rows: tuple[monitor.PeriodCounts, ...]


@dataclass(frozen=True, slots=True)
class LeavingRow:
    name: str
    label: str
    n: int
    reasons: str
    y: str
    top: str
    length: str
    number_at: str


@dataclass(frozen=True, slots=True)
class LeavingFigure:
    """How many people left after each page. ``frame`` is None if nobody left."""

    started: int
    n: int
    reasons: str
    frame: Frame | None
    rows: tuple[LeavingRow, ...]


@dataclass(frozen=True, slots=True)
class TimesRow:
    """The quartiles of one page as text, or None if fewer than five people have a time."""

    name: str
    label: str
    n: int
    y: str
    quartiles: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class TimesFigure:
    unit: str
    frame: Frame | None
    bars: tuple[RangeBar, ...]
    rows: tuple[TimesRow, ...]


def figures_of_people(study: Study) -> dict[str, object]:
    """Return the figures of the page Collect. They show people and pages, and no answer."""
    over_time = monitor.count_people_over_time(study)
    started, leavers = monitor.count_leavers_by_last_page(study)
    people = monitor.seconds_by_page(study)
    keys = ({*leavers} - {""}).union(*people)
    names = name_pages(keys, study.sections.filter(purpose=Section.Purpose.SCREENING).count())
    return {
        "over_time": build_over_time_figure(over_time, study.target_n) if over_time else None,
        "leaving": build_leaving_figure(started, leavers, names),
        "page_times": build_times_figure(people, names),
        "min_people": MIN_PEOPLE,
        "max_people": monitor.USUAL_TIME_MAX_PEOPLE,
    }


def name_pages(keys: Iterable[str], n_screenings: int) -> dict[str, str]:
    """Return the names of pages by key, in their order. If they are many, neighbouring pages of a section share a name."""

    def place(key: str) -> tuple[int, int, bool, str]:
        if not (match := PAGE_KEY.fullmatch(key)):  # the instructions come after the screening
            return n_screenings, max(BLOCKS), True, key
        section, page, part = match.groups(default="")
        return int(section), int(page or 0), part == "ask", part

    ordered = sorted(keys, key=place)
    last = {place(key)[0]: place(key)[1] for key in ordered if PAGE_KEY.fullmatch(key)}
    names: dict[str, str] = {}
    for size in BLOCKS:
        for key in ordered:
            section, page, *_ = place(key)
            first = page - (page - 1) % size
            end = min(first + size - 1, last.get(section, 0))
            is_alone = size == 1 or not page or not PAGE_KEY.fullmatch(key) or end == first
            names[key] = describe_page_key(key) if is_alone else f"section {section}, pages {first}–{end}"
        if len({*names.values()}) <= MAX_PAGE_ROWS:
            break
    return names


def build_over_time_figure(counted: monitor.PeopleOverTime, target: int | None) -> OverTimeFigure:
    unit = {monitor.HOUR: "hour", monitor.DAY: "day", monitor.WEEK: "week"}[counted.step]
    periods, n = counted.periods, counted.n_periods
    width = (RIGHT - LEFT) / n
    total = periods[-1].total
    until = Axis([0.0, 1.0, total, target or 0], 130, 26, least_step=1, n=4)
    each = Axis([0.0, 1.0, *(period.submitted for period in periods)], 216, 172, least_step=1, n=2)
    points = [(float(LEFT), until.place(0))]
    bars = []
    for period in periods:
        x = LEFT + (period.start - counted.start) // counted.step * width
        points += [(x, points[-1][1]), (x + width, until.place(period.total))]
        top, thickness = each.place(period.submitted), min(width - min(2.0, width / 5), MAX_BAR)
        bars.append((at(x + (width - thickness) / 2), at(top), at(thickness), at(each.start - top)))
    points.append((float(RIGHT), until.place(total)))
    form = "%m-%d %H:%M" if counted.step == monitor.HOUR else "%Y-%m-%d"
    indexes = range(0, n, -(-n // 4))
    across = [
        Tick(at(LEFT + (index + 0.5) * width), (counted.start + index * counted.step).strftime(form))
        for index in indexes
        if LEFT + (index + 0.5) * width < RIGHT - 20
    ]
    return OverTimeFigure(
        unit,
        total,
        Frame(WIDTH, 240, LEFT, RIGHT, 26, 130, upwards=until.ticks),
        path_of(points),
        at(until.place(target)) if target else "",
        Frame(WIDTH, 240, LEFT, RIGHT, 172, 216, across, each.ticks),
        tuple(bars),
        periods,
    )


def build_leaving_figure(
    started: int, leavers: Mapping[str, Mapping[str, int]], names: Mapping[str, str]
) -> LeavingFigure:
    counts: dict[str, Counter[str]] = {name: Counter() for name in (BEFORE_FIRST, *names.values())}
    for key, reasons in leavers.items():
        counts[names.get(key, BEFORE_FIRST)].update(reasons)
    everybody: Counter[str] = sum(counts.values(), Counter())
    n = everybody.total()
    across = Axis([0.0, 1.0, *(reasons.total() for reasons in counts.values())], NAMES_END, RIGHT, least_step=1, n=4)
    rows = []
    for index, (name, reasons) in enumerate(counts.items()):
        y, end = TOP + ROW * (index + 0.5), across.place(reasons.total())
        label = shortened(name if name == BEFORE_FIRST else f"after {name}", MAX_LABEL)
        rows.append(
            LeavingRow(
                f"after {name}" if name != BEFORE_FIRST else name,
                label,
                reasons.total(),
                _in_words(reasons),
                at(y),
                at(y - 6),
                at(end - NAMES_END),
                at(end + 5),
            )
        )
    return LeavingFigure(
        started, n, _in_words(everybody), _frame_of_rows(across, len(rows)) if n else None, tuple(rows)
    )


def _in_words(reasons: Counter[str]) -> str:
    return ", ".join(f"{n} {reason}" for reason, n in sorted(reasons.items()))


def _frame_of_rows(across: Axis, n: int, label: str = "") -> Frame:
    bottom = TOP + ROW * n
    return Frame(
        WIDTH, bottom + (44 if label else 26), NAMES_END, RIGHT, TOP, bottom, across.ticks, (), label, has_columns=True
    )


def build_times_figure(people: Sequence[Mapping[str, float]], names: Mapping[str, str]) -> TimesFigure:
    """Build the figure of seconds or minutes a page. Of pages that share a name, each person has one number: their mean."""
    keys_by_name: dict[str, list[str]] = {}
    for key, name in names.items():
        keys_by_name.setdefault(name, []).append(key)
    values = {
        name: [fmean(used) for person in people if (used := [person[key] for key in keys if key in person])]
        for name, keys in keys_by_name.items()
    }
    known = {
        name: quantiles(seconds, n=4, method="inclusive")
        for name, seconds in values.items()
        if len(seconds) >= MIN_PEOPLE
    }
    longest = max((quarters[-1] for quarters in known.values()), default=0.0)
    unit, divisor, digits = ("minutes", 60, 1) if longest >= 120 else ("seconds", 1, 0)
    across = Axis([0.0, max(1.0, longest / divisor)], NAMES_END, RIGHT, n=4)
    rows, bars = [], []
    for index, (name, seconds) in enumerate(values.items()):
        label, y = shortened(name, MAX_LABEL), at(TOP + ROW * (index + 0.5))
        quarters = [value / divisor for value in known.get(name, ())]
        if quarters:
            bars.append(RangeBar(label, y, *(at(across.place(value)) for value in quarters)))
        rows.append(TimesRow(name, label, len(seconds), y, tuple(f"{value:.{digits}f}" for value in quarters) or None))
    return TimesFigure(unit, _frame_of_rows(across, len(rows), unit) if known else None, tuple(bars), tuple(rows))
