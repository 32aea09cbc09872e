"""Scores of texts beside their references, by the built-in metrics. Nothing here knows Django."""
