"""Submissions at Prolific's stand-in, and the settings of a link to it."""

PERSON, OTHER = "5f1a" * 6, "6f1a" * 6
CODES = {"code_complete": "A2K7PQ", "code_screened_out": "B3T4RW", "code_full": "D5XNUV"}


def work(fake, task, status="AWAITING REVIEW", person=PERSON) -> dict:
    """The values that name one person's submission, which is in this state."""
    return {"task": task, "submission": fake.add_submission(task, person, status), "person": person}
