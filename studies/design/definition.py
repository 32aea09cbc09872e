"""The design of a study: its canonical form and hash, the words that pages take from it, and what is missing or unwise."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

from django.db.models import Count

from studies import signals
from studies.models import Batch, Design, Exposure, Item, Output, Placement, Study
from studies.models.rules import REGISTRY as RULES
from studies.protocols import REGISTRY, PoolSpent, Problem, Shown
from studies.protocols.base.scales import ScaleSpec, read_scale
from studies.stimuli.texts import reading_minutes, word_count

SCHEMA = "heval.design/1"
STUDY_FIELDS = (
    "title", "public_title", "language", "seed", "keeps_origin_out", "exclusion_group", "purpose", "instructions", "consent",
    "debriefing", "institution", "approval_number", "contact", "retention", "content_warning",
    "preparation", "batches_per_annotator",
    "annotators_per_batch", "coverage", "section_order", "target_kind", "target_n", "target_cap", "replaces_excluded",
    "currency", "reward", "minutes", "wage_per_hour", "words_per_minute", "withdrawal_blanks_ratings",
    "withdrawal_until", "erase_after_days", "start_window_seconds", "idle_seconds", "grace_seconds",
)  # fmt: skip
ARM_FIELDS = ("name", "condition", "instructions", "domain", "wanted", "reward", "minutes")
QUESTION_FIELDS = ("position", "key", "text", "help", "criterion", "scale", "required", "skip_reasons")
CONTRAST_FIELDS = (
    "estimand",
    "x_condition",
    "y_condition",
    "criterion",
    "role",
    "family",
    "expected",
    "margin",
    "level",
)


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str | list | dict) else str(value)


def _row(instance, names) -> dict[str, Any]:
    return {name: _plain(getattr(instance, name)) for name in names}


def _sha256(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()


def _by_name(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: row["name"])


def design_of(study: Study) -> dict[str, Any]:
    """The whole design as plain JSON values, keyed by names, never by database ids. Stimuli stand as their sha256.

    Lists are sorted here, by code points: a database sorts by its collation, and the hash must not hang on that.
    """
    sections = study.sections.select_related("reuses").prefetch_related("arms", "questions__x", "questions__y")
    contrasts = study.contrasts.select_related("section", "x", "y")
    outputs = Output.objects.filter(system__study=study)
    return {
        "schema": SCHEMA,
        "study": _row(study, STUDY_FIELDS),
        "systems": _by_name(_row(system, ("name", "is_human", "reference")) for system in study.systems.all()),
        "arms": _by_name(
            _row(arm, ARM_FIELDS) | {"systems": sorted(system.name for system in arm.systems.all())}
            for arm in study.arms.prefetch_related("systems")
        ),
        "sections": [
            {
                "position": section.position,
                "protocol": section.protocol,
                "purpose": section.purpose,
                "m": section.m,
                "settings": section.settings,
                "reuses": section.reuses and section.reuses.position,
                "arms": sorted(arm.name for arm in section.arms.all()),
                "questions": [
                    _row(question, QUESTION_FIELDS)
                    | {"x": question.x and question.x.name, "y": question.y and question.y.name}
                    for question in section.questions.all()
                ],
            }
            for section in sections
        ],
        "contrasts": sorted(
            (
                _row(contrast, CONTRAST_FIELDS)
                | {
                    "section": contrast.section and contrast.section.position,
                    "x": contrast.x and contrast.x.name,
                    "y": contrast.y and contrast.y.name,
                }
                for contrast in contrasts
            ),
            key=canonical,
        ),
        "exclusion_rules": sorted(
            (_row(rule, ("position", "rule", "settings", "role")) for rule in study.exclusion_rules.all()),
            key=lambda row: (row["position"], row["rule"]),
        ),
        "prompts": sorted(
            [key, _sha256(text, source, media, domain, language, json.dumps(attributes, sort_keys=True))]
            for key, text, source, media, domain, language, attributes in study.prompts.order_by().values_list(
                "key", "text", "source", "media", "domain", "language", "attributes"
            )
        ),
        "outputs": sorted(
            [system, prompt, sample, _sha256(kind, text, media, alt, str(is_empty), original, language)]
            for system, prompt, sample, kind, text, media, alt, is_empty, original, language in outputs.order_by().values_list(
                "system__name",
                "prompt__key",
                "sample",
                "format",
                "text",
                "media",
                "alt",
                "is_empty",
                "original",
                "language",
            )
        ),
        "batches": _ready_made(study),
        "retired": sorted(study.items.filter(retired_in__isnull=False).values_list("section__position", "number")),
    }


def _ready_made(study: Study) -> list:
    """Imported batches: each key with a sha256 of what lies in it, in order."""
    rows = (
        Placement.objects.filter(batch__study=study, batch__origin=Batch.Origin.IMPORTED)
        .order_by("batch__number", "number", "item__exposures__number")
        .values_list(
            "batch__number", "batch__key", "batch__arm__name", "item__section__position", "item__prompt__key",
            "item__exposures__output__system__name", "item__exposures__output__sample",
        )
    )  # fmt: skip
    batches: dict[tuple, list] = {}
    for number, key, arm, *rest in rows:
        batches.setdefault((number, key, arm), []).append(rest)
    return [[number, key, arm, _sha256(json.dumps(lines))] for (number, key, arm), lines in batches.items()]


def canonical(design: dict[str, Any]) -> str:
    """One way to write a design: sorted keys, no blanks. Numbers are finite by then."""
    return json.dumps(design, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def sha256_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def mismatch(study: Study) -> str:
    """'' when the rows still are what the newest Design version says; else a sentence. The backstop behind the guards."""
    latest = study.designs.order_by("version").last()
    if latest is None:
        return ""
    now = sha256_of(canonical(design_of(Study.objects.get(pk=study.pk))))
    return (
        ""
        if now == latest.sha256
        else f"The design in the database ({now[:12]}) is not the frozen version {latest.version} ({latest.sha256[:12]})."
    )


@dataclass(frozen=True, slots=True)
class QuestionWords:
    key: str
    position: int
    text: str
    help: str
    scale: ScaleSpec
    required: bool
    skip_reasons: tuple[tuple[str, str], ...]
    criterion: str
    x: str | None
    y: str | None


@dataclass(frozen=True, slots=True)
class SectionWords:
    position: int
    protocol: str
    purpose: str
    m: int
    settings: dict[str, Any]
    reuses: int | None
    arms: tuple[str, ...]
    questions: tuple[QuestionWords, ...]


@dataclass(frozen=True, slots=True)
class Wording:
    """What pages take from a design: one version's words, whatever was amended later."""

    study: dict[str, Any]
    arms: dict[str, dict[str, Any]]
    sections: tuple[SectionWords, ...]


