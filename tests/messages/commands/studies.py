"""The lines of studies that a command names, of robots, rehearsals and snapshots."""

import queue
import tempfile
from pathlib import Path
from unittest import mock

from analysis.data import snapshot
from annotators.participation.simulate import CrowdSettings, record_simulated_answers
from heval_site.rehearsal import rehearsal
from studies.protocols import REGISTRY
from studies.protocols.base.protocol import Protocol
from tests import builders
from tests.messages.commands.scenarios import command, draft, launched, link, said
from tests.samples import sample_draft


def rehearsed(*options, make=link):
    return lambda: said(lambda: rehearsal.run_rehearsal(make(), *options))


def waiting(*words, limit=60.0):
    """What a rehearsal says of a message of its process."""

    def scenario():
        said_by_child = queue.Queue()
        for word in words:
            said_by_child.put(word)
        return said(lambda: rehearsal._wait_for_report("rehearsal", said_by_child, lambda *_: None, limit))

    return scenario


def failing_child():
    with tempfile.TemporaryDirectory() as folder:
        return said(lambda: rehearsal._run_child("rehearsal", Path(folder), lambda *_: None, 60))


def preferring(**preferences):
    return lambda: said(lambda: record_simulated_answers(launched(), 1, preferences))


def implausible():
    """A protocol whose robots break its own rules."""
    study = sample_draft("ranking")
    study.sections.update(settings={"allows_ties": False})
    with mock.patch.object(type(REGISTRY["ranking"]), "robot_answers", Protocol.robot_answers):
        return said(lambda: record_simulated_answers(builders.launched(study), 1))


def busy():
    """Another report is read in this process."""

    def read():
        with snapshot.database_snapshot():
            pass

    with (
        mock.patch.object(snapshot, "_snapshot_slots", mock.Mock(acquire=lambda **_: False)),
        mock.patch.object(snapshot.connections["default"], "in_atomic_block", False),
    ):
        return said(read)


ABC = {"alpha": 0.0, "beta": 0.0, "gamma": 0.0}
COMMANDS = {
    "There is no study": command("study", "simulate", "nothing"),
    "More than one study": command(
        "study", "simulate", "Twins", make=lambda: [builders.draft_study(title="Twins") for _ in range(2)]
    ),
    "preferences: the study": preferring(**ABC, omega=1),
    "preferences: the system": preferring(alpha=0, beta=0),
    "preferences: the preference": preferring(**ABC | {"beta": float("nan")}),
    "right: the study": lambda: said(lambda: record_simulated_answers(launched(), 1, crowd=CrowdSettings(right=0.3))),
    "page …: a robot's": implausible,
    "Other reports are being": busy,
    "Parquet needs an optional": command(
        "study",
        "export",
        "{code}",
        "responses.parquet",
        make=lambda: builders.draft_study(owner=builders.user()),
        **{"analysis.data.exports.find_spec": lambda name: None},
    ),
    "A rehearsal has … to … people": rehearsed(9999),
    "This link's channel": rehearsed(make=lambda: link(channel="gone")),
    "_plan_of_copy: The study cannot be launched": rehearsed(make=lambda: builders.recruitment(draft())),
    "The … itself failed": failing_child,
    "_wait_for_report: The study cannot be launched": waiting({"failed": "No target.", "is_refused": True}),
    "The … was stopped": waiting(),
}
