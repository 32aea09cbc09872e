"""Housekeeping that belongs to no app."""

from studies import jobs


@jobs.every(24 * 60 * 60)
def clear_sessions() -> None:
    """Sessions that have expired; a few for each login of a researcher, none for annotators."""
    from django.core.management import call_command

    call_command("clearsessions")
