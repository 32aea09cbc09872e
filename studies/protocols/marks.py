"""Error marks: annotators mark the errors of an output with a category and a severity, then score it from 0 to 100.

Source: error span annotation (Kocmi et al. 2024) and the multidimensional quality metrics as campaigns use them (Freitag et al. 2021).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import ClassVar

from django import forms
from django.apps import apps

from studies.language import PageLanguage, active_language, gettext, gettext_noop, in_language
from studies.protocols.base.fields import (
    Answer,
    AnswerRefused,
    ColumnRefused,
    Field,
    Option,
    TickBoxField,
    explanation_field,
    shortest_scale_length,
)
from studies.stimuli.normalising import get_sentence_end_rule
from studies.stimuli.texts import TextRefused, clean_text, is_blank

from . import EstimandDirection, Page, PageField, PageItem, Problem, Protocol, ProtocolCard, question_fields, register

# The codebook of error marks: error categories, and severity levels with weights, written one per line.


# Translators: the kinds of errors that people mark in a text, each with its explanation
DEFAULT_CATEGORIES = "\n".join(
    f"{key} | {label} | {explanation}"
    for key, label, explanation in (
        (
            "accuracy",
            gettext_noop("Accuracy"),
            gettext_noop("It says something else than it should: wrong, added, left out, or left untranslated"),
        ),
        (
            "fluency",
            gettext_noop("Fluency"),
            gettext_noop("Grammar, spelling, punctuation: one stumbles even without knowing what was asked"),
        ),
        (
            "terms",
            gettext_noop("Terms"),
            gettext_noop("A word that the field, or this text elsewhere, would not use for the thing"),
        ),
        ("style", gettext_noop("Style"), gettext_noop("Right but clumsy, or in a tone that does not fit")),
        (
            "coherence",
            gettext_noop("Coherence"),
            gettext_noop("It contradicts or repeats itself, or one thing does not follow from the other"),
        ),
        ("task", gettext_noop("Task"), gettext_noop("It does not do what was asked: length, form, question, audience")),
        (
            "conventions",
            gettext_noop("Conventions"),
            gettext_noop("Dates, numbers, units, names in a form that these readers do not use"),
        ),
        ("other", gettext_noop("Something else"), gettext_noop("An error of none of these kinds")),
    )
)
# Translators: how grave an error is, with an explanation
DEFAULT_SEVERITIES = "\n".join(
    f"{key} | {label} | {weight} | {explanation}"
    for key, label, weight, explanation in (
        ("minor", gettext_noop("Minor"), 1, gettext_noop("One notices it; the meaning stays and nobody is misled")),
        (
            "major",
            gettext_noop("Major"),
            5,
            gettext_noop("It changes or hides the meaning, misleads, or makes the text unfit for its use"),
        ),
    )
)
MAX_WEIGHT = Decimal(100)
_NUMBER = re.compile(r"[0-9]{1,3}(\.[0-9]{1,4})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Category:
    key: str
    label: str
    explanation: str = ""


@dataclass(frozen=True, slots=True)
class Severity:
    key: str
    label: str
    weight: Decimal
    explanation: str = ""


@dataclass(frozen=True, slots=True)
class Codebook:
    """The error categories and severity levels of a mark. A level is stored as its weight, so all weights differ."""

    categories: tuple[Category, ...]
    severities: tuple[Severity, ...]

    def severity_of(self, weight: Decimal) -> Severity | None:
        return next((level for level in self.severities if level.weight == weight), None)

    @property
    def category_options(self) -> tuple[Option, ...]:
        return tuple(Option(category.key, category.label) for category in self.categories)

    @property
    def severity_options(self) -> tuple[Option, ...]:
        return tuple(Option(level.key, level.label) for level in self.severities)


def parse_categories(text: object) -> tuple[Category, ...]:
    """Parse lines of ``key | label | explanation``. Raise ValueError with the line number."""
    categories = []
    for number, parts in _parse_lines(text):
        if len(parts) not in (2, 3):
            raise ValueError(
                f"Line {number}: write “key | label | explanation”, such as “style | Style | A clumsy word”."
            )
        categories.append(Category(*parts))
    return _require_distinct(categories, "error category")


def parse_severities(text: object) -> tuple[Severity, ...]:
    """Parse lines of ``key | label | weight | explanation``. Raise ValueError with the line number."""
    levels = []
    for number, parts in _parse_lines(text):
        if len(parts) not in (3, 4):
            raise ValueError(f"Line {number}: write “key | label | weight | explanation”, such as “minor | Minor | 1”.")
        levels.append(Severity(parts[0], parts[1], _parse_weight(parts[2], number), *parts[3:]))
    levels = _require_distinct(levels, "severity level")
    if len({level.weight for level in levels}) < len(levels):
        raise ValueError("Two severity levels have the same weight, so the report cannot distinguish them. Change one.")
    return levels


@lru_cache(maxsize=64)
def parse_codebook(categories: str, severities: str) -> Codebook:
    """Return the codebook of a section's settings. Raise ValueError if it cannot be read."""
    return Codebook(parse_categories(categories), parse_severities(severities))


