"""Where a plan's variation comes from: a public prior, a study on the same site, or a file of answers."""

import hashlib
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode
from uuid import UUID

from django.core.exceptions import ObjectDoesNotExist
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.urls import reverse

from analysis.data.blinding import check_outcomes_visible
from analysis.data.snapshot import database_snapshot
from analysis.protocols import REGISTRY, HeadlineAnswers, headline_name, planned_protocols
from analysis.report.build import analysis_contexts, validate_parameters
from analysis.report.report_data import read_report_data
from analysis.stats.planning.inputs import DEFAULT_HEADLINE, HEADLINES, PROTOCOLS, RATED_HEADLINE, StudySize, Variation
from analysis.stats.planning.priors import prior_of
from annotators.counting import PEOPLES_ORIGINS, Use, select
from annotators.models import Assignment
from studies.access import Action, check_permission_or_404, filter_allowed, get_row
from studies.models import Job, PilotFile, Section, Study, StudyPilot
from studies.services import jobs
from studies.services.drafts import locked_draft, refuse_if_launched
from studies.services.lifecycle import ActionRefused
from studies.stimuli.columns import KEY, PERSON, PROMPT_ALIASES, Columns
from studies.stimuli.numbers import NumberRefused, parse_number
from studies.stimuli.rows import Row, TableLimits, TableProblems, read_rows

from .inputs import InvalidPlanInputs, PlanInputs
from .results import OwnVariation

if TYPE_CHECKING:
    from analysis.stats.planning.pilot_estimates import PilotEstimate


# Studies of the same site as pilots: who may use which, the job that reads their answers, and what it stored.


KIND = "estimate_pilot"
PREFIX = "pilot:"
# Answers of these origins say how people answer. Robots and test runs do not.
ORIGINS = PEOPLES_ORIGINS
# Raise it if the same answers give another estimate. Studies are then read again when they are chosen.
VERSION = 3


def pilot_studies(user) -> QuerySet[Study]:
    """Return the studies whose answers may be a pilot: the user may read them, they are submitted, and outcomes are shown."""
    return _readable(user).exclude(_is_blind()).filter(_has_answers(), _is_planned()).order_by("-pk")


def _readable(user) -> QuerySet[Study]:
    return filter_allowed(user, Study.objects.all(), Action.EXPORT)


def _is_blind() -> Q:
    return Q(state__in=Study.COLLECTING_STATES, unblinded_at=None)


def _has_answers() -> Exists:
    return Exists(select(Use.RESULTS, Assignment.objects.filter(study=OuterRef("pk")), ORIGINS))


def _is_planned() -> Exists:
    live = Section.objects.filter(study=OuterRef("pk"), purpose=Section.Purpose.LIVE)
    return Exists(live.filter(protocol__in=planned_protocols()))


def find_pilot_study(code: str, user) -> Study:
    """Return a study that may be a pilot for this user. ``user`` None is the site itself.

    Raise InvalidPlanInputs for the field ``prior`` with what to do. An unknown study and one that the user may not read have one message.
    """
    studies = Study.objects.all() if user is None else _readable(user)
    try:
        study = studies.get(code=UUID(code))
    except (ValueError, ObjectDoesNotExist):
        raise InvalidPlanInputs(
            {"prior": "You can read no study with this code. Choose a study whose answers you may export."}
        ) from None
    same = Study.objects.filter(pk=study.pk)
    if not same.filter(_is_planned()).exists():
        text = "This study compares no systems, so it says nothing about a difference. Choose a study with a comparing protocol."
    elif not same.filter(_has_answers()).exists():
        text = "No answers of people are submitted in this study. Wait for them, or choose another pilot."
    elif same.filter(_is_blind()).exists():
        text = "The outcomes of this study are still hidden. Close it, or unblind it, to use it as a pilot."
    else:
        return study
    raise InvalidPlanInputs({"prior": text})


def stored_pilot(study: Study) -> StudyPilot | None:
    """Return what heval last read from the answers of a study."""
    return study.pilot_estimates.order_by("-pk").first()


