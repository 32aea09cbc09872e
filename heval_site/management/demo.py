"""The demo: one finished study with robots' answers and a report, and one open for annotators."""

import random
from dataclasses import dataclass
from datetime import date

from django.db import transaction
from django.urls import reverse

from annotators.models import Recruitment
from annotators.participation import link_actions
from studies.models import Contrast, ExclusionRule, Output, Prompt, Question, Section, Study, System
from studies.services import drafts, lifecycle

from . import demo_texts
from .demo_judges import store_demo_judges
from .demo_texts import SYSTEMS, load_demo_texts

FINISHED_TITLE = demo_texts.TITLE
OPEN_TITLE = f"{demo_texts.TITLE} (open)"
ROBOT_COUNT = 24
# The robots' preference for each writer, in log-odds, worst first: the known truth that the report should find.
STRENGTHS = (0.0, 0.7, 1.2, 1.9, 3.0)


@dataclass(frozen=True, slots=True)
class Demo:
    study: Study
    annotator_url_path: str
    report_url_path: str


def get_or_create_demo_studies(user) -> Demo:
    """Create the demo's studies if they do not exist, and return them."""
    finished, report = get_or_create_example_study(user)
    waiting = Study.objects.filter(title=OPEN_TITLE, owner=user).first() or _create_open_study(user)
    door = waiting.recruitments.earliest("pk")
    return Demo(finished, f"/e/{door.key}/", report)


def get_or_create_example_study(user) -> tuple[Study, str]:
    """Create the finished study if it does not exist. Return it and the URL of its report."""
    study = Study.objects.filter(title=FINISHED_TITLE, owner=user).first() or _create_finished_study(user)
    return study, _report_path(study)


def _report_path(study: Study) -> str:
    """Return the newest report; until it exists, the page of its job, which leads to it."""
    number = study.analyses.order_by("number").values_list("number", flat=True).last()
    if number:
        return reverse("analysis", args=[study.pk, number])
    job = study.jobs.only("code").filter(kind="analyse").latest("pk")
    return f"{reverse('admin:studies_job_page', args=[job.code])}?open"


@transaction.atomic
def _create_open_study(user) -> Study:
    study = _create_draft(user, OPEN_TITLE, target_n=20)
    study = lifecycle.launch(study, user, _warning_keys(study))
    link = link_actions.create_link(Recruitment(study=study, channel="open_link"), user)
    promises = {row.outcome: (row.rule, row.amount) for row in link.outcome_pays.all()}
    link_actions.update_link(link, user, [], promises | {"screened_out": ("nothing", None)})
    return study


def _create_finished_study(user) -> Study:
    from analysis.metrics.calibrated.options import CalibrationOptions
    from analysis.metrics.calibrated.run import request_calibration
    from analysis.report.runs import request_analysis
    from annotators.participation.simulate import CrowdSettings, record_simulated_answers

    with transaction.atomic():
        study = _create_draft(user, FINISHED_TITLE, target_n=ROBOT_COUNT)
        study = lifecycle.launch(study, user, _warning_keys(study))
        strengths = dict(zip(SYSTEMS, STRENGTHS, strict=True))
        record_simulated_answers(
            study, ROBOT_COUNT + 6, strengths, random.Random(1), crowd=CrowdSettings(screened_out=0.1)
        )
        lifecycle.start_closing(study, user, "the demo's robots have finished")
        lifecycle.end_grace_period(study, user)
        store_demo_judges(study, user)
        # The worker computes the statistics, and the site answers meanwhile.
        request_analysis(study, user, {"origins": ["robot"]})
        request_calibration(study, user, CalibrationOptions())
    return study


def _warning_keys(study: Study) -> list[str]:
    return [problem.key for problem in lifecycle.blocking_or_unacknowledged_problems(study) if not problem.is_blocking]


def _create_draft(user, title: str, target_n: int) -> Study:
    """Define the study as a researcher would in the admin."""
    study = Study(
        title=title,
        public_title=demo_texts.PUBLIC_TITLE,
        seed=20261121,
        purpose=demo_texts.PURPOSE,
        instructions=demo_texts.INSTRUCTIONS,
        consent=demo_texts.consent_text(),
        debriefing=demo_texts.DEBRIEFING,
        content_warning=demo_texts.CONTENT_WARNING,
        institution="heval demo",
        contact="research@example.org",
        retention="Answers without any identity are kept; ids of panels are erased 90 days after closing.",
        target_n=target_n,
        reward="4.00",
        minutes=20,
        wage_per_hour="12.00",
        withdrawal_until=date(2099, 12, 31),
    )
    drafts.create_draft_with_default_arm(study, user)
    systems = {name: System.objects.create(study=study, name=name, is_human=name == "human") for name in SYSTEMS}
    _add_stimuli(study, systems)
    _add_sections(study, systems)
    ExclusionRule.objects.create(study=study, position=1, rule="incomplete")
    ExclusionRule.objects.create(study=study, position=2, rule="incoherent", settings={"tau": 1.1}, role="sensitivity")
    return study


def _add_stimuli(study: Study, systems: dict[str, System]) -> None:
    rows = load_demo_texts()
    prompts = Prompt.objects.bulk_create(
        Prompt(study=study, key=row["key"], text=row["prompt"], language="en", attributes={"fable": row["source"]})
        for row in rows
    )
    Output.objects.bulk_create(
        Output(system=systems[name], prompt=prompt, text=text, language="en")
        for row, prompt in zip(rows, prompts, strict=True)
        for name, text in row["outputs"].items()
    )


def _add_sections(study: Study, systems: dict[str, System]) -> None:
    screening = Section.objects.create(study=study, position=1, protocol="survey", purpose="screening", m=0)
    options = [
        {"key": key, "label": label} | ({} if key in demo_texts.SCREENING_PASSES else {"screens_out": True})
        for key, label in demo_texts.SCREENING_ANSWERS.items()
    ]
    Question.objects.create(
        section=screening,
        position=1,
        key="english",
        text=demo_texts.SCREENING_QUESTION,
        scale={"kind": "choice", "options": options},
    )
    spa = Section.objects.create(
        study=study,
        position=2,
        protocol="spa",
        m=5,
        settings={"noun": "writer", "explanation": demo_texts.SPA_EXPLANATION},
    )
    better = [(systems[y], systems[x]) for x, y in zip(SYSTEMS, SYSTEMS[1:], strict=False)]
    directed_pairs = [pair for x, y in better for pair in ((x, y), (y, x))]
    Question.objects.bulk_create(
        Question(
            section=spa,
            position=n,
            key=f"{x.name}-{y.name}",
            text=demo_texts.SPA_QUESTION,
            scale={"kind": "percent"},
            x=x,
            y=y,
        )
        for n, (x, y) in enumerate(directed_pairs, 1)
    )
    for x, y in better:
        Contrast.objects.create(
            study=study,
            x=x,
            y=y,
            expected=">",
            margin=0.05,
            population=Contrast.Population.PEOPLE,
        )
    rating = Section.objects.create(
        study=study, position=3, protocol="rating", m=1, reuses=spa, settings={"noun": "writer"}
    )
    Question.objects.create(
        section=rating,
        position=1,
        key="quality",
        text=demo_texts.LIKERT_QUESTION,
        scale={"kind": "likert", "labels": list(demo_texts.LIKERT_LABELS)},
    )
    closing = Section.objects.create(study=study, position=4, protocol="survey", m=0)
    Question.objects.create(
        section=closing,
        position=1,
        key="comment",
        text=demo_texts.CLOSING_QUESTION,
        required=False,
        scale={"kind": "text"},
    )
