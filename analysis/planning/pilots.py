"""Where a plan's variation comes from: a public prior, a study on the same site, or a file of answers."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from django.core.exceptions import ObjectDoesNotExist
from django.db.models import Exists, OuterRef, Q, QuerySet

from analysis.data.blinding import check_outcomes_visible
from analysis.data.snapshot import database_snapshot
from analysis.protocols import REGISTRY, HeadlineAnswers
from analysis.report.parameters import validate_parameters
from analysis.report.protocol_blocks import analysis_contexts
from analysis.report.report_data import read_report_data
from analysis.stats.plan_inputs import KINDS, Variation
from analysis.stats.priors import prior_of
from annotators.models import Assignment
from studies.access import Action, filter_allowed, get_row
from studies.models import PilotFile, Section, Study
from studies.services.drafts import locked_draft
from studies.services.lifecycle import ActionRefused

from .answer_files import read_answers_file
from .inputs import PLANNED_AS, InvalidPlanInputs, PlanInputs

if TYPE_CHECKING:
    from analysis.stats.planning import PilotEstimate

PILOT, FILE = "pilot:", "file:"
# Answers of these origins say how people answer. Robots and test runs do not.
ORIGINS = ("live", "imported")
# Files and studies that the page lists.
MOST_LISTED = 20
# Protocols whose headline is no mean of answers.
WITHOUT_MEANS = frozenset({"best_worst"})
# Protocols whose answers tell people from prompts, as sections name them.
PILOT_PROTOCOLS = tuple(
    slug for slug, planned in PLANNED_AS.items() if KINDS[planned] != "chance" and slug not in WITHOUT_MEANS
)


class ResolvedPrior(NamedTuple):
    """The variation, draws of what it may be (none for a public prior), and where it comes from."""

    variation: Variation
    draws: tuple[Variation, ...]
    label: str


@dataclass(frozen=True, slots=True)
class StudyPilot:
    """What the answers of one comparison of a study say."""

    comparison: str
    estimate: "PilotEstimate"


def pilot_studies(user) -> QuerySet[Study]:
    """Return the studies whose answers may be a pilot: the user may read them, they are submitted, and outcomes are shown."""
    answered = Assignment.objects.filter(
        study=OuterRef("pk"), origin__in=ORIGINS, withdrawn_at=None, submitted_at__isnull=False
    )
    sections = Section.objects.filter(study=OuterRef("pk"), purpose=Section.Purpose.LIVE, protocol__in=PILOT_PROTOCOLS)
    is_blind = Q(state__in=Study.COLLECTING_STATES, unblinded_at=None)
    readable = filter_allowed(user, Study.objects.exclude(is_blind), Action.EXPORT)
    return readable.filter(Exists(answered), Exists(sections)).order_by("-pk")


def estimate_of_study(study: Study, user) -> StudyPilot:
    """Return what the answers of a study say, by its first comparison that says enough. Planned comparisons come first.

    Raise Http404 or PermissionDenied if the user may not read the answers or outcomes are hidden, and ActionRefused if no
    comparison says how much people and prompts vary.
    """
    from analysis.stats.planning import estimate_pilot
    from analysis.stats.seeds import seeded_generator

    study = get_row(user, Action.EXPORT, Study.objects.all(), pk=study.pk)
    check_outcomes_visible(study, ORIGINS)
    reasons: list[str] = []
    answers, data_sha256 = _headline_answers(study)
    for planned_as, headline in answers:
        if not len(headline.values):
            continue
        source = f"study “{study.title[:80]}”, {headline.comparison.key}"
        try:
            estimate = estimate_pilot(
                headline.values,
                headline.annotators,
                headline.prompts,
                protocol=planned_as,
                points=headline.points,
                rng=seeded_generator(str(study.code), "pilot", headline.comparison.key, data_sha256),
                source=f"{source}, {_counts(headline)}"[:500],
            )
        except ValueError as refused:
            reasons.append(str(refused))
            continue
        return StudyPilot(headline.comparison.key, estimate)
    why = reasons[0] if reasons else "It has no answers about pairs of systems that the rules keep."
    raise ActionRefused(f"The study cannot be a pilot. {why}")


def _headline_answers(study: Study) -> tuple[list[tuple[str, HeadlineAnswers]], str]:
    """Return the answers of all comparisons with the protocol that plans know, planned comparisons first; and the hash of the data."""
    problems: list[dict[str, Any]] = []
    with database_snapshot():
        data = read_report_data(study, list(ORIGINS))
        contexts = analysis_contexts(data, validate_parameters({"origins": list(ORIGINS)}, study), "pilot", problems)
        found = [
            (PLANNED_AS[context.protocol], headline)
            for context in contexts
            if context.protocol in PILOT_PROTOCOLS
            for headline in REGISTRY[context.protocol].headline_answers(context)
        ]
    return sorted(found, key=lambda pair: not pair[1].comparison.is_planned), data.data_sha256


def _counts(headline: HeadlineAnswers) -> str:
    people, prompts = len(set(headline.annotators.tolist())), len(set(headline.prompts.tolist()))
    return f"{people} people, {prompts} prompts, {len(headline.values)} answers"


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


def estimate_of_pilot(key: str, user) -> "PilotEstimate":
    """Return the estimate of the study that a prior names. Raise InvalidPlanInputs if it cannot be a pilot for this user."""
    study = _study_by_code(key.removeprefix(PILOT), user)
    try:
        return estimate_of_study(study, user).estimate
    except ActionRefused as refused:
        raise InvalidPlanInputs({"prior": str(refused)}) from None


def resolve_prior(key: str, user) -> ResolvedPrior:
    """Return the variation that a prior names: a public one, ``pilot:<code of a study>`` or ``file:<sha256>``.

    Raise InvalidPlanInputs for the field ``prior`` if there is no such prior or the user may not use it.
    """
    if key.startswith(PILOT):
        estimate = estimate_of_pilot(key, user)
        return ResolvedPrior(estimate.variation, estimate.draws, estimate.variation.source)
    if key.startswith(FILE):
        files = PilotFile.objects.all() if user is None else filter_allowed(user, PilotFile.objects.all(), Action.VIEW)
        stored = files.filter(sha256=key.removeprefix(FILE)).first()
        if stored is None:
            raise InvalidPlanInputs({"prior": "No such file is stored. Upload the file of answers again."})
        variation, draws = estimate_from_json(stored.estimate)
        return ResolvedPrior(variation, draws, variation.source)
    try:
        prior = prior_of(key)
    except ValueError as refused:
        raise InvalidPlanInputs({"prior": str(refused).removeprefix("prior: ")}) from None
    return ResolvedPrior(prior.variation, (), prior.label)


def draws_of(inputs: PlanInputs, user) -> tuple[Variation, ...]:
    """Return what the variation of the inputs may be, if it comes from a pilot. Without a pilot there are no draws.

    Raise InvalidPlanInputs if the pilot cannot be read, or says something else by now.
    """
    if not inputs.prior.startswith((PILOT, FILE)):
        return ()
    resolved = resolve_prior(inputs.prior, user)
    if any(
        getattr(resolved.variation, name) != getattr(inputs.variation, name) for name in ("sd_people", "sd_prompts")
    ):
        raise InvalidPlanInputs({"prior": "The answers of the pilot have changed. Choose the pilot again."})
    return resolved.draws


def with_variation_of_pilot(inputs: PlanInputs, user) -> PlanInputs:
    """Return the inputs with the variation of their pilot, if they have one. Raise InvalidPlanInputs if it cannot be read."""
    if not inputs.prior.startswith((PILOT, FILE)):
        return inputs
    return replace(inputs, variation=resolve_prior(inputs.prior, user).variation)


def pilots_to_choose(study: Study, user, chosen: str) -> dict[str, Variation | None]:
    """Return the pilots that a plan of this study may name: its files, and the chosen study if the user may read it.

    The variation of a study is None: to estimate it takes a second, so only the choice and the simulation do.
    """
    found: dict[str, Variation | None] = {
        f"{FILE}{one.sha256}": estimate_from_json(one.estimate)[0] for one in study.pilot_files.all()[:MOST_LISTED]
    }
    if chosen.startswith(PILOT):
        try:
            _study_by_code(chosen.removeprefix(PILOT), user)
            found[chosen] = None
        except InvalidPlanInputs:
            pass
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


def _study_by_code(code: str, user) -> Study:
    """Return a study that may be a pilot for this user. An unknown, hidden or blind study has one message."""
    studies = Study.objects.all() if user is None else pilot_studies(user)
    try:
        return studies.get(code=UUID(code))
    except (ValueError, ObjectDoesNotExist):
        text = "No study with this code can be a pilot. Its answers must be submitted, and its outcomes shown to you."
        raise InvalidPlanInputs({"prior": text}) from None


def estimate_as_json(estimate: "PilotEstimate") -> dict[str, Any]:
    """Return an estimate as JSON. Of the draws only the two standard deviations differ."""
    return estimate.as_dict() | {"draws": [[draw.sd_people, draw.sd_prompts] for draw in estimate.draws]}


def estimate_from_json(stored: Mapping[str, Any]) -> tuple[Variation, tuple[Variation, ...]]:
    """Return the variation and its draws."""
    variation = Variation(**stored["variation"])
    return variation, tuple(
        Variation(sd_people=people, sd_prompts=prompts, source=variation.source) for people, prompts in stored["draws"]
    )
