"""Signals of studies: each receiver is connected once, and what one raises stops what was begun."""

import pytest
from django.apps import apps

from studies import signals
from studies.design.checklist import find_design_problems
from studies.models import Study
from studies.protocols import Problem
from studies.services import copying
from tests.builders import spa_draft

SENT = (
    "deleting_test_runs",
    "deleting_draft",
    "checking_draft",
    "describing_families",
    "describing_forecast",
    "counting_progress",
)


class Refused(Exception):
    pass


@pytest.fixture
def received():
    """Connects a receiver for one test alone."""
    connected = []

    def connect(signal, receiver):
        signal.connect(receiver, weak=False)
        connected.append((signal, receiver))

    yield connect
    for signal, receiver in connected:
        signal.disconnect(receiver)


def test_an_app_that_is_made_ready_twice_receives_a_signal_once():
    before = {name: len(getattr(signals, name).receivers) for name in SENT}
    assert all(before.values()), "nobody hears of it"
    apps.get_app_config("annotators").ready()
    apps.get_app_config("analysis").ready()
    assert {name: len(getattr(signals, name).receivers) for name in SENT} == before


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["deleting_test_runs", "deleting_draft"])
def test_a_receiver_that_raises_keeps_the_draft(name, received):
    def refuses(study, **kwargs):
        assert study.is_draft
        raise Refused

    study = spa_draft()
    received(getattr(signals, name), refuses)
    with pytest.raises(Refused):
        copying.delete_or_archive_draft(study, None)
    assert Study.objects.get(pk=study.pk).sections.exists()


@pytest.mark.django_db
def test_what_a_receiver_finds_is_on_the_checklist(received):
    received(signals.checking_draft, lambda study, **kwargs: [Problem(f"{study.title} is odd.")])
    assert "odd is odd." in [problem.text for problem in find_design_problems(spa_draft(title="odd"))]
