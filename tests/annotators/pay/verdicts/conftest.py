"""Work that came to a panel, with questions whose answer is known, and people who decide about it."""

from datetime import timedelta

import pytest

from annotators.models import Assignment, PanelSubmission, PanelTask, Response
from annotators.models.identity import store_person_id
from annotators.pay.decisions import get_work_by_submission
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.channels.prolific.client import REJECTION_POLICY
from annotators.recruitment.panels.http_client import store_or_delete_secrets
from studies.models import Expected, Item, Placement, StudyMember
from tests.annotators.recruitment.pretend import Pretend, recruitment_of, speaks
from tests.builders import spa_study, user
from tests.players import submitted


@pytest.fixture
def panel(monkeypatch):
    """A panel of the generic channel, with Prolific's rules of what may be refused."""
    made = Pretend()
    speaks(monkeypatch, made)
    monkeypatch.setattr(type(REGISTRY["generic"]), "rejection_policy", REJECTION_POLICY)
    return made


@pytest.fixture
def recruitment(panel):
    study = spa_study(user("owner"), target_n=20)
    StudyMember.objects.create(study=study, user=user("colleague"), role=StudyMember.Role.EDITOR)
    made = recruitment_of(study)
    store_or_delete_secrets(made, {"token": "t"}, by=None)
    PanelTask.objects.create(recruitment=made, external_id="T")
    return made


def sent(recruitment, person="W1", state="submitted", **columns) -> PanelSubmission:
    """Somebody's finished work, as the panel shows it."""
    assignment = submitted(recruitment.study, person, recruitment=recruitment)
    store_person_id(assignment.annotator, person)
    return PanelSubmission.objects.create(
        recruitment=recruitment,
        task=PanelTask.objects.get(recruitment=recruitment),
        external_id=f"S-{person}",
        annotator=assignment.annotator,
        assignment=assignment,
        state=state,
        source="service",
        **columns,
    )


def checks(submission, *answers) -> None:
    """Questions of which the known answer is 80 to 100, answered so."""
    assignment, study = submission.assignment, submission.assignment.study
    section = study.sections.get(protocol="spa")
    question, prompt = section.questions.first(), study.prompts.first()
    for n, value in enumerate(answers, 900 + 10 * assignment.pk):
        item = Item.objects.create(
            study=study, section=section, number=n, prompt=prompt, kind="test", content=f"{n:064}"
        )
        Placement.objects.create(batch=assignment.batch, item=item, number=n)
        Expected.objects.create(item=item, question=question, low=80, high=100)
        Response.objects.create(assignment=assignment, question=question, item=item, slot=f"check{n}", value=value)


def lasting(submission, minutes: float, others: int = 0) -> None:
    """So long from the first page to the last; ``others`` took ten minutes, more or less."""
    one = submission.assignment
    start = one.submitted_at - timedelta(minutes=minutes)
    Assignment.objects.filter(pk=one.pk).update(claimed_at=start, started_at=start)
    for n in range(others):
        other = submitted(one.study, f"other{n}", recruitment=one.recruitment)
        start = other.submitted_at - timedelta(minutes=9.5 + n % 3 / 2)
        Assignment.objects.filter(pk=other.pk).update(claimed_at=start, started_at=start)


def work(submission):
    return get_work_by_submission(submission.recruitment, submission.pk)


LONG = "Two of the questions in this study say in their own words which answer to give, and you gave another one to both of them."


@pytest.fixture
def clients():
    from tests.admin_pages import logged_in

    return {name: logged_in(user(name)) for name in ("owner", "colleague")}
