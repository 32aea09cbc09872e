"""The other rows of a site: panels and what is bought there, pay, decisions, appeals, jobs, tokens, analyses, drafts of every kind."""

from datetime import timedelta
from decimal import Decimal

from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.utils import timezone

from analysis.api.tokens import create_token, revoke_token
from analysis.report.runs import run_analysis
from annotators import doors
from annotators.models import (
    Assignment,
    PanelBar,
    PanelEvent,
    PanelOrder,
    PanelSubmission,
    PanelTask,
    Payment,
    Recruitment,
)
from annotators.models.identity import get_person_ids, store_person_id
from annotators.pay import ledger
from annotators.pay.decisions import (
    answer_appeal,
    approve_work,
    create_appeal,
    create_rejection_reversal,
    get_work_by_assignment,
    get_work_by_submission,
    reject_work,
)
from annotators.places.batch_plan import create_test_batch_and_assignment
from annotators.recruitment import sample
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.channels.generic import invitation_token
from annotators.recruitment.panels import OPERATIONS, STATES
from annotators.recruitment.panels.http_client import WEBHOOK_SECRET, store_or_delete_secrets
from annotators.recruitment.panels.orders import get_or_create_order
from annotators.recruitment.panels.orders import save_round_plan as plan_rounds
from heval_site.management.demo import get_or_create_demo_studies
from heval_site.rehearsal.browser import HttpReply
from heval_site.rehearsal.rehearsal import Rehearsal, entry_url
from studies.imports.bundle_files import create_draft_from_bundle, serialize_bundle
from studies.imports.study_templates import STUDY_TEMPLATES, create_draft_from_template
from studies.models import Job, Study, StudyMember
from studies.services import jobs, lifecycle
from studies.services.copying import clone_study
from tests.admin_pages import logged_in
from tests.builders import promised, spa_draft, spa_study, user
from tests.players import answered

SITE = "https://eval.example.org"
CODES = {
    "code_complete": "A2K7PQWX",
    "code_screened_out": "B3T4RWYZ",
    "code_full": "D5XNUVCD",
    "code_no_consent": "E6Y7GHJK",
}
LINK = {
    "person_parameter": "who",
    "session_parameter": "session",
    "return_complete": "https://panel.example.org/done?cc=C1&s={session}",
    "return_screened_out": "https://panel.example.org/out?s={session}",
    "return_full": "FULL-9",
    "return_no_consent": "NO-4",
}
WHY = "Where the study asks for two sentences about what you read there are letters at random, and the same ones in every place."
NOTE = "The comment is letters at random, where two sentences were asked for."


def study_of(title: str, **columns) -> Study:
    study = spa_study(
        user("olga"), title=title, seed=len(title), m=1, both=False, prompts=20, **{"target_n": 14} | columns
    )
    StudyMember.objects.create(study=study, user=user("carl"), role=StudyMember.Role.EDITOR)
    StudyMember.objects.create(study=study, user=user("vera"), role=StudyMember.Role.VIEWER)
    return study


def in_process(number: int):
    client = Client()

    def ask(method, path, body):
        sent = {"data": body, "content_type": "application/x-www-form-urlencoded"} if body is not None else {}
        said = client.generic(method, path, **sent, HTTP_HOST="eval.example.org", secure=True)
        return HttpReply(said.status_code, said.content.decode(), said.get("Location", ""), said.cookies.output())

    return ask


def rehearsed(channel: str, channel_settings: dict, people: int = 11, **columns) -> Recruitment:
    """A panel whose stand-in sends people who do everything that people do; orders, decisions and payments follow."""
    made = promised(
        Recruitment.objects.create(study=study_of(channel), channel=channel, settings=channel_settings, **columns)
    )
    panel = REGISTRY[channel].stand_in(made, entry_url(made))
    store_or_delete_secrets(made, dict.fromkeys(REGISTRY[channel].secrets, "rehearsal") | dict(panel.secrets), by=None)
    with panel:
        settings.PROLIFIC_API = panel.url
        Rehearsal(made, panel, in_process, 1, lambda *_: None).play(people)
    return made