def wording(design: dict[str, Any]) -> Wording:
    return Wording(
        study=design["study"],
        arms={arm["name"]: arm for arm in design["arms"]},
        sections=tuple(
            SectionWords(
                position=section["position"],
                protocol=section["protocol"],
                purpose=section["purpose"],
                m=section["m"],
                settings=section["settings"],
                reuses=section["reuses"],
                arms=tuple(section["arms"]),
                questions=tuple(
                    QuestionWords(
                        key=q["key"], position=q["position"], text=q["text"], help=q["help"], scale=read_scale(q["scale"]),
                        required=q["required"], skip_reasons=tuple((r["key"], r["label"]) for r in q["skip_reasons"]),
                        criterion=q["criterion"], x=q["x"], y=q["y"],
                    )
                    for q in section["questions"]
                ),
            )
            for section in design["sections"]
        ),
    )  # fmt: skip


@lru_cache(maxsize=64)
def frozen_wording(design_id: int) -> Wording:
    """A Design row never changes, so its words are read once a process."""
    return wording(json.loads(Design.objects.values_list("canonical", flat=True).get(pk=design_id)))


def wording_of(study: Study, design_id: int | None) -> Wording:
    """The words of a Design version; of the rows as they are while there is none (previews and tries of a draft)."""
    return frozen_wording(design_id) if design_id else wording(design_of(study))


