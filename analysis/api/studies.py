"""API views of studies, their design, progress and sample."""

from typing import Any

from django.http import Http404
from rest_framework.response import Response
from rest_framework.views import APIView

from analysis.api.permissions import get_api_token
from annotators.places import assign, monitor
from annotators.recruitment import sample
from studies import access
from studies.access import Action
from studies.design.serialization import canonical_json, serialize_design, sha256_of
from studies.models import Design, Study
from studies.services import drafts

from . import serializers as shapes
from .base import StudyView, document_operation, page_serializer, require_json_object
from .query import Parameter, integer_parser, page_parameters, page_response, parse_single_line, read_query
from .renderers import RowErrors, row_error


class StudiesView(APIView):
    """List the studies in which you have a role, or create a draft."""

    parameters = (
        *page_parameters(),
        Parameter("state", parse_single_line, "Only studies in this state.", None, str, tuple(Study.State.values)),
    )

    @document_operation(
        "Studies that you have a role in", page_serializer("Study", shapes.StudySerializer), parameters=parameters
    )
    def get(self, request):
        values = read_query(request, self.parameters)
        known = access.filter_allowed(
            request.user, Study.objects.all(), Action.VIEW_BASICS, token=get_api_token(request)
        )
        studies = known.select_related("owner", "clone_of").filter(pk__gt=values["cursor"][0]).order_by("pk")
        if values["state"] is not None:
            studies = studies.filter(state=values["state"])
        roles = access.roles_by_study_id(request.user)
        rows = [(study.pk, _study_json(study, request.user, roles)) for study in studies[: values["page_size"] + 1]]
        return page_response(request, values, rows)

    @document_operation("Create a draft", shapes.StudySerializer, request=shapes.StudySerializer, status=201)
    def post(self, request):
        read_query(request, ())
        access.check_permission_or_404(request.user, Action.CREATE, token=get_api_token(request))
        serializer = shapes.StudySerializer(data=require_json_object(request))
        serializer.is_valid(raise_exception=True)
        serializer.validated_data.pop("version", None)
        study = drafts.create_draft_with_default_arm(Study(**serializer.validated_data), request.user)
        return Response(shapes.StudySerializer(_reload_study(study)).data, status=201)


class StudyDetailView(StudyView):
    """One study: texts for annotators, plan and state."""

    read_action = Action.VIEW_BASICS

    @document_operation("A study", shapes.StudySerializer)
    def get(self, request, code):
        return Response(_study_json(_reload_study(self.study), request.user))

    @document_operation(
        "Change fields of a draft", shapes.StudySerializer, request=shapes.StudySerializer(partial=True)
    )
    def patch(self, request, code):
        serializer = shapes.StudySerializer(self.study, data=require_json_object(request), partial=True)
        serializer.is_valid(raise_exception=True)
        changes = dict(serializer.validated_data)
        version = changes.pop("version", None)
        if changes.pop("code", self.study.code) != self.study.code:
            raise RowErrors([row_error(None, "code", "The code of a study cannot be changed. Leave this field out.")])
        study = drafts.update_draft(self.study, request.user, changes, version)
        return Response(shapes.StudySerializer(_reload_study(study)).data)


def _study_json(study: Study, user, roles: dict[int, str] | None = None) -> dict[str, Any]:
    """Return a study as JSON. Blind coders get only the public title, because the internal title can reveal hypotheses."""
    fields = shapes.StudySerializer(study).data
    if not access.may_read_draw(user, study):
        del fields["seed"]
    if access.is_allowed(user, Action.VIEW, study, roles):
        return fields
    return fields | {"title": study.public_title, "exclusion_group": "", "preparation": {}}


def _reload_study(study: Study) -> Study:
    return Study.objects.select_related("owner", "clone_of").get(pk=study.pk)


class StudyDesignView(StudyView):
    """A version of the frozen design as JSON text with its hash. For a draft, its current design."""

    parameters = (Parameter("version", integer_parser(1, 32767), "Design version. Default: the newest.", None, int),)

    @document_operation("The design as hashed JSON text", shapes.DesignSerializer, parameters=parameters)
    def get(self, request, code):
        access.check_draw_is_readable(request.user, self.study)
        designs = Design.objects.filter(study=self.study).order_by("-version")
        if self.values["version"] is not None:
            designs = designs.filter(version=self.values["version"])
        design = designs.first()
        if design is None and (self.values["version"] is not None or not self.study.is_draft):
            raise Http404
        if design is None:
            text = canonical_json(serialize_design(self.study))
            design = Design(version=None, canonical=text, sha256=sha256_of(text), at=None)  # type: ignore[misc]  # not stored
        return Response(shapes.DesignSerializer(design).data)


class ProgressView(StudyView):
    """Counts of places, and of assignments that were claimed, started, submitted, released or withdrawn."""

    @document_operation("Counts of places and assignments", shapes.ProgressSerializer)
    def get(self, request, code):
        counts = monitor.count_claims_by_state(self.study)
        total, _ = monitor.count_places_by_arm(self.study)
        progress = monitor.progress_by_study([self.study.pk]).get(self.study.pk)
        places = {"counted": progress.submitted if progress else 0, "places": total.wanted, "free": total.free}
        state = {"state": self.study.state, "target_n": self.study.target_n}
        test = assign.count_qualification_results(self.study)
        return Response({**state, **places, **counts, "late": total.late, "test": test})


class DemographicsView(StudyView):
    """Counts of the declared columns of a panel's demographic file. Values of single annotators are never sent."""

    @document_operation("Demographics of the sample, as counts", shapes.DemographicColumnSerializer(many=True))
    def get(self, request, code):
        return Response(
            shapes.DemographicColumnSerializer(sample.sample_demographics_table(self.study), many=True).data
        )


# Secret scanners recognise leaked tokens by this prefix. 256 random bits follow it.
