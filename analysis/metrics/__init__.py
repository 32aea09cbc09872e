"""Automatic metrics and judges beside people: their scores, how far they agree with people, and what human answers add."""
