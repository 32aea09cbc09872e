"""Acts on links, answers, pay, panels, codings and analyses, as in ``acts_of_studies``."""

from datetime import timedelta
from decimal import Decimal

from django.utils import timezone

from analysis.api.tokens import create_token
from analysis.coding.codebook import EXPLANATIONS_CODEBOOK
from analysis.coding.samples import draw_coding_sample
from analysis.metrics.files import ScoresFileSettings
from analysis.metrics.store import MetricDescription, discard, upload_scores
from analysis.report.between_studies import run_comparison
from analysis.report.runs import run_analysis
from annotators.models import Appeal, Inquiry, PanelOrder, PanelTask, Payment, Recruitment, Verdict
from annotators.participation import link_actions, withdrawal
from annotators.pay import costs, decisions, files, ledger
from annotators.places import barrings, exclusions
from annotators.recruitment import sample
from annotators.recruitment.panels import http_client, orders, reconcile, stand_in, sync
from studies.access import Action
from studies.models import StudyMember
from studies.services import lifecycle
from tests import builders, players

from .acts_of_studies import Act, World, launched


def collected(owner) -> World:
    """A launched study with a panel's link, somebody who is done, somebody at work, and a question."""
    world = launched(owner)
    world.door = builders.panel(world.study)
    world.done = players.submitted(world.study, "done", recruitment=world.door, comment="It was vivid.")
    world.live = players.claimed(world.study, "live", recruitment=world.door)
    world.inquiry = Inquiry.objects.create(assignment=world.live, kind="question", text="?")
    return world


def two_closed_links(owner) -> World:
    """A closed study with two links, one person by each."""
    world = launched(owner)
    links = [builders.panel(world.study), builders.panel(world.study)]
    for number, link in enumerate(links):
        players.submitted(world.study, f"person {number}", recruitment=link)
    lifecycle.start_closing(world.study, by=None)
    lifecycle.end_grace_period(world.study, by=None)
    world.study.refresh_from_db()
    world.sent = {"studies": [f"{world.study.code}:{link.key}" for link in links]}
    return world


def excluded(owner) -> World:
    world = collected(owner)
    (world.exclusion,) = exclusions.exclude_assignments([world.done], "technical", owner)
    return world


def barred(owner) -> World:
    world = collected(owner)
    world.barring = barrings.bar_annotator(world.study, world.done.annotator, "Copies.", owner)
    return world


def upload(w, by):
    name, prompt = w.study.systems.first().name, w.study.prompts.first().key
    data = f"system,prompt,length\n{name},{prompt},1\n".encode()
    described = MetricDescription("metric", "1")
    return upload_scores(w.study, by, "s.csv", data, ScoresFileSettings(is_partial=True), described)


def scored(owner) -> World:
    world = launched(owner)
    (world.metric,) = upload(world, owner)
    return world


def close_it(w):
    lifecycle.start_closing(w.study, None)


def finish_it(w):
    lifecycle.start_closing(w.study, None)
    lifecycle.end_grace_period(w.study, None)
    w.study.refresh_from_db()


def leave_out(w, by):
    return exclusions.exclude_assignments([w.done], "technical", by)


def stored_promises(w):
    return {row.outcome: (row.rule, row.amount) for row in w.door.outcome_pays.all()}


def change_key(w, by):
    w.door.key = w.link.key.upper()
    return link_actions.update_link(w.door, by, ["key"], stored_promises(w))


def change_wanted(w, by):
    w.door.wanted = 5
    return link_actions.update_link(w.door, by, ["wanted"], stored_promises(w))


def promise(**promises):
    return lambda w, by: link_actions.update_link(
        w.door, by, [], {name: (rule, None) for name, rule in promises.items()}
    )


def unused(owner) -> World:
    world = collected(owner)
    world.link = builders.recruitment(world.study)
    return world


def settled(owner) -> World:
    world = collected(owner)
    ledger.update_ledger(world.door, by=None)
    world.payments = list(ledger.recruitment_payments(world.door).values_list("pk", flat=True))
    return world


