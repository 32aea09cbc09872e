"""Generate directed questions about pairs of systems and their contrasts, the section of a new study, and the question about AI tools."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import combinations, pairwise, product
from typing import Any

from django.db.models import Avg, Count, F, Max, ProtectedError, Q
from django.db.models.functions import Length
from django.utils.text import slugify

from studies.design.criteria import Criterion
from studies.design.serialization import canonical_json
from studies.models import Batch, Contrast, ExclusionRule, Output, Question, Section, Study, System
from studies.protocols import REGISTRY, DraftTexts, Protocol, ProtocolCard
from studies.protocols.base.pairs import EXTREME_REFERENCES, Reference, order_systems
from studies.protocols.spa import asks_for_size

from . import drafts
from .lifecycle import ActionRefused

Pair = tuple[System, System]
PAIR_CHOICES = {
    "neighbours": "neighbouring systems, in the order given below",
    "all": "all pairs",
    "planned": "the pairs of the planned comparisons",
}
# How much better x is than y, beside the chance that it is.
SIZE_SCALE = {
    "kind": "likert",
    "minimum": -3,
    "maximum": 3,
    "low": "much worse",
    "middle": "no difference",
    "high": "much better",
}
DEFAULT_TEXT = "Based on what you have read, what is the chance that {noun} {{x}} is better than {noun} {{y}}?"


def select_system_pairs(section: Section, pair_choice: str, system_order_text: str = "") -> list[Pair]:
    """Return each pair (x, y) once, by one of PAIR_CHOICES. ``system_order_text``: names, one per line; the other systems follow by name."""
    if pair_choice == "planned":
        planned = section.study.contrasts.filter(x__isnull=False).select_related("x", "y").order_by("pk")
        once = {
            frozenset((contrast.x_id, contrast.y_id)): (contrast.x, contrast.y)
            for contrast in reversed(planned)
            if _applies_to(contrast, section)
        }
        return list(reversed(once.values()))
    by_id = {
        system.pk: system for system in section.study.systems.judged().exclude(reference__in=System.EXTREME_REFERENCES)
    }
    systems = [by_id[pk] for pk in order_systems({pk: system.name for pk, system in by_id.items()}, system_order_text)]
    return list({"neighbours": pairwise, "all": lambda rows: combinations(rows, 2)}[pair_choice](systems))


def _applies_to(contrast: Contrast, section: Section) -> bool:
    return contrast.section_id in (None, section.pk)


def asks_both_directions(section: Section) -> bool:
    """Return whether the section's settings ask for both directions of a pair."""
    return REGISTRY[section.protocol].raw_settings(section).get("naming") == "both"


def default_question_text(section: Section) -> str:
    """Return the default text of a question, with the section's noun."""
    return DEFAULT_TEXT.format(noun=REGISTRY[section.protocol].raw_settings(section).get("noun") or "writer")


def add_missing_questions(
    section: Section,
    pairs: Iterable[Pair],
    text: str,
    *,
    by,
    criterion: str = "",
    both_directions: bool | None = None,
    with_contrasts: bool = False,
    size_text: str = "",
) -> tuple[int, int]:
    """Add the missing questions of these pairs and, if ``with_contrasts``, the missing contrasts. Return both counts.

    ``size_text``: also ask this about each pair, on ``SIZE_SCALE``. Two questions are the same if x, y, criterion and what they ask for are equal. Two contrasts are also the same if they are reversed.
    """
    pairs = list(pairs)
    both_directions = asks_both_directions(section) if both_directions is None else both_directions
    with drafts.locked_draft(section.study_id, by) as study:
        n_questions = _write_questions(section, pairs, text, criterion, both_directions, size_text)
        planned = _write_contrasts(section, pairs, criterion) if with_contrasts else 0
        if n_questions or planned:
            drafts.record_edit_and_raise_version(
                study, by, wrote=f"questions of section {section.position}", n=n_questions, comparisons=planned
            )
    return n_questions, planned


