"""Studies sends these signals, so that apps above it can add what it does not know.

A receiver is connected in its app's ``ready()`` with a ``dispatch_uid``, and takes ``**kwargs`` beside the arguments named here.
Receivers are called in the order in which they were connected, in the sender's process and transaction. An exception of a
receiver is never caught by the signal: later receivers are not called, and what follows from it is said with each signal.
"""

from django.dispatch import Signal

# Arguments: ``study``, a draft or a study that is being launched. Sent before a study leaves its draft (launch, freeze), before a draft
# is deleted, and before rows are deleted on which a researcher's tries may hang. Receivers delete what the tries left behind. What they
# return is ignored. An exception stops the step that was begun, and its transaction is rolled back.
deleting_test_runs = Signal()

# Arguments: ``study``. Sent when a draft is deleted, after ``deleting_test_runs`` and before the rows of its design go. Receivers delete
# their own rows about the draft. What they return is ignored. An exception keeps the draft: its transaction is rolled back.
deleting_draft = Signal()

# Arguments: ``study``. Sent when the checklist of a draft is made. Receivers return an iterable of ``studies.protocols.Problem``: what
# they find missing or unwise. An exception ends the checklist, and with it the page or the launch that asked for it.
checking_draft = Signal()

# Arguments: ``study_ids``, a list. Sent when a page names how far studies have come. Receivers return a dict by id whose values have
# ``submitted``, ``last_at``, ``robots``, ``imported`` and ``inside``; an id that is left out has no progress, and of two
# receivers the later one counts. An exception fails the page.
counting_progress = Signal()

# No arguments. Sent after the commit of a transaction in which jobs began to wait. Receivers wake whoever runs jobs, and must return
# at once. What they return is ignored. An exception is logged and fails nothing: a job that nobody was told of is found by the beat.
jobs_waiting = Signal()