def estimate_study(study: Study, user) -> StudyPilot:
    """Estimate and store what the answers of a study say, by its first comparison that says enough. Planned comparisons come first.

    The variation of each comparison is stored beside it, for the curves. Return the stored row if the same answers were read before. Raise Http404 or PermissionDenied if the user may not read the
    answers or outcomes are hidden, and ActionRefused if no comparison says how much people and prompts vary.
    """
    from analysis.stats.planning.pilot_estimates import DRAWS, estimate_pilot
    from analysis.stats.seeds import seeded_generator

    study = get_row(user, Action.EXPORT, Study.objects.all(), pk=study.pk)
    check_outcomes_visible(study, ORIGINS)
    answers, data_sha256 = headline_answers_of(study)
    sha256 = hashlib.sha256(f"{VERSION} {data_sha256}".encode()).hexdigest()
    if stored := study.pilot_estimates.filter(sha256=sha256).first():
        return stored
    reasons: list[str] = []
    first: dict[str, Any] = {}
    own: list[dict[str, Any]] = []
    for planned_as, headline in answers:
        if not len(headline.values):
            continue
        key = headline.comparison.key
        try:
            estimate = estimate_pilot(
                headline.values,
                headline.annotators.codes,
                headline.prompts.codes,
                protocol=planned_as,
                points=headline.points,
                # Of the others, only the variation itself is read.
                draws=1 if first else DRAWS,
                rng=seeded_generator(str(study.code), "pilot", key, data_sha256),
                source=f"study “{study.title[:80]}”, {headline.comparison.label}, {_counts(planned_as, headline)}"[
                    :500
                ],
            )
        except ValueError as refused:
            reasons.append(str(refused))
            continue
        first = first or {"comparison": key[:500], "estimate": estimate_as_json(estimate), "by": user}
        found = {name: getattr(estimate.variation, name) for name in ("sd_people", "sd_prompts")}
        own.append({"protocol": planned_as, "comparison": headline.comparison.label} | found)
        if len(own) == MOST_LISTED:
            break
    if first:
        first["estimate"]["own"] = own
        return StudyPilot.objects.get_or_create(study=study, sha256=sha256, defaults=first)[0]
    why = (
        reasons[0] if reasons else "It has no answers about pairs of systems that the rules keep. Choose another study."
    )
    raise ActionRefused(f"The study cannot be a pilot. {why}")


def headline_answers_of(study: Study) -> tuple[list[tuple[str, HeadlineAnswers]], str]:
    """Return the answers of all comparisons with the headline that plans know, planned comparisons first; and the hash of the data."""
    problems: list[dict[str, Any]] = []
    with database_snapshot():
        data = read_report_data(study, list(ORIGINS))
        contexts = analysis_contexts(data, validate_parameters({"origins": list(ORIGINS)}, study), "pilot", problems)
        found = [
            (headline_name(context.protocol), answers)
            for context in contexts
            if headline_name(context.protocol)
            for answers in REGISTRY[context.protocol].headline_answers(context)
        ]
    return sorted(found, key=lambda pair: not pair[1].comparison.is_planned), data.data_sha256


def _counts(planned_as: str, headline: HeadlineAnswers) -> str:
    people, prompts = len(set(headline.annotators.tolist())), len(set(headline.prompts.tolist()))
    rows = "readings" if HEADLINES[planned_as].kind == "chance" else "answers"
    return f"{people} people, {prompts} prompts, {len(headline.values)} {rows}"


def estimate_as_json(estimate: Any) -> dict[str, Any]:
    """Return a `PilotEstimate` as JSON. Of the draws only the two standard deviations differ."""
    return estimate.as_dict() | {"draws": [[draw.sd_people, draw.sd_prompts] for draw in estimate.draws]}


def request_estimate(
    draft: Study, by, code: str, form: Mapping[str, str] | None = None, request_token: str | None = None
) -> Job:
    """Submit the job that reads a study as a pilot of a draft's plans. ``form``: what the page Plan shows beside it afterwards.

    Raise ActionRefused after the launch, and InvalidPlanInputs if this user cannot use the study as a pilot.
    """
    check_permission_or_404(by, Action.EDIT, draft)
    refuse_if_launched(draft)
    pilot = find_pilot_study(code, by)
    return jobs.submit(
        KIND, study=draft, by=by, request_token=request_token, pilot=str(pilot.code), form=dict(form or {})
    )


