"""The database refuses what must never be: each named constraint is broken once, by a row that is wrong in that way alone."""

from datetime import timedelta

import pytest
from django.apps import apps
from django.db import IntegrityError, models, transaction

from analysis.models import AnalysisRun, Figure, IdempotentRequest, ReportAnswer, ReportLink, StudiesComparison
from annotators.models import (
    Annotator,
    Assignment,
    Exclusion,
    Inquiry,
    PageVisit,
    PanelBar,
    PanelEvent,
    PanelPlan,
    PanelTask,
    Recruitment,
    RecruitmentArm,
    Response,
    SampleValue,
)
from studies.models import (
    Arm,
    ArmSystem,
    Batch,
    ComparisonFamily,
    Contrast,
    Design,
    ExclusionRule,
    Expected,
    Exposure,
    Item,
    Job,
    Output,
    Placement,
    Prompt,
    Qualification,
    Question,
    ResearcherFacts,
    Section,
    SectionArm,
    Study,
    StudyMember,
    System,
    Translation,
)
from tests.studies.models.coding_cases import CODING_AND_TOKEN_CASES
from tests.studies.models.event_cases import EVENT_CASES
from tests.studies.models.judge_cases import JUDGE_CASES
from tests.studies.models.metric_cases import METRIC_CASES
from tests.studies.models.plan_cases import PLAN_CASES
from tests.studies.models.rows import (
    NOW,
    about_checks,
    appeal,
    at_panel,
    attempt,
    barring,
    column,
    order,
    other,
    outcome_pay,
    payment,
    qualification,
    rejection,
    saved,
    second_qualification,
    secret,
    submission,
    taken_back,
    verdict,
)

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]
# constraint: (model, what would be stored) from the world


def translation(**columns):
    return Translation(**{"language": "el", "version": "v", "text": "words"} | columns)


