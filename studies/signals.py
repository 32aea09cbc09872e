"""Signals that the app studies sends, so that apps above it can add their own data and checks.

Connect a receiver in its app's ``ready()`` with a ``dispatch_uid``. It takes ``**kwargs`` beside the arguments named here. Receivers
run in the order of their connection, in the sender's process and transaction. A signal never catches a receiver's exception: later
receivers are not called. Each signal below describes the effect.
"""

from typing import TYPE_CHECKING, Any

from django.dispatch import Signal

if TYPE_CHECKING:
    from collections.abc import Callable


class AskingSignal(Signal):
    """A signal whose receivers return data. Django's type stubs know only texts."""

    if TYPE_CHECKING:

        def send(self, sender: Any, **named: Any) -> list[tuple[Callable[..., Any], Any]]: ...


# Arguments: ``study``, a draft or a study that is being launched, and ``spares_imports`` if an import of answers freezes it. Sent before a draft is launched, frozen or deleted, and before rows are
# deleted that test runs may refer to. Receivers delete the rows of test runs. Their return values are ignored. An exception stops the
# step and rolls back its transaction.
deleting_test_runs = Signal()

# Arguments: ``study``. Sent when a draft is deleted, after ``deleting_test_runs`` and before the rows of its design are deleted. Receivers
# delete their own rows about the draft. Their return values are ignored. An exception keeps the draft: its transaction is rolled back.
deleting_draft = Signal()

# Arguments: ``study``. Sent when the checklist of a draft is computed. Receivers return an iterable of ``studies.protocols.Problem`` for
# missing or unwise settings. An exception ends the checklist, and the page or launch that needs it.
checking_draft = AskingSignal()

# Arguments: ``study``. Sent when the page of a draft shows what the report will say of its planned comparisons. Receivers return a list of
# dicts, one for each family: ``name``, ``n_sentences``, ``adjustment``, ``after`` and ``pairs`` (each with its number of sentences). An
# exception fails the page.
describing_families = AskingSignal()

# Arguments: ``study``, and ``workloads``, those of its batches (``studies.design.workload``). Sent when the page of a draft or its launch
# page shows what the design can find. Receivers return a list of sentences. An exception fails the page.
describing_forecast = AskingSignal()

# Arguments: ``request``, ``study`` and ``section``, a draft's. Sent in a transaction that is rolled back, when the page Question shows what
# annotators will see. The receiver returns the first page on which the section asks, as a response that a page of this site may frame.
# If the draft cannot be shown it raises ActionRefused, and otherwise an exception fails the page.
rendering_first_question = AskingSignal()

# Arguments: ``study_ids``, a list. Sent when a page shows the progress of studies. Receivers return a dict by id. Its values have
# ``submitted``, ``last_submitted_at``, ``robots``, ``imported`` and ``in_progress``. A missing id means no progress. If two receivers
# return the same id, the later one counts. An exception fails the page.
counting_progress = AskingSignal()

# No arguments. Sent after the commit of a transaction that added waiting jobs. Receivers wake the workers, and must return at once.
# Their return values are ignored. An exception is logged and fails nothing: the scheduler finds jobs that no worker was woken for.
jobs_waiting = Signal()
