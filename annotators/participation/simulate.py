"""Robots that answer a study with known preferences, through the same functions as an annotator's browser.

The report must find the preferences that the robots were given. This is for the demo, for test runs before a paid
study, and for tests. Their assignments have the origin ``robot``, take real places, and count only in reports that
include robots.
"""

import math
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.http import QueryDict

from annotators.models import Assignment, PageVisit
from annotators.pages.form_data import PageForm
from annotators.pages.record import PageState, full_page_state, record_page_answers, restore_shown_step
from annotators.pages.sequence import Step, page_snapshot
from annotators.places import assign
from studies.design.workload import estimate_stored_or_trial_batch_workloads
from studies.models import Expected, Exposure, Item, Question, Study
from studies.protocols.base.fields import Robot
from studies.protocols.base.known_answers import known_answer

# How far the good and bad texts of test questions are from the middle of the systems, in log-odds.
KNOWN_QUALITY = 4.0


@dataclass(frozen=True, slots=True)
class CrowdSettings:
    """How robots answer. Standard deviations are on the scale of the answers, 0..1. Shares are fractions of the robots.

    ``spread``: standard deviation between robots' opinions of one pair. ``noise``: standard deviation of each answer.
    ``acquiescent``: the share that adds ``acquiescence`` to the system that is named first. ``screened_out``: the share
    that fails screening. ``commenting``: the share that writes optional texts. ``abandoning``: the share that leaves
    before the last page. ``careless``: the share that answers at random. ``right``: how often these answer a test question
    right; None: they answer it at random, too. ``batches``: how many batches a robot takes, if the study has so many for
    it; ``activity``: the standard deviation of the logarithm of this number, whose median is then ``batches``.
    ``words_per_minute``: their reading speed. Their start times are set back, as if they had read at this speed.
    ``middle``: the strength that gets the middle of a scale; None: the mean of the study's systems. ``leniency``: how
    much too high all ratings are, in log-odds.
    """

    spread: float = 0.15
    noise: float = 0.05
    acquiescent: float = 0.1
    acquiescence: float = 0.2
    screened_out: float = 0.05
    commenting: float = 0.3
    abandoning: float = 0.0
    round_to: int = 5
    words_per_minute: float = 260
    careless: float = 0.0
    right: float | None = None
    batches: float = 1.0
    activity: float = 0.0
    middle: float | None = None
    leniency: float = 0.0


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """The number of batches by outcome. ``turned_away``: robots that got none. ``is_decided``: a stopping rule would have ended the study, so no more were sent."""

    submitted: int
    screened_out: int
    failed_checks: int
    abandoned: int
    turned_away: int
    is_decided: bool = False


def default_system_strengths(study: Study) -> dict[str, float]:
    """Return default preferences: systems in order of their names, 0.5 log-odds apart."""
    return {
        name: 0.5 * rank
        for rank, name in enumerate(study.systems.judged().order_by("name").values_list("name", flat=True))
    }


def record_simulated_answers(
    study: Study,
    n_robots: int,
    preferences: Mapping[str, float] | None = None,
    rng: random.Random | None = None,
    *,
    crowd: CrowdSettings | None = None,
    name_prefix: str = "robot",
    progress: Callable[[int, int, str], Any] = lambda done, total, doing: None,
    has_decided: Callable[[], bool] = lambda: False,
) -> SimulationResult:
    """Let ``n_robots`` robots claim places and answer all pages. Stop early when no place is left.

    ``has_decided`` is asked after each robot that submitted. If it says yes, no more robots are sent.

    ``preferences`` gives each system's strength in log-odds, so that the mean stated chance of x over y is 1 / (1 +
    exp(y - x)). Raises ValueError with the name of the system if a preference is about an unknown system, or if a
    system has no preference.
    """
    crowd, rng = crowd or CrowdSettings(), rng or random.Random(study.seed)
    strengths = default_system_strengths(study) if preferences is None else dict(preferences)
    _check(study, strengths, crowd)
    shared = SharedRobotData(study, strengths, crowd)
    ends = {"submitted": 0, "screened_out": 0, "failed_checks": 0, "abandoned": 0, "turned_away": 0}
    is_decided = False
    for number in range(n_robots):
        progress(number, n_robots, f"Robot {number + 1} of {n_robots} answers")
        own_rng = random.Random(rng.getrandbits(64))
        for end in _take_part(study, f"{name_prefix}-{study.pk}-{number}", shared, own_rng):
            ends[end] += 1
            is_decided = end == "submitted" and has_decided()
            if is_decided:
                break
        if ends["turned_away"]:
            ends["turned_away"] = n_robots - number
        if is_decided or ends["turned_away"]:
            break
    progress(n_robots, n_robots, "All robots have answered")
    return SimulationResult(**ends, is_decided=is_decided)