CASES = {
    "study_state_agrees_with_its_times": lambda w: (Study, {"pk": w["study"].pk}, {"launched_at": NOW}),
    "study_gives_at_least_one_batch": lambda w: (Study, {"pk": w["study"].pk}, {"batches_per_annotator": 0}),
    "study_cap_is_at_least_its_target": lambda w: (Study, {"pk": w["study"].pk}, {"target_cap": 1}),
    "study_pays_nothing_below_zero": lambda w: (Study, {"pk": w["study"].pk}, {"reward": -1}),
    "design_version_once_per_study": lambda w: Design(study=w["study"], version=1, canonical="", sha256=""),
    "design_amendment_has_a_reason": lambda w: Design(study=w["study"], version=2, canonical="", sha256=""),
    "member_once_per_study": lambda w: StudyMember(study=w["study"], user=w["researcher"], role="viewer"),
    "system_name_once_per_study": lambda w: System(study=w["study"], name="alpha"),
    "system_has_a_name": lambda w: System(study=w["study"], name=""),
    "researcher_pays_nothing_below_zero": lambda w: ResearcherFacts(user=w["researcher"], full_pay=-1),
    "arm_name_once_per_study": lambda w: Arm(study=w["study"], name="all"),
    "arm_pays_nothing_below_zero": lambda w: Arm(study=w["study"], name="new", reward=-1),
    "arm_system_once": lambda w: ArmSystem(arm=w["arm"], system=w["study"].systems.first()),
    "section_position_once_per_study": lambda w: Section(study=w["study"], position=1, protocol="spa"),
    "section_does_not_reuse_itself": lambda w: (Section, {"pk": w["spa"].pk}, {"reuses_id": w["spa"].pk}),
    "section_pass_mark_is_above_zero": lambda w: Section(
        study=w["study"], position=90, protocol="survey", purpose="screening", pass_mark=0
    ),
    "section_with_a_pass_mark_does_not_count_in_the_results": lambda w: Section(
        study=w["study"], position=90, protocol="survey", pass_mark=1
    ),
    "section_qualifies_only_with_a_pass_mark": lambda w: Section(
        study=w["study"], position=90, protocol="survey", purpose="screening", qualification=qualification(w)
    ),
    "section_is_the_only_test_of_its_study": lambda w: (
        Section(study=w["study"], position=90, protocol="survey", purpose="screening", pass_mark=1).save()
        or Section(study=w["study"], position=91, protocol="survey", purpose="screening", pass_mark=1)
    ),
    "translation_once": lambda w: translation().save() or translation(),
    "translation_has_text": lambda w: translation(text=""),
    "qualification_name_once_per_owner": second_qualification,
    "qualification_has_a_name": lambda w: Qualification(owner=w["researcher"], name="", valid_days=30),
    "qualification_is_valid_for_a_day_or_longer": lambda w: Qualification(
        owner=w["researcher"], name="reads", valid_days=0
    ),
    "qualification_attempt_once_per_number": lambda w: attempt(w).save() or attempt(w),
    "qualification_attempt_is_the_first_or_second": lambda w: attempt(w, number=3),
    "qualification_attempt_has_no_more_right_than_asked": lambda w: attempt(w, n_right=3),
    "section_arm_once": lambda w: SectionArm(section=w["spa"], arm=w["arm"]),
    "question_position_once_per_section": lambda w: Question(section=w["spa"], position=1, key="new", text="t"),
    "question_key_once_per_section": lambda w: Question(section=w["spa"], position=99, key=w["question"].key, text="t"),
    "question_has_both_x_and_y_or_neither": lambda w: Question(
        section=w["spa"], position=99, key="n", text="t", x=w["question"].x
    ),
    "contrast_is_of_two_systems_or_two_conditions_or_none": lambda w: Contrast(
        study=w["study"], x=w["question"].x, y=w["question"].x, criterion="new"
    ),
    "contrast_expected_is_a_sign": lambda w: Contrast(study=w["study"], expected="?", estimand="e"),
    "contrast_population_is_a_choice": lambda w: Contrast(study=w["study"], population="all", estimand="e"),
    "contrast_hypothesis_has_what_it_needs": lambda w: Contrast(
        study=w["study"], hypothesis="noninferiority", margin=0.1, estimand="e"
    ),
    "contrast_margin_is_positive": lambda w: Contrast(study=w["study"], margin=0, estimand="e"),
    "comparison_family_once_per_study": lambda w: ComparisonFamily(study=w["study"], name="primary"),
    "comparison_family_has_a_name": lambda w: ComparisonFamily(study=w["study"], name=""),
    "comparison_family_is_not_after_itself": lambda w: ComparisonFamily(study=w["study"], name="a", after="a"),
    "comparison_family_adjustment_is_a_choice": lambda w: ComparisonFamily(
        study=w["study"], name="a", adjustment="none"
    ),
    "contrast_level_is_below_one_half": lambda w: Contrast(study=w["study"], level=0.5, estimand="e"),
    "contrast_once_per_section_also_reversed": lambda w: Contrast(
        study=w["study"], section=w["spa"], x=w["contrast"].y, y=w["contrast"].x
    ),
    "contrast_once_per_study_also_reversed": lambda w: Contrast(study=w["study"], x=w["contrast"].y, y=w["contrast"].x),
    "contrast_of_conditions_once_per_section": lambda w: Contrast(
        study=w["study"], section=w["spa"], x_condition="examples", y_condition="none"
    ),
    "contrast_of_conditions_once_per_study": lambda w: Contrast(
        study=w["study"], x_condition="examples", y_condition="none"
    ),
    "exclusion_rule_once_per_study": lambda w: ExclusionRule(study=w["study"], rule="late"),
    "prompt_key_once_per_study": lambda w: Prompt(study=w["study"], key=w["prompt"].key),
    "prompt_has_a_key": lambda w: Prompt(study=w["study"], key=""),
    "output_sample_once_per_system_and_prompt": lambda w: Output(
        system=w["outputs"][0].system, prompt=w["prompt"], text="t"
    ),
    "output_is_exactly_one_of_text_media_empty": lambda w: Output(
        system=w["outputs"][0].system, prompt=w["prompt"], sample=5
    ),
    "item_number_once_per_section": lambda w: Item(
        study=w["study"], section=w["spa"], number=1, prompt=w["prompt"], content="d"
    ),
    "item_is_the_same_thing_judged_once": lambda w: Item(
        study=w["study"], section=w["spa"], number=2, prompt=w["prompt"], content="c" * 64
    ),
    "exposure_output_once_per_item": lambda w: Exposure(item=w["item"], output=w["outputs"][0], number=9),
    "exposure_number_once_per_item": lambda w: Exposure(
        item=w["item"],
        number=0,
        output=Output.objects.create(system=w["outputs"][0].system, prompt=w["prompt"], sample=1, text="t"),
    ),
    "expected_once_per_item_and_question": lambda w: Expected(item=w["item"], question=w["question"], low=0, high=1),
    "expected_is_a_range_or_an_exposure": lambda w: Expected(
        item=w["item"], question=w["spa"].questions.last(), low=1, high=0
    ),
    "expected_is_about_an_output_only_with_a_range": lambda w: Expected(
        item=w["item"],
        question=w["spa"].questions.last(),
        exposure=w["item"].exposures.first(),
        about=w["item"].exposures.first(),
    ),
    "item_test_type_only_of_test_questions": lambda w: Item(
        study=w["study"], section=w["spa"], number=8, prompt=w["prompt"], content="t", test_type="positive"
    ),
    "batch_number_once_per_study": lambda w: Batch(study=w["study"], arm=w["arm"], number=0),
    "batch_key_once_per_study": lambda w: Batch(study=w["study"], arm=w["arm"], number=1, key="k"),
    "batch_claimed_at_most_wanted": lambda w: (Batch, {"pk": w["batch"].pk}, {"claimed": 3}),
    "placement_number_once_per_batch": lambda w: Placement(
        batch=w["batch"],
        number=0,
        item=Item.objects.create(study=w["study"], section=w["spa"], number=7, prompt=w["prompt"], content="e"),
    ),
    "placement_item_once_per_batch": lambda w: Placement(batch=w["batch"], item=w["item"], number=5),
    "job_request_token_once": lambda w: Job(kind="x", request_token="t"),
    "job_runs_under_a_lease": lambda w: Job(kind="x", state="running"),
    "job_ended_has_a_time": lambda w: Job(kind="x", state="done"),
    "recruitment_key_once": lambda w: Recruitment(study=w["study"], channel="open_link", key=w["recruitment"].key),
    "recruitment_closes_after_it_opens": lambda w: Recruitment(
        study=w["study"], channel="open_link", opens_at=NOW, closes_at=NOW - timedelta(days=1)
    ),
    "recruitment_pays_nothing_below_zero": lambda w: Recruitment(study=w["study"], channel="open_link", reward=-1),
    "recruitment_arm_once": lambda w: RecruitmentArm(recruitment=w["recruitment"], arm=w["arm"]),
    "annotator_once_per_pool": lambda w: Annotator(pool="p", external_id="x"),
    "assignment_ordinal_once_among_unreleased": lambda w: Assignment(
        study=w["study"],
        annotator=w["annotator"],
        design=w["design"],
        started_at=NOW,
        submitted_at=NOW,
        batch=Batch.objects.create(study=w["study"], arm=w["arm"], number=1),
    ),
    "assignment_one_at_a_time_per_annotator": lambda w: Assignment(
        study=w["study"],
        annotator=w["annotator"],
        design=w["design"],
        started_at=NOW,
        ordinal=2,
        batch=Batch.objects.create(study=w["study"], arm=w["arm"], number=1),
    ),
    "assignment_once_per_batch_and_annotator": lambda w: Assignment(
        study=w["study"],
        annotator=w["annotator"],
        design=w["design"],
        batch=w["batch"],
        ordinal=2,
        started_at=NOW,
        released_at=NOW,
        released_reason="expired",
    ),
    "assignment_shares_preferences_only_with_a_consent": lambda w: other(w, shares_preferences=True, consented_at=None),
    "assignment_holds_no_id_of_a_person": lambda w: other(w, external_ids={"person": "y", "session": "s"}),
    "assignment_queue_number_once_per_study": lambda w: (
        Assignment.objects.filter(pk=w["assignment"].pk).update(queue_number=1) and other(w, queue_number=1)
    ),
    "assignment_is_judged_out_only_when_judged": lambda w: other(w, judged_out="manual"),
    "assignment_has_a_batch_unless_full": lambda w: other(w, batch=None),
    "assignment_is_released_with_a_reason": lambda w: other(w, released_at=NOW),
    "assignment_is_submitted_after_it_started": lambda w: other(w, submitted_at=NOW - timedelta(hours=1)),
    "assignment_is_late_only_when_released_and_submitted": lambda w: other(w, is_late=True),
    "assignment_withdrawn_is_released_or_submitted": lambda w: other(w, withdrawn_at=NOW),
    "assignment_has_a_design_unless_a_test": lambda w: other(w, design=None),
    "page_visit_once_per_assignment": lambda w: PageVisit(assignment=w["assignment"], key="s1"),
    "page_draft_is_cleared_when_recorded": lambda w: PageVisit(
        assignment=w["assignment"], key="s2", draft={}, shown_at=NOW, recorded_at=NOW
    ),
    "page_names_unseen_images_only_when_recorded": lambda w: PageVisit(
        assignment=w["assignment"], key="s2", unseen="i1.A"
    ),
    "page_is_recorded_after_it_was_shown": lambda w: PageVisit(
        assignment=w["assignment"], key="s2", shown_at=NOW, recorded_at=NOW - timedelta(hours=1)
    ),
    "response_once_per_slot": lambda w: Response(
        assignment=w["assignment"], question=w["question"], slot="s1.q1", value=4
    ),
    "response_is_answered_or_erased": lambda w: Response(
        assignment=w["assignment"], question=w["question"], slot="s1.q2"
    ),
    "response_about_an_exposure_is_about_its_item": lambda w: Response(
        assignment=w["assignment"], question=w["question"], slot="s1.q2", value=1, exposure=w["exposures"][0]
    ),
    "exclusion_reversed_once": lambda w: Exclusion(
        assignment=w["assignment"], reason="again", by=w["researcher"], reverses=w["exclusion"]
    ),
    "exclusion_does_not_reverse_itself": lambda w: Exclusion(
        pk=9001, assignment=w["assignment"], reason="r", by=w["researcher"], reverses_id=9001
    ),
    "exclusion_has_a_reason": lambda w: Exclusion(assignment=w["assignment"], reason="", by=w["researcher"]),
    "inquiry_says_something": lambda w: Inquiry(assignment=w["assignment"], kind="report", text=""),
    "inquiry_is_answered_whole_or_not_at_all": lambda w: Inquiry(
        assignment=w["assignment"], kind="report", text="Why?", answered_by=w["researcher"], answered_at=NOW
    ),
    "panel_secret_once_per_recruitment": lambda w: secret(w).save() or secret(w),
    "panel_task_once_per_recruitment": lambda w: (
        PanelTask(recruitment=w["recruitment"], external_id="T").save()
        or PanelTask(recruitment=w["recruitment"], external_id="T")
    ),
    "panel_task_has_an_id": lambda w: PanelTask(recruitment=w["recruitment"], external_id=""),
    "panel_submission_once_per_person": lambda w: submission(w).save() or submission(w),
    "panel_submission_has_an_id": lambda w: submission(w, external_id=""),
    "panel_submission_state_is_known": lambda w: submission(w, state="gone"),
    "panel_order_token_once": lambda w: order(w).save() or order(w),
    "panel_order_operation_is_known": lambda w: order(w, operation="steal"),
    "panel_order_that_left_has_a_time": lambda w: order(w, state="sent"),
    "panel_order_that_ended_has_a_time": lambda w: order(w, state="done", sent_at=NOW),
    "panel_plan_is_of_people": lambda w: PanelPlan(recruitment=w["recruitment"], people=0, round_places=1),
    "panel_bar_once_per_order": lambda w: (
        (bar := PanelBar(order=saved(order(w, token="b")), annotator=w["annotator"])).save()
        or PanelBar(order=bar.order, annotator=w["annotator"])
    ),
    "panel_event_once_per_source": lambda w: (
        PanelEvent(source="s", external_id="e").save() or PanelEvent(source="s", external_id="e")
    ),
    "sample_column_once_per_study": lambda w: column(w).save() or column(w),
    "sample_value_once_per_person": lambda w: (
        (value := SampleValue(column=saved(column(w)), annotator=w["annotator"], value="42")).save()
        or SampleValue(column=value.column, annotator=w["annotator"], value="43")
    ),
    "sample_value_says_something": lambda w: SampleValue(column=saved(column(w)), annotator=w["annotator"], value=""),
    # A link of the tests promises something for each outcome.
    "outcome_pay_once_per_recruitment": lambda w: outcome_pay(w),
    "outcome_pay_is_of_a_known_outcome_and_rule": lambda w: outcome_pay(w, rule="whim"),
    "outcome_pay_has_an_amount_exactly_where_its_rule_is_one": lambda w: outcome_pay(w, amount=1),
    "payment_number_once_per_kind": lambda w: payment(w).save() or payment(w),
    "payment_is_the_only_one_of_its_order": lambda w: (
        (sent := order(w)).save()
        or payment(w, way="bonus", order=sent).save()
        or payment(w, number=2, way="bonus", order=sent)
    ),
    "payment_is_above_zero": lambda w: payment(w, amount=0),
    "payment_has_a_currency": lambda w: payment(w, currency=""),
    "payment_is_of_a_known_kind_and_way": lambda w: payment(w, way="cheque"),
    "payment_by_hand_has_no_order": lambda w: (sent := order(w)).save() or payment(w, order=sent),
    "payment_ordered_has_an_order": lambda w: payment(w, way="bonus", state="ordered"),
    "payment_that_ended_has_a_time": lambda w: payment(w, state="paid"),
    "payment_that_nothing_promised_has_a_reason": lambda w: payment(w, kind="bonus"),
    "verdict_is_about_some_work": lambda w: verdict(w, assignment=None),
    "verdict_is_of_a_known_kind": lambda w: verdict(w, kind="doubt"),
    "verdict_rejects_known_work_with_a_reason": lambda w: verdict(w, kind="reject", category="c"),
    "verdict_takes_back_exactly_where_it_says_so": lambda w: verdict(w, kind="reverse"),
    "verdict_is_nobodys_exactly_where_it_was_made_at_the_panel": lambda w: verdict(w, by=None),
    "verdict_made_at_the_panel_once": lambda w: at_panel(w).save() or at_panel(w),
    "verdict_reversed_once": lambda w: taken_back(w).save() or taken_back(w),
    "verdict_does_not_reverse_itself": lambda w: verdict(w, pk=9001, kind="reverse", reverses_id=9001),
    "verdict_approves_a_submission_once": lambda w: (
        (sent := submission(w)).save() or verdict(w, submission=sent).save() or verdict(w, submission=sent)
    ),
    "verdict_approves_work_without_a_submission_once": lambda w: verdict(w).save() or verdict(w),
    "appeal_is_about_a_rejection_or_a_barring_or_failed_checks": lambda w: appeal(
        w, verdict=None, assignment=w["assignment"]
    ),
    "appeal_about_failed_checks_once_per_assignment": lambda w: about_checks(w).save() or about_checks(w),
    "barring_once_until_it_is_lifted": lambda w: barring(w, annotator=saved(barring(w)).annotator),
    "barring_rests_on_a_screening_or_on_a_decision_with_a_reason": lambda w: barring(w, reason=""),
    "barring_is_lifted_whole_or_not_at_all": lambda w: barring(w, lifted_at=NOW + timedelta(days=1)),
    "barring_has_a_known_scope": lambda w: barring(w, scope="site"),
    "barring_is_lifted_after_it_was_made": lambda w: barring(
        w, lifted_at=NOW - timedelta(days=1), lifted_by=w["researcher"], lift_reason="Enough."
    ),
    "appeal_says_something_until_it_is_answered": lambda w: appeal(w, text=""),
    "appeal_is_due_after_it_was_made": lambda w: appeal(w, due_at=NOW - timedelta(days=1)),
    "appeal_is_answered_whole_or_not_at_all": lambda w: appeal(w, answer="Yes."),
    "appeal_is_answered_by_another_than_who_rejected": lambda w: appeal(
        w, answer="No.", is_upheld=False, answered_at=NOW, answered_by=w["researcher"]
    ),
    "analysis_number_once_per_study": lambda w: AnalysisRun(
        study=w["study"],
        number=1,
        responses_n=0,
        responses_sha256="",
        code_version="",
        seed="",
        result={},
        result_sha256="",
    ),
    "report_answer_once_per_study": lambda w: ReportAnswer(
        study=ReportAnswer.objects.create(study=w["study"], key="ethics").study, key="ethics"
    ),
    "idempotent_request_once": lambda w: IdempotentRequest(
        caller=IdempotentRequest.objects.create(caller="t1", path="/", key="k", body="b").caller,
        path="/",
        key="k",
        body="b",
    ),
    "report_link_hash_once": lambda w: ReportLink(
        run=ReportLink.objects.create(run=w["run"], hash="h", expires_at=NOW).run, hash="h", expires_at=NOW
    ),
    "report_link_is_hashed": lambda w: ReportLink(run=w["run"], hash="", expires_at=NOW),
    "studies_comparison_number_once_per_study": lambda w: StudiesComparison(
        study=w["study"], number=1, result={}, result_sha256="", figure_svg="", figure_pdf=b""
    ),
    "figure_name_once_per_analysis": lambda w: Figure(run=w["run"], name="f", svg="", pdf=b""),
}
CASES |= CODING_AND_TOKEN_CASES | EVENT_CASES | METRIC_CASES | JUDGE_CASES | PLAN_CASES


