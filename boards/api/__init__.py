"""Boards, submissions, rounds and snapshots by REST."""