def with_bonus(owner) -> World:
    world = collected(owner)
    give_bonus(world, owner)
    world.bonus = ledger.recruitment_payments(world.door).get(kind=Payment.Kind.BONUS).pk
    return world


def give_bonus(w, by):
    return ledger.add_extra_payments(
        w.door, [ledger.ExtraPayment(w.done, Decimal("1.00"), "Thank you.")], Payment.Kind.BONUS, by
    )


def ordered(owner) -> World:
    world = collected(owner)
    world.order = orders.get_or_create_order(world.door, "stop", "stop-1", by=None, task="T")
    return world


def unclear(owner) -> World:
    world = ordered(owner)
    PanelOrder.objects.update(state=PanelOrder.State.UNCLEAR, sent_at=timezone.now())
    return world


def by_file(owner) -> World:
    world = collected(owner)
    world.door.settings |= {"file_person": "Person"}
    world.door.reward = 0  # so that nothing is due for what the file shows
    world.door.save()
    return world


def declared(owner) -> World:
    world = collected(owner)
    sample.replace_demographic_columns(world.study, [("Age", "number", False)], by=owner)
    return world


def work_of(w):
    return decisions.get_work_by_assignment(w.door, w.done.pk)


def rejected(owner) -> World:
    world = collected(owner)
    Recruitment.objects.filter(pk=world.door.pk).update(reward=0)  # so that nobody is owed a compensation
    world.done.refresh_from_db()
    colleague = builders.user("a colleague")
    why = {"category": "c", "message": "m", "by": colleague}
    world.verdict = Verdict.objects.create(assignment=world.done, kind="reject", **why)
    due = timezone.now() + timedelta(days=9)
    world.appeal = Appeal.objects.create(verdict=world.verdict, rejected_by=colleague, text="Why?", due_at=due)
    return world


def with_coders(owner) -> World:
    study = builders.humanlike_draft(owner=owner, conditions=("none",), domains=("news",), target_n=2, m=4)
    world = World(study=builders.launched(study, owner))
    players.submitted(world.study, "done", comment="It was vivid, and the ending did not follow.")
    world.coders = [builders.user("carl"), builders.user("cora")]
    for coder in world.coders:
        StudyMember.objects.create(study=world.study, user=coder, role="coder")
    return world


def draw(w, by, n=2):
    return draw_coding_sample(
        w.study,
        kind="explanations",
        rule="union",
        codebook=EXPLANATIONS_CODEBOOK,
        per_arm=1,
        coders=w.coders[:n],
        by=by,
    )