def _stated_problems(study: Study) -> Iterator[Problem]:
    """The problems that can be seen without drawing a batch."""
    sections = list(study.sections.select_related("reuses").prefetch_related("questions", "arms"))
    if not study.public_title.strip():
        yield Problem("Annotators need a title to read on top of their pages.", "public_title")
    if not study.consent.strip():
        yield Problem("There is no consent text.", "consent", False, "no_consent")
    if not study.contact.strip():
        yield Problem("Annotators have nobody to write to.", "contact")
    if not study.target_n:
        yield Problem("There is no target: say how many annotators the study wants.", "target_n")
    if study.reward is None:
        yield Problem("No reward is stated (0 for volunteers).", "reward", False, "no_reward")
    if not study.minutes:
        yield Problem("No duration is declared.", "minutes")
    if not study.arms.exists():
        yield Problem("There is no arm.", "arms")
    yield from _arm_problems(study)
    if not any(section.purpose == "live" for section in sections):
        yield Problem("There is no live section: nothing would be measured.", "sections")
    for section in sections:
        yield from _section_problems(section)
    yield from _drawing_problems(study, sections)
    yield from _stimuli_problems(study, sections)
    yield from _contrast_problems(study, sections)
    yield from _rule_problems(study, sections)
    if study.batches_per_annotator > 1:
        yield Problem(
            "Annotators may take several batches: a prompt may be offered to them again in another batch, which they are then not given.",
            "batches_per_annotator", False, "several_batches",
        )  # fmt: skip
    for _, found in signals.checking_draft.send(Study, study=study):
        yield from found


def problems(study: Study) -> Iterator[Problem]:
    """What is missing (blocking) or unwise in a draft. Each is named, and linked to the field it is about."""
    found = list(_stated_problems(study))
    yield from found
    # What batches will show can only be said of a design that can be drawn.
    if not any(problem.is_blocking for problem in found):
        yield from _batch_problems(study)


def _arm_problems(study: Study) -> Iterator[Problem]:
    from .draw import SharesRefused, block_of

    arms = sorted(study.arms.all(), key=lambda arm: arm.name)
    try:
        block_of(arms)
    except SharesRefused as refused:
        yield Problem(str(refused), "arms")
    else:
        places = sum(arm.wanted or 0 for arm in arms)
        if places and study.target_n and places != study.target_n:
            yield Problem(
                f"The arms have {places} places in all, the target is {study.target_n}: they are filled in these shares.",
                "arms", False, "arms_and_target_differ",
            )  # fmt: skip
    longest = max((arm.minutes or 0 for arm in arms), default=0)
    if study.minutes and longest > study.minutes:
        yield Problem(
            f"An arm takes {longest} minutes, the study declares {study.minutes}: places are kept by the study's minutes.",
            "minutes", False, "arm_takes_longer",
        )  # fmt: skip


def unreadable(study: Study) -> Iterator[Problem]:
    """What keeps answers from being understood, whoever gave them and wherever: nothing of recruiting, pay or drawing."""
    sections = list(study.sections.select_related("reuses").prefetch_related("questions", "arms"))
    if not study.arms.exists():
        yield Problem("There is no arm.", "arms")
    if not any(section.purpose == "live" for section in sections):
        yield Problem("There is no live section: nothing would be measured.", "sections")
    for section in sections:
        yield from _form_problems(section)
    yield from (problem for problem in _contrast_problems(study, sections) if problem.is_blocking)
    yield from _rule_problems(study, sections)


def _section_problems(section) -> Iterator[Problem]:
    yield from _form_problems(section)
    protocol = REGISTRY.get(section.protocol)
    where = f"Section {section.position}"
    if protocol is None:
        return
    if section.reuses_id and section.reuses.position >= section.position:
        yield Problem(f"{where} must come after the section that it reuses.", "sections")
    for problem in protocol.problems(section):
        yield _placed(problem, section)


