"""The REST interface: each resource of a study, for programs. docs: reference/rest."""

from hashlib import sha256
from typing import Any

from django.db import models, transaction
from django.db.models import F, Q
from django.http import FileResponse, Http404, HttpResponse, StreamingHttpResponse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema, inline_serializer
from drf_spectacular.views import SpectacularJSONAPIView
from rest_framework import serializers
from rest_framework.exceptions import ParseError
from rest_framework.response import Response
from rest_framework.views import APIView

from annotators import models as answers
from annotators import sample
from annotators.exclude import exclude, reverse_exclusion
from studies import audit, jobs
from studies.design import STUDY_FIELDS, canonical, design_of, sha256_of
from studies.lifecycle import NotNow
from studies.models import Arm, Batch, Design, Job, Output, Prompt, Study, StudyMember, System

from . import bulk, exports, pay_report
from . import serializers as shapes
from .archive import archive_stream
from .codebook import codebook_markdown, codebook_of
from .coding.flat import CODINGS, codings_of, keyed_rows
from .flat import COUNTED, Selection, assignment_name, problems_in
from .models import AnalysisRun, Figure
from .parameters import ORIGIN, RAW, WITHDRAWN, Parameter, page, paged, read_query, whole, words
from .permissions import EDITORS, MEMBERS, READERS, check_may_create, check_outcomes, coded_by, studies_of, study_for
from .renderers import PROBLEM, Conflict, RowErrors, problem, row_error
from .report import BadParameters, checked_parameters

ERRORS = {
    400: "A parameter, a field or the body is not as it should be.",
    401: "No valid token.",
    403: "The role or the token does not allow this, or outcomes are hidden while the study collects.",
    404: "There is no such thing, or it may not be seen.",
    405: "The resource knows no such method.",
    409: "It does not fit to what is stored, or to the state of the study.",
    413: "The body is too large.",
    415: "The body is not application/json.",
    429: "Too many requests, or other exports are running: Retry-After says when to try again.",
    503: "The database is not there at the moment.",
}
READING = (400, 401, 403, 404, 405, 429, 503)
WRITING = tuple(ERRORS)


def documented(
    summary: str, answer, *, request=None, parameters=(), status=200, media_type="application/json", tag="studies"
):
    """How a method is published: every way in which it may answer is declared."""
    codes = READING if request is None and status == 200 else WRITING
    responses: dict[Any, Any] = {
        (code, PROBLEM): OpenApiResponse(shapes.ProblemSerializer, description=ERRORS[code]) for code in codes
    }
    responses[status, media_type] = answer
    if status == 201:
        responses[200, media_type] = answer  # sent again: nothing new was stored
    page_of = type(answer).__name__.partition("Page")
    return extend_schema(
        operation_id=f"list_{page_of[0].lower()}" if page_of[1] else None,
        summary=summary,
        tags=[tag],
        request=request,
        responses=responses,
        parameters=[p.described for p in parameters],
    )


def listed(name: str, row, **more) -> serializers.Serializer:
    """A page of a list."""
    fields = {"next": serializers.URLField(allow_null=True), "results": row(many=True)}
    return inline_serializer(f"{name}Page", {**fields, **more})


class StudyView(APIView):
    """A resource of one study: the study is found, and the role checked, before any method runs."""

    reads: tuple = READERS
    writes: tuple = EDITORS
    parameters: tuple[Parameter, ...] = ()

    def initial(self, request, *args, **kwargs):
        super().initial(request, *args, **kwargs)
        roles = self.reads if request.method in ("GET", "HEAD") else self.writes
        self.study: Study = study_for(request, kwargs["code"], roles)
        self.values = read_query(request, self.parameters if request.method in ("GET", "HEAD") else ())

    def after(self) -> tuple:
        return self.values["cursor"]

    def paged(self, queryset: models.QuerySet, shape) -> Response:
        """A page of rows in the order of their keys."""
        found = queryset.filter(pk__gt=self.after()[0]).order_by("pk")[: self.values["page_size"] + 1]
        return page(self.request, self.values, [(row.pk, _shaped(shape, row)) for row in found])


