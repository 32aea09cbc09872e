"""From the answers of a study to rows with scores: one criterion, system, prompt and annotator each."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analysis.data.frames import SECOND_SAMPLE, with_plain_texts
from analysis.protocols import REGISTRY as ANALYSES
from analysis.protocols.scores import Scorer
from annotators.counting import counted_origins
from annotators.models import Assignment
from studies.design.subjects import numbered_name
from studies.models import Exposure, Question, Section, Study
from studies.protocols import REGISTRY

if TYPE_CHECKING:
    from pandas import DataFrame

OVERALL = "overall"
COLUMNS = ["criterion", "value", "system", "other", "is_first", "prompt", "domain", SECOND_SAMPLE, "annotator", "day"]


@dataclass(frozen=True, slots=True)
class Criterion:
    """What a column of the board shows. ``is_mean``: the mean over all questions, because no question asks for the overall quality."""

    key: str
    label: str
    is_overall: bool = False
    is_mean: bool = False


def scorer_of(protocol: str) -> Scorer:
    """Return how the answers of a protocol become scores. Raises TypeError if they do not."""
    scorer = ANALYSES[protocol].scorer
    if scorer is None:
        raise TypeError(f"Answers of {protocol} are no scores.")
    return scorer


def scored_protocols() -> list[str]:
    """Return the protocols whose answers are scores or preferences."""
    return [slug for slug, analysis in ANALYSES.items() if analysis.scorer is not None]


def scored_sections(template: Study) -> list[Section]:
    """Return the live sections that the board scores."""
    live = template.sections.filter(purpose=Section.Purpose.LIVE).order_by("position")
    return [section for section in live if section.protocol in scored_protocols()]


def scored_questions_of(section: Section) -> list[Question]:
    """Return the questions of a section whose answers give scores or preferences."""
    scorer = scorer_of(section.protocol)
    return [question for question in section.questions.order_by("position") if scorer.is_scored(question)]


def describe_scores(question: Question) -> str:
    """Return a sentence that says what the scores of a question mean, or '' if they are the answers as given."""
    return scorer_of(question.section.protocol).describe_scores(question.section, question)


def board_kind(template: Study) -> str:
    """Return "scores" or "preferences"; the second for a Bradley-Terry board."""
    return scorer_of(scored_sections(template)[0].protocol).kind


def is_about_outputs(template: Study) -> bool:
    """Return whether answers are about single outputs or pairs of them, not chances about whole systems."""
    return scorer_of(scored_sections(template)[0].protocol).is_about_outputs


def find_scoring_problem(template: Study) -> str:
    """Return why the answers of the template's sections give no scores, or ''."""
    sections = scored_sections(template)
    if not sections:
        return "No live section gives scores. Add ratings, a relative scale against a reference, two choices, human or machine, error marks, or SPA."
    if len({scorer_of(section.protocol).kind for section in sections}) > 1:
        return "The template has sections with scores and sections with preferences. Keep one kind: they make different boards."
    if len({scorer_of(section.protocol).is_about_outputs for section in sections}) > 1:
        return "The template asks about pairs of outputs and about whole systems. Keep one of both: they make different boards."
    for section in sections:
        settings = REGISTRY[section.protocol].cleaned_settings(section)
        if problem := scorer_of(section.protocol).find_problem(section, settings):
            return problem
        if not scored_questions_of(section):
            return f"Section {numbered_name(section)} has no question. Add one."
    return ""


def find_criteria(template: Study) -> list[Criterion]:
    """Return the columns of the board: the overall score first, then each question."""
    found: dict[str, Criterion] = {}
    for section in scored_sections(template):
        questions = scored_questions_of(section)
        for question in questions:
            is_overall = OVERALL in _names(question) or (
                not question.criterion and any(other.criterion for other in questions)
            )
            key = OVERALL if is_overall else _names(question)[0]
            found.setdefault(key, Criterion(key, key.replace("_", " "), is_overall))
    if len(found) == 1:
        only = next(iter(found.values()))
        return [Criterion(only.key, only.label, is_overall=True)]
    overall = found.pop(OVERALL, None) or Criterion(
        OVERALL, "overall (mean of criteria)", is_overall=True, is_mean=True
    )
    return [overall, *found.values()]