def came(recruitment: Recruitment, finishes=True, **parameters) -> Assignment:
    """Somebody follows the link and presses Start; most answer every page."""
    query = "&".join(f"{name}={value}" for name, value in parameters.items())
    said = Client().post(
        f"/e/{recruitment.key}/?{query}", {"start": "1", "agree": "1"}, HTTP_HOST="eval.example.org", secure=True
    )
    assert said.status_code == 302, said.content.decode()[:2000]
    assignment = Assignment.objects.get(code=said.url.split("/")[2])
    while finishes and answered(assignment).next_key is not None:
        pass
    return Assignment.objects.get(pk=assignment.pk)


# Panels


def prolific() -> Study:
    made = rehearsed("prolific", CODES, currency="GBP")
    store_or_delete_secrets(made, {WEBHOOK_SECRET: "whsec_golden"}, by=None)
    now = timezone.now()
    for number, (handled, about) in enumerate(((now, made), (None, made), (None, None))):
        PanelEvent.objects.create(
            source=f"prolific-{made.pk}",
            external_id=f"ev{number}",
            recruitment=about,
            kind="submission.status.change",
            body={"resource_id": f"{number:024x}"},
            handled_at=handled,
        )
    plan_rounds(made, by=user("olga"), people=20, round_places=5, lost_percent=10)
    sample.replace_demographic_columns(
        made.study, [("Age", "number", False), ("Sex", "category", True)], by=user("olga")
    )
    people = get_person_ids(made.assignments.order_by("annotator").values_list("annotator", flat=True)).values()
    rows = [f"{number:024x},{person},APPROVED,{30 + number},Female" for number, person in enumerate(people)]
    text = "\n".join(["Submission id,Participant id,Status,Age,Sex", *rows]) + "\n"
    sample.import_sample_demographics(made, text, "Participant id", by=user("olga"))
    doors.stop(made, user("olga"))
    return made.study


def external_questions() -> Study:
    """Links of the channels that are framed: tasks, orders of every kind and state, and submissions of every state."""
    study = study_of("external questions", target_n=24)
    olga = user("olga")
    made = {
        channel: promised(
            Recruitment.objects.create(
                study=study, channel=channel, pool="mturk", settings={"submits": ["screened_out"]}
            )
        )
        for channel in ("mturk", "mturk_sandbox")
    }
    link = made["mturk"]
    store_or_delete_secrets(link, {"key_id": "AKIAGOLDEN", "key": "secret"}, by=None)
    task = PanelTask.objects.create(recruitment=link, external_id="3HIT1", places=9)
    states = iter(STATES)
    for number in range(8):
        worker = f"A{number}ANNA"
        one = came(
            link,
            number != 6,
            assignmentId=f"3ASG{number}",
            hitId="3HIT1",
            workerId=worker,
            turkSubmitTo="https://www.mturk.com",
        )
        store_person_id(one.annotator, worker)
        PanelSubmission.objects.create(
            recruitment=link,
            task=task,
            external_id=f"3ASG{number}",
            annotator=one.annotator,
            assignment=one,
            state=next(states),
            source="service",
            submitted_at=timezone.now(),
            receipt=f"R-{number}",
            decides_itself_at=timezone.now() + timedelta(days=3),
        )
    submissions = list(PanelSubmission.objects.filter(recruitment=link).order_by("pk"))
    values = {
        "publish": {"title": "Read", "description": "Say which.", "url": f"{SITE}/e/{link.key}/", "reward": "1.25", "currency": "USD",
                    "minutes": 10, "places": 9, "name": "stories", "lists": []},
        "extend": {"task": "3HIT1", "places": 12}, "stop": {"task": "3HIT1"}, "approve": {"task": "3HIT1", "message": ""},
        "reject": {"task": "3HIT1", "category": "work", "message": WHY}, "reverse": {"task": "3HIT1", "message": "Sorry."},
        "bonus": {"task": "3HIT1", "amount": "0.50", "currency": "USD", "reason": "Thank you"}, "bar": {"list": "kept out"},
        "screen_out": {"task": "3HIT1", "amount": "0.10", "currency": "USD"}, "request_return": {"task": "3HIT1", "message": "Please."},
    }  # fmt: skip
    ends = {
        PanelOrder.State.WAITING: {},
        PanelOrder.State.SENT: {"sent_at": timezone.now()},
        PanelOrder.State.UNCLEAR: {"sent_at": timezone.now()},
        PanelOrder.State.DONE: {"sent_at": timezone.now(), "ended_at": timezone.now()},
        PanelOrder.State.REFUSED: {
            "sent_at": timezone.now(),
            "ended_at": timezone.now(),
            "words": "The HIT is not yours.",
        },
        PanelOrder.State.CANCELLED: {"ended_at": timezone.now()},
    }
    assert values.keys() == OPERATIONS.keys()
    for number, (operation, said) in enumerate(values.items()):
        about = submissions[number % 3] if "submission" in OPERATIONS[operation] else None
        order = get_or_create_order(link, operation, f"golden-{operation}", submission=about, by=olga, **said)
        state = list(ends)[number % len(ends)]
        PanelOrder.objects.filter(pk=order.pk).update(state=state, tries=number % 3, **ends[state])
        if operation == "bar":
            PanelBar.objects.create(order=order, annotator=submissions[7].annotator)
    ledger.update_ledger(link, by=olga)
    return study