def estimate_for_job(job: Job) -> dict[str, Any]:
    """Read the study that a job names, and return the prior with its variation and the page that shows it."""
    stored = estimate_study(find_pilot_study(job.arguments["pilot"], job.by), job.by)
    prior, variation = f"{PREFIX}{job.arguments['pilot']}", stored.estimate["variation"]
    numbers = {name: variation[name] for name in ("sd_people", "sd_prompts")}
    query = urlencode(job.arguments["form"] | {"prior": prior} | numbers)
    return {
        "prior": prior,
        "comparison": stored.comparison,
        **numbers,
        "url": f"{reverse('admin:studies_plan', args=[job.study_id])}?{query}",
    }


# Read a file of answers of an earlier evaluation: who answered about what, and which output was better.


MAX_FILE_BYTES = 16 * 1024 * 1024
MAX_ROWS = 100_000
PEOPLE, PROMPTS = "annotator", "prompt"
PREFERRED, VALUE, RATINGS = "preferred", "value", ("x", "y")
CHOICES = {"x": 1.0, "y": 0.0, "tie": 0.5}


class AnswersRefused(ActionRefused):
    """A file of answers that says nothing. ``problems`` lists the reasons, with rows."""

    def __init__(self, problems: TableProblems):
        super().__init__("; ".join(str(problem) for problem in problems.first))
        self.problems = problems


@dataclass(slots=True)
class AnswersFile:
    """The answers about one pair of systems, on the scale of the headline of ``protocol``."""

    sha256: str
    protocol: str
    points: int
    values: list[float] = field(default_factory=list)
    people: list[str] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)

    def estimate(self, source: str) -> "PilotEstimate":
        """Return what the answers say. Raise AnswersRefused if they say too little."""
        import numpy as np

        from analysis.stats.planning.pilot_estimates import estimate_pilot
        from analysis.stats.seeds import seeded_generator

        try:
            return estimate_pilot(
                self.values,
                np.array(self.people, dtype=object),
                np.array(self.prompts, dtype=object),
                protocol=self.protocol,
                points=self.points,
                rng=seeded_generator(self.sha256, "pilot"),
                source=source,
            )
        except ValueError as refused:
            column, _, text = str(refused).partition(": ")
            problems = TableProblems()
            problems.add(None, {"people": PEOPLE, "prompts": PROMPTS}.get(column, column), text)
            raise AnswersRefused(problems) from None


def read_answers_file(filename: str, data: bytes, *, protocol: str = "", points: int = 5) -> AnswersFile:
    """Read a CSV or JSON-lines file of answers about one pair of systems. Raise AnswersRefused with every problem.

    Columns: ``annotator`` and ``prompt``, and one of: ``preferred`` (x, y or tie), ``x`` and ``y`` (ratings), or ``value`` (on the
    scale of the headline of ``protocol``). Other columns are ignored.
    """
    return _Reader(filename, protocol, points).read(data)