def _check(study: Study, strengths: Mapping[str, float], crowd: CrowdSettings) -> None:
    names = set(study.systems.judged().values_list("name", flat=True))
    if unknown := sorted(set(strengths) - names):
        raise ValueError(
            f"preferences: the study has no system {unknown[0]!r}. Use its systems: {', '.join(sorted(names))}."
        )
    if missing := sorted(names - set(strengths)):
        raise ValueError(f"preferences: the system {missing[0]!r} has no preference. Add one.")
    if wrong_names := sorted(name for name, value in strengths.items() if not math.isfinite(value)):
        raise ValueError(f"preferences: the preference of {wrong_names[0]!r} must be a finite number. Correct it.")
    if crowd.right is not None and not Item.objects.filter(study=study, kind=Item.Kind.TEST).exists():
        raise ValueError("right: the study has no test questions that robots could answer. Leave it out, or make some.")


class SharedRobotData:
    """Data that all robots share, read once."""

    def __init__(self, study: Study, strengths: Mapping[str, float], crowd: CrowdSettings):
        self.strengths, self.crowd = strengths, crowd
        self.pairs = {
            pk: (x, y)
            for pk, x, y in Question.objects.filter(section__study=study, x__isnull=False).values_list(
                "pk", "x__name", "y__name"
            )
        }
        self.minutes = {
            int(burden.batch): burden.words / crowd.words_per_minute + burden.questions / 6
            for burden in estimate_stored_or_trial_batch_workloads(study)
        }

    def known_quality_by_exposure(self, batch_id: int | None) -> dict[int, tuple[int, bool]]:
        """Return the item of each text of the batch's test questions, and whether the text is good, by exposure."""
        quality: dict[int, tuple[int, bool]] = {}
        rows = Expected.objects.filter(item__placements__batch=batch_id, item__kind=Item.Kind.TEST)
        known = {row.item_id: known_answer(row, {}) for row in rows.select_related("question")}
        for pk, item in Exposure.objects.filter(item__in=known).values_list("pk", "item_id"):
            answer = known[item]
            if answer.better is not None:
                quality[pk] = (item, answer.better == pk)
            elif answer.about in (None, pk) and answer.low is not None and answer.middle is not None:
                quality[pk] = (item, answer.low >= answer.middle)
        return quality

    def systems_by_exposure(self, batch_id: int | None) -> dict[int, str]:
        return dict(Exposure.objects.filter(item__placements__batch=batch_id).values_list("pk", "output__system__name"))


def _take_part(study: Study, person: str, shared: SharedRobotData, rng: random.Random) -> Iterator[str]:
    """Let one robot do its batches, and yield how each ended. Without any place: "turned_away"."""
    annotator = assign.get_or_create_annotator("robots", person)
    crowd, robot = shared.crowd, None
    n_batches = crowd.batches * (math.exp(rng.gauss(0, crowd.activity)) if crowd.activity else 1)
    for _ in range(max(1, round(n_batches))):
        claim = assign.claim_batch(study, annotator, origin=Assignment.Origin.ROBOT, is_consented=True)
        if claim.outcome != "claimed" or claim.assignment is None:
            if robot is None:
                yield "turned_away"
            return
        assignment = claim.assignment
        assignment.study = study
        # The order of pages and items, so that the same ``rng`` gives the same answers.
        assignment.seed = rng.getrandbits(62)
        assignment.save(update_fields=["seed"])
        robot = robot or PreferenceRobot(shared, rng)
        robot.begin_batch(assignment.batch_id)
        end = _answer_batch(assignment, robot)
        yield end
        if end != "submitted":
            return


def _answer_batch(assignment: Assignment, robot: "PreferenceRobot") -> str:
    shared, rng = robot.world, robot.rng
    state = full_page_state(assignment)
    key = state.next_key
    is_abandoning = rng.random() < shared.crowd.abandoning
    while key is not None:
        state = full_page_state(assignment)
        if is_abandoning and key == list(state.steps)[-1]:
            return "abandoned"
        outcome = record_page_answers(assignment, key, visit_page_and_draw_robot_answers(state, key, robot))
        if outcome.sent is not None:
            raise ValueError(robot_refusal_message(state.steps[key], outcome.sent))
        key = outcome.next_key
    submitted_at = Assignment.objects.values_list("submitted_at", flat=True).get(pk=assignment.pk)
    if not submitted_at:
        assignment.refresh_from_db(fields=["released_reason"])
        return assignment.released_reason
    minutes = shared.minutes.get(assignment.batch.number, 1.0) * math.exp(rng.gauss(0, 0.3))
    started_at = submitted_at - timedelta(minutes=minutes)
    Assignment.objects.filter(pk=assignment.pk).update(claimed_at=started_at, started_at=started_at)
    return "submitted"


