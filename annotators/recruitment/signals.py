"""The signals that recruitment sends to the packages built on it, such as pay.

Receivers are connected in ``AnnotatorsConfig.ready``, each with a ``dispatch_uid``. All signals are sent with
``Signal.send``: an exception of a receiver is raised at the sender, and later receivers are not called. The sender is
the class ``Recruitment``.
"""

from django.dispatch import Signal

from studies.signals import AskingSignal

# Sent by ``panels.publishing.publishing_obstacles`` to collect problems to fix before people are sent to a link.
# Arguments: ``recruitment``. Receivers return an iterable of strings, each a sentence for the researcher; empty if
# there is no problem.
collect_obstacles = AskingSignal()

# Sent by ``panels.alerts.find_panel_alerts`` to collect alerts about a link's panel, after recruitment's own checks.
# Arguments: ``recruitment``. Receivers return an iterable of ``panels.alerts.Alert``; empty if there is no alert.
collect_alerts = AskingSignal()

# Sent by ``panels.reconcile.import_submissions_and_release_places`` after a check was stored, whether it changed anything or not, and
# never in a dry run. Its transaction has ended, so an exception in a receiver does not undo the check.
# Arguments: ``recruitment``. Return values are ignored.
submissions_imported = Signal()
