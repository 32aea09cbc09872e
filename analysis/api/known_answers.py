"""API views of items with known answers: the test questions of live sections, and the practice items of training sections."""

from collections.abc import Callable, Iterable
from typing import Any

from django.db.models import QuerySet
from django.http import QueryDict
from rest_framework import serializers
from rest_framework.generics import ListAPIView, RetrieveAPIView

from studies.design.draw import has_test_question_settings
from studies.design.known_answer_texts import DAMAGES
from studies.imports.check_files import (
    CHECK_LIMITS,
    QUESTION_LIMITS,
    attention_sections,
    read_test_question_file,
    store_attention_checks_and_delete_test_runs,
)
from studies.models import FIRST_TEST_NUMBER, Item, Output, Section, Study
from studies.protocols import REGISTRY
from studies.services.known_answers import (
    GivenQuestionsRefused,
    KnownAnswerRequest,
    create_practice_item_and_delete_test_runs,
    make_test_questions_and_delete_test_runs,
    questions_about_items,
    store_given_test_questions_and_delete_test_runs,
)
from studies.stimuli.rows import TableProblems

from .base import CreatedOrUnchangedMixin, PostMixin, StudyView, UploadMixin
from .renderers import FieldError, RowErrors, row_error, row_errors
from .serializers import (
    CleanTextField,
    ListedField,
    ListField,
    NameField,
    ObjectField,
    StrictBooleanField,
    StrictIntegerField,
    StrictMixin,
)
from .uploads import require_json_object

MAX_OF_TYPE = 500


class KnownAnswerSerializer(serializers.Serializer):
    """A right answer: a range about one text, or the text that is the better one."""

    question = serializers.CharField()
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    text = serializers.IntegerField(
        allow_null=True,
        help_text="Place in “texts”, from 1: of the better text, or of the text that the range is about.",
    )
    explanation = serializers.CharField(allow_blank=True)


class ShownTextSerializer(serializers.Serializer):
    system = serializers.CharField()
    text = serializers.CharField(allow_blank=True)


class KnownItemSerializer(serializers.Serializer):
    """An item with a known answer."""

    id = serializers.IntegerField()
    section = serializers.IntegerField(help_text="Position of the section.")
    prompt = serializers.CharField()
    type = serializers.CharField(
        allow_blank=True, help_text="Of a test question: positive, negative, damaged or given."
    )
    texts = ShownTextSerializer(many=True)
    right = KnownAnswerSerializer(many=True)

    def to_representation(self, item: Item) -> dict[str, Any]:
        exposures = sorted(item.exposures.all(), key=lambda exposure: exposure.number)
        places = {exposure.pk: place for place, exposure in enumerate(exposures, 1)}
        return {
            "id": item.pk,
            "section": item.section.position,
            "prompt": item.prompt.key if item.prompt else "",
            "type": item.test_type,
            "texts": [{"system": one.output.system.name, "text": one.output.text} for one in exposures],
            "right": [
                {
                    "question": known.question.key,
                    "low": known.low,
                    "high": known.high,
                    "text": places.get(known.exposure_id or known.about_id or exposures[0].pk),
                    "explanation": known.explanation,
                }
                for known in item.expected.all()
            ],
        }


class TestQuestionsRequestSerializer(StrictMixin, serializers.Serializer):
    """Which test questions are made of the study's texts, or what a file of them is about."""

    section = StrictIntegerField(
        required=False, allow_null=True, default=None, help_text="Position of the section. Default: the only live one."
    )
    question = NameField(
        required=False,
        allow_null=True,
        default=None,
        help_text="Key of a question of the section, or of one that repeats its items. Default: the only one.",
    )
    reference = NameField(required=False, allow_null=True, default=None, help_text="The system with right answers.")
    positive = StrictIntegerField(default=0, min_value=0, max_value=MAX_OF_TYPE)
    negative = StrictIntegerField(default=0, min_value=0, max_value=MAX_OF_TYPE)
    damaged = StrictIntegerField(default=0, min_value=0, max_value=MAX_OF_TYPE)
    damages = ListField(child=ListedField(DAMAGES), required=False, default=list, help_text="Default: all ways.")
    questions = ListField(
        child=ObjectField(),
        required=False,
        help_text="Instead of numbers: test questions with prompt, text, and expected (ratings) or worse (pairs).",
    )


class TestQuestionsFormSerializer(serializers.Serializer):
    """A form with a file of test questions."""

    file = serializers.FileField(help_text="CSV or JSON lines with prompt, text, and expected or worse.")
    settings = serializers.CharField(required=False, help_text="section and question, as one JSON object.")


class MadeTestQuestionsSerializer(serializers.Serializer):
    section = serializers.IntegerField()
    made = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="New ones of each type. Fewer than asked if too few prompts allow one.",
    )


