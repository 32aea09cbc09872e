"""Which kind of answer counts in which place: one expected cell each, compared with the running code, and each cell broken by a fault."""

import json
import random
from dataclasses import replace
from types import SimpleNamespace

import pytest
from django.db.models import Count, Q
from django.utils import timezone

from analysis.data import frames, planned_labels
from analysis.data.exports import jsonl_blocks_with_summary_line
from analysis.data.flat_rows import Selection, annotator_pseudonym
from analysis.exclusions import FAIL, PASS, AssignmentFlags, screening
from analysis.metrics import scoring as scoring_rows
from analysis.planning import pilots
from analysis.protocols.two_choice.labels import read_comparison_labels
from analysis.report import report_data
from analysis.report.build import analysis_contexts, validate_parameters
from analysis.report.stopping import compute_stopping_state
from analysis.stats import sequential
from annotators import counting
from annotators.counting import Use, select
from annotators.models import Assignment, PageVisit
from annotators.pages.record import full_page_state
from annotators.participation.withdrawal import withdraw_annotator_and_erase_texts
from annotators.places import assign, exclusions
from studies.models import ExclusionRule, Item, Question, Section, Study
from studies.models.design import REGISTRY, Rule
from studies.services.known_answers import KnownAnswerRequest as Request
from studies.services.known_answers import (
    create_practice_item_and_delete_test_runs,
    delete_test_question_and_test_runs,
    make_test_questions_and_delete_test_runs,
)
from tests.builders import add_choice, draft_study, launched, painted, user
from tests.players import answered, claimed, submitted

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("module_transaction")]

# Who each kind of answer comes from. A place counts a kind ("x"), or not (".").
PLACES = ("stopping", "headline", "kept", "paper", "scores", "boards", "pilots", "exports", "progress", "target")
CELLS = {
    "finished":        "x x x x x x x x x x",
    "expired":         "x x . . . . . x . .",
    "late":            "x x . . . . . x . .",
    "failed_checks":   ". . . . . . . x . .",
    "screened_out":    ". . . . . . . x . .",
    "withdrawn":       ". . . . . . . . . x",
    "excluded":        ". . . . . . . x x x",
    "blind_rule":      ". . . . . . . x x x",
    "outcome_rule":    "x x x . x x x x x x",
    "unseen_tick":     ". . . . . . . x x x",
    "unseen_answered": ". . . . . . . x x x",
    "robot":           ". . . . . . . . . .",
    "imported":        ". . . . x x x x . .",
    "test":            ". . . . . . . . . .",
    "open":            ". . . . . . . x . .",
    "practice":        ". . . . . . . x x x",
    "test_questions":  ". . . . . . . x x x",
}  # fmt: skip
EXPECTED = {
    (kind, place): cell == "x" for kind, row in CELLS.items() for place, cell in zip(PLACES, row.split(), strict=True)
}
# Whose only answers without a tick are those to items of this kind. Exports say the kind.
ITEM_KINDS = {"practice": Item.Kind.PRACTICE, "test_questions": Item.Kind.TEST}
# Answers with a tick have no value, so nothing scores them in any count.
WITHOUT_A_VALUE = {("unseen_tick", place) for place in ("kept", "paper", "scores", "boards", "pilots")}


def _flag_kind(kind):
    """A rule that fails the assignments of one kind."""

    def flag(rule_input):
        flags = AssignmentFlags()
        own = set(Assignment.objects.filter(external_ids__kind=kind).values_list("pk", flat=True))
        for pk in rule_input.submitted:
            flags.add(pk, FAIL if pk in own else PASS)
        return flags

    return flag


@pytest.fixture(scope="module", autouse=True)
def rules():
    added = {
        "blind_rule": Rule("blind_rule", "blind", _flag_kind("blind_rule")),
        "outcome_rule": Rule("outcome_rule", "outcome", _flag_kind("outcome_rule"), is_outcome_blind=False),
    }
    REGISTRY.update(added)
    yield
    for slug in added:
        del REGISTRY[slug]


def _two_answers(study, kind):
    """Somebody who answered two of three pages that count or test, so at least one that counts."""
    assignment = submitted(study, kind, random.Random(kind), until="s2.p3")
    Assignment.objects.filter(pk=assignment.pk).update(external_ids={"kind": kind})
    return assignment


def _done(study, kind, *, ticked=()):
    """Somebody who answered all pages, and ticked on those with items of these kinds that the image was not seen."""
    assignment = claimed(study, kind)
    Assignment.objects.filter(pk=assignment.pk).update(external_ids={"kind": kind})
    while key := full_page_state(assignment).next_key:
        step = full_page_state(assignment).steps[key]
        slots = step.page_fields()
        shown = [item.id for item in step.page.items] if slots else []
        is_ticked = Item.objects.filter(pk__in=shown, kind__in=ticked).exists()
        changes = dict.fromkeys(slots, "") | {f"unseen.i{key[-1]}": "1"} if is_ticked else {}
        assert answered(assignment, key, random.Random(kind), **changes).sent is None
        assignment = Assignment.objects.select_related("study").get(pk=assignment.pk)
    return assignment


