"""The library of criteria: how to ask about each, its definition, the words of its scale, and its standard name.

The wording is heval's. Codes and names are those of the Quality Criteria for Evaluation Taxonomy (QCET 3.4.1: Belz, Mille and Thomson
2025, arXiv 2509.22064), with which two evaluations can tell whether they measured the same.
"""

from dataclasses import dataclass
from typing import Any

from django.utils.text import slugify

SOURCE_NAME = "QCET 3.4.1 (Belz, Mille and Thomson 2025)"
SOURCE_URL = "https://nlp-qcet.github.io"


@dataclass(frozen=True, slots=True)
class Criterion:
    """A criterion. ``how`` asks about ``{it}``, one output. An output ``is`` ``more``, ``most`` or ``least`` than or of others.

    ``definition`` is what annotators read with the question. ``points`` are the words of five points, the worst first. ``question``
    replaces the usual wording. A criterion of one's own has no ``code``.
    """

    key: str
    name: str
    code: str
    standard_name: str
    how: str
    more: str
    most: str
    least: str
    definition: str
    points: tuple[str, ...]
    question: str = ""

    @property
    def label(self) -> str:
        """Return the name in questions, comparisons and reports."""
        return self.name[0].lower() + self.name[1:]

    @property
    def scale(self) -> dict[str, Any]:
        """Return the scale of a question, as it is stored."""
        if all(self.points):
            return {"kind": "likert", "labels": list(self.points)}
        return {
            "kind": "likert",
            "minimum": 1,
            "maximum": len(self.points),
            "low": self.points[0],
            "high": self.points[-1],
        }