class PracticeRequestSerializer(StrictMixin, serializers.Serializer):
    """A practice item: texts of one prompt, and the right answers."""

    section = StrictIntegerField(
        required=False, allow_null=True, default=None, help_text="Position. Default: the only training section."
    )
    prompt = NameField(max_length=100)
    systems = ListField(child=NameField(), help_text="Whose texts the page shows. Ranges are about the first.")
    right = ObjectField(
        required=False,
        default=dict,
        help_text="By question key: a number or a range such as “4-5”; “first” or “second”. Empty where authors decide.",
    )
    explanation = CleanTextField(required=False, default="", allow_blank=True)


def find_section(study: Study, position: int | None, fits: Callable[[Section], bool], kind: str) -> Section:
    """Return the section at this position, or the only one that fits. Raise RowErrors."""
    sections = [one for one in study.sections.select_related("study").order_by("position") if fits(one)]
    found = [one for one in sections if position in (None, one.position)]
    if len(found) == 1:
        return found[0]
    known = ", ".join(str(one.position) for one in sections)
    problem = (
        f"It is not clear which {kind} section is meant. Send one of these positions: {known}."
        if known
        else f"The study has no {kind} section that can have such items. Add one in the admin."
    )
    raise FieldError("section", problem)


def _find(rows: Iterable[Any], name: str, value: str | None, field: str) -> Any:
    """Return the row with this value, or the only row if no value was sent. Raise RowErrors with the possible values."""
    found = {getattr(row, name): row for row in rows}
    if value is None and len(found) == 1:
        return next(iter(found.values()))
    if value not in found:
        known = ", ".join(list(found)[:20])
        raise FieldError(field, f"The {field} has another name, or none was sent. Send one of these: {known}.")
    return found[value]


class KnownItemsView(StudyView, ListAPIView):
    """The items of one kind with their known answers."""

    tag = "stimuli"
    serializer_class = KnownItemSerializer
    success_status = 201
    kind: str

    def get_queryset(self) -> QuerySet[Item]:
        rows = Item.objects.filter(study=self.study, kind=self.kind, number__lt=FIRST_TEST_NUMBER)
        return rows.select_related("section", "prompt").prefetch_related(
            "exposures__output__system", "expected__question"
        )


class KnownAnswersView(UploadMixin, CreatedOrUnchangedMixin, KnownItemsView):
    """The test questions of a study. POST makes some from the texts of a draft, or stores a file of them, all or none."""

    summaries = {"GET": "Test questions", "POST": "Make test questions in a draft"}
    page_name = "TestQuestion"
    body_serializer_class = TestQuestionsRequestSerializer
    documented_body = {
        "application/json": TestQuestionsRequestSerializer,
        "multipart/form-data": TestQuestionsFormSerializer,
    }
    result_serializer_class = MadeTestQuestionsSerializer
    kind = Item.Kind.TEST
    rows_field, row_unit, max_file_bytes = "questions", "test question", QUESTION_LIMITS.bytes

    def read_body(self) -> dict[str, Any]:
        data = self.request.data
        is_file = isinstance(data, QueryDict) or "questions" in require_json_object(self.request)
        return super().read_body() if is_file else self.check_fields(data)

    def perform(self, filename: str = "", data: bytes | None = None, **sent: Any) -> tuple[dict[str, Any], bool]:
        section = find_section(self.study, sent["section"], _can_have_test_questions, Section.Purpose.LIVE)
        question = _find(questions_about_items(section), "key", sent["question"], "question")
        if data is not None:
            made = {Item.TestType.GIVEN.value: self._store_file(section, question, filename, data)}
        else:
            systems = self.study.systems.judged().order_by("name")
            reference = _find(systems, "name", sent["reference"], "reference") if sent["reference"] else None
            counts = {name: sent[name] for name in ("positive", "negative", "damaged")}
            wanted = KnownAnswerRequest(question, counts, reference, tuple(sent["damages"]) or DAMAGES)
            made = dict(make_test_questions_and_delete_test_runs(section, wanted, by=self.request.user))
        return {"section": section.position, "made": made}, any(made.values())

    def _store_file(self, section: Section, question: Any, filename: str, data: bytes) -> int:
        given = read_test_question_file(section, question, filename, data)
        if given.problems:
            raise RowErrors(row_errors(TableProblems(list(given.problems), given.n_problems)))
        try:
            return store_given_test_questions_and_delete_test_runs(
                section, question, given.questions, by=self.request.user
            )
        except GivenQuestionsRefused as refused:
            raise RowErrors([row_error(row, None, text) for row, text in refused.problems]) from None


def _can_have_test_questions(section: Section) -> bool:
    is_live_with_own_items = section.purpose == Section.Purpose.LIVE and section.reuses_id is None
    return is_live_with_own_items and has_test_question_settings(section)