class _Reader:
    def __init__(self, filename: str, protocol: str, points: int):
        self.filename, self.protocol, self.points = filename, protocol, points
        self.problems = TableProblems()
        self.row_of: dict[tuple[str, str], int] = {}

    def read(self, data: bytes) -> AnswersFile:
        problems = self.problems
        if self.protocol and self.protocol not in PROTOCOLS:
            problems.add(None, None, f"“{self.protocol[:40]}” is not a protocol. Use {', '.join(PROTOCOLS)}.")
            raise AnswersRefused(problems)
        if len(data) > MAX_FILE_BYTES:
            problems.add(None, None, f"The file is larger than {MAX_FILE_BYTES // 2**20} MB. Send a smaller file.")
            raise AnswersRefused(problems)
        rows = read_rows(
            self.filename,
            data,
            columns=Columns(
                (PEOPLE, PROMPTS),
                (PREFERRED, VALUE, *RATINGS),
                aliases=PROMPT_ALIASES,
                meanings={PEOPLE: PERSON, PROMPTS: KEY},
            ),
            limits=TableLimits(bytes=MAX_FILE_BYTES, rows=MAX_ROWS),
            problems=problems,
        )
        found: AnswersFile | None = None
        kind = ""
        for row in rows:
            if found is None:
                kind = self._kind(row)
                protocol = self.protocol or (RATED_HEADLINE if kind == RATINGS[0] else DEFAULT_HEADLINE)
                # The same file, read as answers to another protocol, says something else.
                digest = hashlib.sha256(f"{protocol} {self.points} ".encode() + data).hexdigest()
                found = AnswersFile(digest, protocol, self.points)
            if not kind:
                break
            self._read_row(row, kind, found)
        if found is None or problems:
            problems.sort_by_row()
            raise AnswersRefused(problems)
        return found

    def _kind(self, row: Row) -> str:
        """Return the column that says which output was better, or '' after adding a problem."""
        kinds = [PREFERRED] * (PREFERRED in row.values) + [VALUE] * (VALUE in row.values)
        kinds += [RATINGS[0]] * all(name in row.values for name in RATINGS)
        if len(kinds) == 1:
            return kinds[0]
        text = "Name the answer in one way: a column preferred (x, y or tie), columns x and y, or a column value."
        self.problems.add(None, None, text)
        return ""

    def _read_row(self, row: Row, kind: str, found: AnswersFile) -> None:
        person, prompt = self._name(row, PEOPLE), self._name(row, PROMPTS)
        value = self._value(row, kind)
        if not person or not prompt or value is None:
            return
        first = self.row_of.setdefault((person, prompt), row.number)
        if first != row.number:
            self.problems.add(
                row.number, None, f"Row {first} already has an answer of this annotator about this prompt. Keep one."
            )
            return
        found.values.append(value)
        found.people.append(person)
        found.prompts.append(prompt)

    def _name(self, row: Row, column: str) -> str:
        text = _text(row.values.get(column))
        if not text:
            self.problems.add(row.number, column, f"The {column} is empty. Enter a name or number.")
        return text

    def _value(self, row: Row, kind: str) -> float | None:
        if kind == PREFERRED:
            text = _text(row.values.get(PREFERRED)).casefold()
            if text not in CHOICES:
                self.problems.add(row.number, PREFERRED, f"“{text[:40]}” is not x, y or tie.")
            return CHOICES.get(text)
        if kind == VALUE:
            value = self._number(row, VALUE)
            low, high = StudySize(
                protocol=self.protocol or DEFAULT_HEADLINE, people=6, prompts=6, prompts_each=6, points=self.points
            ).scale_ends
            if value is not None and not low <= value <= high:
                self.problems.add(row.number, VALUE, f"{value:g} is outside of the scale from {low:g} to {high:g}.")
                return None
            return value
        x, y = (self._number(row, name) for name in RATINGS)
        return None if x is None or y is None else (math.copysign(1, x - y) + 1) / 2 if x != y else 0.5

    def _number(self, row: Row, column: str) -> float | None:
        try:
            return parse_number(_text(row.values.get(column)))
        except NumberRefused as refused:
            self.problems.add(row.number, column, str(refused))
            return None


def _text(value: Any) -> str:
    return str(value).strip() if isinstance(value, str | int | float) and not isinstance(value, bool) else ""


FILE = "file:"
NOT_READ = "The answers of this study are not read yet. Choose it as a pilot on the page Plan, or send its code to plans/pilots/."
# Files and studies that the page lists.
MOST_LISTED = 20


class ResolvedPrior(NamedTuple):
    """The variation, draws of what it may be (none for a public prior), where it comes from, and what a pilot says.

    ``own``: the variation of each comparison of a pilot study.
    """

    variation: Variation
    draws: tuple[Variation, ...]
    label: str
    sentence: str = ""
    own: tuple[OwnVariation, ...] = ()


def store_answers_file(
    study: Study, by, filename: str, data: bytes, *, protocol: str = "", points: int = 5
) -> PilotFile:
    """Store what a file of answers says, for the plans of this draft, or return what is stored already. The answers are not kept.

    Raise AnswersRefused with every problem of the file, or ActionRefused if the study is launched.
    """
    read = read_answers_file(filename, data, protocol=protocol, points=points)
    stored = study.pilot_files.filter(sha256=read.sha256).first()
    if stored is None:
        name = filename[:200]
        estimate = read.estimate(f"file “{name}”, {len(read.values)} answers")
    with locked_draft(study.pk, by) as draft:
        if stored is not None:
            return stored
        return PilotFile.objects.get_or_create(
            study=draft, sha256=read.sha256, defaults={"name": name, "estimate": estimate_as_json(estimate), "by": by}
        )[0]


