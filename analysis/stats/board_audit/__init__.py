"""Probes that look for what is wrong with a board: each has a number, a limit, and whether it fires.

The probes of votes need pairs of systems and who was chosen, those of scores need answers in 0..1. A probe that cannot
be computed has an estimate with a status, and does not fire.
"""

from analysis.stats.board_audit._probes import Probe, neutral_share_probe, separation_probe
from analysis.stats.board_audit._scores import audit_scores
from analysis.stats.board_audit._voters import heavy_voter_probe
from analysis.stats.board_audit._votes import audit_votes, cycle_probe, first_shown_probe, vote_drift_probe

__all__ = [
    "Probe",
    "audit_scores",
    "audit_votes",
    "cycle_probe",
    "first_shown_probe",
    "heavy_voter_probe",
    "neutral_share_probe",
    "separation_probe",
    "vote_drift_probe",
]