def _shaped(shape, row) -> Any:
    return shape(row).data if isinstance(shape, type) else shape(row)


# Studies


class Studies(APIView):
    """Studies of which you are a member, and new drafts."""

    parameters = (
        *paged(),
        Parameter("state", words, "Only studies in this state.", None, str, tuple(Study.State.values)),
    )

    @documented("Studies that you have a role in", listed("Study", shapes.StudySerializer), parameters=parameters)
    def get(self, request):
        values = read_query(request, self.parameters)
        studies = (
            studies_of(request).select_related("owner", "clone_of").filter(pk__gt=values["cursor"][0]).order_by("pk")
        )
        if values["state"] is not None:
            studies = studies.filter(state=values["state"])
        coded = coded_by(request.user)
        rows = [(study.pk, _study(study, study.pk in coded)) for study in studies[: values["page_size"] + 1]]
        return page(request, values, rows)

    @documented("Create a draft", shapes.StudySerializer, request=shapes.StudySerializer, status=201)
    def post(self, request):
        read_query(request, ())
        check_may_create(request)
        serializer = shapes.StudySerializer(data=_object(request))
        serializer.is_valid(raise_exception=True)
        serializer.validated_data.pop("version", None)
        study = Study(owner=request.user, **serializer.validated_data)
        study.full_clean(exclude=["code"], validate_unique=False)
        with transaction.atomic():
            if Study.objects.filter(code=study.code).exists():
                raise Conflict("There is a study with this code already.")
            study.save(force_insert=True)
            StudyMember.objects.create(study=study, user=request.user, role=StudyMember.Role.OWNER)
            Arm.objects.create(study=study, name="all")
            audit.record("create", study=study, by=request.user)
        return Response(shapes.StudySerializer(_fresh(study)).data, status=201)


class StudyDetail(StudyView):
    """One study: what annotators read, what was planned, where it stands."""

    reads = MEMBERS

    @documented("A study", shapes.StudySerializer)
    def get(self, request, code):
        return Response(_study(_fresh(self.study), self.study.pk in coded_by(request.user)))

    @documented("Change fields of a draft", shapes.StudySerializer, request=shapes.StudySerializer(partial=True))
    def patch(self, request, code):
        serializer = shapes.StudySerializer(self.study, data=_object(request), partial=True)
        serializer.is_valid(raise_exception=True)
        changes = dict(serializer.validated_data)
        version = changes.pop("version", None)
        if changes.pop("code", self.study.code) != self.study.code:
            raise RowErrors([row_error(None, "code", "The code of a study never changes.")])
        with transaction.atomic():
            study = Study.objects.select_for_update(no_key=True, of=("self",)).get(pk=self.study.pk)
            if version is not None and version != study.version:
                raise Conflict(f"The study was changed meanwhile (version {study.version}). Read it again.")
            changes = {name: value for name, value in changes.items() if getattr(study, name) != value}
            if changes:
                for name, value in changes.items():
                    setattr(study, name, value)
                study.full_clean(exclude=[name for name in STUDY_FIELDS if name not in changes], validate_unique=False)
                study.version += 1
                study.save()
                audit.record("edit", study=study, by=request.user, columns=sorted(changes))
        return Response(shapes.StudySerializer(_fresh(study)).data)


def _study(study: Study, is_for_coder: bool) -> dict[str, Any]:
    """All of it; to who codes blind what annotators read, for a study's own title tells its hypotheses."""
    found = shapes.StudySerializer(study).data
    return found | {"title": study.public_title, "exclusion_group": "", "preparation": {}} if is_for_coder else found


def _fresh(study: Study) -> Study:
    return Study.objects.select_related("owner", "clone_of").get(pk=study.pk)


def _object(request) -> dict:
    if not isinstance(request.data, dict):
        raise ParseError("Send one JSON object.")
    return request.data