def _placed(problem: Problem, section) -> Problem:
    """A protocol's problem with the section in which it occurs."""
    return Problem(
        f"Section {section.position}: {problem.text}",
        problem.field,
        problem.is_blocking,
        f"{problem.name}:{section.position}" if problem.name else "",
    )


def _drawing_problems(study: Study, sections) -> Iterator[Problem]:
    """What the protocols say about the arms and their outputs, where batches are drawn from the design."""
    from .draw import Drawing

    if study.batches.filter(origin=Batch.Origin.IMPORTED).exists():
        return
    drawing = Drawing(study)
    for section in sections:
        if section.protocol in REGISTRY:
            for problem in REGISTRY[section.protocol].drawing_problems(section, drawing):
                yield _placed(problem, section)


def _form_problems(section) -> Iterator[Problem]:
    """Whether a section can be read at all: its protocol, its questions' scales, its settings."""
    protocol = REGISTRY.get(section.protocol)
    where = f"Section {section.position}"
    if protocol is None:
        yield Problem(f"{where}: the protocol {section.protocol} is not installed.", "sections")
        return
    questions = list(section.questions.all())
    if not questions:
        yield Problem(f"{where} asks nothing: add a question.", "questions")
    for question in questions:
        try:
            read_scale(question.scale)
        except (ValueError, TypeError, KeyError) as error:
            yield Problem(f"{where}, question {question.key}: {error}", "questions")
    if protocol.settings_form is not None:
        form = protocol.settings_form(data=settings_data(protocol, section.settings))
        for name, errors in form.errors.items():
            yield Problem(
                f"{where}, {form[name].label if name in form.fields else name}: {' '.join(errors)}", "sections"
            )


def settings_data(protocol, stored: dict[str, Any]) -> dict[str, Any]:
    """Settings as a bound form takes them: what is stored, and the form's initial values for what is not."""
    if protocol.settings_form is None:
        return {}
    fields = protocol.settings_form().fields
    return {name: stored.get(name, field.initial) for name, field in fields.items()}


def _stimuli_problems(study: Study, sections) -> Iterator[Problem]:
    drawing = [
        s for s in sections if s.protocol in REGISTRY and REGISTRY[s.protocol].has_items and s.reuses_id is None and s.m
    ]
    if not drawing:
        return
    systems = study.systems.count()
    if systems < 2:
        yield Problem(
            f"There {'is 1 system' if systems else 'are no systems'}: nothing can be compared.",
            "systems",
            systems == 0,
            "one_system",
        )
    ready_made = study.batches.filter(origin=Batch.Origin.IMPORTED).exists()
    # A protocol that shows one output of a prompt needs other prompts, and says so itself.
    whole = [section for section in drawing if REGISTRY[section.protocol].shows_every_system]
    if whole and not ready_made:
        yield from _coverage_problems(study, whole)
    twice = (
        Placement.objects.filter(batch__study=study, batch__origin=Batch.Origin.IMPORTED)
        .values("batch", "item__prompt").annotate(n=Count("pk")).filter(n__gt=1).count()
    )  # fmt: skip
    if twice:
        yield Problem(
            f"In {twice} of the ready-made batches a prompt stands twice.", "batches", False, "prompt_twice_in_batch"
        )
    empty = Output.objects.filter(system__study=study, is_empty=True).count()
    if empty:
        yield Problem(
            f"{empty} outputs are empty; annotators read that the system gave no text.",
            "outputs",
            False,
            "empty_outputs",
        )


