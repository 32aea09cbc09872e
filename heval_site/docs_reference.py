"""The pages of the reference that the code itself writes: ``python -m heval_site.docs_reference`` writes them anew.

What a name, a default or a constraint is comes from the code; what it is for, where the code has no place for that, stands here.
A test fails when a page is not what this module makes, or when something new has no words yet.
"""

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from inspect import cleandoc
from pathlib import Path
from typing import Any

from django.apps import apps
from django.db import models
from django.urls import URLPattern, URLResolver, get_resolver

APPS = ("studies", "annotators", "analysis")
PACKAGES = ("heval_site", *APPS)
ROOT = Path(__file__).resolve().parent.parent
SOURCE = "This page is written by the code: `python -m heval_site.docs_reference` makes it anew, and a test fails when it is stale."

# Environment variables: (group, {name: (meaning, default in words where the code's own says too little)}).
VARIABLES: tuple[tuple[str, dict[str, tuple[str, str]]], ...] = (
    (
        "Where the data lies",
        {
            "DATABASE_URL": (
                "PostgreSQL, such as `postgres://user:password@host:5432/name`. With it heval is *deployed*; without it, *embedded*: "
                "SQLite in HEVAL_HOME.", "none",
            ),
            "HEVAL_HOME": (
                "The folder of an embedded heval: database, images, generated secrets. Made when absent, readable by its owner alone. "
                "One that was there keeps its mode: `heval doctor` tells whom it lets in.",
                "`heval` in the user's data folder",
            ),
            "XDG_DATA_HOME": ("The user's data folder, where HEVAL_HOME is not set.", "`~/.local/share`"),
            "MEDIA_ROOT": ("The folder of uploaded images.", "`media` in HEVAL_HOME"),
            "STATIC_ROOT": (
                "The folder in which `heval collectstatic` gathered the static files. The container image sets it; elsewhere files are "
                "served from where they lie.", "none",
            ),
            "DATABASE_POOL": ("Connections that one web process keeps open to PostgreSQL, at most.", "WEB_THREADS"),
        },
    ),
    (
        "Secrets",
        {
            "SECRET_KEY": (
                "Signs sessions and forms. At least 50 random characters: `heval secret` prints one.",
                "generated when embedded; must be set when deployed",
            ),
            "SECRET_KEY_FALLBACKS": ("Former SECRET_KEYs that are still accepted, with commas between.", "none"),
            "PSEUDONYM_KEY": (
                "Keys the hashes by which annotators are known, receipts, invitations, and the cipher of panel ids. Never change it while "
                "a study runs: every annotator would become somebody new. Not the SECRET_KEY.",
                "generated when embedded; must be set when deployed",
            ),
        },
    ),
    (
        "Addresses",
        {
            "SITE_URL": (
                "The address that annotators use, such as `https://eval.example.org`. `http` is accepted for this machine alone.",
                "`http://127.0.0.1:PORT` when embedded; must be set when deployed",
            ),
            "ALLOWED_HOSTS": ("Host names that the site answers for, with commas between.", "the host of SITE_URL; this machine too when embedded"),
            "PORT": ("The port that `heval up` listens on.", ""),
            "LISTEN": ("The network address that it listens on.", ""),
            "TRUSTED_PROXIES": (
                "How many proxies stand in front and set `X-Forwarded-For` and `X-Forwarded-Proto`. No further entry of these headers is believed.", "",
            ),
            "PROLIFIC_API": (
                "Where orders to Prolific go. For a rehearsal, a stand-in on this machine such as `http://127.0.0.1:9000`; nothing else is accepted.", "",
            ),
            "SSL_REDIRECT": ("Whether http is redirected to https, where SITE_URL is https.", ""),
            "HSTS_SECONDS": ("How long browsers shall insist on https, in seconds.", "`31536000` where SITE_URL is https, else `0`"),
            "HSTS_SUBDOMAINS": ("Whether that holds for the subdomains too.", "`true` where SITE_URL is https"),
        },
    ),
    (
        "Processes",
        {
            "WEB_WORKERS": ("Web processes.", ""),
            "WEB_THREADS": ("Threads of each web process.", ""),
            "REDIS_URL": ("Redis for the cache, and for Celery where CELERY_BROKER_URL is not set.", "none: the cache is a table of the database"),
            "CELERY_BROKER_URL": (
                "Redis or RabbitMQ, to wake Celery's workers. Without it `heval up` and `heval worker` look for waiting jobs themselves.",
                "REDIS_URL",
            ),
        },
    ),
    (
        "Panels",
        {
            "CHANNELS_ON": ("Channels that are off unless they are named here, with commas between: `mturk`, `mturk_sandbox`.", "none"),
            "EXTERNAL_QUESTION_SITES": (
                "Origins of services, beside Mechanical Turk, that may frame annotators' pages and be sent their last form, such as "
                "`https://tasks.example.org`, with commas between.", "none",
            ),
            "RETURN_SITES": (
                "Origins to which the return addresses of links to any panel may lead people, such as `https://panel.example.org`, with commas "
                "between.", "any site over https",
            ),
            "MTURK_ENDPOINT_URL": ("Another server in place of Mechanical Turk's own, on this machine alone: for tests.", "none"),
        },
    ),
    (
        "Looking inside",
        {
            "LOG_FORMAT": ("`plain` lines for people, `json` lines for programs.", ""),
            "DEBUG": ("Django's error pages with settings and answers in them. Refused where DATABASE_URL is set.", ""),
        },
    ),
    (
        "Set by heval for its own processes",
        {
            "DJANGO_SETTINGS_MODULE": ("Django's name of the settings.", "`heval_site.settings`"),
            "HEVAL_ANNOUNCE": ("What `heval up` and `heval demo` print once the site answers.", "set by these commands"),
        },
    ),
)  # fmt: skip