@lru_cache(maxsize=64)
def _shown_codebook(categories: str, severities: str, language: PageLanguage) -> Codebook:
    """Return the codebook as the pages in this language show it: entries of the default codebook are translated, others kept."""
    book, defaults = parse_codebook(categories, severities), parse_codebook(DEFAULT_CATEGORIES, DEFAULT_SEVERITIES)
    with in_language(language):

        def shown(entries):
            return tuple(
                replace(entry, label=gettext(entry.label), explanation=gettext(entry.explanation))
                if entry in (*defaults.categories, *defaults.severities)
                else entry
                for entry in entries
            )

        return Codebook(shown(book.categories), shown(book.severities))


def _parse_lines(text):
    try:
        cleaned = clean_text(text, field="This list")
    except TextRefused as refused:
        raise ValueError(str(refused)) from None
    for number, line in enumerate(cleaned.split("\n"), 1):
        if line.strip():
            parts = [part.strip() for part in line.split("|")]
            if not parts[0] or len(parts[0]) > 50 or len(parts) > 1 and not parts[1]:
                raise ValueError(f"Line {number}: write a key of at most 50 characters and a label.")
            yield number, parts


def _parse_weight(text: str, number: int) -> Decimal:
    try:
        weight = Decimal(text) if _NUMBER.fullmatch(text) else Decimal(0)
    except InvalidOperation:
        weight = Decimal(0)
    if not 0 < weight <= MAX_WEIGHT:
        raise ValueError(
            f"Line {number}: the weight must be a number above 0 and at most {MAX_WEIGHT}, not “{text[:40]}”."
        )
    return weight


def _require_distinct(entries, noun):
    if not entries:
        raise ValueError(f"Write at least one {noun}.")
    for name in ("key", "label"):
        values = [getattr(entry, name).casefold() for entry in entries]
        if repeated := next((value for value in values if values.count(value) > 1), None):
            raise ValueError(f"“{repeated}” occurs twice. Remove or rename one.")
    return tuple(entries)


# Split a text into sentences, numbered from 1. The result depends only on the text, so stored numbers stay valid.