def _write_questions(
    section: Section, pairs: list[Pair], text: str, criterion: str, both: bool, size_text: str = ""
) -> int:
    directed = [pair for x, y in pairs for pair in ([(x, y), (y, x)] if both else [(x, y)])]
    existing = {(q.x_id, q.y_id, q.criterion, asks_for_size(q.scale)) for q in section.questions.all()}
    keys = set(section.questions.values_list("key", flat=True))
    position = section.questions.aggregate(last=Max("position"))["last"] or 0
    questions = []
    asked = [(text, {"kind": "percent"}), *([(size_text, SIZE_SCALE)] if size_text else [])]
    for (x, y), (words, scale) in product(directed, asked):
        if (x.pk, y.pk, criterion, asks_for_size(scale)) in existing:
            continue
        position += 1
        questions.append(
            Question(
                section=section,
                position=position,
                key=_free_key(x, y, criterion, keys, "size" if asks_for_size(scale) else ""),
                x=x,
                y=y,
                text=words,
                criterion=criterion,
                scale=scale,
            )
        )
    Question.objects.bulk_create(questions)
    return len(questions)


def _write_contrasts(section: Section, pairs: list[Pair], criterion: str) -> int:
    planned = section.study.contrasts.filter(x__isnull=False, criterion=criterion)
    existing = {frozenset((row.x_id, row.y_id)) for row in planned if _applies_to(row, section)}
    missing = [(x, y) for x, y in pairs if frozenset((x.pk, y.pk)) not in existing]
    # Batches usually share prompts, so stated chances cannot show what holds for prompts like these.
    population = Contrast.Population.PEOPLE
    Contrast.objects.bulk_create(
        Contrast(study=section.study, x=x, y=y, criterion=criterion, population=population) for x, y in missing
    )
    return len(missing)


_WORDS_OF_A_QUESTION = ("text", "help", "criterion", "scale", "required", "skip_reasons")
# The filter of Ethayarajh and Jurafsky 2022, section 5.2. It needs both directions of a pair.
TAU_RULE, TAU_SETTINGS = "incoherent", {"tau": 1.1, "symmetric": False}


def questions_without_reverse(section: Section) -> list[Question]:
    """Return the questions about a pair that the section does not ask in the other direction."""
    asked = [question for question in section.questions.select_related("x", "y") if question.x_id]
    directed = {(one.x_id, one.y_id, one.criterion, asks_for_size(one.scale)) for one in asked}
    return [one for one in asked if (one.y_id, one.x_id, one.criterion, asks_for_size(one.scale)) not in directed]


def add_reverse_questions(section: Section, *, by, with_tau: bool = False) -> int:
    """Ask each pair in both directions, with the words of the direction that is asked, and return the number of new questions.

    ``with_tau``: also declare the rule of tau = 1.1, unless the study has a rule of tau.
    """
    with drafts.locked_draft(section.study_id, by) as study:
        keys = set(section.questions.values_list("key", flat=True))
        last = section.questions.aggregate(last=Max("position"))["last"] or 0
        added = Question.objects.bulk_create(
            Question(
                section=section,
                position=position,
                key=_free_key(one.y, one.x, one.criterion, keys, "size" if asks_for_size(one.scale) else ""),
                x=one.y,
                y=one.x,
                **{name: getattr(one, name) for name in _WORDS_OF_A_QUESTION},
            )
            for position, one in enumerate(questions_without_reverse(section), last + 1)
        )
        declares_tau = with_tau and not study.exclusion_rules.filter(rule=TAU_RULE).exists()
        if declares_tau:
            behind = study.exclusion_rules.aggregate(last=Max("position"))["last"] or 0
            ExclusionRule.objects.create(study=study, position=behind + 1, rule=TAU_RULE, settings=TAU_SETTINGS)
        if added or declares_tau:
            drafts.record_edit_and_raise_version(
                study, by, wrote=f"reverse questions of section {section.position}", n=len(added), tau=declares_tau
            )
    return len(added)


# Of 20 systems all pairs are 190. A request of the study's page may have 5000 fields, which are about 290 comparisons.
MOST_COMPARISONS = 200


def add_missing_comparisons(study: Study, by) -> int:
    """Plan a comparison for each pair of systems that has none, and return how many were added. A reference is the y of its pairs."""
    with drafts.locked_draft(study.pk, by) as draft:
        systems = draft.systems.judged().exclude(reference__in=EXTREME_REFERENCES).order_by("name")
        ordered = sorted(systems, key=lambda system: not system.reference)
        planned = draft.contrasts.filter(x__isnull=False)
        existing = {frozenset(pair) for pair in planned.values_list("x_id", "y_id")}
        missing = [pair for pair in combinations(ordered, 2) if frozenset(system.pk for system in pair) not in existing]
        if missing and planned.count() + len(missing) > MOST_COMPARISONS:
            raise ActionRefused(
                f"All pairs of {len(ordered)} systems are too many: a study takes at most {MOST_COMPARISONS} this way. Add the comparisons that you need."
            )
        live = draft.sections.filter(purpose=Section.Purpose.LIVE).values_list("protocol", flat=True)
        is_directed = any(slug in REGISTRY and REGISTRY[slug].has_directed_questions for slug in live)
        population = Contrast.Population.PEOPLE if is_directed else Contrast.Population.PEOPLE_AND_PROMPTS
        pairs = [(y, x) if x.reference and not y.reference else (x, y) for x, y in missing]
        Contrast.objects.bulk_create(Contrast(study=draft, x=x, y=y, population=population) for x, y in pairs)
        if pairs:
            drafts.record_edit_and_raise_version(draft, by, wrote="comparisons of all pairs", comparisons=len(pairs))
    return len(pairs)


