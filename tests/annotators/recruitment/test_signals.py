"""The signals of recruitment: who receives them, how often, and what follows from an exception of a receiver."""

from contextlib import contextmanager

import pytest
from django.apps import apps

from annotators.models import PanelSubmission, Recruitment
from annotators.pay import ledger
from annotators.recruitment import signals
from annotators.recruitment.panels import SubmissionSnapshot
from annotators.recruitment.panels.alerts import Alert, find_panel_alerts
from annotators.recruitment.panels.orders import publishing_obstacles
from annotators.recruitment.panels.reconcile import import_submissions_and_release_places
from tests.builders import spa_study, user

pytestmark = pytest.mark.django_db
SEEN = SubmissionSnapshot("t1", "s1", "p1", "working")


@contextmanager
def connected(signal, receiver):
    signal.connect(receiver)
    try:
        yield
    finally:
        signal.disconnect(receiver)


@pytest.fixture
def recruitment():
    return Recruitment.objects.create(study=spa_study(user("owner")), channel="generic", pool="panel")


@pytest.mark.parametrize(
    "signal, receiver",
    [
        (signals.collect_obstacles, ledger.collect_pay_obstacles),
        (signals.collect_alerts, ledger.collect_retention_alerts),
        (signals.submissions_imported, ledger.update_ledger_after_import),
    ],
)
def test_pay_is_connected_once_however_often_the_app_gets_ready(signal, receiver):
    apps.get_app_config("annotators").ready()
    assert signal._live_receivers(Recruitment)[0] == [receiver]


def test_what_receivers_return_is_listed_beside_what_recruitment_finds(recruitment):
    def hinder(sender, recruitment, **kwargs):
        return [f"Nobody wants {recruitment.channel}."]

    def warn(sender, recruitment, **kwargs):
        yield Alert("test", "Something.", "Do something.")

    with connected(signals.collect_obstacles, hinder), connected(signals.collect_alerts, warn):
        assert "Nobody wants generic." in publishing_obstacles(recruitment)
        assert find_panel_alerts(recruitment)[-1] == Alert("test", "Something.", "Do something.")
    assert "Nobody wants generic." not in publishing_obstacles(recruitment)


def test_a_rehearsed_look_sends_no_signal_and_what_a_receiver_raises_takes_no_submission_back(recruitment):
    def fail(sender, **kwargs):
        raise RuntimeError("told")

    with connected(signals.submissions_imported, fail):
        import_submissions_and_release_places(recruitment, [SEEN], PanelSubmission.Source.FILE, dry_run=True)
        with pytest.raises(RuntimeError, match="told"):
            import_submissions_and_release_places(recruitment, [SEEN], PanelSubmission.Source.FILE)
    assert PanelSubmission.objects.get().external_id == "s1"