def visit_page_and_draw_robot_answers(state: PageState, page_key: str, robot: Robot) -> QueryDict:
    """Return a robot's form for a page as it was shown. Store a visit if the page was not shown yet."""
    step = state.steps[page_key]
    visit = state.visits.get(page_key) or PageVisit.objects.create(
        assignment=state.assignment, key=page_key, shown=page_snapshot(step.page)
    )
    data = QueryDict(mutable=True)
    data.update(robot.answers(step.protocol, restore_shown_step(step, visit).page_fields()))
    return data


def robot_refusal_message(step: Step, form: PageForm) -> str:
    """Return a message that says which rule a robot's answers broke, and what the protocol must implement."""
    slug = step.protocol.slug
    problems = "; ".join([*form.non_field_errors, *(f"{slot}: {text}" for slot, text in form.errors.items())])
    return (
        f"page {step.page.key}: a robot's answers were refused: {problems[:300]} The protocol {slug} must define plausible answers: give it a "
        "method `robot_answers(page_fields, robot)` that its `complete_data_and_find_errors` accepts."
    )


class PreferenceRobot(Robot):
    """A robot with fixed random opinions of the systems whose outputs it reads."""

    def __init__(self, shared: SharedRobotData, rng: random.Random):
        super().__init__(rng)
        self.world, crowd = shared, shared.crowd
        mean = sum(shared.strengths.values()) / len(shared.strengths)
        self.middle, self.round_to = mean if crowd.middle is None else crowd.middle, crowd.round_to
        self.is_acquiescent = rng.random() < crowd.acquiescent
        self.is_screened_out = rng.random() < crowd.screened_out
        self.is_commenting = rng.random() < crowd.commenting
        # A robot's opinion of each system is one number, so that its preferences are consistent.
        logit_spread = 4 * crowd.spread / math.sqrt(2)
        self.own = {name: value + rng.gauss(0, logit_spread) for name, value in sorted(shared.strengths.items())}
        self.severity = rng.gauss(crowd.leniency, 0.4)
        self.is_inattentive = crowd.careless > 0 and rng.random() < crowd.careless

    def begin_batch(self, batch_id: int | None) -> None:
        """Read which systems the batch shows, and which texts of its test questions seem good and which bad to the robot."""
        self.systems = self.world.systems_by_exposure(batch_id)
        known, right = self.world.known_quality_by_exposure(batch_id), self.world.crowd.right
        self.quality = {exposure: is_good for exposure, (_, is_good) in known.items()}
        if not self.is_inattentive:
            return
        if right is None:
            self.quality = {}
            return
        # Both texts of a pair seem what they are, or both seem the other.
        mistaken = {item for item in sorted({item for item, _ in known.values()}) if self.rng.random() >= right}
        self.quality = {exposure: is_good != (item in mistaken) for exposure, (item, is_good) in known.items()}

    def strength(self, exposure_id):
        if exposure_id in self.quality:
            return self.middle + (KNOWN_QUALITY if self.quality[exposure_id] else -KNOWN_QUALITY)
        if self.is_inattentive:
            return self.middle + self.rng.gauss(0, 3)
        return self.world.strengths.get(self.systems.get(exposure_id, ""), self.middle)

    def liking(self, exposure_id):
        if exposure_id in self.quality:
            return (
                self.middle + (KNOWN_QUALITY if self.quality[exposure_id] else -KNOWN_QUALITY) + self.rng.gauss(0, 0.7)
            )
        if self.is_inattentive:
            return self.rng.random()
        return self.own.get(self.systems.get(exposure_id, ""), 0.0) + self.rng.gauss(0, 0.7)

    def scale_position(self, page_field):
        """Return a stated chance if two systems are compared, else this robot's opinion of one output."""
        if self.is_inattentive and page_field.exposure_id not in self.quality:
            return self.rng.random()
        if pair := self.world.pairs.get(page_field.question_id):
            return self._chance(*pair)
        latent = self.liking(page_field.exposure_id) - self.middle + self.severity
        return min(0.999, 1 / (1 + math.exp(-latent)))

    def _chance(self, x: str, y: str) -> float:
        """Return the stated chance that x is better: opinion, noise, and a bias towards the system that is named first."""
        crowd = self.world.crowd
        share = 1 / (1 + math.exp(self.own[y] - self.own[x])) + self.rng.gauss(0, crowd.noise)
        return min(1.0, max(0.0, share + (crowd.acquiescence if self.is_acquiescent else 0.0)))