def _free_key(x: System, y: System, criterion: str, keys: set[str], asked: str) -> str:
    key = find_free_name(slugify("-".join(filter(None, (asked, x.name, y.name, criterion))))[:44] or "pair", keys)
    keys.add(key)
    return key


# The request not to use AI tools, and the last question whether somebody did.


AI_TOOLS_REQUEST = "Please do not use AI tools, such as chatbots, for your answers. We want to know what you think."
_ASIDE = 10_000  # a position that no section has


def find_ai_tools_question(study: Study) -> Question | None:
    """Return the question whether annotators used AI tools."""
    keys = [protocol.ai_tools_question["key"] for protocol in REGISTRY.values() if protocol.ai_tools_question]
    found = Question.objects.filter(section__study=study, section__purpose=Section.Purpose.LIVE, key__in=keys)
    return found.select_related("section").order_by("-section__position").first()


def ask_about_ai_tools(study: Study, by, is_asked: bool) -> None:
    """Add the question to a draft in a section at the end, move that section there, or remove it.

    If this changes anything, test runs are deleted.
    """
    question = find_ai_tools_question(study)
    last = study.sections.aggregate(last=Max("position"))["last"] or 0
    is_last = question is not None and question.section.position == last
    if is_asked == (question is not None) and (is_last or not is_asked):
        return
    with drafts.locked_draft(study.pk, by, deletes_test_runs=True) as draft:
        if question is None:
            protocol = next(one for one in REGISTRY.values() if one.ai_tools_question)
            section = Section.objects.create(study=draft, position=last + 1, protocol=protocol.slug, m=0)
            Question.objects.create(section=section, position=1, **protocol.ai_tools_question)
        elif is_asked:
            _move_to_end(question.section, last)
        elif question.section.questions.count() > 1:
            question.delete()
        else:
            _move_to_end(question.section, last)
            drafts.delete_section_and_test_runs(question.section, by)
        drafts.record_edit_and_raise_version(draft, by, asks_about_ai_tools=is_asked)


def _move_to_end(section: Section, last: int) -> None:
    position = section.position
    Section.objects.filter(pk=section.pk).update(position=_ASIDE)
    for later in section.study.sections.filter(position__gt=position, position__lt=_ASIDE).order_by("position"):
        Section.objects.filter(pk=later.pk).update(position=F("position") - 1)
    Section.objects.filter(pk=section.pk).update(position=last)
    section.position = last


# The section of a new study: what the page Question chose, as rows of the draft. The draft keeps the choice in ``Study.guide``.


MINUTES_OF_ITEMS, MOST_ITEMS = 12, 20
CHARACTERS_OF_WORD = 6
# Fewer prompts do not represent prompts like these.
FEWEST_PROMPTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class GuidedSection:
    """A live section to write. ``contrasts``: columns of Contrast. ``baseline``: the system with which the others are compared.

    ``pairs``: of the questions, if each names two systems. ``study``: columns of Study. ``choice``: what the page shows again.
    """

    protocol: str
    settings: dict[str, Any]
    m: int
    questions: Sequence[Mapping[str, Any]]
    instructions: str
    choice: dict[str, Any]
    pairs: Sequence[Pair] = ()
    contrasts: Sequence[Mapping[str, Any]] = ()
    baseline: System | None = None
    study: Mapping[str, Any] = field(default_factory=dict)