class StudyDesign(StudyView):
    """A version of the frozen design, as JSON text with its hash; of a draft, the design as it would be."""

    parameters = (Parameter("version", whole(1, 32767), "A version; the newest when absent.", None, int),)

    @documented("The design, as it is hashed", shapes.DesignSerializer, parameters=parameters)
    def get(self, request, code):
        designs = Design.objects.filter(study=self.study).order_by("-version")
        if self.values["version"] is not None:
            designs = designs.filter(version=self.values["version"])
        design = designs.first()
        if design is None and (self.values["version"] is not None or not self.study.is_draft):
            raise Http404
        if design is None:
            text = canonical(design_of(self.study))
            design = Design(version=None, canonical=text, sha256=sha256_of(text), at=None)
        return Response(shapes.DesignSerializer(design).data)


class Progress(StudyView):
    """How many places there are, and how many people took, left and finished them."""

    @documented("Counts of places and assignments", shapes.ProgressSerializer)
    def get(self, request, code):
        counted = answers.Assignment.objects.filter(study=self.study, origin="live")
        kept = Q(released_at=None)
        counts = counted.aggregate(
            claimed=models.Count("pk", filter=kept),
            started=models.Count("pk", filter=kept & Q(started_at__isnull=False)),
            submitted=models.Count("pk", filter=kept & Q(submitted_at__isnull=False)),
            released=models.Count("pk", filter=~kept),
            withdrawn=models.Count("pk", filter=Q(withdrawn_at__isnull=False)),
        )
        open_batches = Batch.objects.filter(study=self.study, number__lt=self.study.open_to)
        places = open_batches.aggregate(n=models.Sum("wanted"))["n"] or 0
        return Response({"state": self.study.state, "target_n": self.study.target_n, "places": places, **counts})


class Sample(StudyView):
    """Who took part, as counts: the declared columns of a panel's demographic file. No person's values leave this site."""

    @documented("The table of the sample", shapes.SampleColumnSerializer(many=True))
    def get(self, request, code):
        return Response(shapes.SampleColumnSerializer(sample.table(self.study), many=True).data)


# Stimuli


class BulkView(StudyView):
    """A list that editors may add to while the study is a draft, up to a thousand rows a request, all or none."""

    kind: bulk.Kind

    def post(self, request, code):
        created, unchanged = bulk.store(self.study, self.kind, request.data, request.user)
        return Response({"created": created, "unchanged": unchanged}, status=201 if created else 200)


class Systems(BulkView):
    """What is compared."""

    kind = bulk.SYSTEMS
    parameters = paged()

    @documented("Systems", listed("System", shapes.SystemSerializer), parameters=parameters, tag="stimuli")
    def get(self, request, code):
        return self.paged(System.objects.filter(study=self.study), shapes.SystemSerializer)

    @documented(
        "Add systems", shapes.StoredSerializer, request=shapes.SystemSerializer(many=True), status=201, tag="stimuli"
    )
    def post(self, request, code):
        return super().post(request, code)


class Prompts(BulkView):
    """What the systems were given."""

    kind = bulk.PROMPTS
    parameters = (*paged(), Parameter("domain", words, "Only prompts of this domain."))

    @documented("Prompts", listed("Prompt", shapes.PromptSerializer), parameters=parameters, tag="stimuli")
    def get(self, request, code):
        prompts = Prompt.objects.filter(study=self.study)
        if self.values["domain"] is not None:
            prompts = prompts.filter(domain=self.values["domain"])
        return self.paged(prompts, shapes.PromptSerializer)

    @documented(
        "Add prompts", shapes.StoredSerializer, request=shapes.PromptSerializer(many=True), status=201, tag="stimuli"
    )
    def post(self, request, code):
        return super().post(request, code)


class Outputs(BulkView):
    """What the systems made of the prompts."""

    kind = bulk.OUTPUTS
    parameters = (
        *paged(),
        Parameter("system", words, "Only outputs of the system of this name."),
        Parameter("prompt", words, "Only outputs for the prompt with this key."),
    )

    @documented("Outputs", listed("Output", shapes.OutputSerializer), parameters=parameters, tag="stimuli")
    def get(self, request, code):
        outputs = Output.objects.filter(system__study=self.study).select_related("system", "prompt")
        if self.values["system"] is not None:
            outputs = outputs.filter(system__name=self.values["system"])
        if self.values["prompt"] is not None:
            outputs = outputs.filter(prompt__key=self.values["prompt"])
        return self.paged(outputs, shapes.OutputSerializer)

    @documented(
        "Add outputs, all of them or none", shapes.StoredSerializer, request=shapes.OutputSerializer(many=True), status=201,
        tag="stimuli",
    )  # fmt: skip
    def post(self, request, code):
        return super().post(request, code)


