"""The lines of studies that a command names, of robots, rehearsals and snapshots."""

import queue
import tempfile
from pathlib import Path
from unittest import mock

from analysis.data import snapshot
from annotators.participation.simulate import record_simulated_answers
from heval_site.rehearsal import rehearsal
from studies.protocols import REGISTRY
from studies.protocols.base.protocol import Protocol
from tests import builders
from tests.messages.commands.scenarios import command, draft, launched, link, said
from tests.samples import sample_draft

REHEARSAL, SIMULATION = "heval_site/rehearsal", "annotators/participation"


def rehearsed(*options, make=link):
    return command("rehearse", "{key}", *options, make=make)


def waiting(*words, limit=60.0):
    """What a rehearsal says of a message of its process."""

    def scenario():
        said_by_child = queue.Queue()
        for word in words:
            said_by_child.put(word)
        return said(lambda: rehearsal._wait_for_report(said_by_child, lambda *_: None, 0.0, limit))

    return scenario


def failing_child():
    with tempfile.TemporaryDirectory() as folder:
        return said(lambda: rehearsal._run_child(Path(folder), lambda *_: None, 60))


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
LINES = {
    "studies/services:find_study": [
        (
            "There is no study nothing",
            "Give its code, the beginning of its code, or its title",
            command("export", "nothing"),
        ),
        (
            "More than one study matches Twins",
            "Give the whole code",
            command("export", "Twins", make=lambda: [builders.draft_study(title="Twins") for _ in range(2)]),
        ),
    ],
    f"{SIMULATION}:_check": [
        ("preferences: the study has no system 'omega'", "Use its systems: alpha", preferring(**ABC, omega=1)),
        ("preferences: the system 'gamma' has no preference", "Add one", preferring(alpha=0, beta=0)),
        ("the preference of 'beta' must be a finite number", "Correct it", preferring(**ABC | {"beta": float("nan")})),
    ],
    f"{SIMULATION}:_take_part": [
        ("a robot's answers were refused", "must define plausible answers: give it a method", implausible),
    ],
    "analysis/data:database_snapshot": [
        ("Other reports are being computed", "Try again in a minute", busy),
    ],
    "analysis/data:write_parquet": [
        (
            "Parquet needs an optional package",
            "pip install 'pyarrow",
            command(
                "export",
                "{code}",
                "--format",
                "parquet",
                "--output",
                "{folder}/x.parquet",
                **{"analysis.data.exports.find_spec": lambda name: None},
            ),
        ),
    ],
    f"{REHEARSAL}:build_rehearsal_plan": [
        ("A rehearsal has 3 to 200 people", "not 9999. Change the number of people", rehearsed("--robots", "9999")),
        (
            "This link's channel, gone, is not installed",
            "Install its package first",
            rehearsed(make=lambda: link(channel="gone")),
        ),
        (
            "The study cannot be launched as it is",
            "Correct this first: ",
            rehearsed(make=lambda: builders.recruitment(draft())),
        ),
    ],
    f"{REHEARSAL}:_run_child": [
        ("The rehearsal itself failed (it ended without a report)", "See the server's log", failing_child),
    ],
    f"{REHEARSAL}:_wait_for_report": [
        (
            "The study cannot be launched as it is",
            "Correct this first: No target",
            waiting({"failed": "No target.", "is_refused": True}),
        ),
        ("The rehearsal was stopped after 60 seconds", "Try again with fewer people", waiting()),
    ],
}