STUDY_STATES = {
    "draft": "Everything can be edited. Nobody can take part but the researchers, by tries, which are never counted.",
    "launching": "Reserved for a launch under way.",
    "launched": "The design is frozen. Annotators can come in.",
    "paused": "Nobody new comes in. Those inside go on and keep their places.",
    "closing": "Nobody new comes in, ever. Those inside may finish within the grace period.",
    "closed": "No more answers. Analyses can be run for ever.",
}
RELEASES = {
    "expired": "The time of the place ran out without an answer. The person may take it again while it is free.",
    "returned": "A researcher or the panel gave it back. The person may take it again while it is free.",
    "screened_out": "An answer to a screening section ended the visit. It stands instead of `expired` or `returned` where the place had gone "
    "before the answer came.",
    "failed_checks": "Reserved for test questions that end a visit.",
    "full": "There was no place. The row has no batch: it says that somebody came and was turned away.",
    "withdrawn": "The annotator left the study before the last page.",
}
ASSIGNMENT_STAGES = (
    ("reserved", "`claimed_at` set, `started_at` empty", "Somebody pressed Start. The place is theirs for the start window."),
    ("started", "`started_at` set", "The first page was shown. The place is theirs for the idle time, anew with each page."),
    ("submitted", "`submitted_at` set", "The last page was recorded. The place is used up."),
    ("released", "`released_at` set, with a reason", "The place is free for somebody else."),
    ("late", "released, submitted and `is_late`", "The last page came after the place had gone to somebody else, or after the study was closed. The answers are kept and left out by the rule `late`."),
    ("withdrawn", "`withdrawn_at` set", "The annotator left the study. No later analysis reads this assignment."),
)  # fmt: skip

ADDRESSES = {
    "home": "To the admin.",
    "entry": "The door of a recruitment: what the study is, the consent, Start.",
    "first": "To the page that is next.",
    "page": "One page of an assignment.",
    "done": "The end: thanks, code or way back, receipt. It stays for ever.",
    "withdraw": "What withdrawal means; a POST does it.",
    "more_time": "Keep the place longer.",
    "parts": "A list of their parts for someone who was invited to work over days: done, begun, still to be had, and what they pay.",
    "another": "Begin another batch, where a study gives several.",
    "inquire": "Report a text, or ask the researcher.",
    "appeal": "Object to a rejection.",
    "consent": "The consent, to read again.",
    "media": "An image, under a name that tells nothing.",
    "healthz": "200 when the process answers.",
    "readyz": "200 when database, migrations, cache and runner are well; else 503.",
    "docs": "This documentation.",
    "docs-page": "A page of it.",
}