# What was given and answered


class Batches(StudyView):
    """What annotators are given, with the items in order."""

    parameters = (*paged(), Parameter("arm", words, "Only batches of this arm."))

    @documented(
        "Batches with their items", listed("Batch", shapes.BatchSerializer), parameters=parameters, tag="answers"
    )
    def get(self, request, code):
        batches = Batch.objects.filter(study=self.study).select_related("arm", "copy_of")
        if self.values["arm"] is not None:
            batches = batches.filter(arm__name=self.values["arm"])
        return self.paged(batches.prefetch_related("placements__item__section", "placements__item__prompt"), _batch)


def _batch(batch: Batch) -> dict[str, Any]:
    items = sorted(batch.placements.all(), key=lambda placement: placement.number)
    return {
        "number": batch.number, "arm": batch.arm.name, "origin": batch.origin, "wanted": batch.wanted,
        "claimed": batch.claimed, "key": batch.key, "copy_of": batch.copy_of and batch.copy_of.number,
        "items": [
            {"item": f"s{p.item.section.position}.{p.item.number}", "kind": p.item.kind, "prompt": p.item.prompt.key}
            for p in items
        ],
    }  # fmt: skip


class Assignments(StudyView):
    """Annotators with batches: where they stand and when. Names are pseudonyms of this study."""

    parameters = (
        *paged(),
        Parameter(
            "origin", ORIGIN.read, "Origins, by commas; all when absent.", tuple(answers.Assignment.Origin.values)
        ),
        Parameter("arm", words, "Only assignments in this arm."),
        Parameter("batch", whole(), "Only assignments with the batch of this number.", None, int),
    )

    @documented("Assignments", listed("Assignment", shapes.AssignmentSerializer), parameters=parameters, tag="answers")
    def get(self, request, code):
        rows = answers.Assignment.objects.filter(study=self.study, origin__in=self.values["origin"])
        if self.values["arm"] is not None:
            rows = rows.filter(batch__arm__name=self.values["arm"])
        if self.values["batch"] is not None:
            rows = rows.filter(batch__number=self.values["batch"])
        found = exports.page_of_assignments(rows, self.study, self.after()[0], self.values["page_size"] + 1)
        return page(request, self.values, found)


class Responses(StudyView):
    """The flat rows of the exports, by pages. For all of a study's answers take an export: it sees one moment."""

    parameters = (
        *paged(2), ORIGIN, WITHDRAWN,
        Parameter("section", whole(0, 32767), "Only answers in the section at this position.", None, int),
        Parameter("question", words, "Only answers to the question with this key."),
        Parameter("system", words, "Only answers about an output of this system."),
        Parameter("prompt", words, "Only answers about items with this prompt."),
        Parameter("arm", words, "Only answers in this arm."),
        Parameter("batch", whole(), "Only answers in the batch of this number.", None, int),
    )  # fmt: skip
    paths = {
        "section": "question__section__position",
        "question": "question__key",
        "system": "exposure__output__system__name",
        "prompt": "item__prompt__key",
        "arm": "assignment__batch__arm__name",
        "batch": "assignment__batch__number",
    }

    @documented(
        "Answers, one flat row a judgement",
        listed("Response", shapes.ResponseSerializer, n_problems=serializers.IntegerField(), problems=serializers.JSONField()),
        parameters=parameters, tag="answers",
    )  # fmt: skip
    def get(self, request, code):
        check_outcomes(self.study, self.values["origin"])
        selection = Selection(self.study, self.values["origin"], self.values["withdrawn"])
        wanted = {path: self.values[name] for name, path in self.paths.items() if self.values[name] is not None}
        rows = selection.responses.filter(**wanted)
        found = exports.page_of_responses(rows, self.study, self.after(), self.values["page_size"] + 1)
        n, problems = problems_in(selection) if self.after() == (0, 0) else (0, [])
        return page(request, self.values, found, n_problems=n, problems=problems)