def _coverage_problems(study: Study, drawing) -> Iterator[Problem]:
    """Whether each arm has prompts with an output of every system that the arm shows."""
    from .draw import NEXT_STEP, Drawing

    plan = Drawing(study)
    positions = {section.position for section in drawing}
    keys = dict(study.prompts.values_list("pk", "key"))
    alike: dict[tuple, list] = {}
    for arm in plan.arms:
        wanted = sum(section.m for section in plan.drawing_sections(arm.pk) if section.position in positions)
        alike.setdefault((tuple(plan.systems[arm.pk]), arm.domain, wanted), []).append(arm)
    for (_, _, wanted), arms in alike.items():
        names = ", ".join(arm.name for arm in arms)
        where, of_arm, shown, some = (
            (f"Arm {names}: ", f" of arm {names}", " that the arm shows", f":{arms[0].name}")
            if len(alike) > 1
            else ("", "", "", "")
        )
        there, whole = plan.domains[arms[0].pk], plan.prompts[arms[0].pk]
        lacking = sorted(keys[prompt] for prompt in set(there) - set(whole))
        if lacking and wanted:
            yield Problem(
                f"{where}{len(lacking)} of {len(there)} prompts have no output of some system and are not shown: {', '.join(lacking[:5])}"
                f"{' …' if len(lacking) > 5 else ''}.",
                "outputs", False, f"outputs_missing{some}",
            )  # fmt: skip
        if len(whole) < wanted:
            yield Problem(
                f"A batch{of_arm} needs {wanted} prompts with an output of every system{shown}; there {'is' if len(whole) == 1 else 'are'} "
                f"{len(whole)}. {NEXT_STEP['prompts']}",
                "prompts",
            )


def _contrast_problems(study: Study, sections) -> Iterator[Problem]:
    contrasts = list(study.contrasts.select_related("x", "y", "section"))
    if not contrasts:
        yield Problem("No comparison is planned: whatever is found is exploratory.", "contrasts", False, "no_contrast")
    if contrasts and not any(contrast.role == "primary" for contrast in contrasts):
        yield Problem("No comparison is primary.", "contrasts", False, "no_primary_contrast")
    live = [section for section in sections if section.purpose == "live" and section.protocol in REGISTRY]
    estimands = {key for section in live for key in REGISTRY[section.protocol].estimands(section)}
    for contrast in contrasts:
        if contrast.estimand and contrast.estimand not in estimands:
            yield Problem(f"No section estimates {contrast.estimand!r} (comparison {contrast}).", "contrasts")
        if contrast.expected == "~" and contrast.margin is None:
            yield Problem(
                f"{contrast} is expected to be equivalent, but no margin says what that means: it can never be concluded.",
                "contrasts", False, f"no_margin:{contrast.x}:{contrast.y}",
            )  # fmt: skip
    directed = [section for section in live if any(q.x_id for q in section.questions.all())]
    asked = {frozenset((q.x_id, q.y_id)) for section in directed for q in section.questions.all() if q.x_id}
    for contrast in contrasts:
        if directed and contrast.x_id and frozenset((contrast.x_id, contrast.y_id)) not in asked:
            yield Problem(
                f"No question asks about {contrast.x} and {contrast.y}.",
                "contrasts",
                len(live) == len(directed),
                f"not_asked:{contrast}",
            )


def _rule_problems(study: Study, sections) -> Iterator[Problem]:
    """Exclusion rules that would find nobody, or everybody, because they name what the study does not have."""
    for row in study.exclusion_rules.all():
        rule = RULES.get(row.rule)
        if rule is None:
            yield Problem(
                f"The exclusion rule “{row.rule}” is not installed on this site. Delete it, or ask who runs heval to install it.",
                "exclusion_rules",
            )
            continue
        form = rule.bound(row.settings or {})
        if form is None:
            continue
        found: list[str] = []
        if not form.is_valid():
            found = [
                f"{form[name].label if name in form.fields else name}: {' '.join(errors)}"
                for name, errors in form.errors.items()
            ]
        elif rule.problems is not None:
            found = list(rule.problems(sections, **form.cleaned_data))
        for words in found:
            yield Problem(
                f"Exclusion rule “{rule.name}”: {words} Correct the rule's settings, or delete the rule.",
                "exclusion_rules",
            )


# So many batches are drawn on trial at least, where the target needs them. The launch draws all of them.
TRIED_BATCHES = 200