def read_draft_texts(study: Study) -> DraftTexts:
    """Return what the texts of a draft allow."""
    systems = study.systems.judged().aggregate(n=Count("pk"), humans=Count("pk", filter=Q(is_human=True)))
    outputs = Output.objects.filter(system__in=study.systems.judged())
    found = outputs.aggregate(
        length=Avg(Length("text")), rich=Count("pk", filter=~Q(format__in=("plain", "code"), media=""))
    )
    by = {
        name: Count("outputs__system", filter=Q(outputs__system__in=study.systems.judged(), **more), distinct=True)
        for name, more in (("all", {}), ("people", {"outputs__system__is_human": True}))
    }
    shown = list(study.prompts.annotate(n=by["all"], n_people=by["people"]).values_list("n", "n_people"))
    prompts = study.prompts.aggregate(n=Count("pk"), length=Avg(Length("text") + Length("source")))
    return DraftTexts(
        systems=systems["n"],
        humans=systems["humans"],
        prompts=prompts["n"],
        complete=sum(n == systems["n"] for n, _ in shown),
        by_people=sum(n_people > 0 for _, n_people in shown),
        by_machines=sum(n > n_people for n, n_people in shown),
        is_plain=not found["rich"],
        words_of_prompt=(prompts["length"] or 0) / CHARACTERS_OF_WORD,
        words_of_output=(found["length"] or 0) / CHARACTERS_OF_WORD,
    )


def _card_of(protocol: Protocol) -> ProtocolCard:
    if protocol.card is None:
        raise ValueError(f"The protocol {protocol.slug} has no card.")
    return protocol.card


def usual_items(protocol: Protocol, texts: DraftTexts, n_criteria: int, words_per_minute: int) -> int:
    """Return how many items one person reads and answers in about twelve minutes, at most twenty."""
    card = _card_of(protocol)
    n_outputs = min(card.n_outputs or texts.systems, texts.systems)
    words = texts.words_of_prompt + n_outputs * texts.words_of_output
    answers = card.answers + n_outputs * card.answers_each * max(1, n_criteria)
    minutes = words / words_per_minute + answers / 4
    fitting = int(MINUTES_OF_ITEMS / minutes) if minutes else MOST_ITEMS
    return max(1, min(max(fitting, card.fewest_items), MOST_ITEMS, protocol.most_items(texts)))


def build_guided_section(
    study: Study,
    protocol: Protocol,
    texts: DraftTexts,
    criteria: Sequence[Criterion],
    baseline: System | None,
    m: int | None,
    choice: dict[str, Any],
) -> GuidedSection:
    """Return the section of a protocol with its questions and all comparisons: with the baseline, or of all pairs, with the earlier system of the file as x."""
    card = _card_of(protocol)
    systems = [one for one in study.systems.judged().order_by("pk") if one.reference not in EXTREME_REFERENCES]
    pairs = [(one, baseline) for one in systems if one != baseline] if baseline else list(combinations(systems, 2))
    settings = protocol.settings_about(criteria, baseline is not None)
    noun = settings.get("noun") or "text"
    stands_for_others = texts.prompts >= FEWEST_PROMPTS and not protocol.has_directed_questions
    population = Contrast.Population.PEOPLE_AND_PROMPTS if stands_for_others else Contrast.Population.PEOPLE
    contrasts: list[dict[str, Any]] = [{"estimand": card.estimand}] if card.estimand else []
    if not card.estimand:
        contrasts = [
            {"x": x, "y": y, "criterion": one} for one in [c.label for c in criteria] or [""] for x, y in pairs
        ]
    first = criteria[0] if criteria else None
    words = {"noun": noun} | ({"more": first.more, "most": first.most, "least": first.least} if first else {})
    return GuidedSection(
        protocol=protocol.slug,
        settings=settings,
        m=m or usual_items(protocol, texts, len(criteria), study.words_per_minute),
        questions=protocol.questions_about(criteria, noun),
        instructions=card.instructions.format(**words),
        choice=choice,
        pairs=pairs if protocol.has_directed_questions else (),
        contrasts=[row | {"population": population} for row in contrasts],
        baseline=None if card.estimand else baseline,
    )


def find_guided_section(study: Study) -> Section | None:
    """Return the section that the page Question made, if it still exists."""
    pk = (study.guide or {}).get("section")
    return study.sections.filter(pk=pk).first() if pk else None


def reason_not_guided(study: Study) -> str:
    """Return why the page Question must not write the section of this draft: another hand did. Return '' if it may."""
    made = find_guided_section(study)
    others = study.sections.filter(purpose=Section.Purpose.LIVE).exclude(pk=made.pk if made else 0)
    if others.exists():
        return "The study has a section that was made under All settings. Change it there."
    if study.batches.exclude(origin=Batch.Origin.TEST).exists():
        return "The study has ready-made batches, which name their sections. Change the sections under All settings."
    if made is not None and _rows_sha256(study, made) != (study.guide or {}).get("rows"):
        return "Its section was changed under All settings. Change it there, or delete it there to choose again here."
    return ""