def decided() -> Study:
    """Verdicts of every kind, appeals that are open, upheld and not, and payments of every kind and state."""
    study = study_of("decided", wage_per_hour=Decimal("12.00"))
    olga, carl = user("olga"), user("carl")
    made = promised(
        Recruitment.objects.create(study=study, channel="prolific", pool="panel", settings=CODES, reward="2.00"),
        screened_out="0.50",
        withdrawn="share",
        full="all",
    )
    ids = [{"PROLIFIC_PID": f"{n:x}f1a" * 6, "STUDY_ID": "5d0c" * 6, "SESSION_ID": f"{n:x}abc" * 6} for n in range(8)]
    people = [came(made, **one) for one in ids[:7]]
    for one in people:
        store_person_id(one.annotator, f"PERSON-{one.pk}")
    came(made, False, **ids[7])
    ledger.update_ledger(made, by=olga)
    approve_work(get_work_by_assignment(made, people[0].pk), olga)
    for one, known in zip(people[1:5], ids[1:5], strict=True):
        PanelSubmission.objects.create(
            recruitment=made,
            external_id=known["SESSION_ID"],
            annotator=one.annotator,
            assignment=one,
            state="submitted",
            source="file",
        )
    rejections = [
        reject_work(get_work_by_submission(made, one.panel_submissions.get().pk), "LOW_EFFORT", WHY, olga, NOTE)
        for one in people[1:5]
    ]
    appeals = [create_appeal(one, "I wrote two sentences.") for one in people[1:4]]
    answer_appeal(appeals[0], "You did. We are sorry.", True, carl)
    answer_appeal(appeals[1], "You did not: the comment is letters.", False, carl)
    create_rejection_reversal(rejections[3], olga, "A mistake of ours.")
    ledger.update_ledger(made, by=olga)
    ledger.add_extra_payments(made, [ledger.ExtraPayment(people[0], Decimal("1.20"), "a good comment")], "bonus", olga)
    ledger.add_extra_payments(
        made, [ledger.ExtraPayment(people[5], Decimal("0.30"), "the server was down")], "compensation", olga
    )
    due = list(Payment.objects.filter(assignment__recruitment=made, state="due").order_by("pk"))
    ledger.mark_payments_paid_and_erase_withdrawn_ids(made, [due[0].pk], olga)
    ledger.cancel_extra_payment(made, due[-1].pk, olga)
    Payment.objects.filter(pk=due[1].pk).update(state="failed", ended_at=timezone.now())
    return study