def _batch_problems(study: Study) -> Iterator[Problem]:
    """What only drawn batches show: one that cannot be filled, and planned comparisons that no batch can answer, with the reason.

    The first batches are drawn on trial, and more until every comparison can be answered, which is usually after a few of them.
    Nothing is written.
    """
    live = [
        section
        for section in study.sections.select_related("reuses", "study").prefetch_related("questions__x", "questions__y", "arms")
        if section.purpose == "live"
    ]  # fmt: skip
    contrasts = study.contrasts.select_related("x", "y", "section")
    pending = {contrast: [section for section in live if _estimates(section, contrast)] for contrast in contrasts}
    shown = {section.pk: Shown() for section in live}
    try:
        for number, (arm, placed) in enumerate(_items_by_batch(study)):
            if not pending and number >= TRIED_BATCHES:
                break
            for section in live if pending else ():
                arms = {one.pk for one in section.arms.all()}
                items = placed.get(section.reuses_id or section.pk) if not arms or arm in arms else None
                if items:
                    of = shown[section.pk]
                    of.arms.setdefault(arm, set()).update(*items)
                    of.items |= set(items)
                    of.batches.add(frozenset().union(*items))
                    of.systems |= frozenset().union(*items)
            pending = {
                contrast: mine
                for contrast, mine in pending.items()
                if all(REGISTRY[one.protocol].cannot_answer(one, contrast, shown[one.pk]) for one in mine)
            }
    except PoolSpent as spent:
        yield Problem(str(spent), spent.field)
        return
    for contrast, mine in pending.items():
        if not mine:
            yield Problem(
                f"The planned comparison {contrast} can never be answered: no live section that it is about compares anything. Name another "
                "section, or none.", "contrasts", name=f"unanswered:{contrast}",
            )  # fmt: skip
            continue
        reasons = dict.fromkeys(REGISTRY[one.protocol].cannot_answer(one, contrast, shown[one.pk]) for one in mine)
        yield Problem(
            f"The planned comparison {contrast} can never be answered: {'; '.join(reasons)}.", "contrasts", name=f"unanswered:{contrast}"
        )  # fmt: skip


def _estimates(section, contrast) -> bool:
    """Whether a comparison is about this section and its protocol has the estimand, whatever the batches show."""
    estimands = REGISTRY[section.protocol].estimands(section)
    return (
        contrast.section_id in (None, section.pk) and bool(estimands) and (contrast.estimand or next(iter(estimands))) in estimands
    )  # fmt: skip