class Codings(StudyView):
    """What coders said of explanations and of work, by pages, in the order in which it was stored. Coders are seats, not names."""

    parameters = (
        *paged(), ORIGIN, WITHDRAWN, Parameter("sample", whole(1), "Only codings of the sample of this number.", None, int),
    )  # fmt: skip

    @documented(
        "Codings, one flat row each", listed("Coding", shapes.CodingSerializer), parameters=parameters, tag="answers"
    )
    def get(self, request, code):
        check_outcomes(self.study, self.values["origin"])
        rows = codings_of(Selection(self.study, self.values["origin"], self.values["withdrawn"]))
        if self.values["sample"] is not None:
            rows = rows.filter(item__sample__number=self.values["sample"])
        rows = rows.filter(pk__gt=self.after()[0]).order_by("pk")[: self.values["page_size"] + 1]
        names = [column.name for column in CODINGS]
        found = [(key, dict(zip(names, cells, strict=True))) for key, cells in keyed_rows(self.study, rows)]
        return page(request, self.values, found)


class Exclusions(StudyView):
    """What people decided to leave out. Rules are part of the design; what they find is in the analyses."""

    parameters = paged()

    @documented("Exclusions", listed("Exclusion", shapes.ExclusionSerializer), parameters=parameters, tag="answers")
    def get(self, request, code):
        return self.paged(_exclusions_of(self.study), _exclusion)

    @documented(
        "Leave assignments out, all of them or none", shapes.ExcludedSerializer, request=shapes.ExcludeSerializer, status=201,
        tag="answers",
    )  # fmt: skip
    def post(self, request, code):
        serializer = shapes.ExcludeSerializer(data=_object(request))
        serializer.is_valid(raise_exception=True)
        asked = serializer.validated_data
        chosen = _named(self.study, asked["assignments"])
        made = exclude(chosen, asked["reason"], request.user, asked["note"], asked["reopen"])
        rows = [
            _exclusion(row) for row in _exclusions_of(self.study).filter(pk__in=[one.pk for one in made]).order_by("pk")
        ]
        return Response({"created": rows}, status=201 if rows else 200)


class ReverseExclusion(StudyView):
    """An exclusion is taken back by another row; both stay on record."""

    @documented(
        "Take an exclusion back", shapes.ExcludedSerializer, request=shapes.ReverseSerializer, status=201, tag="answers"
    )
    def post(self, request, code, number):
        serializer = shapes.ReverseSerializer(data=_object(request))
        serializer.is_valid(raise_exception=True)
        rows = answers.Exclusion.objects.filter(assignment__study=self.study, pk=number)
        found = rows.select_related("assignment__study").first()
        if found is None:
            raise Http404
        made = reverse_exclusion(found, request.user, serializer.validated_data["note"])
        return Response({"created": [_exclusion(_exclusions_of(self.study).get(pk=made.pk))]}, status=201)


def _exclusions_of(study: Study) -> models.QuerySet:
    rows = answers.Exclusion.objects.filter(assignment__study=study).select_related("assignment", "by")
    return rows.annotate(reversal=F("reversed_by__pk"))


def _named(study: Study, names: list[str]) -> list[answers.Assignment]:
    """The assignments of these names. A name is made from the code and leads back to it only through all of them."""
    codes = answers.Assignment.objects.filter(study=study).values_list("code", flat=True)
    by_name = {assignment_name(code): code for code in codes}
    errors = [
        row_error(row, "assignments", f"The study has no assignment “{name}”.")
        for row, name in enumerate(names, 1)
        if name not in by_name
    ]
    if errors:
        raise RowErrors(errors)
    return list(answers.Assignment.objects.filter(code__in={by_name[name] for name in names}))