def _can_have_practice_items(section: Section) -> bool:
    protocol = REGISTRY.get(section.protocol)
    return protocol is not None and bool(protocol.practice_answers) and section.purpose == Section.Purpose.TRAINING


class PracticeItemsView(PostMixin, KnownItemsView):
    """The practice items of a study. With a pass mark they are the test before the work. POST adds one to a draft."""

    summaries = {"GET": "Practice items", "POST": "Add a practice item to a draft"}
    page_name = "PracticeItem"
    body_serializer_class = PracticeRequestSerializer
    kind = Item.Kind.PRACTICE

    def perform(
        self, section: int | None, prompt: str, systems: list[str], right: dict[str, Any], explanation: str
    ) -> Item:
        found = find_section(self.study, section, _can_have_practice_items, Section.Purpose.TRAINING)
        outputs = self._outputs(prompt, systems)
        right = {str(key): str(value) for key, value in right.items()}
        item = create_practice_item_and_delete_test_runs(found, outputs, explanation, right, by=self.request.user)
        return self.get_queryset().get(pk=item.pk)

    def _outputs(self, prompt: str, systems: list[str]) -> list[Output]:
        """Return the outputs in the order of their systems. Raise RowErrors for a system without one."""
        rows = Output.objects.filter(prompt__study=self.study, prompt__key=prompt, system__name__in=systems)
        by_name = {one.system.name: one for one in rows.select_related("system").order_by("-sample")}
        errors = [
            row_error(
                number, "systems", f"“{name}” has no output for the prompt “{prompt}”. Correct the name or the prompt."
            )
            for number, name in enumerate(systems, 1)
            if name not in by_name
        ]
        if errors:
            raise RowErrors(errors)
        return [by_name[name] for name in systems]


# API view of the attention checks of a study.


class AttentionCheckSerializer(serializers.Serializer):
    section = serializers.IntegerField(source="section.position", help_text="Position of the section that holds it.")
    key = serializers.CharField()
    text = serializers.CharField()
    help = serializers.CharField(allow_blank=True)
    scale = serializers.DictField(help_text="The answers as options. Exactly one has is_right.")


class AttentionChecksSerializer(serializers.Serializer):
    checks = AttentionCheckSerializer(many=True)


class ChecksFieldsSerializer(StrictMixin, serializers.Serializer):
    """What a request says about its checks."""

    section = serializers.IntegerField(
        required=False,
        allow_null=True,
        default=None,
        help_text="Position of the section. Default: the only one that holds attention checks, or a new one.",
    )
    replaces = StrictBooleanField(
        default=False, help_text="true: a check may replace the one with the same key. false: this is refused."
    )


class ChecksRequestSerializer(ChecksFieldsSerializer):
    """Attention checks as JSON."""

    checks = ListField(
        child=ObjectField(),
        help_text="Each has key, text, answers (a list of texts), right (one of the answers), and optionally help.",
    )


class ChecksFormSerializer(serializers.Serializer):
    """Attention checks as a form with a file."""

    file = serializers.FileField(help_text="CSV or JSON lines. In a CSV, bars separate the answers.")
    settings = serializers.CharField(required=False, help_text="The other fields of the request, as one JSON object.")


class StoredChecksSerializer(serializers.Serializer):
    section = serializers.IntegerField()
    added = serializers.ListField(child=serializers.CharField(), help_text="Keys of new checks.")
    replaced = serializers.ListField(child=serializers.CharField(), help_text="Keys of checks with other words now.")
    unchanged = serializers.ListField(child=serializers.CharField(), help_text="Keys that were stored already.")


class AttentionChecksView(UploadMixin, CreatedOrUnchangedMixin, StudyView, RetrieveAPIView):
    """The attention checks of a study. POST stores some in a draft, all or none."""

    tag = "stimuli"
    summaries = {"GET": "Attention checks", "POST": "Store attention checks in a draft, all or none"}
    serializer_class = AttentionChecksSerializer
    body_serializer_class = ChecksFieldsSerializer
    documented_body = {"application/json": ChecksRequestSerializer, "multipart/form-data": ChecksFormSerializer}
    result_serializer_class = StoredChecksSerializer
    rows_field, row_unit, max_file_bytes = "checks", "question", CHECK_LIMITS.bytes

    def get_object(self) -> dict[str, Any]:
        sections = attention_sections(self.study)
        return {"checks": [question for section in sections for question in section.questions.all()]}

    def perform(self, filename: str, data: bytes, section: int | None, replaces: bool) -> tuple[Any, bool]:
        stored = store_attention_checks_and_delete_test_runs(
            self.study, filename, data, by=self.request.user, position=section, replaces=replaces
        )
        return stored, bool(stored.added or stored.replaced)