def batches_for_target(study: Study) -> int:
    """How many batches the target needs. Without a target, which is a problem of its own, a block that holds every arm."""
    from .draw import LARGEST_BLOCK

    return -(-(study.target_n or LARGEST_BLOCK) // study.annotators_per_batch)


def _items_by_batch(study: Study) -> Iterator[tuple[int, dict[int, list[frozenset[int]]]]]:
    """The arm of each batch that a launch would open, and by section the systems of each of its live items. Raises PoolSpent."""
    from .draw import Drawing

    count = batches_for_target(study)
    ready_made = study.batches.filter(origin=Batch.Origin.IMPORTED)
    if ready_made.exists():
        rows = (
            Placement.objects.filter(batch__in=ready_made, item__kind=Item.Kind.LIVE).order_by("batch__number", "number")
            .values_list("batch__number", "batch__arm_id", "item__section_id", "item_id", "item__exposures__output__system_id")
        )  # fmt: skip
        for (_, arm), mine in islice(groupby(rows.iterator(2000), key=itemgetter(0, 1)), count):
            systems: dict[tuple[int, int], set[int]] = {}
            for _, _, section, item, system in mine:
                systems.setdefault((section, item), set()).add(system)
            placed: dict[int, list[frozenset[int]]] = {}
            for (section, _), held in systems.items():
                placed.setdefault(section, []).append(frozenset(held))
            yield arm, placed
        return
    drawing = Drawing(study)
    system_of = {output: system for (_, system), outputs in drawing.outputs.items() for output in outputs}
    for batch in islice(drawing.batches(), count):
        placed = {}
        for section, item in batch.items:
            if item.item is None and item.kind == Item.Kind.LIVE:
                placed.setdefault(section, []).append(frozenset(system_of[output] for output in item.outputs))
        yield batch.arm_id, placed


@dataclass(frozen=True, slots=True)
class Burden:
    """What one batch asks of a person."""

    batch: str
    words: int
    questions: int
    minutes: float
    per_hour: float | None


def burdens(study: Study, drawn=None) -> list[Burden]:
    """The burden of each batch, smallest first: words to read at the stated speed, 15 seconds a question. Whatever is shown
    counts, planted references too: whoever meets one reads and judges it.

    ``drawn``: batches not yet written (a draft's preview of its first ones); else those in the database.
    """
    from .draw import drawn_batches

    if drawn is None and study.batches.exclude(origin=Batch.Origin.TEST).exists():
        rows = (
            Placement.objects.filter(batch__study=study, item__retired_in=None).exclude(batch__origin=Batch.Origin.TEST)
            .order_by("batch__number", "number")
            .values_list("batch__number", "batch__arm_id", "item__section_id", "item_id", "item__prompt_id", "item__exposures__output_id")
        )  # fmt: skip
        top_up = set(study.batches.filter(origin=Batch.Origin.TOP_UP).values_list("number", flat=True))
    else:
        if drawn is None:
            try:
                drawn = drawn_batches(study, 0, min(200, -(-(study.target_n or 20) // study.annotators_per_batch)))
            except PoolSpent:
                return []
        made: dict[int, list[tuple[int, int]]] = {}
        for item, prompt, output in Exposure.objects.filter(
            item__study=study, item__kind=Item.Kind.PRACTICE
        ).values_list("item_id", "item__prompt_id", "output_id"):
            made.setdefault(item, []).append((prompt, output))
        rows = [
            (batch.number, batch.arm_id, section, place, prompt, output)
            for batch in drawn for place, (section, item) in enumerate(batch.items)
            for prompt, output in (made[item.item] if item.item is not None else [(item.prompt, one) for one in item.outputs])
        ]  # fmt: skip
        top_up = set()
    output_words = {
        pk: word_count(text) for pk, text in Output.objects.filter(system__study=study).values_list("pk", "text")
    }
    prompt_words = {
        pk: word_count(text) + word_count(source)
        for pk, text, source in study.prompts.values_list("pk", "text", "source")
    }
    words: dict[tuple[int, int], int] = {}
    prompts: dict[tuple[int, int], set[int]] = {}
    # By batch, section and item: how many outputs it shows, in the order of the batch.
    shown: dict[tuple[int, int], dict[int, dict[int, int]]] = {}
    for number, arm, section, item, prompt, output in rows:
        words[number, arm] = words.get((number, arm), 0) + output_words.get(output, 0)
        prompts.setdefault((number, arm), set()).add(prompt)
        held = shown.setdefault((number, arm), {}).setdefault(section, {})
        held[item] = held.get(item, 0) + 1
    sections = list(study.sections.annotate(asked=Count("questions")).prefetch_related("section_arms", "questions"))
    asked = [
        (section, protocol, {row.arm_id for row in section.section_arms.all()})
        for section in sections
        if (protocol := REGISTRY.get(section.protocol))
    ]
    rewards = {arm.pk: arm.reward if arm.reward is not None else study.reward for arm in study.arms.all()}

    def questions_of(number: int, arm: int) -> int:
        """The answers that the pages of a batch really ask for: a top-up batch has one section's items and nothing else."""
        total = 0
        for section, protocol, arms in asked:
            if (arms and arm not in arms) or (number in top_up and not protocol.has_items):
                continue
            items = list(shown[number, arm].get(section.reuses_id or section.pk, {}).values())
            total += protocol.fields_asked(section, items[: section.m] if section.reuses_id else items)
        return total

    found = []
    for (number, arm), n in words.items():
        total = n + sum(prompt_words[prompt] for prompt in prompts[number, arm])
        questions = questions_of(number, arm)
        minutes = reading_minutes(total, study.words_per_minute) + questions / 4
        reward = rewards.get(arm)
        found.append(
            Burden(
                str(number),
                total,
                questions,
                minutes,
                float(reward) * 60 / minutes if reward is not None and minutes else None,
            )
        )
    return sorted(found, key=lambda burden: (burden.words, burden.batch))