def other_links() -> Study:
    """One link of each other channel, with somebody who came by it."""
    study = study_of("other links", target_n=20)
    known = {
        "open_link": ({}, {}),
        "generic": (LINK, {"who": "P1", "session": "S1"}),
        "invitation": ({"people": 5, "revoked": "3"}, {"i": None}),
        "sona": ({"site": "school.sona-systems.com", "experiment_id": "123"}, {"survey_code": "40351"}),
        "connect": (dict(CODES), dict.fromkeys(("participantId", "assignmentId", "projectId"), "ab" * 16)),
    }
    for channel, (said, query) in known.items():
        made = Recruitment.objects.create(
            study=study,
            channel=channel,
            settings=said,
            wanted=5,
            opens_at=timezone.now() - timedelta(days=1),
            closes_at=timezone.now() + timedelta(days=1),
        )
        made.arms.set(study.arms.all())
        if channel == "invitation":
            query = {"i": invitation_token(made.key, 1)}
        if channel in REGISTRY:
            came(made, **query)
            ledger.update_ledger(promised(made), by=user("olga"))
    return study


# Drafts, jobs, tokens, analyses


def drafts() -> Study:
    """A draft of every blueprint, a clone, a copy by a bundle, a draft that was tried out, and what is archived."""
    olga = user("olga")
    for blueprint in STUDY_TEMPLATES:
        create_draft_from_template(blueprint, olga)
    tried = spa_draft(title="tried out", owner=olga, seed=5)
    create_test_batch_and_assignment(tried, seed=3)
    copy = clone_study(Study.objects.get(title="human or machine"), olga, "cloned")
    bundle = serialize_bundle(Study.objects.get(title="one order"))
    create_draft_from_bundle(bundle | {"study": bundle["study"] | {"title": "by a bundle"}}, olga)
    lifecycle.archive(copy, olga)
    lifecycle.archive(Study.objects.get(title="nobody"), olga)
    return tried


def work_of_the_site() -> Study:
    """Jobs in every state, tokens, an analysis with its figures, people who log in and one who fails to, and the demo."""
    olga, study = user("olga"), Study.objects.get(title="one order")
    demo = get_or_create_demo_studies(user("admin", is_superuser=True))
    jobs.run_waiting_jobs()
    run_analysis(study, {"resamples": 99}, by=olga)
    made, _ = create_token(olga, "a script", scope="write", study=study)
    create_token(user("vera"), "a notebook")
    revoke_token(made, olga)
    now = timezone.now()
    for state, columns in {
        Job.State.RUNNING: {
            "leased_until": now + timedelta(minutes=1),
            "holder": "worker-1",
            "started_at": now,
            "attempts": 1,
        },
        Job.State.FAILED: {"ended_at": now, "error": "Traceback", "attempts": 3},
        Job.State.CANCELLED: {"ended_at": now, "is_cancel_wanted": True},
        Job.State.WAITING: {"request_token": "golden"},
        Job.State.DONE: {"ended_at": now, "result": {"n": 1}, "done": 3, "total": 3},
    }.items():
        Job.objects.create(
            kind="analyse", study=study, state=state, by=olga, arguments={"parameters": {"resamples": 99}}, **columns
        )
    logged_in(olga)
    LogEntry.objects.create(
        user=olga, action_flag=2, object_id=str(study.pk), object_repr=study.title, change_message="[]"
    )
    Client().post("/admin/login/", {"username": "olga", "password": "wrong"}, HTTP_HOST="eval.example.org", secure=True)
    return demo.study


ROWS = (prolific, external_questions, decided, other_links, drafts, work_of_the_site)