# Columns whose name says too little, where the model has no help text: by Model.column, or by the column alone.
COLUMNS = {
    "study": "The study it belongs to.",
    "at": "When.",
    "by": "Who did it; empty for heval itself.",
    "position": "Its place, from 1.",
    "number": "Its number, from 0 or 1 on, never used twice.",
    "created_at": "When it was made.",
    "domain": "A group of prompts.",
    "language": "Language tag.",
    "media": "Name of the stored image.",
    "reason": "Why.",
    "note": "Words for the record.",
    "Annotator.code": "The annotator's own name inside heval.",
    "Annotator.pool": "Where people are known by the same ids.",
    "Annotator.external_id": "Keyed hash of the pool's id of the person.",
    "Arm.condition": "What annotators are given before they judge.",
    "Arm.systems": "Systems shown in this arm; none: all.",
    "Assignment.annotator": "Who.",
    "Assignment.batch": "What they were given; empty where no place was left.",
    "Assignment.claimed_at": "When the place was taken.",
    "Assignment.code": "128 random bits: the address, and the credential.",
    "Assignment.consent_version": "The version of the design whose consent was agreed to.",
    "Assignment.design": "The version of the design whose words the annotator reads.",
    "Assignment.external_ids": "The panel's other ids (session, task), until they are erased; never the id of the person.",
    "Assignment.is_late": "Submitted after the place had gone.",
    "Assignment.ordinal": "Which of this person's assignments in the study it is.",
    "Assignment.origin": "Where the answers come from.",
    "Assignment.queue_number": "Its place in the order of claims, where a stopping rule counts them.",
    "Assignment.recruitment": "By which link.",
    "Assignment.reserved_until": "The place is held until then.",
    "Assignment.seed": "Orders and labels are drawn from it.",
    "Assignment.source": "The job that imported it.",
    "Assignment.trust": "How sure it is who answered.",
    "Appeal.answer": "What the person is told.",
    "Appeal.answered_at": "When it was answered.",
    "Appeal.answered_by": "Who answered; never who rejected.",
    "Appeal.due_at": "The day by which an answer was promised.",
    "Appeal.is_upheld": "Whether the person was right: then the rejection is taken back.",
    "Appeal.rejected_by": "Who rejected; empty where it was done at the panel.",
    "Appeal.text": "What the person says to the rejection.",
    "Appeal.verdict": "The rejection it is about.",
    "AnalysisRun.code_version": "Version and hash of the code.",
    "AnalysisRun.design_sha256s": "Hashes of the designs it rests on.",
    "AnalysisRun.parameters": "What was asked for.",
    "AnalysisRun.responses_n": "Answers read.",
    "AnalysisRun.responses_sha256": "Hash of these answers.",
    "AnalysisRun.result": "The report.",
    "AnalysisRun.result_sha256": "Hash of the report.",
    "AnalysisRun.seed": "Of its resampling.",
    "ApiToken.hash": "SHA-256 of the token, which is not kept.",
    "ApiToken.scope": "Read, or read and write.",
    "ApiToken.used_at": "When it was last used, to the minute.",
    "AuditEvent.assignment_code": "The assignment it is about.",
    "AuditEvent.data": "Details, without personal data.",
    "AuditEvent.verb": "What was done.",
    "Batch.claimed": "Places taken: assignments that are not released.",
    "Batch.copy_of": "The batch whose items it repeats.",
    "Batch.key": "Its name in the file it was imported from.",
    "Batch.origin": "How it came to be.",
    "Batch.wanted": "Places.",
    "Contrast.criterion": "Empty: the question without a criterion.",
    "Contrast.expected": "What the researcher expects.",
    "Contrast.level": "Level of its test.",
    "Contrast.role": "What it is for.",
    "Contrast.x": "First system: P[x > y].",
    "Contrast.y": "Second system.",
    "Design.canonical": "The design as canonical JSON.",
    "Design.sha256": "Its hash.",
    "Design.version": "1 at launch.",
    "ExclusionRule.role": "Applied to the headline, or shown beside it.",
    "ExclusionRule.rule": "Its name.",
    "ExclusionRule.settings": "Its settings.",
    "Exclusion.reverses": "The exclusion that it takes back.",
    "Expected.low": "Lowest right answer.",
    "Expected.high": "Highest right answer.",
    "Expected.exposure": "The output that should be chosen.",
    "Expected.explanation": "Shown in a training section.",
    "Exposure.number": "Its place where the order is fixed.",
    "Exposure.output": "What is shown.",
    "Figure.svg": "For the page.",
    "Figure.pdf": "For the paper.",
    "Inquiry.handled_at": "When a researcher marked it.",
    "Inquiry.kind": "About a text, or a question.",
    "Inquiry.page_key": "The page it was sent from.",
    "Item.kind": "Live, test or practice.",
    "Item.retired_in": "The amendment that took it out.",
    "Item.settled_at": "When its labels decided it: it is given to nobody more.",
    "Job.arguments": "What the work needs to know.",
    "Job.attempts": "How often it was begun.",
    "Job.doing": "Words for its progress page.",
    "Job.holder": "The process that runs it.",
    "Job.leased_until": "When another process may take it up.",
    "Job.request_token": "Makes one job of a form sent twice.",
    "Output.format": "How the text is shown.",
    "Output.original": "The text before preparation.",
    "Output.sample": "Which of the system's outputs for the prompt, from 0.",
    "Output.text": "What is read.",
    "OutcomePay.amount": "How much, where the rule is an amount.",
    "OutcomePay.outcome": "How the visit ended.",
    "OutcomePay.recruitment": "For which link.",
    "OutcomePay.rule": "What is paid then.",
    "PageVisit.active_seconds": "With the page in the foreground; a hint.",
    "PageVisit.draft": "What was typed and not sent.",
    "PageVisit.key": "The page.",
    "PageVisit.layout": "Side by side, or one at a time.",
    "PageVisit.recorded_at": "When its answers were stored.",
    "PageVisit.shown": "Labels, orders and images as shown; written once.",
    "PageVisit.shown_at": "First sight; empty where it is not known, because a crash of the database lost it.",
    "PageVisit.unseen": "The images that the annotator could not see, by semicolons: i2.A is the output with the letter A at position 2, i2 the image of the prompt there.",
    **{f"Panel{kind}.recruitment": "For which link." for kind in ("Event", "Order", "Plan", "Secret", "Submission", "Task")},
    "PanelBar.annotator": "Who.",
    "PanelBar.order": "By which order.",
    "PanelEvent.body": "What must be looked at; never who it is about.",
    "PanelEvent.external_id": "The event's own id, the same when it is told again.",
    "PanelEvent.handled_at": "When it was looked at.",
    "PanelEvent.kind": "What happened, in the word of whoever tells.",
    "PanelEvent.received_at": "When it was told.",
    "PanelEvent.source": "Who tells.",
    "PanelOrder.ended_at": "When it was carried out, refused or taken back.",
    "PanelOrder.made_at": "When it was given.",
    "PanelOrder.not_before": "Not to be sent before; empty: at once.",
    "PanelOrder.operation": "What the panel shall do.",
    "PanelOrder.result": "What the panel answered.",
    "PanelOrder.sent_at": "When it was sent last; empty while it was never sent, or surely not carried out.",
    "PanelOrder.state": "How far it is.",
    "PanelOrder.submission": "Whom and what it is about.",
    "PanelOrder.token": "Its name for ever, at the panel too.",
    "PanelOrder.tries": "How often it was sent.",
    "PanelOrder.values": "What it carries, without the person.",
    "PanelOrder.words": "What the panel said, where it was not carried out.",
    "PanelPlan.lost_percent": "The share of places expected to bring no finished work.",
    "PanelPlan.people": "How many shall finish, in all.",
    "PanelPlan.round_places": "How many places go out at a time.",
    "PanelSecret.ciphertext": "The secret, enciphered.",
    "PanelSecret.name": "Which secret of the channel.",
    "PanelSecret.written_at": "Since when it is kept.",
    "PanelSubmission.annotator": "Whose.",
    "PanelSubmission.assignment": "The work here that it is about; empty where none was found.",
    "PanelSubmission.decided_at": "When it was approved or rejected.",
    "PanelSubmission.decides_itself_at": "When the panel approves by itself.",
    "PanelSubmission.external_id": "The panel's id, replaced by a keyed hash when ids are erased, and where it is the id of the person.",
    "PanelSubmission.first_seen_at": "When the panel showed it first.",
    "PanelSubmission.receipt": "The code that the person gave to the panel.",
    "PanelSubmission.seen_at": "When the panel showed something new of it.",
    "PanelSubmission.source": "Where it was read.",
    "PanelSubmission.started_at": "When it was accepted at the panel.",
    "PanelSubmission.state": "Its state at the panel, in our words.",
    "PanelSubmission.submitted_at": "When it was sent to the panel.",
    "PanelSubmission.task": "The task that it belongs to.",
    "PanelSubmission.word": "Its state in the panel's own word.",
    "PanelTask.closed_at": "When it was stopped from here.",
    "PanelTask.external_id": "The panel's id.",
    "PanelTask.made_at": "When it was written down.",
    "PanelTask.places": "How many people the panel lets in.",
    "Payment.amount": "How much.",
    "Payment.assignment": "For which work.",
    "Payment.by": "Who wrote it down; empty where it follows from what was promised.",
    "Payment.currency": "Of the amount.",
    "Payment.ended_at": "When it was paid, refused or taken back.",
    "Payment.kind": "What it is for.",
    "Payment.made_at": "When it was written down.",
    "Payment.number": "Which of its kind, from 1.",
    "Payment.order": "The order by which the panel pays it.",
    "Payment.reason": "Why, in words that the person may read.",
    "Payment.state": "How far it is.",
    "Payment.way": "How the money comes.",
    "PanelIdentity.ciphertext": "The panel's id, enciphered; empty when erased.",
    "Placement.item": "What lies there.",
    "Prompt.attributes": "Further facts, from the file.",
    "Prompt.key": "Its name in files.",
    "Prompt.source": "A document that the prompt is about.",
    "Prompt.text": "What is read.",
    "Question.criterion": "What it asks about, where there are several.",
    "Question.key": "Its name in files and reports.",
    "Question.required": "Whether it must be answered.",
    "Question.scale": "See the page of scales.",
    "Question.skip_reasons": "Ways not to answer that are offered.",
    "Question.text": "What is asked.",
    "Question.x": "First system of a directed question.",
    "Question.y": "Second system.",
    "Recruitment.channel": "The channel.",
    "Recruitment.key": "Its name in the link.",
    "Recruitment.settings": "Settings of the channel.",
    "Response.choice": "The option chosen, or the option that a box is about.",
    "Response.chosen": "The output chosen.",
    "Response.erased_at": "When it was blanked.",
    "Response.exposure": "The output it is about.",
    "Response.item": "The item it is about.",
    "Response.label": "The letter on the screen.",
    "Response.part": "The part of the output it is about.",
    "Response.position": "Where the annotator met it.",
    "Response.question": "What was asked.",
    "Response.received_at": "When it was stored.",
    "Response.skip_reason": "Why it was not answered.",
    "Response.slot": "The form field.",
    "Response.text": "Words, as typed.",
    "Response.value": "A number, on the question's own scale.",
    "SampleColumn.declared_at": "Since when it is kept.",
    "SampleColumn.kind": "A number or a category.",
    "SampleColumn.name": "As the file's first row names it.",
    "SampleColumn.shows_small": "Whether counts below five are shown.",
    "SampleValue.annotator": "Of whom.",
    "SampleValue.column": "In which column.",
    "SampleValue.value": "What the file said.",
    "Section.protocol": "What it asks and how.",
    "Section.purpose": "Counts, teaches, or screens.",
    "Section.settings": "Settings of the protocol.",
    "StudyMember.role": "What the person may do.",
    "StudyMember.user": "The researcher.",
    "System.is_human": "A human author.",
    "System.reference": "What others are measured against; or a planted end of a rating scale, the best or the worst that an output can be.",
    "Verdict.assignment": "The work it is about; empty where the panel shows somebody unknown here.",
    "Verdict.by": "Who decided; empty where the panel shows a rejection that was made there.",
    "Verdict.category": "Of a rejection: the panel's category; `at_panel` where it was made there.",
    "Verdict.evidence": "What was measured when it was decided.",
    "Verdict.kind": "Approved, rejected, or a rejection taken back.",
    "Verdict.message": "What the person reads.",
    "Verdict.note": "What the decider saw, for colleagues.",
    "Verdict.reverses": "The rejection that it takes back.",
    "Verdict.submission": "The work as the panel shows it; empty where no panel does.",
}  # fmt: skip


