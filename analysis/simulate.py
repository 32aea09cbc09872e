"""Robots that answer a study with known preferences, through the same functions that an annotator's browser reaches.

What they prefer goes in, what the report finds must come out: for the demo, for trying a study before it is paid for, and for
tests. Their assignments have the origin ``robot``, take real places, and count in a report only when it asks for them.
"""

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.http import QueryDict

from annotators import assign
from annotators.models import Assignment, PageVisit
from annotators.pages import page_as_shown, shown_of
from annotators.record import Standing, input_names, record_page, standing_of
from studies.design import burdens
from studies.models import Exposure, Question, Study
from studies.protocols import Ask, Protocol

COMMENTS = (
    "I liked the quieter stories best.",
    "Some of them ended rather suddenly.",
    "Thank you, this was fun.",
    "Two of the writers sounded alike to me.",
    "It was a lot to read for the time given.",
)
EXPLANATIONS = (
    "The sentences follow from one another and the ending fits the beginning.",
    "It repeats the same words and loses track of who is speaking.",
    "The details are vivid, but the plot goes nowhere in particular.",
    "I believed the characters and wanted to know what happens next.",
)


@dataclass(frozen=True, slots=True)
class Crowd:
    """How robots answer. Standard deviations are on the scale of the answers, 0..1; shares are of robots.

    ``spread``: between robots' opinions of one pair; ``noise``: of each answer; ``acquiescent``: the share that adds
    ``acquiescence`` to whatever is named first; ``screened_out``: the share that fails screening; ``commenting``: the share that
    writes where words are voluntary; ``abandoning``: the share that leaves before the last page. ``words_per_minute`` is what
    they are said to read at: their times are set back accordingly, as if they had taken them.
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


@dataclass(frozen=True, slots=True)
class Simulated:
    """What became of the robots."""

    submitted: int
    screened_out: int
    abandoned: int
    turned_away: int


def default_preferences(study: Study) -> dict[str, float]:
    """Latent preferences where none are given: systems by name, half a point of log-odds apart."""
    return {
        name: 0.5 * place for place, name in enumerate(study.systems.order_by("name").values_list("name", flat=True))
    }


def simulate_answers(
    study: Study,
    n: int,
    preferences: Mapping[str, float] | None = None,
    rng: random.Random | None = None,
    *,
    crowd: Crowd | None = None,
    name: str = "robot",
    progress: Callable[[int, int, str], Any] = lambda done, total, doing: None,
) -> Simulated:
    """Let ``n`` robots arrive, claim places and answer every page.

    ``preferences`` gives each system's strength in log-odds, so that the mean stated chance of x over y is
    1 / (1 + exp(y - x)). Stops early when no place is left. Raises ValueError, naming the system, for a preference that is about
    no system of the study, or a system without one.
    """
    crowd, rng = crowd or Crowd(), rng or random.Random(study.seed)
    strengths = default_preferences(study) if preferences is None else dict(preferences)
    _check(study, strengths)
    world = World(study, strengths, crowd)
    ends = {"submitted": 0, "screened_out": 0, "abandoned": 0, "turned_away": 0}
    for number in range(n):
        progress(number, n, f"Robot {number + 1} of {n} answers")
        end = _take_part(study, f"{name}-{study.pk}-{number}", world, random.Random(rng.getrandbits(64)))
        ends[end] += 1
        if end == "turned_away":
            ends["turned_away"] = n - number
            break
    progress(n, n, "All robots have answered")
    return Simulated(**ends)


def _check(study: Study, strengths: Mapping[str, float]) -> None:
    names = set(study.systems.values_list("name", flat=True))
    if unknown := sorted(set(strengths) - names):
        raise ValueError(f"preferences: {unknown[0]!r} is no system of this study ({', '.join(sorted(names))})")
    if missing := sorted(names - set(strengths)):
        raise ValueError(f"preferences: the system {missing[0]!r} has none")
    if wrong := sorted(name for name, value in strengths.items() if not math.isfinite(value)):
        raise ValueError(f"preferences: that of {wrong[0]!r} is no finite number")


class World:
    """What is the same for all robots, read once."""

    def __init__(self, study: Study, strengths: Mapping[str, float], crowd: Crowd):
        self.strengths, self.crowd = strengths, crowd
        self.pairs = {
            pk: (x, y, criterion)
            for pk, x, y, criterion in Question.objects.filter(section__study=study, x__isnull=False).values_list(
                "pk", "x__name", "y__name", "criterion"
            )
        }
        self.minutes = {
            int(burden.batch): burden.words / crowd.words_per_minute + burden.questions / 6 for burden in burdens(study)
        }

    def systems_of(self, batch_id: int) -> dict[int, str]:
        return dict(Exposure.objects.filter(item__placements__batch=batch_id).values_list("pk", "output__system__name"))


def _take_part(study: Study, person: str, world: World, rng: random.Random) -> str:
    annotator = assign.annotator_of("robots", person)
    claim = assign.claim_batch(study, annotator, origin=Assignment.Origin.ROBOT, is_consented=True)
    if claim.outcome != "claimed" or claim.assignment is None:
        return "turned_away"
    assignment = claim.assignment
    assignment.study = study
    robot = Robot(world, world.systems_of(assignment.batch_id), rng)
    standing = standing_of(assignment)
    key = standing.next_key
    is_abandoning = rng.random() < world.crowd.abandoning
    while key is not None:
        standing = standing_of(assignment)
        if is_abandoning and key == list(standing.steps)[-1]:
            return "abandoned"
        outcome = record_page(assignment, key, robot.answers(standing, key))
        if outcome.sent is not None:
            problems = outcome.sent.general + [f"{slot}: {text}" for slot, text in outcome.sent.errors.items()]
            raise ValueError(f"page {key}: a robot's answers were refused: {'; '.join(problems)[:300]}")
        key = outcome.following
    ended = Assignment.objects.values_list("submitted_at", flat=True).get(pk=assignment.pk)
    if not ended:
        return "screened_out"
    minutes = world.minutes.get(assignment.batch.number, 1.0) * math.exp(rng.gauss(0, 0.3))
    begun = ended - timedelta(minutes=minutes)
    Assignment.objects.filter(pk=assignment.pk).update(claimed_at=begun, started_at=begun)
    return "submitted"


class Robot:
    """One robot: its opinions, drawn once, and its answers to whatever a page asks."""

    def __init__(self, world: World, systems: Mapping[int, str], rng: random.Random):
        self.world, self.systems, self.rng = world, systems, rng
        crowd = world.crowd
        self.is_acquiescent = rng.random() < crowd.acquiescent
        self.is_screened_out = rng.random() < crowd.screened_out
        self.is_commenting = rng.random() < crowd.commenting
        # A person's liking of each system is one number, so that a robot's own preferences cohere.
        logit_spread = 4 * crowd.spread / math.sqrt(2)
        self.liking = {name: value + rng.gauss(0, logit_spread) for name, value in sorted(world.strengths.items())}
        self.severity = rng.gauss(0, 0.4)

    def answers(self, standing: Standing, key: str) -> QueryDict:
        """What this robot sends from a page, as it was shown; shown now where it was not yet."""
        step, assignment = standing.steps[key], standing.assignment
        visit = standing.visits.get(key) or PageVisit.objects.create(
            assignment=assignment, key=key, shown=shown_of(step.page)
        )
        asks = step.protocol.asks(page_as_shown(step.page, visit.shown))
        return self.form(step.protocol, asks, step.purpose)

    def form(self, protocol: Protocol, asks: Mapping[str, Ask], purpose: str) -> QueryDict:
        data = QueryDict(mutable=True)
        data.update(protocol.robot(asks, self.systems, self.world.strengths, self.rng))
        for slot, ask in asks.items():
            if data.keys().isdisjoint(input_names(slot, ask).values()):
                answer = self._answer(ask, purpose)
                if answer is not None:
                    data[slot] = answer
        return data

    def _answer(self, ask: Ask, purpose: str) -> str | None:
        field = ask.field
        match field.kind:
            case "number":
                return str(self._number(ask, field.minimum, field.maximum))
            case "scale":
                points = sorted(int(point.key) for point in field.points)
                return str(points[min(len(points) - 1, int(self._quality(ask) * len(points)))])
            case "choice":
                return self._option(field.options, purpose)
            case "exposure":
                return max(field.exposures, key=lambda named: self._noisy(self.systems.get(named[1], "")))[0]
            case "tick":
                return "1" if field.required or self.rng.random() < 0.5 else None
            case "text":
                return self._words(field)
        return None

    def _number(self, ask: Ask, minimum: int, maximum: int) -> int:
        pair = self.world.pairs.get(ask.question_id)
        share = self._chance(*pair[:2]) if pair else self._quality(ask)
        step = self.world.crowd.round_to if maximum - minimum >= 20 else 1
        value = minimum + share * (maximum - minimum)
        return int(min(maximum, max(minimum, step * round(value / step))))

    def _chance(self, x: str, y: str) -> float:
        """The stated chance that x is better: opinion, noise, and a leaning towards whoever is named first."""
        crowd = self.world.crowd
        share = 1 / (1 + math.exp(self.liking[y] - self.liking[x])) + self.rng.gauss(0, crowd.noise)
        return min(1.0, max(0.0, share + (crowd.acquiescence if self.is_acquiescent else 0.0)))

    def _quality(self, ask: Ask) -> float:
        """What one output is worth to this robot, on 0..1 (strictly below 1)."""
        name = self.systems.get(ask.exposure_id or 0, "")
        middle = sum(self.world.strengths.values()) / len(self.world.strengths)
        latent = self._noisy(name) - middle + self.severity
        return min(0.999, 1 / (1 + math.exp(-latent)))

    def _noisy(self, system: str) -> float:
        return self.liking.get(system, 0.0) + self.rng.gauss(0, 0.7)

    def _option(self, options, purpose: str) -> str:
        ending = [option.key for option in options if option.screens_out]
        staying = [option.key for option in options if not option.screens_out]
        if purpose == "screening" and ending and (self.is_screened_out or not staying):
            return self.rng.choice(ending)
        return staying[0] if purpose == "screening" and staying else self.rng.choice(staying or ending)

    def _words(self, field) -> str | None:
        if not field.required and not self.is_commenting:
            return None
        words = self.rng.choice(EXPLANATIONS if field.required else COMMENTS)
        while len(words) < field.minimum_length:
            words += " " + self.rng.choice(EXPLANATIONS)
        return words[: field.maximum_length]