def resolve_prior(key: str, user) -> ResolvedPrior:
    """Return the variation that a prior names: a public one, ``pilot:<code of a study>`` or ``file:<sha256>``.

    Raise InvalidPlanInputs for the field ``prior`` if there is no such prior or the user may not use it.
    """
    if key.startswith(PREFIX):
        pilot = stored_pilot(find_pilot_study(key.removeprefix(PREFIX), user))
        if pilot is None:
            raise InvalidPlanInputs({"prior": NOT_READ})
        return _resolved(pilot.estimate)
    if key.startswith(FILE):
        files = PilotFile.objects.all() if user is None else filter_allowed(user, PilotFile.objects.all(), Action.VIEW)
        stored = files.filter(sha256=key.removeprefix(FILE)).first()
        if stored is None:
            raise InvalidPlanInputs({"prior": "No such file is stored. Upload the file of answers again."})
        return _resolved(stored.estimate)
    try:
        prior = prior_of(key)
    except ValueError as refused:
        raise InvalidPlanInputs({"prior": str(refused).removeprefix("prior: ")}) from None
    return ResolvedPrior(prior.variation, (), prior.label)


def pilot_of(inputs: PlanInputs, user) -> ResolvedPrior | None:
    """Return the pilot of the inputs, or None if their variation is of another kind.

    Raise InvalidPlanInputs if the pilot cannot be read, or says something else by now.
    """
    if not inputs.prior.startswith((PREFIX, FILE)):
        return None
    resolved = resolve_prior(inputs.prior, user)
    if any(
        getattr(resolved.variation, name) != getattr(inputs.variation, name) for name in ("sd_people", "sd_prompts")
    ):
        raise InvalidPlanInputs({"prior": "The answers of the pilot have changed. Choose the pilot again."})
    return resolved


def draws_of(inputs: PlanInputs, user) -> tuple[Variation, ...]:
    """Return what the variation of the inputs may be, if it comes from a pilot. Without a pilot there are no draws."""
    pilot = pilot_of(inputs, user)
    return () if pilot is None else pilot.draws


def pilots_to_choose(study: Study, user, chosen: str) -> dict[str, Variation | None]:
    """Return the pilots that a plan of this study may name: its files, and the chosen study if the user may read it."""
    found: dict[str, Variation | None] = {
        f"{FILE}{one.sha256}": estimate_from_json(one.estimate)[0] for one in study.pilot_files.all()[:MOST_LISTED]
    }
    if chosen.startswith(PREFIX):
        with suppress(InvalidPlanInputs):
            found[chosen] = resolve_prior(chosen, user).variation
    return found


def pilot_sentence(estimate: Mapping[str, Any]) -> str:
    """Return what an estimate, as JSON, says: the variation with the range of its draws, and the difference."""
    ranges = []
    for place, name in enumerate(("people", "prompts")):
        drawn = sorted(draw[place] for draw in estimate["draws"])
        last = len(drawn) - 1
        low, high = drawn[round(0.05 * last)], drawn[round(0.95 * last)]
        ranges.append(f"{name} {estimate['variation'][f'sd_{name}']:.2f} (.9 range {low:.2f} to {high:.2f})")
    low, high = estimate["difference_low"], estimate["difference_high"]
    interval = "" if low is None else f" (.95 interval {100 * low:.0f} to {100 * high:.0f} %)"
    return (
        f"Standard deviations: {', '.join(ranges)}. It observed {100 * estimate['difference']:.0f} %{interval}. "
        "The smallest difference that matters stays your decision."
    )


def _resolved(stored: Mapping[str, Any]) -> ResolvedPrior:
    variation, draws = estimate_from_json(stored)
    own = tuple(
        OwnVariation(
            one["protocol"],
            one["comparison"],
            Variation(sd_people=one["sd_people"], sd_prompts=one["sd_prompts"], source=variation.source),
        )
        for one in stored.get("own", ())
    )
    return ResolvedPrior(variation, draws, variation.source, pilot_sentence(stored), own)


def estimate_from_json(stored: Mapping[str, Any]) -> tuple[Variation, tuple[Variation, ...]]:
    """Return the variation and its draws."""
    variation = Variation(**stored["variation"])
    return variation, tuple(
        Variation(sd_people=people, sd_prompts=prompts, source=variation.source) for people, prompts in stored["draws"]
    )