def table(heads: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A Markdown table. Bars inside a cell are escaped, line ends become blanks."""
    heads = list(heads)
    lines = [f"| {' | '.join(heads)} |", f"|{'|'.join('---' for _ in heads)}|"]
    lines += [f"| {' | '.join(_cell(value) for value in row)} |" for row in rows]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    text = " ".join(str(value).split())
    return text.replace("|", "\\|") or " "


def facts_list(facts: Iterable[tuple[str, str]]) -> str:
    """Facts one a line, those that are empty left out."""
    return "\n".join(f"- {name}: {value}" for name, value in facts if value)


def sentence(words: str) -> str:
    """The words with a capital and a full stop."""
    words = " ".join(str(words).split())
    if not words:
        return ""
    return words[0].upper() + words[1:] + ("" if words[-1] in ".!?:" else ".")


def code(value: Any) -> str:
    return f"`{value}`" if str(value) else ""


def page_of(title: str, *parts: str) -> str:
    return "\n\n".join([f"# {title}", *(part.strip("\n") for part in parts if part), SOURCE]) + "\n"


# Environment


def variables_in_code() -> dict[str, str]:
    """The names of environment variables that the packages read, each with its default as far as the code states one."""
    found: dict[str, str] = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if (name := _variable(node)) and not found.get(name):
                    found[name] = _default(node)
    return found


def _variable(node: ast.AST) -> str:
    """The variable that a call, or ``os.environ[...]``, reads; '' for any other node."""
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "os.environ":
        key = node.slice
    elif isinstance(node, ast.Call) and node.args:
        called = ast.unparse(node.func)
        is_reading = (
            called.startswith("env.")
            and called != "env.LOOPBACK"
            or called == "secret_of"
            or called.startswith("os.environ.")
        )
        key = node.args[0] if is_reading else None
    else:
        return ""
    is_name = isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value.isupper()
    return key.value if is_name else ""


def _default(node: ast.AST) -> str:
    if (
        not isinstance(node, ast.Call)
        or not ast.unparse(node.func).startswith("env.")
        or ast.unparse(node.func) == "env.url"
    ):
        return ""
    return _value_in_words(node.args[1]) if len(node.args) > 1 else ""


def _value_in_words(node: ast.AST) -> str:
    if isinstance(node, ast.IfExp) and ast.unparse(node.test).strip("_").lower().endswith("embedded"):
        return f"{_value_in_words(node.body)} when embedded, {_value_in_words(node.orelse)} when deployed"
    if isinstance(node, ast.Constant):
        return f"`{str(node.value).lower() if isinstance(node.value, bool) else node.value}`"
    return "`true` where SITE_URL is https" if ast.unparse(node) == "SECURE" else ""


def environment_page() -> str:
    defaults = variables_in_code()
    parts = []
    for words, variables in VARIABLES:
        rows = [
            (code(name), default or defaults.get(name, ""), meaning) for name, (meaning, default) in variables.items()
        ]
        parts += [f"## {words}", table(("Variable", "Default", "Meaning"), rows)]
    return page_of(
        "Environment variables",
        "heval is configured by its environment alone. A value that is not understood stops the start with a message that names the variable.",
        "True and false may be written `true`, `yes`, `on`, `1` and `false`, `no`, `off`, `0`. Most variables that heval reads may come from a "
        "file instead: `SECRET_KEY_FILE=/run/secrets/key` holds the path of a file with the value. The exceptions are HEVAL_HOME and XDG_DATA_HOME.",
        *parts,
    )


# Commands


def own_commands() -> dict[str, Any]:
    """The management commands of this project, under the names that ``heval`` gives them."""
    from django.core.management import get_commands, load_command_class

    from .cli import MODULES

    shown = {module: name for name, module in MODULES.items()}
    mine = {name: app for name, app in get_commands().items() if app in PACKAGES}
    return {shown.get(name, name): load_command_class(app, name) for name, app in sorted(mine.items())}


def commands_page() -> str:
    from .cli import COMMANDS

    commands = own_commands()
    order = [name for name in COMMANDS if name in commands or name == "secret"]
    order += [name for name in commands if name not in COMMANDS]
    parts = []
    for name in order:
        parts.append(f"## heval {name}")
        if name == "secret":
            parts.append("Print a new random secret, for SECRET_KEY or PSEUDONYM_KEY. It needs no settings.")
            continue
        parts += _command(name, commands[name])
    return page_of(
        "Commands",
        "`heval COMMAND` and, in a checkout, `python manage.py COMMAND` do the same. `heval COMMAND --help` prints what this page says. "
        "All of Django's commands are there too, such as `createsuperuser`, `changepassword` and `shell`.",
        *parts,
    )


def _command(name: str, command: Any) -> Iterator[str]:
    import argparse

    from django.core.management.base import BaseCommand

    yield sentence(command.help)
    parser = command.create_parser("heval", name)
    usual = {action.dest for action in BaseCommand().create_parser("heval", name)._actions}
    rows = []
    for action in parser._actions:
        if action.dest in usual or action.help == argparse.SUPPRESS:
            continue
        what = ", ".join(action.option_strings) or action.metavar or action.dest
        if action.option_strings and action.nargs != 0:
            what += f" {action.metavar or '{' + ','.join(map(str, action.choices)) + '}' if action.choices else action.metavar or action.dest.upper()}"
        default = action.default
        has_default = default not in (None, False, argparse.SUPPRESS, []) and action.option_strings
        rows.append((code(what), code(default) if has_default else "", sentence(action.help or "")))
    if rows:
        yield table(("Argument", "Default", "Meaning"), rows)


# Registries


def protocols_page() -> str:
    from studies.protocols import REGISTRY
    from studies.scales import KINDS

    parts = []
    for protocol in sorted(REGISTRY.values(), key=lambda one: one.slug):
        parts += [f"## {protocol.slug}: {protocol.label}", sentence(protocol.help)]
        facts = [
            ("Template", code(protocol.template)),
            (
                "Letters",
                "one for each system, the same for the whole section"
                if protocol.labels == "section"
                else "drawn for each item",
            ),
            ("Shows items", "yes" if protocol.has_items else "no: m is 0"),
            ("A new question is asked as", KINDS[protocol.question_kind][0]),
            ("Source", protocol.source),
        ]
        parts.append(facts_list(facts))
        if estimands := protocol.estimands(None):
            parts += [
                "What a planned comparison may name (the first is the default):",
                table(("Estimand", "Meaning"), [(code(k), v) for k, v in estimands.items()]),
            ]
        parts += _settings(protocol.settings_form)
    return page_of(
        "Protocols",
        "A protocol says what one section shows, asks and estimates. Each is one package or module in `studies/protocols/` and one template. "
        "To add one, see [Write a protocol](../how-to/write-a-protocol.md).",
        *parts,
    )


def _settings(form: type | None) -> list[str]:
    if form is None:
        return ["It has no settings."]
    fields = form().fields
    rows = [(code(name), _initial(field), _about(name, field)) for name, field in fields.items()]
    return ["Settings:", table(("Setting", "Default", "Meaning"), rows)]


def _initial(field: Any) -> str:
    value = field.initial
    if callable(value):
        return "generated"
    if value in (None, "", []):
        return "" if field.required else "none"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return code(text) if len(text) <= 40 and "\n" not in text else "a text to begin with"


def _about(name: str, field: Any) -> str:
    words = [sentence(field.label)] if field.label and field.label.replace(" ", "_") != name else []
    if choices := [(key, label) for key, label in getattr(field, "choices", ()) if key]:
        words.append("; ".join(f"{code(key)}: {label}" for key, label in choices) + ".")
    if field.help_text:
        words.append(sentence(field.help_text))
    return " ".join(words) or sentence(name.replace("_", " "))


def channels_page() -> str:
    from annotators.channels import OUTCOMES, REGISTRY

    parts = []
    for channel in sorted(REGISTRY.values(), key=lambda one: one.slug):
        parts += [f"## {channel.slug}: {channel.label}", sentence(channel.help)]
        parts.append(
            "It knows people: who comes twice is recognised." if channel.identifies_people
            else "It knows nobody: a person can only come back by the address of their own page, and the report says that identity is unverified."
        )  # fmt: skip
        parts += _settings(channel.settings_form)
    outcomes = table(("Outcome", "Meaning"), [(code(key), sentence(words)) for key, words in OUTCOMES.items()])
    return page_of(
        "Channels",
        "A channel is a way by which annotators come to a study. A recruitment is one link of one channel, with its own settings. "
        "To use them, see [Send annotators from any panel](../how-to/send-annotators-from-a-panel.md); to add one, see "
        "[Write a channel](../how-to/write-a-channel.md).",
        *parts,
        "## How a visit may end", outcomes,
    )  # fmt: skip


def rules_page() -> str:
    from analysis.exclusions.applied import ALWAYS
    from studies.rules import REGISTRY

    parts = []
    for rule in sorted(REGISTRY.values(), key=lambda one: one.slug):
        parts += [f"## {rule.slug}", sentence(rule.label), cleandoc(rule.help)]
        facts = [
            ("Applied", "to every study" if rule.slug in ALWAYS else "where the design declares it"),
            ("Looks at outcomes", "no" if rule.is_outcome_blind else "yes: left out of the recommended estimates"),
            ("Source", rule.source),
        ]
        parts.append(facts_list(facts))
        if rule.settings_form:
            parts += _settings(rule.settings_form)
    return page_of(
        "Exclusion rules",
        "A rule says of every submitted assignment `pass`, `fail` or `unknown`. Unknown never excludes. A design declares its rules before the "
        "first answer, each as *primary* (applied to the headline) or *sensitivity* (shown beside it).",
        "Every rule sees the answers as they were given, so the order of the rules does not change who is kept.",
        *parts,
    )


def scales_page() -> str:
    from dataclasses import fields

    from studies.scales import KINDS, ScaleSpec

    meanings = {
        "kind": "One of the scales above.",
        "minimum": "The lowest value. For `likert` it is 1 where nothing is said.",
        "maximum": "The highest value. For `likert` it is the number of labels, or 5.",
        "low": "Words at the low end.",
        "middle": "Words in the middle.",
        "high": "Words at the high end; beside the box of an `acknowledgement`.",
        "labels": "Words for every point, from the lowest.",
        "options": "Answers to choose from: `key`, `label`, and `screens_out` for an answer that ends a screening section's visit.",
        "minimum_length": "Characters that a text needs.",
        "maximum_length": "Characters that a text may have.",
        "is_long": "Whether the box has several lines.",
        "is_best_first": "Whether points stand from best to worst.",
    }
    rows = [(code(kind), sentence(words), code(column)) for kind, (words, column) in KINDS.items()]
    parts = [(code(one.name), code(_plain(one.default)), meanings[one.name]) for one in fields(ScaleSpec)]
    return page_of(
        "Scales",
        "A question is answered on a scale. In the admin a form writes it; in files and over REST it is a JSON object such as "
        '`{"kind": "likert", "maximum": 5, "low": "bad", "high": "good"}`.',
        table(("Kind", "What is given", "Stored in"), rows),
        "## Keys of a scale",
        table(("Key", "Default", "Meaning"), parts),
        "In analyses every number lies between 0 and 1: `(value - minimum) / (maximum - minimum)`. What is stored is the number that was given.",
        "A number may be typed as people write it: `70`, `+70`, `70.0`, `70,0`, with the digits of any script, and with `%` where the field has that unit. "
        "Stored is the number. `70.5` and `1,000` are refused, and the message says why.",
        "Answers that are chosen have keys, where an annotator switches on *Answer with number keys*: the key is written beside the answer. It is the "
        "number of the point, or the answer's place where points have no numbers; a point such as 10 or -1 has no key. Enter sends the page.",
    )  # fmt: skip


def _plain(value: Any) -> str:
    return "" if value in ("", ()) else str(value).lower() if isinstance(value, bool) else str(value)


# Data model


def data_model_page() -> str:
    parts = []
    for app in APPS:
        parts.append(f"## {app}")
        for model in sorted(apps.get_app_config(app).get_models(), key=lambda one: one.__name__):
            parts += _model(model)
    return page_of(
        "Data model",
        "Tables with their columns, and what the database refuses. Constraints are named as sentences: that is how they are written here. "
        "Every foreign key protects what it points to, unless the table says otherwise.",
        *parts,
    )


def _model(model: type[models.Model]) -> Iterator[str]:
    yield f"### {model.__name__}"
    words = (model.__doc__ or "").strip()
    if words and not words.startswith(f"{model.__name__}("):
        yield sentence(words)
    if notes := _guards(model):
        yield notes
    rows = [
        (code(field.name), _type(field), _field_words(field)) for field in model._meta.get_fields() if _is_own(field)
    ]
    yield table(("Column", "Type", "Meaning"), rows)
    if refused := [_constraint(constraint) for constraint in model._meta.constraints]:
        yield "The database keeps: " + "; ".join(refused) + "."


def _guards(model: type[models.Model]) -> str:
    from studies.guards import AppendOnlyModel, DesignModel

    if issubclass(model, AppendOnlyModel):
        return "Rows are only added: a change or a deletion is refused." + (
            " An erasure may blank a withdrawn person's answers." if model.__name__ == "Response" else ""
        )
    if issubclass(model, DesignModel):
        grows = " Rows may be added after launch." if getattr(model, "grows_after_launch", False) else ""
        amendable = ", ".join(code(name) for name in sorted(getattr(model, "amendable", ())))
        return f"Frozen at launch.{grows}" + (f" May be amended: {amendable}." if amendable else "")
    return ""


def _is_own(field: Any) -> bool:
    return not field.auto_created and not (field.many_to_many and field.auto_created)


def _type(field: Any) -> str:
    if field.is_relation:
        to = field.related_model.__name__
        return f"many {to}" if field.many_to_many else f"{to}{', or empty' if field.null else ''}"
    kinds = {
        "CharField": "text", "TextField": "text", "SlugField": "key", "JSONField": "JSON", "BooleanField": "true or false", "UUIDField": "uuid",
        "DateTimeField": "time", "DateField": "date", "DecimalField": "decimal", "FloatField": "number", "BinaryField": "bytes",
    }  # fmt: skip
    kind = kinds.get(field.get_internal_type(), "whole number")
    limit = f", at most {field.max_length}" if kind in ("text", "key") and field.max_length else ""
    return f"{kind}{limit}{', or empty' if field.null else ''}"


def _field_words(field: Any) -> str:
    words = []
    if (
        choices := [key for key, _ in (field.choices or ()) if key]
        if not callable(getattr(field, "choices", None))
        else []
    ):
        words.append("One of " + ", ".join(code(key) for key in choices) + ".")
    told = field.help_text or COLUMNS.get(f"{field.model.__name__}.{field.name}") or COLUMNS.get(field.name, "")
    return " ".join([sentence(told), *words]).strip()


def _constraint(constraint: Any) -> str:
    return constraint.name.replace("_", " ")


# Addresses


def addresses() -> list[tuple[str, str, str]]:
    """(path, name, first line of the view's words) of every address, without Django's own pages of the admin."""
    return sorted(_walked(get_resolver(), ""), key=lambda row: (_rank(row[0]), row[0]))


def _rank(path: str) -> int:
    starts = ("e/", "p/", "admin/", "api/", "docs/")
    return next((number for number, start in enumerate(starts) if path.startswith(start)), len(starts))


def _walked(resolver: URLResolver, before: str) -> Iterator[tuple[str, str, str]]:
    for pattern in resolver.url_patterns:
        path = before + str(pattern.pattern).removeprefix("^")
        if isinstance(pattern, URLResolver):
            yield from _walked(pattern, path)
        elif _is_listed(pattern, path):
            yield _tidy(path), pattern.name or "", _view_words(pattern)


_DJANGO = re.compile(r"_(add|change|changelist|delete|history)$")


def _is_listed(pattern: URLPattern, path: str) -> bool:
    if not path.startswith("admin/"):
        return bool(pattern.name)
    own = pattern.name and pattern.name.startswith(tuple(f"{app}_" for app in APPS))
    return bool(own) and not _DJANGO.search(pattern.name)


def _tidy(path: str) -> str:
    path = re.sub(r"<(?:\w+:)?(\w+)>", r"<\1>", path)
    return path.replace("\\Z", "").replace("$", "").replace("\\", "")


def _view_words(pattern: URLPattern) -> str:
    if pattern.name in ADDRESSES:
        return ADDRESSES[pattern.name]
    view = getattr(pattern.callback, "view_class", None) or getattr(pattern.callback, "cls", None)
    view = view or _unwrapped(pattern.callback)
    words = (getattr(view, "__doc__", "") or "").strip().partition("\n\n")[0]
    return sentence(words)


def _unwrapped(view: Callable) -> Callable:
    while hasattr(view, "__wrapped__"):
        view = view.__wrapped__
    return view


def urls_page() -> str:
    rows = addresses()
    groups = (
        ("Annotators", ("e/", "p/"), "No login, no cookie: the code in the address is the credential."),
        ("REST", ("api/",), "A token, or a researcher's session. See [REST](rest.md)."),
        (
            "Admin",
            ("admin/",),
            "A login, and a role in the study. The lists and forms of Django's admin are not listed here.",
        ),
    )
    parts, listed = [], set()
    for words, starts, note in groups:
        mine = [row for row in rows if row[0].startswith(starts)]
        listed |= set(mine)
        if mine:
            parts += [f"## {words}", note, _addresses_table(mine)]
    parts += ["## The rest", _addresses_table([row for row in rows if row not in listed])]
    return page_of("Addresses", *parts)


def _addresses_table(rows: Iterable[tuple[str, str, str]]) -> str:
    return table(("Address", "What is there"), [(code(f"/{path}"), words) for path, _, words in rows])


# States


def states_page() -> str:
    from annotators.models import Assignment
    from studies.models import Study

    trust = [(code(key), sentence(label.partition(": ")[2])) for key, label in Assignment.Trust.choices]
    origins = {
        "live": "Somebody who came by a link.", "robot": "`heval simulate` or the demo. Never in a report unless it is asked for.",
        "imported": "Answers of an earlier study, read from a file.", "test": "A try of a researcher. Never counted, deleted at launch.",
    }  # fmt: skip
    return page_of(
        "States of a study and of an assignment",
        "How one state leads to the next is told in [The life of a study](../explanation/life-of-a-study.md).",
        "## A study",
        table(("State", "What holds"), [(code(state), STUDY_STATES[state]) for state in Study.State.values]),
        "A draft or a closed study can be archived, which takes it out of the list and can be undone.",
        "## An assignment",
        "The stage of an assignment is not a column; it follows from its times.",
        table(("Stage", "How it is stored", "What it means"), ASSIGNMENT_STAGES),
        "## Why a place was released",
        table(("Reason", "What happened"), [(code(key), RELEASES[key]) for key in Assignment.Released.values]),
        "## Where answers come from",
        table(("Origin", "Meaning"), [(code(key), origins[key]) for key in Assignment.Origin.values]),
        "## How sure it is who answered",
        table(("Trust", "Meaning"), trust),
    )


# Permissions


def permissions_page() -> str:
    from studies.access import TABLE, Role

    def cells(permission) -> list[str]:
        if permission.roles is None:
            return ["yes"] * len(Role)
        return ["yes" if role in permission.roles else "" for role in Role]

    rows = [
        (code(action), one.about, one.words, *cells(one), "" if one.changes else "yes") for action, one in TABLE.items()
    ]
    return page_of(
        "Permissions",
        "Who may do what. Pages, the admin, the REST interface and commands ask this one table.",
        table(("Action", "About", "What one may do", *(str(role) for role in Role), "token that reads"), rows),
        "Whoever has no role in a study does not know that it exists: its addresses answer 404. Whoever has one, and may not do what is "
        "asked, gets 403. A coder works blind, and reads of a study what its annotators read.",
        "An administrator may do everything in every study. A token of the REST interface may do what its user may: one that only reads "
        "what the last column says, one that is bound to a study nothing outside it, and it makes no new study.",
        "Tokens, and jobs that belong to no study, are seen and ended by the person who made them and by administrators. A command of "
        "the server's own shell asks nobody.",
    )


PAGES: dict[str, Callable[[], str]] = {
    "reference/environment": environment_page,
    "reference/commands": commands_page,
    "reference/protocols": protocols_page,
    "reference/channels": channels_page,
    "reference/exclusion-rules": rules_page,
    "reference/scales": scales_page,
    "reference/data-model": data_model_page,
    "reference/urls": urls_page,
    "reference/states": states_page,
    "reference/permissions": permissions_page,
}


def write() -> list[str]:
    """Write every page that is not fresh; gives their names."""
    from .docs import FOLDER

    changed = []
    for name, make in PAGES.items():
        path, text = FOLDER / f"{name}.md", make()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            changed.append(name)
    return changed


def main() -> None:
    import os

    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "heval_site.settings")
    django.setup()
    # This file runs as __main__; the module that the documentation's tests compare with is the imported one.
    from heval_site.docs_reference import write as write_pages

    for name in write_pages():
        print(f"{name} written")


if __name__ == "__main__":
    main()
