"""The first page after log-in: the user's studies with what to do next, boards, and what waits for somebody."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from django.contrib import admin, messages
from django.db.models import Case, Count, F, IntegerField, OuterRef, Q, QuerySet, Subquery, Sum, Value, When
from django.http import HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from analysis.coding.models import CodingSeat
from analysis.models import AnalysisRun
from annotators.models import Inquiry, Recruitment
from annotators.pay.decisions import appeals_awaiting_answer
from annotators.pay.ledger import unpaid_payments
from annotators.places.monitor import StudyProgress, progress_by_study
from annotators.recruitment.panels.alerts import cached_alert_counts
from boards.access import boards_of
from studies.access import Action, check_permission_or_404, filter_allowed, has_role, roles_by_study_id
from studies.admin.jobs import job_title
from studies.models import EventSubscription, Job, Study
from studies.services import jobs

# The page lists so many studies and boards; the lists behind "All studies" and "All boards" have the others.
MAX_STUDIES, MAX_BOARDS, MAX_NOTICES = 40, 12, 12
RECENT = timedelta(days=7)
# The page reports jobs that took longer, because nobody watched them to their end.
LONG_JOB = timedelta(minutes=1)
EXAMPLE_KIND = "example_study"

State = Study.State


@dataclass(frozen=True, slots=True)
class StudyRow:
    """A study in the list: how far it is, what is unpaid, and the next action."""

    study: Study
    progress: StudyProgress | None
    unpaid: tuple[tuple[Decimal, str], ...]
    label: str
    url: str


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that waits for a person, or has ended: what it is, of which study, and where to go."""

    text: str
    about: str
    url: str


def home_page(request) -> TemplateResponse:
    """Show the user's studies, their boards, and what waits for them. Administrators also see the studies of others."""
    user = request.user
    mine = filter_allowed(request.user, Study.objects.filter(archived_at=None), Action.VIEW_BASICS)
    studies = list(_most_urgent_first(user, mine).select_related("owner")[: MAX_STUDIES + 1])
    roles = roles_by_study_id(user)
    has_others = any(study.pk not in roles for study in studies)
    seen = filter_allowed(request.user, Study.objects.filter(archived_at=None))
    boards = list(boards_of(request.user).order_by("-pk")[: MAX_BOARDS + 1])
    context = {
        **admin.site.each_context(request),
        "title": "Studies" if has_others else "My studies",
        "rows": _study_rows(studies[:MAX_STUDIES], roles),
        "is_new": not roles,
        "sees_others": has_others,
        "shows_owners": has_others or any(study.owner_id != user.pk for study in studies),
        "has_more": len(studies) > MAX_STUDIES,
        "boards": boards[:MAX_BOARDS],
        "has_more_boards": len(boards) > MAX_BOARDS,
        "notices": [*_waiting(request.user), *_ended(request.user, seen)][:MAX_NOTICES],
        "example_job": Job.objects.filter(kind=EXAMPLE_KIND, by=request.user).exclude(state__in=jobs.ENDED).first(),
    }
    return TemplateResponse(request, "admin/home.html", context)


@require_POST
def load_example_page(request) -> HttpResponse:
    """Submit the job that loads the example study: real texts, answers of robots, and a report."""
    check_permission_or_404(request.user, Action.CREATE)
    job = Job.objects.filter(kind=EXAMPLE_KIND, by=request.user).exclude(state__in=jobs.ENDED).first()
    job = job or jobs.submit(EXAMPLE_KIND, by=request.user)
    messages.success(request, "The example study is being made. Its report follows about a minute later.")
    return HttpResponseRedirect(reverse("admin:studies_job_page", args=[job.code]))


def _most_urgent_first(user, studies: QuerySet[Study]) -> QuerySet[Study]:
    """Order studies: the user's own before those of others; of both first those that collect, then drafts, then closed ones, the newest first."""
    order = [(State.PAUSED, 0), (State.LAUNCHED, 0), (State.CLOSING, 0), (State.LAUNCHING, 0), (State.DRAFT, 1)]
    rank = Case(
        *(When(state=state, then=Value(number)) for state, number in order),
        default=Value(2),
        output_field=IntegerField(),
    )
    return studies.order_by(has_role(user).desc(), rank, "-pk")


def _study_rows(studies: list[Study], roles: Mapping[int, str]) -> list[StudyRow]:
    ids = [study.pk for study in studies]
    progress = progress_by_study(ids)
    unpaid: dict[int, list[tuple[Decimal, str]]] = {}
    sums = unpaid_payments().filter(assignment__study__in=ids).values("assignment__study", "currency")
    for row in sums.annotate(total=Sum("amount")).order_by("assignment__study", "currency"):
        unpaid.setdefault(row["assignment__study"], []).append((row["total"], row["currency"]))
    reported = set(AnalysisRun.objects.filter(study__in=ids).values_list("study", flat=True))
    return [
        StudyRow(
            study,
            progress.get(study.pk, StudyProgress(0, None)) if roles.get(study.pk) != "coder" else None,
            tuple(unpaid.get(study.pk, ())),
            *_next_action(study, roles.get(study.pk, ""), study.pk in reported),
        )
        for study in studies
    ]


