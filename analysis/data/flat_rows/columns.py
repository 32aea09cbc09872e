"""The columns of flat rows, each with its type and its meaning."""

from dataclasses import dataclass

from annotators.models import Assignment
from studies.models import Section


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a flat row. ``type``: text, integer, number, boolean or time."""

    name: str
    type: str
    meaning: str
    unit: str = ""
    levels: tuple[str, ...] = ()


def _values(choices) -> tuple[str, ...]:
    return tuple(str(value) for value, _ in choices.choices)


IDENTITY_COLUMNS = (
    Column("assignment", "text", "Pseudonym of the assignment (an annotator with a batch) within this study."),
    Column(
        "annotator",
        "text",
        "Pseudonym of the annotator: the same in all rows of this study, different in other studies. Empty after a withdrawal.",
    ),
    Column("ordinal", "integer", "Number of this assignment among the annotator's assignments in this study, from 1."),
    Column("channel", "text", "The channel of the link by which the annotator came."),
    Column("batch", "integer", "The number of the batch."),
    Column("arm", "text", "The arm (between-subject cell)."),
    Column("condition", "text", "The condition of the arm.", levels=("none", "instructions", "examples", "comparison")),
    Column("origin", "text", "Where the answers come from.", levels=_values(Assignment.Origin)),
    Column("trust", "text", "How reliably the annotator is identified.", levels=_values(Assignment.Trust)),
    Column(
        "design_version",
        "integer",
        "The version of the design that the annotator saw. Empty for a test run of a draft.",
    ),
    Column("is_submitted", "boolean", "The annotator submitted the last page."),
    Column(
        "is_late",
        "boolean",
        "It was submitted after its place was given to another annotator, or after the study closed.",
    ),
    Column("is_withdrawn", "boolean", "The annotator withdrew. Exports include such rows only on request."),
    Column(
        "exclusion",
        "text",
        "Reasons of active exclusions that researchers decided, separated by semicolons. Exclusion rules are not included.",
    ),
)
PAGE_COLUMNS = (
    Column("page", "text", "The page, as numbered for this annotator. Empty for imported answers."),
    Column("layout", "text", "The page layout on the annotator's screen, if the page's script reported it."),
    Column("shown_at", "time", "When the page was first shown. Empty if unknown."),
    Column("received_at", "time", "When the answer was stored."),
    Column(
        "active_seconds",
        "integer",
        "Time with the page in the foreground, counted by the page's script. Approximate.",
        "seconds",
    ),
    Column(
        "unseen",
        "text",
        "Images of the page that the annotator could not see, separated by semicolons: i2.A is the output with letter A at "
        "position 2; i2 is the image of the prompt at position 2.",
    ),
)
ANSWER_COLUMNS = (
    Column("section", "integer", "The position of the section in the design."),
    Column("protocol", "text", "The protocol of the section."),
    Column("purpose", "text", "The purpose of the section.", levels=_values(Section.Purpose)),
    Column("question", "text", "The key of the question."),
    Column("criterion", "text", "The criterion that the question asks about."),
    Column("x", "text", "The first system of a directed question, which asks for P[x > y]."),
    Column("y", "text", "The second system of a directed question."),
    Column("item", "text", "The judged item as s<section>.<number>. Empty for a question about systems."),
    Column("item_kind", "text", "The purpose of the item.", levels=("live", "test", "practice")),
    Column("prompt", "text", "The key of the item's prompt."),
    Column("domain", "text", "The domain of the prompt."),
    Column("system", "text", "The system whose output was judged. Empty if the answer is not about a single output."),
    Column("sample", "integer", "Number of the output among the system's outputs for the prompt, from 0."),
    Column("label", "text", "The letter or letters of the outputs on the annotator's screen."),
    Column("position", "integer", "The position at which the annotator saw the item, or the question about systems."),
    Column("slot", "text", "The name of the form field, unique within an assignment."),
    Column(
        "value", "number", "The answer as a number on the question's scale, as given. Of a box: 1 if ticked, 0 if not."
    ),
    Column("chosen_system", "text", "The system whose output was chosen."),
    Column("choice", "text", "The chosen option, or the option that this row is about."),
    Column("part", "text", "The part of the output that this row is about."),
    Column("text", "text", "The free-text answer, as typed."),
    Column(
        "skip_reason",
        "text",
        "Why the annotator could not answer. unseen: they could not see an image that the question is about.",
    ),
    Column("is_erased", "boolean", "The answer was erased at the annotator's request."),
)
TIME_COLUMNS = (
    Column("claimed_at", "time", "When the batch was claimed."),
    Column("consented_at", "time", "When the annotator agreed to take part."),
    Column("started_at", "time", "When the annotator began."),
    Column("submitted_at", "time", "When the annotator submitted the last page."),
    Column("released_at", "time", "When the place was released."),
    Column("released_reason", "text", "Why the place was released.", levels=_values(Assignment.Released)),
    Column("withdrawn_at", "time", "When the annotator withdrew."),
    Column(
        "seconds",
        "number",
        "Time from the start to submission, by the server's clock. Empty for imported answers.",
        "seconds",
    ),
    Column("active_seconds", "integer", "Total time with a page in the foreground. Approximate.", "seconds"),
    Column("pages", "integer", "Number of answered pages."),
    Column(
        "unseen",
        "text",
        "Images that the annotator could not see, separated by semicolons, each after its page: s2.read:i2.A. Pages without "
        "questions appear only here.",
    ),
)
RESPONSE_COLUMNS = IDENTITY_COLUMNS + PAGE_COLUMNS + ANSWER_COLUMNS
ASSIGNMENT_COLUMNS = IDENTITY_COLUMNS + TIME_COLUMNS