CRITERIA = (
    Criterion(
        "overall", "Overall quality", "Q", "Quality of outputs",
        "How good is {it}?", "better", "the best", "the worst",
        "Judge it as a whole, by whatever matters to you as a reader.",
        ("very bad", "bad", "neither good nor bad", "good", "very good"),
    ),
    Criterion(
        "usefulness", "Usefulness", "QEG-w-3", "Usefulness (nonspecific)",
        "How useful is {it}?", "more useful", "the most useful", "the least useful",
        "It is useful if a person who asked for it could do something with it as it stands.",
        ("of no use", "of little use", "of some use", "useful", "very useful"),
    ),
    Criterion(
        "answers_question", "Answers the question", "QIG-w-2", "Degree to which Output Answers Question in Input",
        "How well does {it} answer the question?", "better at answering the question", "the best at answering the question",
        "the worst at answering the question",
        "Everything that was asked is answered. What nobody asked for does not count.",
        ("not at all", "badly", "in part", "mostly", "completely"),
    ),
    Criterion(
        "relevance", "Relevance", "QIG-c-3", "Relevance to Input",
        "How relevant is {it} to the prompt?", "more relevant to the prompt", "the most relevant to the prompt",
        "the least relevant to the prompt",
        "It is relevant if all that it says belongs to what the prompt is about.",
        ("has nothing to do with it", "hardly relevant", "partly relevant", "mostly relevant", "relevant throughout"),
    ),
    Criterion(
        "truth", "Factual truth", "QEC-c-1", "Factual Truth",
        "How true is what {it} says?", "closer to the facts", "the closest to the facts", "the furthest from the facts",
        "Compare what it says with the facts of the world, whatever the prompt says. Look facts up if the instructions allow it.",
        ("all of it is false", "mostly false", "half of it is true", "mostly true", "all of it is true"),
    ),
    Criterion(
        "faithfulness", "Faithfulness", "QIC-c-3", "Consistency with Input",
        "How well does {it} agree with the source?", "more faithful to the source", "the most faithful to the source",
        "the least faithful to the source",
        "Nothing that it says contradicts the source. Whether the source itself is right does not matter.",
        ("contradicts it throughout", "mostly contradicts it", "agrees in part", "mostly agrees", "agrees in everything"),
    ),
    Criterion(
        "no_additions", "Nothing added", "QIC-c-2", "Absence of Additions (relative to input)",
        "How free is {it} of things that are not in the source?", "freer of things that are not in the source",
        "the freest of things that are not in the source", "the least free of things that are not in the source",
        "An addition is a statement that the source neither makes nor implies, even if it happens to be true.",
        ("almost all is added", "much is added", "some is added", "little is added", "nothing is added"),
    ),
    Criterion(
        "completeness", "Nothing left out", "QIC-c-1", "Absence of Omissions (relative to input)",
        "How complete is {it}, compared with the source?", "more complete", "the most complete", "the least complete",
        "It is complete if everything of the source that it should keep is there.",
        ("almost all is missing", "much is missing", "some is missing", "little is missing", "nothing is missing"),
    ),
    Criterion(
        "coverage", "Coverage of topics", "QIC-c-4", "Coverage of Topics (given in input)",
        "How well does {it} cover the topics of the prompt?", "better at covering the topics",
        "the best at covering the topics", "the worst at covering the topics",
        "Count the topics that the prompt names. A topic is covered if something is said about it.",
        ("covers none", "covers few", "covers about half", "covers most", "covers all"),
    ),
    Criterion(
        "translation", "Accuracy of a translation", "QIC-w-1", "Translation Accuracy",
        "How accurate a translation is {it}?", "closer in meaning to the original", "the closest in meaning to the original",
        "the furthest in meaning from the original",
        "It means what the original means, with nothing changed, added or lost. How well it reads is another matter.",
        ("means something else", "much is wrong", "some is wrong", "little is wrong", "means the same"),
    ),
    Criterion(
        "explanation", "Quality as an explanation", "QIG-w-3", "Quality as Explanation of Input",
        "How well does {it} explain the matter?", "better at explaining the matter", "the best at explaining the matter", "the worst at explaining the matter",
        "After reading it, you understand why things are as the prompt says.",
        ("explains nothing", "explains little", "explains a part", "explains most", "explains it fully"),
    ),
    Criterion(
        "informativeness", "Informativeness", "QOG-c-2", "Informativeness",
        "How informative is {it}?", "more informative", "the most informative", "the least informative",
        "It is informative if it tells much in relation to its length. Empty phrases tell nothing.",
        ("tells nothing", "tells little", "tells something", "tells much", "tells very much"),
    ),
    Criterion(
        "specificity", "Specificity", "QIF-c-3", "Specificity/Non-specificity (relative to input)",
        "How specific is {it} to this prompt?", "more specific to this prompt", "the most specific to this prompt",
        "the least specific to this prompt",
        "It is specific if it would not fit many other prompts as well.",
        ("would fit anything", "rather general", "partly specific", "rather specific", "fits only this"),
    ),
    Criterion(
        "coherence", "Coherence", "QOG-c-3", "Coherence",
        "How well do the parts of {it} fit together?", "more coherent", "the most coherent", "the least coherent",
        "Each sentence has to do with those around it, and together they make one whole.",
        ("no part fits", "most parts do not fit", "about half of it fits", "most parts fit", "all parts fit"),
    ),
    Criterion(
        "order", "Order", "QOG-c-3.1", "Wellorderedness",
        "How well ordered is {it}?", "better ordered", "the best ordered", "the worst ordered",
        "Things come in an order that a reader can follow. What they say does not matter here.",
        ("without any order", "badly ordered", "partly ordered", "well ordered", "perfectly ordered"),
    ),
    Criterion(
        "consistency", "Freedom from contradictions", "QOG-c-4", "Internal Consistency of Outputs",
        "How free is {it} of contradictions?", "freer of contradictions", "the freest of contradictions",
        "the least free of contradictions",
        "No part of it says the opposite of another part. The prompt and the world do not matter here.",
        ("contradicts itself throughout", "many contradictions", "some contradictions", "few contradictions", "no contradiction"),
    ),
    Criterion(
        "no_repetition", "Freedom from repetition", "QOG-c-1", "Nonredundancy (content/meaning)",
        "How free is {it} of repetition?", "less repetitive", "the least repetitive", "the most repetitive",
        "It does not say the same thing twice, also not in other words.",
        ("repeats itself all the time", "repeats itself often", "repeats itself at times", "hardly repeats itself", "never repeats itself"),
    ),
    Criterion(
        "fluency", "Fluency", "QOG-w-3", "Fluency",
        "How fluent is {it}?", "more fluent", "the most fluent", "the least fluent",
        "It reads smoothly from sentence to sentence, and you never have to stop and read again.",
        ("not fluent at all", "hardly fluent", "partly fluent", "mostly fluent", "fluent throughout"),
    ),
    Criterion(
        "readability", "Readability", "QOG-w-2", "Readability",
        "How easy is {it} to read?", "easier to read", "the easiest to read", "the hardest to read",
        "Think of the effort of reading, with its length, its words and its layout.",
        ("very hard to read", "hard to read", "neither hard nor easy", "easy to read", "very easy to read"),
    ),
    Criterion(
        "clarity", "Clarity", "QOG-w-5.1", "Clarity",
        "How clear is {it}?", "clearer", "the clearest", "the least clear",
        "You know at once what it means, and it can mean only one thing.",
        ("not clear at all", "rather unclear", "partly clear", "rather clear", "completely clear"),
    ),
    Criterion(
        "understandability", "Understandability", "QOG-w-5", "Understandability",
        "How much of {it} can you understand?", "easier to understand", "the easiest to understand", "the hardest to understand",
        "You can say in your own words what it tells you, whether you agree or not.",
        ("nothing", "a little", "about half", "most of it", "all of it"),
    ),
    Criterion(
        "grammar", "Grammar", "QOC-f-1", "Grammaticality",
        "How correct is the grammar of {it}?", "more correct in its grammar", "the most correct in its grammar",
        "the least correct in its grammar",
        "Look at the forms and the order of words. Spelling and meaning do not count.",
        ("wrong in every sentence", "wrong in most sentences", "wrong in some sentences", "nearly correct", "correct throughout"),
    ),
    Criterion(
        "spelling", "Spelling", "QOC-f-2", "Spelling Accuracy",
        "How correct is the spelling of {it}?", "more correct in its spelling", "the most correct in its spelling",
        "the least correct in its spelling",
        "Look at each word by itself, with its capitals. Any usual variant of the language is correct.",
        ("errors everywhere", "many errors", "some errors", "few errors", "no error"),
    ),
    Criterion(
        "naturalness", "Naturalness", "QEG-w-1", "Naturalness (outputs as a whole)",
        "How natural is {it}?", "more natural", "the most natural", "the least natural",
        "It is natural if it could well have been said or written by somebody in this situation.",
        ("not natural at all", "rather unnatural", "partly natural", "rather natural", "completely natural"),
    ),
    Criterion(
        "humanlikeness", "Likeness to human writing", "QOG-w-4", "Humanlikeness",
        "How much does {it} read as if a person had written it?", "more like the writing of a person",
        "the most like the writing of a person", "the least like the writing of a person",
        "Go by your impression. You need not decide who really wrote it.",
        ("not at all", "a little", "to some degree", "much", "completely"),
    ),
    Criterion(
        "appropriateness", "Appropriateness", "QEG-w-2", "Appropriateness (outputs as a whole)",
        "How appropriate is {it} for its readers?", "more appropriate for its readers", "the most appropriate for its readers",
        "the least appropriate for its readers",
        "Think of the people and the occasion that the prompt names: tone, politeness and content suit them.",
        ("out of place", "rather unsuitable", "partly suitable", "suitable", "exactly right"),
    ),
)  # fmt: skip


def own_criterion(name: str, definition: str, low: str, high: str, question: str = "") -> Criterion:
    """Return a criterion that a researcher worded. Its scale has words at its ends."""
    return Criterion(
        slugify(name).replace("-", "_")[:50] or "own", name, "", "", f"How good is {{it}} in {name}?", f"better in {name}", f"the best in {name}",
        f"the worst in {name}", definition, (low, "", "", "", high), question,
    )  # fmt: skip


CRITERIA_BY_KEY = {criterion.key: criterion for criterion in CRITERIA}