def _exclusion(row: answers.Exclusion) -> dict[str, Any]:
    return {
        "number": row.pk, "assignment": assignment_name(row.assignment.code), "reason": row.reason, "note": row.note,
        "by": row.by.get_username(), "at": row.at, "reverses": row.reverses_id,
        "is_standing": row.reverses_id is None and row.reversal is None,
    }  # fmt: skip


# Pay


class Pay(StudyView):
    """What the work came to an hour, by arm, and what each link costs. Money is text with two places."""

    @documented("Pay an hour by arm, cost by link", shapes.PayReportSerializer, tag="pay")
    def get(self, request, code):
        return Response(pay_report.report_of(self.study))


class Payments(StudyView):
    """Every payment, under the pseudonym of its assignment."""

    parameters = paged()

    @documented("Payments", listed("Payment", shapes.PaymentSerializer), parameters=parameters, tag="pay")
    def get(self, request, code):
        return self.paged(pay_report.payments_of(self.study), pay_report.row_of)


class PaymentsFile(StudyView):
    """Every payment as CSV."""

    throttle_scope = "export"

    @documented("Payments as CSV", OpenApiTypes.STR, media_type="text/csv", tag="pay")
    def get(self, request, code):
        name = f"payments-{str(self.study.code)[:8]}.csv"
        return _download([pay_report.payments_csv(self.study).encode()], name, MEDIA_TYPES["csv"])


# Analyses and jobs


class Analyses(StudyView):
    """Numbered analyses; a POST starts another."""

    parameters = paged()

    @documented("Analyses", listed("Analysis", shapes.AnalysisSerializer), parameters=parameters, tag="analyses")
    def get(self, request, code):
        rows = (
            AnalysisRun.objects.filter(study=self.study)
            .defer("result")
            .select_related("by")
            .prefetch_related(_figure_names())
        )
        return self.paged(rows, _analysis(shapes.AnalysisSerializer))

    @documented(
        "Start an analysis; gives the job to be watched", shapes.JobSerializer, request=shapes.AnalysisRequestSerializer,
        status=202, tag="analyses",
    )  # fmt: skip
    def post(self, request, code):
        try:
            parameters = checked_parameters(_object(request), self.study)
        except BadParameters as bad:
            field, _, message = str(bad).partition(": ")
            raise RowErrors([row_error(None, field, message)]) from None
        return _started(request, self.study, "analyse", {"parameters": parameters})


def _figure_names():
    return models.Prefetch("figures", Figure.objects.defer("svg", "pdf").order_by("name"))


def _analysis(shape):
    def shaped(run: AnalysisRun) -> dict[str, Any]:
        run.figure_names = [figure.name for figure in run.figures.all()]
        return shape(run).data

    return shaped


def _origins(arguments: dict[str, Any]) -> list[str]:
    origins = arguments.get("origins", [])
    if unknown := sorted(set(origins) - set(answers.Assignment.Origin.values)):
        raise RowErrors(
            [
                row_error(
                    None, "origins", f"{unknown[0][:20]!r} is none of {', '.join(answers.Assignment.Origin.values)}."
                )
            ]
        )
    return origins


def _started(request, study: Study, kind: str, arguments: dict[str, Any]) -> Response:
    """A job, once for each Idempotency-Key."""
    key = request.headers.get("Idempotency-Key", "")
    token = sha256(f"{study.pk} {request.user.pk} {kind} {key}".encode("utf-8", "replace")).hexdigest() if key else None
    try:
        job = jobs.submit(kind, study=study, by=request.user, request_token=token, **arguments)
    except jobs.UnknownKind:
        raise NotNow("This installation cannot do that.") from None
    return Response(shapes.JobSerializer(_fresh_job(job)).data, status=202)


def _fresh_job(job: Job) -> Job:
    return Job.objects.get(pk=job.pk)


class AnalysisDetail(StudyView):
    """One analysis with its result."""

    @documented("An analysis with its result", shapes.AnalysisResultSerializer, tag="analyses")
    def get(self, request, code, number):
        rows = (
            AnalysisRun.objects.filter(study=self.study, number=number)
            .select_related("by")
            .prefetch_related(_figure_names())
        )
        run = rows.first()
        if run is None:
            raise Http404
        # A report made while the study collects leaves the outcomes out by itself, and says so.
        if not run.result.get("outcomes", {}).get("is_hidden"):
            check_outcomes(self.study, run.parameters.get("origins") or COUNTED)
        return Response(_analysis(shapes.AnalysisResultSerializer)(run))


