"""A client of heval for Python: from outputs to a launched study with a link, and later to its verdict.

This package is also the wheel ``heval_client`` (``tools/heval_client``), so it imports nothing of heval and no Django.
"""

from .asynchronous import AsyncBoard, AsyncSite, AsyncStudy
from .calls import ClientError, Fault, NotReachable, Refused, TimedOut, WrongUse
from .results import Checklist, Link, Plan, Problem, Verdict
from .site import Board, Site, Study

__all__ = [
    "AsyncBoard",
    "AsyncSite",
    "AsyncStudy",
    "Board",
    "Checklist",
    "ClientError",
    "Fault",
    "Link",
    "Plan",
    "NotReachable",
    "Problem",
    "Refused",
    "Site",
    "Study",
    "TimedOut",
    "Verdict",
    "WrongUse",
]