@pytest.fixture(scope="module")
def study_pk(rules, module_transaction, tmp_path_factory):
    folder = tmp_path_factory.mktemp("media")
    from django.test import override_settings

    with override_settings(MEDIA_ROOT=folder):
        study = draft_study(systems=("alpha", "beta"), prompts=60, target_n=24, instructions="", owner=user())
        add_choice(study, m=1).questions.update(key="practised")
        training = study.sections.get()
        Section.objects.filter(pk=training.pk).update(purpose="training")
        training.refresh_from_db()
        study.contrasts.all().delete()  # the section that counts plans them
        section = add_choice(study, position=2, m=2, positive_share=0.5)
        ((name,),) = painted((40,), 1, folder)
        study.prompts.update(media=name)
        outputs = study.prompts.first().outputs.all()
        create_practice_item_and_delete_test_runs(training, outputs, given={"practised": "first"}, by=user())
        request = Request(section.questions.get(), {"positive": 40}, reference=study.systems.get(name="alpha"))
        make_test_questions_and_delete_test_runs(section, request, by=user())
        # Those with the two systems could count for the comparison.
        of_two = section.items.alias(n=Count("exposures__output__system", distinct=True)).filter(n=2)
        for item in section.items.filter(kind="test").exclude(pk__in=of_two):
            delete_test_question_and_test_runs(item, user())
        for position, slug in enumerate(("blind_rule", "outcome_rule"), 1):
            ExclusionRule.objects.create(study=study, position=position, rule=slug, role="primary")
        study = launched(study)
        for kind in ("finished", "excluded", "blind_rule", "outcome_rule", "robot", "imported", "test"):
            _done(study, kind)
        for kind in ("robot", "imported", "test"):
            study.assignments.filter(external_ids__kind=kind).update(origin=kind)
        exclusions.exclude_assignments(study.assignments.filter(external_ids__kind="excluded"), "own_wish", user())
        _done(study, "unseen_tick", ticked=Item.Kind.values)
        for kind, own in ITEM_KINDS.items():
            _done(study, kind, ticked=set(Item.Kind.values) - {own})
        seen = _done(study, "unseen_answered")
        for visit in PageVisit.objects.filter(assignment=seen, recorded_at__isnull=False, key__regex=r"\.p\d$"):
            PageVisit.objects.filter(pk=visit.pk).update(unseen=f"i{visit.key[-1]}")
        withdraw_annotator_and_erase_texts(_done(study, "withdrawn"))
        for kind in ("expired", "failed_checks", "screened_out"):
            assign.release_assignment(_two_answers(study, kind).pk, kind)
        late = _two_answers(study, "late")
        assign.release_assignment(late.pk, "expired")
        Assignment.objects.filter(pk=late.pk).update(submitted_at=timezone.now(), is_late=True)
        _two_answers(study, "open")
    return study.pk


@pytest.fixture
def study(study_pk):
    return Study.objects.get(pk=study_pk)


def _names(study) -> dict[str, str]:
    rows = study.assignments.values_list("external_ids", "annotator__code", "annotator_id")
    return {
        name: ids["kind"]
        for ids, code, annotator in rows
        for name in (annotator_pseudonym(study, code), str(annotator))
    }


def _is_about(kind: str, row: dict) -> bool:
    """Whether an exported answer is of this kind, by what the export says of it."""
    return kind not in ITEM_KINDS or (row["item_kind"] == ITEM_KINDS[kind] and not row["skip_reason"])


def counted(study, monkeypatch) -> set[tuple[str, str]]:
    """The cells that the code counts now."""
    units: list[str] = []
    real = sequential.annotator_means_in_claim_order

    def spy(*args, **options):
        found = real(*args, **options)
        units.extend(found.annotators)
        return found

    monkeypatch.setattr(sequential, "annotator_means_in_claim_order", spy)

    def units_of(compute):
        units.clear()
        compute()
        return list(units)

    data = report_data.read_report_data(study, ["live"])
    (context,) = analysis_contexts(data, validate_parameters(None, study), "seed", [])
    labels = []
    found = {
        "stopping": units_of(lambda: compute_stopping_state(study)),
        "headline": units_of(
            lambda: [labels.extend(read_comparison_labels(context, data.claims, one)) for one in context.sections]
        ),
    }
    for place in ("kept", "paper"):
        with_value = [rows[rows["value"].notna()] for rows in (getattr(label, place) for label in labels)]
        found[place] = [name for rows in with_value for name in rows["annotator"]]
    questions = Question.objects.filter(section__study=study)
    scored = scoring_rows.read_answers_of_questions(study, questions)
    found["scores"] = [name for rows in scored for name in rows["annotator"]]
    found["boards"] = scoring_rows.read_scored_rows(study, scoring_rows.find_criteria(study))["annotator"]
    answers, _ = pilots.headline_answers_of(study)
    found["pilots"] = [name for _, headline in answers for name in headline.annotators]

    text = b"".join(jsonl_blocks_with_summary_line("responses", Selection(study))).decode()
    exported = [json.loads(line) for line in text.splitlines()[:-1]]
    live = Assignment.objects.filter(study=study)
    for place, use in (("progress", Use.PROGRESS), ("target", Use.TARGET)):
        found[place] = select(use, live, ["live"]).values_list("annotator_id", flat=True)
    # An export names nobody who withdrew.
    names = _names(study) | {"None": "withdrawn"}
    found["exports"] = [row["annotator"] for row in exported if _is_about(names[str(row["annotator"])], row)]
    return {(names[str(name)], place) for place, people in found.items() for name in people}