def read_scored_rows(study: Study, criteria: Iterable[Criterion], *, of_experts: bool = False) -> "DataFrame":
    """Return one row for each answer of annotators whom the study's outcome-blind rules keep.

    ``of_experts``: only those of people who came by a link for experts; otherwise, those of all others.

    Columns: ``criterion``, ``value`` (0 to 1; higher is better), ``system`` (its name in the study), ``other`` (the other system of
    a pair, or None), ``is_first`` (of a pair: whether ``system`` was shown first), ``prompt``, ``domain``,
    ``second_sample`` (the group of the prompt, or the prompt), ``annotator`` (an id that is the same in all studies), ``day``.
    """
    import pandas as pd

    criteria = list(criteria)
    rows, parts = _kept_answers(study), []
    experts = Assignment.objects.filter(study=study, recruitment__is_for_experts=True).values_list("pk", flat=True)
    rows = rows[rows["assignment"].isin(list(experts)) == of_experts]
    for section in scored_sections(study):
        shown = _systems_by_item(section)
        for question in scored_questions_of(section):
            scored = _score_question(section, question, rows, shown)
            parts.append(scored.assign(criterion=criterion_key(question, criteria))[COLUMNS])
    frame = pd.concat(parts, ignore_index=True)
    return _with_means(frame) if any(criterion.is_mean for criterion in criteria) and not frame.empty else frame


def read_answers_of_questions(study: Study, questions: Sequence[Question]) -> "Iterator[DataFrame]":
    """Yield the kept answers to each question of a study: the columns of ``read_scored_rows`` without ``criterion``.

    The answers of the study are read once.
    """
    rows = _kept_answers(study)
    shown: dict[int, dict[str, tuple[str, ...]]] = {}
    for question in questions:
        section = question.section
        if section.pk not in shown:
            shown[section.pk] = _systems_by_item(section)
        yield _score_question(section, question, rows, shown[section.pk])


def _kept_answers(study: Study) -> "DataFrame":
    from analysis.data.snapshot import database_snapshot
    from analysis.report.report_data import read_report_data

    with database_snapshot():
        data = read_report_data(study, counted_origins(study))
        people = dict(Assignment.objects.filter(study=study).values_list("pk", "annotator_id"))
    rows = data.live_answers()
    rows = with_plain_texts(rows[rows["is_kept"].astype(bool)])
    return rows.assign(
        annotator=rows["assignment"].map(people),
        day=rows["received_at"].dt.strftime("%Y-%m-%d"),
    )


def _score_question(
    section: Section, question: Question, rows: "DataFrame", shown: Mapping[str, tuple[str, ...]]
) -> "DataFrame":
    answers = rows[(rows["section"] == section.position) & (rows["question"] == question.key)]
    return scorer_of(section.protocol).score_answers(section, question, answers, shown)


def criterion_key(question: Any, criteria: list[Criterion]) -> str:
    """Return the criterion to which the answers to a question belong."""
    own = _names(question)[0]
    return own if own in {criterion.key for criterion in criteria} else OVERALL


def _names(question: Any) -> list[str]:
    """Return the criterion of a question, if it has one, and its key. Questions about pairs of systems have a key for each pair."""
    has_own_key = scorer_of(question.section.protocol).is_about_outputs
    return [name for name in (question.criterion, question.key if has_own_key else "") if name] or [OVERALL]


def _systems_by_item(section: Section) -> dict[str, tuple[str, ...]]:
    """Return the names of the systems of each item, in the names of items that the frames use."""
    found: dict[str, list[str]] = {}
    rows = Exposure.objects.filter(item__section=section.reuses or section).order_by("item", "number")
    for position, number, name in rows.values_list("item__section__position", "item__number", "output__system__name"):
        found.setdefault(f"s{position}.{number}", []).append(name)
    return {item: tuple(names) for item, names in found.items()}


def _with_means(frame: "DataFrame") -> "DataFrame":
    """Add the overall score as the mean of one annotator's answers about one output."""
    import pandas as pd

    keys = ["system", "other", "is_first", "prompt", "domain", SECOND_SAMPLE, "annotator"]
    means = frame.groupby(keys, dropna=False, sort=False).agg(value=("value", "mean"), day=("day", "min")).reset_index()
    return pd.concat([means.assign(criterion=OVERALL)[COLUMNS], frame], ignore_index=True)
