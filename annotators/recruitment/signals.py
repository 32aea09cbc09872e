"""The signals that recruitment sends to what is built on it, such as pay.

Receivers are connected in ``AnnotatorsConfig.ready``, each with a ``dispatch_uid``. All signals are sent with ``Signal.send``: an exception
of a receiver is raised where the signal was sent, and the receivers after it are not called. The sender is the class ``Recruitment``.
"""

from django.dispatch import Signal

# Sent by ``panels.publishing.hindrances``, whenever somebody wants to know what must be mended before people are sent to a link.
# Arguments: ``recruitment``. Receivers return an iterable of strings, each a sentence for the researcher; an empty one finds nothing.
collect_obstacles = Signal()

# Sent by ``panels.alerts.alerts``, whenever somebody wants to know what stands out at a link's panel, after recruitment's own checks.
# Arguments: ``recruitment``. Receivers return an iterable of ``panels.alerts.Alert``; an empty one finds nothing.
collect_alerts = Signal()

# Sent by ``panels.reconcile.import_submissions`` after a look at a panel was written down, whether it changed something or not, and never in a
# rehearsal. Its transaction has ended: what a receiver raises takes nothing of the look back.
# Arguments: ``recruitment``. What receivers return is ignored.
submissions_imported = Signal()