def _rows_sha256(study: Study, section: Section) -> str:
    """Return a hash of the section's rows and comparisons, without its number of items, which the plan of the size may set."""
    asked = ("key", "text", "help", "criterion", "scale", "required", "skip_reasons", "x", "y")
    compared = (
        "section", "estimand", "x", "y", "x_condition", "y_condition", "criterion", "role", "family", "expected", "hypothesis", "margin", "level", "population",
    )  # fmt: skip
    rows = [
        [section.protocol, section.settings, section.pass_mark, section.reuses_id, section.section_arms.count()],
        section.items.exclude(kind="live").count(),
        list(section.questions.order_by("position").values(*asked)),
        list(study.contrasts.order_by("pk").values(*compared)),
        list(study.comparison_families.order_by("pk").values("name", "adjustment", "after")),
    ]
    return hashlib.sha256(canonical_json({"rows": rows}).encode()).hexdigest()


@contextmanager
def keeping_guide(study: Study, removed: System) -> Iterator[None]:
    """Keep the section in the hands of the page Question while the removal of a system changes its rows."""
    is_guided, made = not reason_not_guided(study), find_guided_section(study)
    pk = str(removed.pk)
    yield
    if made is not None and is_guided:
        guide = study.guide or {}
        choice = guide["question"]
        if choice.get("baseline") == pk:
            choice = choice | {"baseline": ""}
        guide |= {"question": choice, "rows": _rows_sha256(study, made)}
        Study.objects.filter(pk=study.pk).update(guide=guide)


def write_guided_section(study_id: int, made: GuidedSection, by) -> Study:
    """Write the section in place of the one that the page made before. Raise ActionRefused if that was edited by another hand."""
    with drafts.locked_draft(study_id, by, deletes_test_runs=True) as study:
        if reason := reason_not_guided(study):
            raise ActionRefused(reason)
        guide = study.guide or {}
        old = find_guided_section(study)
        position = (study.sections.aggregate(last=Max("position"))["last"] or 0) + 1
        if old is not None:
            position = old.position
            study.contrasts.filter(section=old).delete()
            try:
                drafts.delete_section_and_test_runs(old, by)
            except ProtectedError:
                raise ActionRefused("Something else refers to its section. Change it under All settings.") from None
        section = Section.objects.create(
            study=study, position=position, protocol=made.protocol, m=made.m, settings=made.settings
        )
        if made.pairs:
            (question,) = made.questions
            _write_questions(
                section, list(made.pairs), question["text"], question["criterion"], asks_both_directions(section)
            )
            Question.objects.filter(section=section).update(help=question["help"])
        else:
            Question.objects.bulk_create(
                Question(section=section, position=n, **columns) for n, columns in enumerate(made.questions, 1)
            )
        Contrast.objects.bulk_create(Contrast(study=study, section=section, **columns) for columns in made.contrasts)
        _mark_baseline(study, made.baseline)
        # What another card had changed in the study is as before.
        before = guide.get("study", {})
        columns = before | dict(made.study)
        if study.instructions in ("", guide.get("instructions")):
            columns["instructions"] = made.instructions
        columns["guide"] = guide | {
            "question": made.choice,
            "section": section.pk,
            "rows": _rows_sha256(study, section),
            "instructions": made.instructions,
            "study": {name: before.get(name, getattr(study, name)) for name in made.study},
        }
        Study.objects.filter(pk=study.pk).update(**columns)
        drafts.record_edit_and_raise_version(
            study, by, wrote=f"section {position}", protocol=made.protocol, choice=made.choice
        )
    study.refresh_from_db()
    return study


def _mark_baseline(study: Study, baseline: System | None) -> None:
    """Mark the baseline as the reference, and no other system. Planted references keep their mark."""
    references = study.systems.filter(reference=Reference.ORDINARY).exclude(pk=baseline.pk if baseline else 0)
    references.update(reference="")
    if baseline is not None and not baseline.reference:
        study.systems.filter(pk=baseline.pk).update(reference=Reference.ORDINARY)


def find_free_name(stem: str, taken: Iterable[str]) -> str:
    """Return the stem, with a number behind it if that is taken."""
    stem, names = stem.strip("-") or "question", {name.casefold() for name in taken}
    return next(
        name
        for name in (stem, *(f"{stem}-{number}" for number in range(2, len(names) + 3)))
        if name.casefold() not in names
    )