@pytest.mark.slow
def test_each_kind_of_answer_counts_where_it_should_and_nowhere_else(study, monkeypatch):
    expected = {cell for cell, counts in EXPECTED.items() if counts}
    assert counted(study, monkeypatch) == expected
    assert len(EXPECTED) == len(CELLS) * len(PLACES) == 170


# Faults: what each breaks, as a change of one function or one fact.


def _forgetting(*facts):
    """``select`` does not know these facts."""
    real = counting._with_prefix

    def without(condition, prefix):
        changed = real(condition, prefix)
        changed.children = [
            child
            for child in changed.children
            if not isinstance(child, tuple)
            or not any(child[0].split("__")[0 if not prefix else 1] == fact for fact in facts)
        ]
        return changed

    return without


def _unfinished_work_is_a_result(patch):
    real = planned_labels._claims

    def claims(*args):
        return {pk: claim | {"is_settled": True, "is_submitted": True} for pk, claim in real(*args).items()}

    patch.setattr(planned_labels, "_claims", claims)
    patch.setattr(report_data.ReportData, "submitted", property(lambda data: data.assignments["assignment"].tolist()))
    patch.setattr(screening, "MANDATORY_RULES", ("manual",))


def _everything_is_live(patch):
    """Nothing knows the purpose of a section and the kind of an item."""
    responses, from_db, items = report_data.responses_frame, Section.from_db, Item.objects
    kinds = SimpleNamespace(LIVE=Item.Kind.LIVE, TEST="another kind")

    def all_live(*args):
        found = responses(*args)
        return replace(found, rows=found.rows.assign(purpose="live", kind="live"))

    def live_section(cls, *args):
        section = from_db(*args)
        section.purpose = "live"
        return section

    def of_any_kind(kind="", section__purpose="", **wanted):
        return items.filter(**wanted)

    patch.setattr(report_data, "responses_frame", all_live)
    patch.setattr(Section, "from_db", classmethod(live_section))
    patch.setattr(frames, "Item", SimpleNamespace(Kind=kinds))
    patch.setattr(planned_labels, "Item", SimpleNamespace(Kind=kinds, objects=SimpleNamespace(filter=of_any_kind)))
    patch.setattr(scoring_rows, "scored_sections", lambda study: list(study.sections.all()))


FAULTS = {
    "a withdrawal is forgotten": lambda m: (
        m.setattr(counting, "_with_prefix", _forgetting("withdrawn_at")),
        m.setattr(planned_labels, "WITHDRAWN", ""),
    ),
    "unfinished work counts": lambda m: m.setattr(
        counting, "_with_prefix", _forgetting("submitted_at", "is_late", "released_at")
    ),
    "origins are forgotten": lambda m: m.setattr(counting, "_with_prefix", _forgetting("origin")),
    "refused work counts": lambda m: m.setattr(planned_labels, "REFUSED_REASONS", frozenset()),
    "no rule excludes": lambda m: [
        m.setattr(module, "excluding_rules", lambda *a, **o: []) for module in (screening, planned_labels)
    ],
    "unseen answers count": lambda m: [
        m.setattr(module, "left_out_answer_ids", lambda *a, **o: set()) for module in (report_data, planned_labels)
    ],
    "unseen ticks are units": lambda m: m.setattr(planned_labels, "UNSEEN", "another reason"),
    "practice and test questions are live": _everything_is_live,
    "unfinished work is a result": _unfinished_work_is_a_result,
    "nobody counts": lambda m: (
        m.setattr(planned_labels, "reasons_against", lambda *a: "fault"),
        m.setattr(planned_labels, "reasons_against", lambda *a: "fault"),
        m.setattr(report_data, "kept_by", lambda *a, **o: []),
    ),
    "nothing is selected": lambda m: m.setattr(counting, "_with_prefix", lambda *a: Q(pk__in=[])),
}


@pytest.mark.slow
def test_each_cell_is_broken_by_a_fault(study, monkeypatch):
    expected, broken = {cell for cell, counts in EXPECTED.items() if counts}, set()
    for fault, breaks in FAULTS.items():
        with monkeypatch.context() as patch:
            breaks(patch)
            changed = counted(study, patch) ^ expected
        assert changed, f"nothing notices that {fault}"
        broken |= changed
    assert EXPECTED.keys() - broken - WITHOUT_A_VALUE == set()
