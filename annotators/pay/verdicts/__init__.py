"""Decisions about pay, their evidence, and the annotators' appeals.

heval never rejects by default, by a list or by a job. Each rejection is one person's decision about one piece of work.
"""