class Jobs(StudyView):
    """Long work of this study."""

    parameters = paged()

    @documented("Jobs", listed("Job", shapes.JobSerializer), parameters=parameters, tag="analyses")
    def get(self, request, code):
        return self.paged(Job.objects.filter(study=self.study), shapes.JobSerializer)


class JobDetail(StudyView):
    """How far a job is, and what came of it."""

    @documented("A job: how far it is, and what came of it", shapes.JobSerializer, tag="analyses")
    def get(self, request, code, job):
        found = Job.objects.filter(study=self.study, code=job).first()
        if found is None:
            raise Http404
        return Response(shapes.JobSerializer(found).data)


class JobFile(StudyView):
    """The file that an export job made. It is kept for a week."""

    throttle_scope = "export"

    @documented(
        "The file that an export job made",
        OpenApiTypes.BINARY,
        media_type="application/vnd.apache.parquet",
        tag="exports",
    )
    def get(self, request, code, job):
        from .parquet import file_of

        found = Job.objects.filter(study=self.study, code=job, kind="export", state=Job.State.DONE).first()
        path = found and file_of(found)
        if path is None:
            raise Http404
        check_outcomes(self.study, found.arguments["origins"])
        name = f"{found.arguments['table']}.parquet"
        return FileResponse(
            path.open("rb"), as_attachment=True, filename=name, content_type="application/vnd.apache.parquet"
        )


# Exports

MEDIA_TYPES = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson; charset=utf-8"}


def _download(blocks, filename: str, media_type: str, **headers: Any) -> StreamingHttpResponse:
    answer = StreamingHttpResponse(blocks, content_type=media_type)
    answer["Content-Disposition"] = f'attachment; filename="{filename}"'
    answer["Cache-Control"] = "private, no-store"
    for name, value in headers.items():
        answer[name.replace("_", "-")] = str(value)
    return answer


class ExportView(StudyView):
    throttle_scope = "export"
    table = form = ""

    def selection(self) -> Selection:
        if self.table in exports.OUTCOMES:
            check_outcomes(self.study, self.values["origin"])
        return Selection(self.study, *(self.values[name] for name in ("origin", "withdrawn") if name in self.values))

    def streamed(self) -> StreamingHttpResponse:
        blocks = exports.stream(self.table, self.form, self.selection(), raw=self.values.get("raw", False))
        if self.request.method == "HEAD":
            blocks.close()
        name = f"{self.table}-{str(self.study.code)[:8]}.{self.form}"
        return _download(blocks, name, MEDIA_TYPES[self.form], X_Heval_Rows=blocks.prepared)


def export_views() -> dict[str, type[ExportView]]:
    """A view for each table and form, and one for its hash: each has its own parameters and description."""
    views = {}
    for table in exports.TABLES:
        for form in MEDIA_TYPES:
            about_people = (ORIGIN, WITHDRAWN) if table in exports.OF_PEOPLE else ()
            parameters = (*about_people, *((RAW,) if form == "csv" else ()))
            views[f"{table}.{form}"] = _export_view(table, form, parameters)
            views[f"{table}.{form}.sha256"] = _hash_view(table, form, parameters)
    return views


def _export_view(name: str, kind: str, allowed: tuple[Parameter, ...]) -> type[ExportView]:
    class Export(ExportView):
        """One table of one moment of the database, streamed. X-Heval-Rows says how many rows follow."""

        table, form, parameters = name, kind, allowed

        @documented(
            f"All {name} as {kind.upper()}, one moment of the database", OpenApiTypes.STR, parameters=allowed,
            media_type=MEDIA_TYPES[kind].partition(";")[0], tag="exports",
        )  # fmt: skip
        def get(self, request, code):
            return self.streamed()

    return Export


