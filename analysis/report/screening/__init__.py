"""Screening of annotators by test questions: the job that fits the model, and the page and rows that show its result."""
