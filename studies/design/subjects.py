"""Say in words what a result is about, besides its systems: the question, and the section if the study has several of a protocol.

Labels differ by what a reader of the study knows: a criterion, the text of a question, the number of prompts, arms. Keys and
positions name results in the JSON only.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from studies.protocols import REGISTRY
from studies.protocols.base.fields import TEXT_KINDS

MAX_QUESTION_LENGTH = 60
OVERALL = "overall"
# What the answers of a section are for, after its name.
PURPOSES = {
    "live": "which counts in the results",
    "training": "which trains annotators and never counts in the results",
    "screening": "which decides who can take part",
    "attention": "which holds attention checks",
}
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")


@dataclass(frozen=True, slots=True)
class Subject:
    """What a comparison is about, in words. Both parts are empty if its study needs none.

    ``topic`` completes "on": a criterion or a quoted question. ``circumstance`` is a phrase: "after 8 examples". ``x`` and ``y``:
    the names of what is compared, if they are not those of systems.
    """

    topic: str = ""
    circumstance: str = ""
    x: str = ""
    y: str = ""

    @property
    def note(self) -> str:
        """The words for a cell or a title: "fluency, after 8 examples"."""
        return join_words(self.topic, self.circumstance)

    def as_dict(self) -> dict[str, str]:
        return {"topic": self.topic, "circumstance": self.circumstance, "x": self.x, "y": self.y}


@dataclass(frozen=True, slots=True)
class SectionWords:
    """The words for one section: the topics of its questions by key, and what distinguishes it from like sections.

    The circumstance is named beside a criterion, ``distinguishing`` also without one. ``name`` has the protocol and the size, too.
    """

    topics: Mapping[str, str]
    circumstance: str
    has_criteria: bool
    distinguishing: str
    name: str

    def subject(self, criterion: str, question: str = "") -> Subject:
        """Return the subject of a comparison. Beside criteria, a question without one is the overall one."""
        topic = self.topics.get(question, criterion)
        return Subject(topic or (OVERALL if self.has_criteria else ""), self.circumstance)


def join_words(*parts: str) -> str:
    return ", ".join(filter(None, parts))


def in_parentheses(text: str) -> str:
    """Return the words of a title in parentheses after a blank, or ''."""
    return f" ({text})" if text else ""


def numbered_name(section: Any) -> str:
    """Return a section's number on the page of the design, and what distinguishes it there: "2 (SPA, after 8 examples)".

    A section of a file has no study yet, so only its protocol says what it is. The name has no number of items that nothing
    needs, because messages are about settings that change.
    """
    protocol = _protocol_name(section).partition(" (")[0]
    distinguishing = words_of_section(section).distinguishing if section.study_id else ""
    return f"{section.position} ({join_words(protocol, distinguishing)})"


def words_of_section(section: Any) -> SectionWords:
    """Return the words for a section among the sections of its protocol with the same purpose."""
    if not hasattr(section, "_words"):  # cached, because each comparison asks
        like = section.study.sections.filter(purpose=section.purpose, protocol=section.protocol)
        others = like.exclude(pk=section.pk).prefetch_related("questions", "arms")
        read_words_of_sections(sorted([*others, section], key=lambda one: one.position))
    return section._words


def read_words_of_sections(sections: Iterable[Any]) -> None:
    """Keep the words for each of a study's sections with it, without a query. Their questions and arms are prefetched."""
    sections = list(sections)
    for section in sections:
        like = [one for one in sections if (one.purpose, one.protocol) == (section.purpose, section.protocol)]
        circumstance = _circumstances(like)[section.pk] if len(like) > 1 else ""
        size, criteria = _size(section), _criteria(section)
        others = [_criteria(one) for one in like if one.pk != section.pk]
        is_about_its_own = others and "" not in criteria and criteria not in others
        about = f"about {' and '.join(sorted(criteria))}" if criteria and is_about_its_own else ""
        section._words = SectionWords(
            question_topics(section.questions.all()),
            circumstance,
            any(question.criterion for question in section.questions.all()),
            join_words(circumstance, about),
            # "Two choices, with 8 prompts", also if comparisons need no circumstance
            join_words(_protocol_name(section), "" if circumstance.startswith(size) else size, circumstance, about),
        )