def _next_action(study: Study, role: str, is_reported: bool) -> tuple[str, str]:
    """Return the label and the URL of what comes next. Coders see nothing of a study but their sample."""
    if role == "coder":
        return "", ""
    if study.state == State.DRAFT:
        return "Go on", reverse("admin:studies_study_change", args=[study.pk])
    if study.state == State.LAUNCHING:
        return "Watch the launch", reverse("study_launch", args=[study.pk])
    if study.state == State.CLOSED:
        return ("Read the report" if is_reported else "Analyse"), reverse("analyses", args=[study.pk])
    return "Watch progress", reverse("admin:annotators_collecting", args=[study.pk])


def _waiting(user) -> Iterator[Notice]:
    """Yield what waits for an answer of this user."""
    answers_appeals = filter_allowed(user, Recruitment.objects.all(), Action.REJECT)
    appeals = appeals_awaiting_answer(answers_appeals).order_by()
    studies = {"verdict__assignment__study": Q(verdict__isnull=False), "assignment__study": Q(verdict=None)}
    for path, kind in studies.items():
        found = appeals.filter(kind).values(path, f"{path}__title").annotate(n=Count("pk"))
        for row in found.order_by(path)[:MAX_NOTICES]:
            text = f"{row['n']} objection{'s' if row['n'] > 1 else ''} to answer"
            yield Notice(text, row[f"{path}__title"], reverse("admin:annotators_collecting", args=[row[path]]))
    inbox = filter_allowed(user, Inquiry.objects.filter(handled_at=None), Action.MANAGE_ASSIGNMENTS)
    asked = inbox.values("assignment__study", "assignment__study__title").annotate(n=Count("pk"))
    for row in asked.order_by("assignment__study")[:MAX_NOTICES]:
        text = f"{row['n']} message{'s' if row['n'] > 1 else ''} from annotators"
        url = reverse("admin:annotators_collecting", args=[row["assignment__study"]])
        yield Notice(text, row["assignment__study__title"], url)
    links = filter_allowed(user, Recruitment.objects.filter(study__archived_at=None), Action.PANEL)
    watched = {link.pk: link for link in links.select_related("study").order_by("-pk")[:200]}
    for pk, n in cached_alert_counts(watched).items():
        text = f"{n} alert{'s' if n > 1 else ''} of the panel"
        yield Notice(text, watched[pk].study.title, reverse("admin:annotators_panel", args=[pk]))
    unheard = filter_allowed(user, EventSubscription.objects.filter(study__archived_at=None), Action.RUN)
    lost = unheard.filter(deliveries__attempts__gt=0, deliveries__next_at=None, deliveries__delivered_at=None)
    for row in lost.values("study", "study__title").annotate(n=Count("pk")).order_by("study")[:MAX_NOTICES]:
        text = f"{row['n']} event{'s' if row['n'] > 1 else ''} could not be sent"
        yield Notice(text, row["study__title"], reverse("study_events", args=[row["study"]]))
    seats = CodingSeat.objects.filter(user=user, sample__study__archived_at=None).annotate(
        n_items=Count("sample__items", distinct=True),
        n_coded=Count("sample__items__codings__item", filter=Q(sample__items__codings__coder=user), distinct=True),
    )
    # A third coder reads only what the first two do not agree on, which their own page finds out.
    for seat in seats.filter(number__lte=2, n_coded__lt=F("n_items")).select_related("sample__study")[:MAX_NOTICES]:
        url = reverse("admin:analysis_codingsample_code", args=[seat.sample_id])
        yield Notice(f"{seat.n_items - seat.n_coded} texts to code", seat.sample.study.title, url)


def _ended(user, studies: QuerySet[Study]) -> Iterator[Notice]:
    """Yield the reports of the last week, the newest of each study, and long jobs of this user whose end the user has not seen."""
    since = timezone.now() - RECENT
    newest = AnalysisRun.objects.filter(study=OuterRef("study")).order_by("-number").values("pk")[:1]
    runs = AnalysisRun.objects.filter(study__in=studies, at__gte=since, pk=Subquery(newest)).select_related("study")
    for run in runs.defer("result").order_by("-at")[:5]:
        yield Notice(
            f"Report ready: analysis {run.number}",
            run.study.title,
            reverse("analysis", args=[run.study_id, run.number]),
        )
    own = Job.objects.filter(by=user, seen_at=None, ended_at__gt=F("started_at") + LONG_JOB)
    # The notices above name the reports.
    unseen = own.exclude(kind="analyse", state=Job.State.DONE).select_related("study").order_by("-ended_at")
    for job in unseen.defer("result", "arguments")[:5]:
        about = job.study.title if job.study else ""
        yield Notice(
            f"{job_title(job)}: {job.get_state_display().lower()}",
            about,
            f"{reverse('admin:studies_job_page', args=[job.code])}?open",
        )
