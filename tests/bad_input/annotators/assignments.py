"""Assignments at the questions of a page, and what is read in an answer of the site."""

from annotators.models import Assignment
from annotators.pages.record import full_page_state
from tests.players import answered, plausible, submitted


def words_of(response) -> str:
    return " ".join(response.content.decode().replace("&#x27;", "'").split())


def fresh(assignment):
    return Assignment.objects.select_related("study", "recruitment").get(pk=assignment.pk)


def at_questions(study, person="w"):
    """An assignment that looks at the SPA questions, their address, and a good answer to each."""
    assignment = submitted(study, person, until="s2.ask")
    return assignment, f"/p/{assignment.code}/s2.ask/", plausible(assignment)


def finished(assignment) -> Assignment:
    """Every page that is left, answered."""
    while (key := full_page_state(fresh(assignment)).next_key) is not None:
        assert answered(assignment, key).sent is None
    return fresh(assignment)
