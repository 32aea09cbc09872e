"""Leaderboards: boards, submissions, rounds that are ordinary studies, and snapshots of results."""
