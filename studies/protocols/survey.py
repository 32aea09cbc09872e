"""Survey: questions about the annotator or the study, such as screening, background or comments. It shows no items."""

from . import ExampleStudy, Page, Problem, Protocol, question_fields, register

YES_NO = {"kind": "choice", "options": [{"key": "yes", "label": "Yes"}, {"key": "no", "label": "No"}]}
AMOUNT_SCALE = {"kind": "likert", "labels": ["not at all", "a little", "somewhat", "much", "very much"]}

AI_TOOLS_QUESTION = {
    "key": "used_ai_tools",
    "text": "Did you use an AI tool, such as a chatbot, for your answers? Your pay does not change.",
    "scale": {
        "kind": "choice",
        "options": [
            {"key": "no", "label": "No"},
            {"key": "some", "label": "Yes, for some of them"},
            {"key": "most", "label": "Yes, for most of them"},
        ],
    },
}


@register
class Survey(Protocol):
    slug = "survey"
    label = "Survey: questions without texts"
    help = "Screening, background, closing comments. Answers are stored and listed; nothing is estimated from them."
    has_items = False
    default_scale_kind = "choice"
    ai_tools_question = AI_TOOLS_QUESTION
    sample = ExampleStudy(
        questions=(
            {"key": "fluent", "text": "Do you read English fluently?", "scale": YES_NO},
            *(
                {"key": f"q{n}", "text": f"How much do you like stories of kind {n}?", "scale": AMOUNT_SCALE}
                for n in range(6)
            ),
            {"key": "comment", "text": "Is there anything else?", "required": False, "scale": {"kind": "text"}},
        )
    )

    def problems(self, section):
        if section.m and section.pass_mark is None:
            yield Problem("A survey shows no items. Set m to 0.", "m")
        for question in section.questions.all():
            if (question.scale or {}).get("kind") == "output":
                yield Problem(
                    f"Question {question.key} asks for one of the outputs shown, but a survey shows none. Choose another scale.",
                    "questions",
                )

    def draw(self, section, pool, rng):
        return []

    def pages(self, section, items, answers):
        return [Page(f"s{section.position}", section, (), section.questions)]

    def page_fields(self, page):
        return {slot: ask for question in page.questions for slot, ask in question_fields(page, question).items()}
