"""The columns of flat rows are listed here, each with its type and its meaning."""

from dataclasses import dataclass

from annotators.models import Assignment


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
    Column("assignment", "text", "An annotator with a batch: a name within this study that tells nothing."),
    Column(
        "annotator",
        "text",
        "The annotator: the same in all rows of this study, different in every other study; empty after a withdrawal.",
    ),
    Column("ordinal", "integer", "Which of this annotator's assignments in the study it is, from 1."),
    Column("channel", "text", "By which kind of recruitment the annotator came."),
    Column("batch", "integer", "The number of the batch."),
    Column("arm", "text", "The between-subject cell."),
    Column("condition", "text", "The condition of the arm.", levels=("none", "instructions", "examples", "comparison")),
    Column("origin", "text", "Where the answers come from.", levels=_values(Assignment.Origin)),
    Column("trust", "text", "How sure it is who answered.", levels=_values(Assignment.Trust)),
    Column(
        "design_version", "integer", "The version of the design that the annotator saw; empty for a test of a draft."
    ),
    Column("is_submitted", "boolean", "The annotator sent the last page."),
    Column(
        "is_late", "boolean", "It was sent after its place had gone to somebody else, or after the study was closed."
    ),
    Column("is_withdrawn", "boolean", "The annotator withdrew; exports have such rows only when they are asked for."),
    Column(
        "exclusion",
        "text",
        "Reasons of the standing exclusions that people decided, by semicolons; rules are not in it.",
    ),
)
PAGE_COLUMNS = (
    Column("page", "text", "The page, as counted for this annotator; empty for imported answers."),
    Column("layout", "text", "How the page was laid out on the annotator's screen, as far as its script told."),
    Column("shown_at", "time", "When the page was first shown; empty where it is not known."),
    Column("received_at", "time", "When the answer was stored."),
    Column(
        "active_seconds", "integer", "Time with the page in the foreground, as its script counted; a hint.", "seconds"
    ),
    Column(
        "unseen",
        "text",
        "The page's images that the annotator could not see, by semicolons: i2.A is the output with the letter A at position 2, "
        "i2 the image of the prompt there.",
    ),
)
ANSWER_COLUMNS = (
    Column("section", "integer", "The position of the section in the design."),
    Column("protocol", "text", "The protocol of the section."),
    Column("purpose", "text", "What the section is for.", levels=("live", "training", "screening")),
    Column("question", "text", "The key of the question."),
    Column("criterion", "text", "The criterion that the question asks about."),
    Column("x", "text", "The system in the first place of a directed question: it means P[x > y]."),
    Column("y", "text", "The system in the second place of a directed question."),
    Column("item", "text", "The item judged, s<section>.<number>; empty for a question about systems."),
    Column("item_kind", "text", "What the item is for.", levels=("live", "test", "practice")),
    Column("prompt", "text", "The key of the item's prompt."),
    Column("domain", "text", "The domain of the prompt."),
    Column("system", "text", "The system whose output was judged; empty where the answer is not about one output."),
    Column("sample", "integer", "Which of the system's outputs for the prompt it was, from 0."),
    Column("label", "text", "The letter, or letters, on the annotator's screen."),
    Column("position", "integer", "The place at which the annotator met the item, or the question about systems."),
    Column("slot", "text", "The form field, unique within an assignment."),
    Column("value", "number", "The answer as a number, on the question's own scale, as it was given."),
    Column("chosen_system", "text", "The system whose output was chosen."),
    Column("choice", "text", "The option chosen, or the option that this row is about."),
    Column("part", "text", "The part of the output that this row is about."),
    Column("text", "text", "The answer in words, as typed."),
    Column("skip_reason", "text", "Why the annotator could not answer."),
    Column("is_erased", "boolean", "The answer was blanked at the annotator's wish."),
)
TIME_COLUMNS = (
    Column("claimed_at", "time", "When the batch was claimed."),
    Column("consented_at", "time", "When the annotator agreed to take part."),
    Column("started_at", "time", "When the annotator began."),
    Column("submitted_at", "time", "When the last page was sent."),
    Column("released_at", "time", "When the place was given back."),
    Column("released_reason", "text", "Why it was given back.", levels=_values(Assignment.Released)),
    Column("withdrawn_at", "time", "When the annotator withdrew."),
    Column(
        "seconds",
        "number",
        "From the start to the last page, by the server's clock; empty for imported answers.",
        "seconds",
    ),
    Column("active_seconds", "integer", "The sum over pages of the time in the foreground; a hint.", "seconds"),
    Column("pages", "integer", "Pages answered."),
    Column(
        "unseen",
        "text",
        "The images that the annotator could not see, by semicolons, each after its page: s2.read:i2.A. A page that asks "
        "nothing is named here alone.",
    ),
)
RESPONSE_COLUMNS = IDENTITY_COLUMNS + PAGE_COLUMNS + ANSWER_COLUMNS
ASSIGNMENT_COLUMNS = IDENTITY_COLUMNS + TIME_COLUMNS