def _protocol_name(section: Any) -> str:
    protocol = REGISTRY.get(section.protocol)
    return protocol.label.partition(":")[0] if protocol else section.protocol


def _size(section: Any) -> str:
    protocol = REGISTRY.get(section.protocol)
    return protocol.size_in_words(section) if protocol and protocol.has_items else ""


def _criteria(section: Any) -> set[str]:
    return {question.criterion for question in section.questions.all()}


def question_labels(questions: Iterable[Any]) -> dict[str, str]:
    """Return the label of each question by its key, where all are listed: its criterion and pair, else its quoted text."""
    questions = list(questions)
    topics = question_topics(questions)
    labels = {
        question.key: join_words(question.criterion, f"{question.x.name} > {question.y.name}")
        if question.x_id
        else topics.get(question.key) or (_quoted(question.text) if question.text.strip() else question.key)
        for question in questions
    }
    return _distinguished(labels, questions)


def question_topics(questions: Iterable[Any]) -> dict[str, str]:
    """Return the topic of each question by its key: the criterion, or the quoted text if several questions have no criterion.

    The topic of a single question without a criterion is empty. Free texts have none.
    """
    asked = [
        question
        for question in questions
        if not question.x_id and not (isinstance(question.scale, dict) and question.scale.get("kind") in TEXT_KINDS)
    ]
    n_without = sum(not question.criterion for question in asked)
    topics = {
        question.key: question.criterion or (_quoted(question.text) if n_without > 1 else "") for question in asked
    }
    return _distinguished(topics, asked)


def _distinguished(words: dict[str, str], questions: Sequence[Any]) -> dict[str, str]:
    """Add the text to words that several questions have, and the key if their texts are equal."""
    for distinguish in (
        lambda question: _quoted(question.text),
        lambda question: f"“{' '.join(question.text.split())}”",
        lambda question: question.key,
    ):
        repeated = {one for one, n in Counter(words.values()).items() if n > 1}
        for question in questions:
            if words[question.key] in repeated:
                words[question.key] = join_words(question.criterion, distinguish(question))
    return words


def _quoted(text: str) -> str:
    """Return the first line of a question in quotation marks, cut between words if it is long."""
    line = next((" ".join(line.split()) for line in text.splitlines() if line.strip()), "")
    if len(line) > MAX_QUESTION_LENGTH:
        line = line[:MAX_QUESTION_LENGTH].rpartition(" ")[0].rstrip(" ,;:.") + " …"
    return f"“{line}”"


def _circumstances(sections: Sequence[Any]) -> dict[int, str]:
    """Return what distinguishes each of several sections: the number of its items, its arms, its questions, else its order."""
    sizes = {section.pk: _size(section) for section in sections}
    arms = {section.pk: _arms_in_words(section) for section in sections}
    words = {
        section.pk: join_words(*(found[section.pk] for found in (sizes, arms) if len(set(found.values())) > 1))
        for section in sections
    }
    for alike in _groups(sections, words):
        criteria = [_criteria(section) for section in alike]
        if (
            all(criteria)
            and "" not in set().union(*criteria)
            and sum(map(len, criteria)) == len(set().union(*criteria))
        ):
            continue  # each comparison names its criterion
        texts = {section.pk: _quoted(next((one.text for one in section.questions.all()), "")) for section in alike}
        have_own_texts = len(set(texts.values())) == len(alike)
        for n, section in enumerate(alike):
            order = ORDINALS[n] if n < len(ORDINALS) else f"{n + 1}th"
            own = f"asked {texts[section.pk]}" if have_own_texts else f"{order} in the order of the design"
            words[section.pk] = join_words(words[section.pk], own)
    return words


def _groups(sections: Sequence[Any], words: Mapping[int, str]) -> list[list[Any]]:
    """Return the groups of two sections or more that have the same words."""
    groups: dict[str, list[Any]] = {}
    for section in sections:
        groups.setdefault(words[section.pk], []).append(section)
    return [group for group in groups.values() if len(group) > 1]


def _arms_in_words(section: Any) -> str:
    names = sorted(arm.name for arm in section.arms.all())
    return f"in the arm{'s' if len(names) > 1 else ''} {' and '.join(names)}" if names else ""