def violates(name, error) -> bool:
    """SQLite names the columns of a broken plain unique constraint, not the constraint."""
    constraint = next(c for m in models_of_the_project() for c in m._meta.constraints if c.name == name)
    message = str(error)
    if name in message:
        return True
    columns = getattr(constraint, "fields", ())
    return bool(columns) and message.startswith("UNIQUE constraint failed") and all(f".{c}" in message for c in columns)


NOBODYS = "verdict_is_nobodys_exactly_where_it_was_made_at_the_panel"


@pytest.mark.parametrize(
    "columns",
    [
        {"category": "c"},
        {"submission": None},
        {"by": "somebody"},
        {"kind": "approve"},
        {"kind": "reverse", "reverses": "it"},
    ],
)
def test_nobody_decides_nothing_but_what_a_panel_rejected(columns, world):
    """Each part of that constraint by itself: it is the database that keeps a rejection here from being nobody's."""
    somebody = {"somebody": world["researcher"]}
    row = at_panel(world, **{name: somebody.get(value, value) for name, value in columns.items() if name != "reverses"})
    if "reverses" in columns:
        row.reverses = rejection(world)
    with pytest.raises(IntegrityError) as refused, transaction.atomic():
        models.Model.save_base(row, force_insert=True)
    assert violates(NOBODYS, refused.value), refused.value
    at_panel(world).save()


def models_of_the_project():
    return [m for m in apps.get_models() if m._meta.app_label in ("studies", "annotators", "analysis")]


@pytest.mark.parametrize("name", CASES)
def test_the_database_refuses(name, world):
    case = CASES[name](world)
    with pytest.raises(IntegrityError) as refused, transaction.atomic():
        if isinstance(case, tuple):
            models.QuerySet(case[0]).filter(**case[1]).update(**case[2])
        else:
            models.Model.save_base(case, force_insert=True)
    assert violates(name, refused.value), refused.value


def test_every_constraint_is_tried():
    declared = {constraint.name for model in models_of_the_project() for constraint in model._meta.constraints}
    assert declared == set(CASES)