ACTS = {
    "annotators/participation/link_actions:create_link": Act(
        Action.RECRUIT,
        "recruit",
        launched,
        lambda w, by: link_actions.create_link(Recruitment(study=w.study, channel="open_link"), by),
        spoil=finish_it,
    ),
    "annotators/participation/link_actions:update_link": Act(
        Action.RECRUIT, "change recruitment", unused, change_wanted, change_key
    ),
    "annotators/participation/link_actions:_store_promises": Act(
        Action.RECRUIT, "promise pay", collected, promise(full="all"), promise()
    ),
    "annotators/participation/link_actions:delete_link": Act(
        Action.RECRUIT,
        "delete recruitment",
        unused,
        lambda w, by: link_actions.delete_link(w.link, by),
        lambda w, by: link_actions.delete_link(w.door, by),
    ),
    "annotators/participation/link_actions:_set_stopped, stop": Act(
        Action.RECRUIT, "stop link", collected, lambda w, by: link_actions.stop_link(w.door, by), may_repeat=True
    ),
    "annotators/places/exclusions:exclude_assignments": Act(
        Action.MANAGE_ASSIGNMENTS,
        "exclude",
        collected,
        leave_out,
        lambda w, by: exclusions.exclude_assignments([w.live], "technical", by),
    ),
    "annotators/places/exclusions:create_exclusion_reversal": Act(
        Action.MANAGE_ASSIGNMENTS,
        "reverse exclusion",
        excluded,
        lambda w, by: exclusions.create_exclusion_reversal(w.exclusion, by),
    ),
    "annotators/places/exclusions:open_replacement_batches": Act(
        Action.MANAGE_ASSIGNMENTS,
        "reopen",
        excluded,
        lambda w, by: exclusions.open_replacement_batches(w.study, [w.done], by),
        spoil=close_it,
    ),
    "annotators/places/exclusions:release_place": Act(
        Action.MANAGE_ASSIGNMENTS, "release", collected, lambda w, by: exclusions.release_place(w.live, by)
    ),
    "annotators/places/barrings:bar_annotator": Act(
        Action.MANAGE_ASSIGNMENTS,
        "bar annotator",
        collected,
        lambda w, by: barrings.bar_annotator(w.study, w.done.annotator, "Copies.", by),
    ),
    "annotators/places/barrings:lift_barring": Act(
        Action.MANAGE_ASSIGNMENTS,
        "lift barring",
        barred,
        lambda w, by: barrings.lift_barring(w.barring, "A mistake.", by),
    ),
    "annotators/participation/withdrawal:mark_inquiry_handled": Act(
        Action.MANAGE_ASSIGNMENTS,
        "handle inquiry",
        collected,
        lambda w, by: withdrawal.mark_inquiry_handled(w.inquiry, by),
        may_repeat=True,
    ),
    "annotators/participation/withdrawal:answer_inquiry": Act(
        Action.MANAGE_ASSIGNMENTS,
        "answer inquiry",
        collected,
        lambda w, by: withdrawal.answer_inquiry(w.inquiry, "Thank you.", by),
    ),
    "annotators/pay/files:due_payments_not_by_approval_csv": Act(
        Action.PAY,
        "take payment file",
        collected,
        lambda w, by: files.due_payments_not_by_approval_csv(w.door, by),
        may_repeat=True,
    ),
    "annotators/pay/ledger:update_ledger": Act(
        Action.PAY, "pay due", collected, lambda w, by: ledger.update_ledger(w.door, by=by), may_repeat=True
    ),
    "annotators/pay/ledger:add_extra_payments": Act(Action.PAY, "pay bonus", collected, give_bonus, may_repeat=True),
    "annotators/pay/ledger:mark_payments_paid_and_erase_withdrawn_ids": Act(
        Action.PAY,
        "mark paid",
        settled,
        lambda w, by: ledger.mark_payments_paid_and_erase_withdrawn_ids(w.door, w.payments, by),
        may_repeat=True,
    ),
    "annotators/pay/ledger:cancel_extra_payment": Act(
        Action.PAY,
        "cancel payment",
        with_bonus,
        lambda w, by: ledger.cancel_extra_payment(w.door, w.bonus, by),
        may_repeat=True,
    ),
    "annotators/recruitment/panels/orders:cancel_order": Act(
        Action.PANEL, "cancel order", ordered, lambda w, by: orders.cancel_order(w.order, by=by), may_repeat=True
    ),
    "annotators/recruitment/panels/orders:resolve_order": Act(
        Action.PANEL, "decide order", unclear, lambda w, by: orders.resolve_order(w.order, True, by), may_repeat=True
    ),
    "annotators/recruitment/panels/orders:save_round_plan": Act(
        Action.PANEL,
        "plan rounds",
        collected,
        lambda w, by: orders.save_round_plan(w.door, by=by, people=3, round_places=1, lost_percent=10),
        may_repeat=True,
    ),
    "annotators/recruitment/panels/http_client:store_or_delete_secrets": Act(
        Action.PANEL,
        "keep secret",
        collected,
        lambda w, by: http_client.store_or_delete_secrets(w.door, {"token": "t"}, by=by),
        may_repeat=True,
    ),
    "annotators/recruitment/panels/reconcile:import_panel_file_and_release_places": Act(
        Action.PANEL,
        "read panel file",
        by_file,
        lambda w, by: reconcile.import_panel_file_and_release_places(w.door, "Person\ndone\n", by),
        may_repeat=True,
    ),
    "annotators/recruitment/sample:replace_demographic_columns": Act(
        Action.PANEL,
        "declare sample columns",
        collected,
        lambda w, by: sample.replace_demographic_columns(w.study, [("Age", "number", False)], by=by),
        may_repeat=True,
    ),
    "annotators/recruitment/sample:import_sample_demographics": Act(
        Action.PANEL,
        "read sample",
        declared,
        lambda w, by: sample.import_sample_demographics(w.door, "who,Age\ndone,30\n", "who", by=by),
        may_repeat=True,
    ),
    "annotators/pay/decisions:approve_work": Act(
        Action.REJECT, "approve", collected, lambda w, by: decisions.approve_work(work_of(w), by), may_repeat=True
    ),
    "annotators/pay/decisions:create_rejection_reversal": Act(
        Action.REJECT,
        "reverse rejection",
        rejected,
        lambda w, by: decisions.create_rejection_reversal(w.verdict, by),
        may_repeat=True,
    ),
    "annotators/pay/decisions:answer_appeal": Act(
        Action.REJECT,
        "answer appeal",
        rejected,
        lambda w, by: decisions.answer_appeal(w.appeal, "We looked again.", False, by),
    ),
    "analysis/coding/samples:draw_coding_sample": Act(
        Action.SAMPLE, "draw coding sample", with_coders, draw, lambda w, by: draw(w, by, 1)
    ),
    "analysis/report/runs:run_analysis": Act(
        Action.ANALYSE,
        "analyse",
        collected,
        lambda w, by: run_analysis(w.study, {"resamples": 99}, by=by),
        may_repeat=True,
    ),
    "analysis/report/between_studies:run_comparison": Act(
        Action.ANALYSE,
        "compare studies",
        two_closed_links,
        lambda w, by: run_comparison(w.study, w.sent, by=by),
        may_repeat=True,
    ),
    "analysis/metrics/store:upload_scores": Act(Action.ANALYSE, "upload scores", launched, upload, may_repeat=True),
    "analysis/metrics/store:discard": Act(
        Action.ANALYSE, "discard metric", scored, lambda w, by: discard(w.metric, by), may_repeat=True
    ),
    "analysis/api/tokens:create_token": Act(
        Action.CREATE_TOKEN,
        "make token",
        launched,
        lambda w, by: create_token(by, "notebook", study=w.study),
        may_repeat=True,
    ),
}