WHOLE_TEXT = 0  # a mark outside all sentences: something is missing, or the whole text is wrong


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence. ``gap`` is the white space before it, so that all parts together give the text."""

    number: int
    text: str
    gap: str = ""


@lru_cache(maxsize=2048)
def split_sentences(text: str) -> tuple[Sentence, ...]:
    """Split at sentence ends, in any script that marks them, and at every line break (lists, verse, headings)."""
    cuts = set(get_sentence_end_rule("whole")(text)) | {n + 1 for n, c in enumerate(text) if c == "\n"} | {len(text)}
    sentences: list[Sentence] = []
    gap, start = "", 0
    for cut in sorted(cuts):
        piece = text[start:cut]
        start = cut
        inner = piece.strip()
        if is_blank(inner):
            gap += piece
            continue
        before, _, after = piece.partition(inner)
        sentences.append(Sentence(len(sentences) + 1, inner, gap + before))
        gap = after
    return tuple(sentences)


ERRORS, SCORE = "errors", "score"
PENALTY = "penalty"
_PLACE_RE = re.compile(r"(0|[1-9][0-9]{0,3})(?::([0-9]{1,5})-([0-9]{1,5}))?", re.ASCII)
_CHARACTER_SPAN_RE = re.compile(r"([0-9]{1,5})-([0-9]{1,5})", re.ASCII)


class MarksSettings(forms.Form):
    categories = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 9, "cols": 80}),
        initial=DEFAULT_CATEGORIES,
        label="error categories",
        help_text="One per line: key | label | explanation. Annotators read the label and the explanation.",
    )
    severities = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 3, "cols": 80}),
        initial=DEFAULT_SEVERITIES,
        label="severity levels",
        help_text="One per line, the mildest first: key | label | weight | explanation. Annotators do not see weights; their sum is the penalty.",
    )
    max_marks = forms.IntegerField(
        min_value=1,
        max_value=20,
        initial=6,
        label="maximum number of errors marked in one output",
        help_text="If there are more errors, annotators mark the worst ones. Campaigns often use 5.",
    )
    noun = forms.CharField(
        max_length=30, initial="text", help_text="The word for an output: text, translation, summary."
    )
    explanation = explanation_field("What counts as an error here.")

    def clean_categories(self):
        return self._read("categories", parse_categories)

    def clean_severities(self):
        return self._read("severities", parse_severities)

    def _read(self, name, read):
        try:
            read(self.cleaned_data[name])
        except ValueError as error:
            raise forms.ValidationError(str(error)) from None
        return self.cleaned_data[name]


# By what was given: the place, the category, the severity.
INCOMPLETE_MARKS = {
    (False, True, True): gettext_noop("Please say where it is, or remove the error."),
    (True, False, True): gettext_noop("Please say its category, or remove the error."),
    (True, True, False): gettext_noop("Please say its severity, or remove the error."),
    (False, True, False): gettext_noop("Please say where it is and its severity, or remove the error."),
    (True, False, False): gettext_noop("Please say its category and its severity, or remove the error."),
}


@dataclass(frozen=True, slots=True)
class ErrorMarkField(Field):
    """One error: its place, category and severity. ``words``: the range of characters in the sentence, if a script sent it."""

    kind: ClassVar[str] = "mark"
    inputs: ClassVar[tuple[str, ...]] = ("where", "category", "severity", "words")
    # Translators: the parts of a mark at an error, as short labels
    input_labels: ClassVar[Mapping[str, str]] = {
        "where": gettext_noop("Where"),
        "category": gettext_noop("Error category"),
        "severity": gettext_noop("Severity"),
        "words": gettext_noop("Characters"),
    }
    number: int = 1
    codebook: Codebook = field(default_factory=lambda: parse_codebook(DEFAULT_CATEGORIES, DEFAULT_SEVERITIES))

    def clean(self, raw):
        where, category, severity = (raw[name].strip(" ") for name in self.inputs[:3])
        if not where and not category:
            return None
        if not (where and category and severity):
            raise AnswerRefused(gettext(INCOMPLETE_MARKS[bool(where), bool(category), bool(severity)]))
        graded = {level.key: level for level in self.codebook.severities}.get(severity)
        is_category = category in {option.key for option in self.codebook.categories}
        if not is_category or graded is None or not re.fullmatch(r"0|[1-9][0-9]{0,3}", where, re.ASCII):
            raise AnswerRefused(gettext("Please choose from what is offered."))
        span = _CHARACTER_SPAN_RE.fullmatch(raw["words"])
        span_text = f":{int(span[1])}-{int(span[2])}" if span and where != "0" and int(span[1]) < int(span[2]) else ""
        return Answer(value=graded.weight, choice=category, part=f"{where}{span_text}")

    def as_form_values(self, row):
        graded = self.codebook.severity_of(row.value) if row.value is not None else None
        where, _, span_text = row.part.partition(":")
        return {"where": where, "category": row.choice, "severity": graded.key if graded else "", "words": span_text}

    def form_values_of_columns(self, value, choice, part, text):
        level = self.codebook.severity_of(Decimal(value)) if value else None
        if level is None:
            weights = ", ".join(f"{level.weight.normalize():f} ({level.key})" for level in self.codebook.severities)
            raise ColumnRefused("value", f"must be the weight of a severity level, {weights[:300]}; or 0 for no error.")
        if choice not in {category.key for category in self.codebook.categories}:
            keys = ", ".join(category.key for category in self.codebook.categories)
            raise ColumnRefused("choice", f"must be an error category: one of {keys[:300]}.")
        place = _PLACE_RE.fullmatch(part)
        if place is None:
            raise ColumnRefused("part", "must be a sentence such as 2, characters in it such as 2:0-5, or 0 for none.")
        where, start, end = place.groups()
        sentences = split_sentences(text)
        if int(where) > len(sentences):
            raise ColumnRefused("part", f"must be at most {len(sentences)}: the output has no sentence {where}.")
        if start is None:
            return {"where": where, "category": choice, "severity": level.key, "words": ""}
        if where == "0":
            raise ColumnRefused("part", "has characters, but 0 is no sentence. Name the sentence, or write 0.")
        length = len(sentences[int(where) - 1].text)
        if not int(start) < int(end) <= length:
            message = f"has characters outside sentence {where}. Give a range within 0-{length}, or only the sentence."
            raise ColumnRefused("part", message)
        return {"where": where, "category": choice, "severity": level.key, "words": f"{start}-{end}"}

    def displayed_text(self, raw, part=""):
        if part == "where":
            number = int(raw) if re.fullmatch(r"0|[1-9][0-9]{0,3}", raw, re.ASCII) else None
            if number is None:
                return None
            # Translators: where an error is in a text
            return gettext("sentence %(number)s") % {"number": number} if number else gettext("in no sentence")
        options = {"category": self.codebook.category_options, "severity": self.codebook.severity_options}.get(part)
        return raw if options is None else {option.key: option.label for option in options}.get(raw)

    def robot_answer(self, robot, page_field):
        return None  # the protocol's robots found no further error

    def parts(self, output) -> tuple[Sentence, ...]:
        """Return the sentences of an output, which the page offers as places."""
        return split_sentences(output.text)


@dataclass(frozen=True, slots=True)
class NoErrorsField(TickBoxField):
    """A tick box for "there is no error", stored as 0."""

    is_none: ClassVar[bool] = True

    def clean(self, raw):
        return Answer(value=Decimal(0)) if TickBoxField.clean(self, raw) else None

    def robot_answer(self, robot, page_field):
        return None  # the protocol's robots found errors, otherwise they would have ticked it


@register
class Marks(Protocol):
    slug = "marks"
    asks_about_single_outputs = True
    takes_rewrites = True
    heds_response = 6
    label = "Error marks: errors with category and severity, then 0 to 100"
    help = (
        "Annotators see one output at a time. They mark its errors by sentence (with JavaScript also by words), each with a "
        "category and a severity from a codebook, then score the whole. Plain text only: no Markdown, dialogues or images."
    )
    comparison_scope = ""
    placeholder_help = "{label} becomes the letter of the output asked about."
    settings_form = MarksSettings
    default_scale_kind = "continuous"
    column_meanings = {
        "value": f"Question {ERRORS}: the weight of the error's severity, one row for each error; 0 in a row without a choice says that the "
        "output has no error. Other questions: the answer as given.",
        "choice": f"Question {ERRORS}: the category of the error.",
        "part": "The number of the sentence that the error is in, from 1, or 0 for no sentence. If words were marked, the range of their "
        "characters in the sentence follows, as in 2:10-15.",
    }
    questions = (
        {
            "key": ERRORS,
            "text": "Which errors does it have?",
            "scale": {"kind": "number", "minimum": 0, "maximum": 100},
        },
        {
            "key": SCORE,
            "text": "How good is it as a whole?",
            "scale": {"kind": "continuous", "minimum": 0, "maximum": 100, "low": "of no use", "high": "perfect"},
        },
    )
    source = "Kocmi et al. 2024; Freitag et al. 2021"
    card = ProtocolCard(
        order=7,
        name="Which errors does it have?",
        tells="Where the errors of each output are, of which kind and how grave, with a score from 0 to 100.",
        not_when="Not with untrained people and long texts: marking takes long, and needs somebody who knows the matter.",
        instructions="Each page has one {noun}. Mark each error: where it is, its category and its severity. Then score the whole. If there is "
        "no error, say so.",
        most_criteria=0,
        fewest_systems=1,
        answers_each=4,
        headline="marks",
        example_m=4,
    )

    def answer_keys(self, section, question):
        return tuple(option.key for option in self.codebook_of(section).categories) if question.key == ERRORS else ()

    def estimands(self, section):
        return {
            SCORE: "mean score of x less that of y",
            PENALTY: "mean penalty of y less that of x: above 0, x has fewer or milder errors; the default if no question asks "
            "for a score",
        }

    def default_estimand(self, section):
        return SCORE if any(question.key == SCORE for question in section.questions.all()) else PENALTY

    def estimand_scale_length(self, estimand, questions):
        # A penalty has no upper end. It is the default if no question asks for a score.
        return None if estimand == PENALTY else shortest_scale_length(q for q in questions if q.key == SCORE)

    def direction(self, estimand, questions):
        return EstimandDirection(null=0.0)  # a penalty is that of y less that of x

    def reason_not_offered(self, texts):
        if not texts.is_plain:
            return "Some outputs are Markdown, dialogues or images, and errors are marked in plain text. Choose another card."
        return super().reason_not_offered(texts)

    def problems(self, section):
        questions = {question.key: question for question in section.questions.all()}
        errors_question = questions.get(ERRORS)
        if errors_question is None:
            yield Problem(
                f"The question with the key “{ERRORS}” is missing. Add one that asks for the errors.", "questions"
            )
        else:
            yield from _errors_problems(errors_question, self.codebook_of(section))
        if SCORE not in questions:
            yield Problem(
                f"No question “{SCORE}” scores the whole, so the report cannot distinguish two outputs with the same marks.",
                "questions",
                False,
                "no_score",
            )
        elif (questions[SCORE].scale or {}).get("kind") not in ("continuous", "likert"):
            yield Problem(f"Question {SCORE} must have a scale of points or a number between two ends.", "questions")
        if any(question.x_id for question in questions.values()):
            yield Problem("A question about one output cannot name two systems. Leave x and y empty.", "questions")
        if section.m < 1:
            yield Problem("Annotators must see at least one prompt. Set m to 1 or more.", "m")
        unsuitable = _study_outputs(section.study).exclude(format__in=("plain", "code"), media="")
        if first := unsuitable.select_related("system", "prompt").order_by("prompt__key", "system__name").first():
            fault = "media" if first.media else f"format “{first.format}”"
            yield Problem(
                f"{unsuitable.count()} outputs are Markdown, dialogues or images, but error marks need plain text. The first: "
                f"{first.system.name} for prompt {first.prompt.key}, {fault}.",
                "outputs",
            )

    def count_answers(self, section, outputs_per_item):
        return len(section.questions.all()) * sum(outputs_per_item)

    def pages(self, section, items, answers):
        """Return one page per output. The outputs of a prompt follow one another."""
        pages: list[Page] = []
        for item in items:
            for exposure in item.exposures:
                alone = PageItem(item.position, item.id, (exposure,))
                pages.append(Page(f"s{section.position}.p{len(pages) + 1}", section, (alone,), section.questions))
        return pages

    def codebook_of(self, section) -> Codebook:
        """Return the error categories and the weights from the section's settings."""
        settings = self.cleaned_settings(section)
        return parse_codebook(settings["categories"], settings["severities"])

    def page_fields(self, page):
        (item,) = page.items
        ((label, exposure),) = item.exposures
        settings = self.cleaned_settings(page.section)
        codebook = _shown_codebook(settings["categories"], settings["severities"], active_language())
        asks: dict[str, PageField] = {}
        for question in page.questions:
            if question.key != ERRORS:
                asks |= question_fields(page, question, item, label, exposure)
                continue
            common = {
                "question_id": question.id,
                "item_id": item.id,
                "exposure_id": exposure,
                "label": label,
                "position": item.position,
                "help": question.help,
            }
            none = NoErrorsField(required=False, option=Option("1", gettext("There is no error")))
            asks[page.slot(question, item, label, part=0)] = PageField(none, text=question.text, **common)
            for number in range(1, settings["max_marks"] + 1):
                mark = ErrorMarkField(False, number, codebook)
                # Translators: the label of a mark at an error
                text = gettext("Error %(number)s") % {"number": number}
                asks[page.slot(question, item, label, part=number)] = PageField(mark, text=text, **common)
        return asks

    def complete_data_and_find_errors(self, page, data):
        """Require marks or "no error", but not both. Refuse double marks and unknown sentences."""
        (item,) = page.items
        ((label, exposure),) = item.exposures
        errors_question = next((question for question in page.questions if question.key == ERRORS), None)
        if errors_question is None:
            return {}
        start = page.slot(errors_question, item, label) + ".p"
        none = f"{start}0"
        marks = {slot: answer for slot, answer in data.items() if slot.startswith(start) and slot != none and answer}
        most = self.cleaned_settings(page.section)["max_marks"]
        has_refused = any(f"{start}{number}" not in data for number in range(1, most + 1))
        if (marks or has_refused) and data.get(none):
            return {none: gettext("You marked errors. Please remove them, or remove this tick.")}
        if not marks and not has_refused and not data.get(none):
            message = gettext("Please mark an error, or tick that there is no error.")
            return {none: message} if errors_question.required else {}
        parts = split_sentences(_exposure_texts([exposure])[exposure])
        errors, seen = {}, set()
        for slot, answer in marks.items():
            number, _, span_text = answer.part.partition(":")
            if int(number) > len(parts):
                errors[slot] = gettext("Please choose one of the sentences.")
                continue
            if span_text and int(span_text.partition("-")[2]) > len(parts[int(number) - 1].text):
                # The words belong to a sentence chosen before. Keep only the new sentence.
                data[slot] = answer = Answer(value=answer.value, choice=answer.choice, part=number)
            if answer in seen:
                errors[slot] = gettext("This error is marked twice. Please remove one of the two.")
            seen.add(answer)
        return errors

    def robot_answers(self, page_fields, robot):
        """Find more errors in weaker systems, and subtract points for each error."""
        sent: dict[str, str] = {}
        marks = [(slot, ask) for slot, ask in page_fields.items() if isinstance(ask.field, ErrorMarkField)]
        if not marks:
            return sent
        exposure = marks[0][1].exposure_id
        text = split_sentences(_exposure_texts([exposure])[exposure])
        behind, rng = robot.middle - robot.strength(exposure), robot.rng
        chance = 1 / (1 + 2.718281828 ** -(behind - 0.5))
        lost, seen = Decimal(0), set()
        for slot, ask in marks:
            book = ask.field.codebook
            graded, kind = rng.choice(book.severities), rng.choice(book.categories)
            where = str(rng.randint(1, len(text)) if text else WHOLE_TEXT)
            if rng.random() < chance and (where, kind) not in seen:
                seen.add((where, kind))
                lost += graded.weight
                sent |= {f"{slot}.where": where, f"{slot}.category": kind.key, f"{slot}.severity": graded.key}
        for slot, ask in page_fields.items():
            if isinstance(ask.field, NoErrorsField) and not seen:
                sent[slot] = "1"
            elif ask.field.kind == "number":
                low, high = ask.field.minimum, ask.field.maximum
                share = max(0.0, min(1.0, 0.9 - float(lost) / 40 + rng.gauss(0, 0.05)))
                sent[slot] = str(round(low + share * (high - low)))
        return sent


def _errors_problems(question, codebook: Codebook):
    scale = question.scale or {}
    most = max(level.weight for level in codebook.severities)
    if scale.get("kind") != "number" or scale.get("minimum", 0) != 0:
        yield Problem(
            f"Question {ERRORS} must have the scale “a whole number” from 0, for the weights of the severity levels.",
            "questions",
        )
    elif scale.get("maximum", 100) < most:
        yield Problem(
            f"Question {ERRORS} must reach up to {most:f}, the weight of the worst severity level.", "questions"
        )
    if question.skip_reasons:
        yield Problem(
            f"Question {ERRORS} has reasons to skip. Remove them and make the question optional.", "questions"
        )


def _study_outputs(study):
    return apps.get_model("studies", "Output").objects.filter(system__study=study)


def _exposure_texts(exposures) -> dict[int, str]:
    rows = apps.get_model("studies", "Exposure").objects.filter(pk__in=list(exposures))
    return dict(rows.values_list("pk", "output__text"))