def _hash_view(name: str, kind: str, allowed: tuple[Parameter, ...]) -> type[ExportView]:
    class ExportHash(ExportView):
        """The sha256 of that export and its rows, to check a download against."""

        table, form, parameters = name, kind, allowed

        @documented(
            f"The hash of that {kind.upper()} as of now, and its rows",
            shapes.ExportHashSerializer,
            parameters=allowed,
            tag="exports",
        )
        def get(self, request, code):
            found, rows = exports.sha256_of(self.table, self.form, self.selection(), raw=self.values.get("raw", False))
            return Response({"sha256": found, "rows": rows})

    return ExportHash


class Exports(StudyView):
    """Exports that are made by a job."""

    @documented(
        "Make a Parquet file; gives the job to be watched", shapes.JobSerializer, request=shapes.ExportRequestSerializer,
        status=202, tag="exports",
    )  # fmt: skip
    def post(self, request, code):
        from . import parquet

        serializer = shapes.ExportRequestSerializer(data=_object(request))
        serializer.is_valid(raise_exception=True)
        arguments = dict(serializer.validated_data)
        arguments["origins"] = _origins(arguments) or list(COUNTED)
        if arguments["table"] in exports.OUTCOMES:
            check_outcomes(self.study, arguments["origins"])
        if not parquet.is_installed():
            raise NotNow(parquet.NOT_INSTALLED)
        return _started(request, self.study, "export", arguments)


class Codebook(StudyView):
    """What every column means, with the questions, scales, systems and arms, as JSON."""

    @documented("The codebook", OpenApiTypes.OBJECT, tag="exports")
    def get(self, request, code):
        return Response(codebook_of(self.study))


class CodebookPage(StudyView):
    """The codebook in Markdown."""

    @documented("The codebook in Markdown", OpenApiTypes.STR, media_type="text/markdown", tag="exports")
    def get(self, request, code):
        return HttpResponse(codebook_markdown(self.study), content_type="text/markdown; charset=utf-8")


class Archive(StudyView):
    """Design, stimuli, answers, analyses, figures and codebook in one zip, with a hash of each file."""

    throttle_scope = "export"

    @documented(
        "Design, data, results and codebook in one zip",
        OpenApiTypes.BINARY,
        media_type="application/zip",
        tag="exports",
    )
    def get(self, request, code):
        check_outcomes(self.study, COUNTED)
        blocks = archive_stream(self.study)
        if request.method == "HEAD":
            blocks.close()
        return _download(blocks, f"heval-{str(self.study.code)[:8]}.zip", "application/zip")


# The description


class Schema(SpectacularJSONAPIView):
    """The OpenAPI description."""

    permission_classes = ()
    authentication_classes = ()
    throttle_classes = ()


class Docs(APIView):
    """A page that lists what there is."""

    permission_classes = ()
    authentication_classes = ()
    throttle_classes = ()
    schema = None

    def get(self, request):
        found = SchemaGenerator().get_schema(request=None, public=True)
        rows = [
            (method.upper(), path, operation.get("summary", ""))
            for path, operations in sorted(found["paths"].items())
            for method, operation in operations.items()
        ]
        return HttpResponse(_docs_page(format_html_join("\n", "<tr><td>{}<td><code>{}</code><td>{}", rows)))


def _docs_page(rows: SafeString) -> str:
    return format_html(
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        "<title>REST interface of heval</title><main><h1>REST interface</h1>"
        '<p>Send a token: <code>Authorization: Token …</code>. The whole description: <a href="../schema/">OpenAPI</a>.</p>'
        "<table><caption>Resources</caption><thead><tr><th>Method<th>Path<th>What it does</thead><tbody>{}</tbody></table>"
        "</main></html>",
        rows,
    )


class NotThere(APIView):
    """Any other address below the interface, answered like the rest of it."""

    permission_classes = ()
    authentication_classes = ()
    throttle_classes = ()
    schema = None

    def dispatch(self, request, *args, **kwargs):
        self.headers = {}
        request = self.initialize_request(request, *args, **kwargs)
        answer = problem(
            404, "There is no such resource; every address ends in a slash or a file name. See /api/v1/docs/."
        )
        return self.finalize_response(request, answer, *args, **kwargs)