ASKED = {
    "reject": (Action.REJECT, collected, lambda w, by: decisions.reject_work(work_of(w), "c", "m", by)),
    "approve all": (Action.REJECT, collected, lambda w, by: decisions.approve_submissions(w.door, [], by)),
    "ask for a return": (
        Action.REJECT,
        collected,
        lambda w, by: decisions.order_return_request(work_of(w), "Please.", by),
    ),
    "compensate": (
        Action.PAY,
        settled,
        lambda w, by: costs.add_manual_payments_for_unsent_rewards(w.door, [], by),
    ),
    "order payments": (
        Action.PAY,
        settled,
        lambda w, by: ledger.order_due_payments_at_panel(w.door, (), Decimal(0), by),
    ),
    "publish": (Action.PANEL, collected, lambda w, by: orders.order_blocklist_and_publication(w.door, by=by)),
    "stop a task": (
        Action.PANEL,
        collected,
        lambda w, by: orders.order_task_stop(PanelTask(recruitment=w.door), by=by),
    ),
    "order a round again": (Action.PANEL, collected, lambda w, by: orders.retry_refused_round(w.door, by)),
    "ask the panel": (Action.PANEL, collected, lambda w, by: sync.schedule_sync(w.door, by=by)),
    "let the panel tell": (Action.PANEL, collected, lambda w, by: sync.subscribe_to_webhooks(w.door, by=by)),
    "rehearse": (Action.PANEL, collected, lambda w, by: stand_in.get_or_create_rehearsal_job(w.door, by=by)),
}
