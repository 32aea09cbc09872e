"""What a plan is made from: the size of a study, what it is to find, and how much people and prompts vary.

Nothing here loads numpy, so that a page can read these records quickly.

The model of an answer
----------------------
Person i sees the outputs of x and y for prompt j and perceives a difference d = shift + a_i + p_j + e_ij. The standard
deviation of e, one person's answer about one prompt, is 1. Those of a (people) and p (prompts) are the `Variation`.
Each headline asks about d in its own way (`HEADLINES`). So one difference between two systems, declared as the
probability that a random person prefers x for a random prompt, has the same meaning in all protocols.
"""

import math
from dataclasses import dataclass

from analysis.stats.plain_records import HYPOTHESES, NONINFERIORITY, PlainRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """What a plan is about: a kind of answers about a pair. Several protocols may have the same headline.

    Attributes
    ----------
    name : str
        The name in stored plans.
    kind : {"preference", "superiority", "point", "chance", "score", "accuracy", "sensitivity"}
        What an answer is: which output is preferred, whether it is rated higher, a point between the two, a stated chance,
        a difference of scores; or the share of right answers, or d', of people who say who wrote each text.
    label : str
        The words of the page Plan.
    outputs, answers, answers_at_the_end : int
        Outputs that a page usually shows about one prompt, answers that it asks for, and answers after the last prompt.
    is_binary : bool
        Whether an answer has two values.
    are_outputs_judged_together : bool
        Whether a person judges all outputs for a prompt at once, so that comparisons share these judgements.
    has_stopping_rule : bool
        Whether the anytime-valid rule can end the study.
    is_drawn_beside : bool
        Whether the plan draws its power beside that of another protocol, as Figure 2 of the paper on SPA.
    within : str
        Between conditions: the name of the headline in one of them. Elsewhere ''.
    """

    name: str
    kind: str
    label: str
    outputs: int = 2
    answers: int = 1
    answers_at_the_end: int = 0
    is_binary: bool = False
    are_outputs_judged_together: bool = False
    is_drawn_beside: bool = False
    has_stopping_rule: bool = False
    within: str = ""

    @property
    def is_between_conditions(self) -> bool:
        """Return whether people in one condition are compared with people in another."""
        return bool(self.within)

    @property
    def null(self) -> float:
        """Return the value of the headline without a difference."""
        return 0.0 if self.kind in ("point", "score") or self.is_between_conditions else 0.5


# By name. The order is a part of the seeds of simulations.
HEADLINES = {
    headline.name: headline
    for headline in (
        Headline(
            name="rating",
            kind="superiority",
            label="rating",
            answers=2,
            are_outputs_judged_together=True,
            is_drawn_beside=True,
        ),
        Headline(name="two_choice", kind="preference", label="two choices", is_binary=True, has_stopping_rule=True),
        Headline(
            name="ranking",
            kind="preference",
            label="ranking or best-worst",
            is_binary=True,
            are_outputs_judged_together=True,
        ),
        Headline(name="relative", kind="point", label="relative points"),
        # The answers come at the end: both orders.
        Headline(
            name="spa",
            kind="chance",
            label="stated chances (SPA)",
            answers=0,
            answers_at_the_end=2,
            is_drawn_beside=True,
        ),
        Headline(name="humanlike", kind="preference", label="human or machine", outputs=1, is_binary=True),
        Headline(name="marks", kind="score", label="error marks", answers=4, are_outputs_judged_together=True),
        Headline(
            name="accuracy_between_conditions",
            kind="accuracy",
            label="human or machine, between conditions: right answers",
            outputs=1,
            within="humanlike",
        ),
        Headline(
            name="sensitivity_between_conditions",
            kind="sensitivity",
            label="human or machine, between conditions: d'",
            outputs=1,
            within="humanlike",
        ),
    )
}
# Headlines of answers about pairs and single outputs, each of one protocol or more.
PROTOCOLS = tuple(name for name, headline in HEADLINES.items() if not headline.is_between_conditions)
# What a plan is about before a study says it.
DEFAULT_HEADLINE = "two_choice"
# What answers in a file are about if they are points of a scale.
RATED_HEADLINE = "rating"
STOPPING = ("none", "anytime")
EQUIVALENCE = "equivalence"
GOALS = ("difference", EQUIVALENCE, *HYPOTHESES)
# Fewest people and prompts of the headline (clusters.TOO_FEW_CLUSTERS, TOO_FEW_ITEMS).
FEWEST_PEOPLE, FEWEST_PROMPTS = 6, 5
MOST_PEOPLE, MOST_PROMPTS, MOST_ANSWERS = 100_000, 100_000, 5_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation(PlainRecord):
    """How much people and prompts vary.

    Attributes
    ----------
    sd_people, sd_prompts : float
        Standard deviations of the perceived difference over people and over prompts, in standard deviations of one
        person's answer about one prompt.
    sd_quality_people, sd_quality_prompts, sd_quality : float
        In ratings: standard deviations of how good both outputs seem together, over people (lenience), over prompts and
        over answers, in the same unit.
    source : str
        Where the numbers come from.

    Raises
    ------
    ValueError
        If a standard deviation is not a number from 0 to 10.
    """

    sd_people: float = 0.3
    sd_prompts: float = 0.7
    sd_quality_people: float = 0.57
    sd_quality_prompts: float = 0.75
    sd_quality: float = 0.7
    source: str = ""

    def __post_init__(self) -> None:
        for name in ("sd_people", "sd_prompts", "sd_quality_people", "sd_quality_prompts", "sd_quality"):
            value = getattr(self, name)
            if not (math.isfinite(value) and 0 <= value <= 10):
                raise ValueError(
                    f"{name}: {value!r} is not a number from 0 to 10. Give a standard deviation relative to that of one answer."
                )

    @property
    def sd_total(self) -> float:
        """Return the standard deviation of the perceived difference over people, prompts and answers."""
        return math.sqrt(1 + self.sd_people**2 + self.sd_prompts**2)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySize(PlainRecord):
    """The size of a study with one protocol.

    Attributes
    ----------
    protocol : str
        The name of one of `HEADLINES`.
    people : int
        Annotators whose answers count, in all conditions together.
    prompts : int
        Prompts that are shown in all.
    prompts_each : int
        Prompts (m) that each annotator answers about, each with the outputs of x and y. In SPA the annotator reads them
        and then states chances; in humanlike each is one text.
    points : int, default 5
        Points of the scale in rating and relative.
    conditions : int, default 1
        Conditions over which the people are spread evenly, two or more between conditions. Two of them are compared.

    Raises
    ------
    ValueError
        If a number is not possible. The message says what to change.
    """

    protocol: str
    people: int
    prompts: int
    prompts_each: int
    points: int = 5
    conditions: int = 1

    def __post_init__(self) -> None:
        if self.protocol not in HEADLINES:
            raise ValueError(f"protocol: {self.protocol!r} is not one of {', '.join(HEADLINES)}.")
        for name, most in (("people", MOST_PEOPLE), ("prompts", MOST_PROMPTS), ("prompts_each", MOST_PROMPTS)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name}: {value!r} is not a whole number of at least 1.")
            if value > most:
                raise ValueError(f"{name}: {value} is more than {most}. Plan a smaller study.")
        if self.prompts_each > self.prompts:
            raise ValueError(
                f"prompts_each: {self.prompts_each} is more than the {self.prompts} prompts. Add prompts, or let each person answer about fewer."
            )
        if self.people * self.prompts_each < self.prompts:
            raise ValueError(
                f"prompts: {self.people} people with {self.prompts_each} prompts each answer about at most {self.people * self.prompts_each} "
                f"prompts, fewer than {self.prompts}. Plan more people, or fewer prompts."
            )
        if self.answers > MOST_ANSWERS:
            raise ValueError(
                f"people: {self.people} people with {self.prompts_each} prompts each give more than {MOST_ANSWERS} answers. Plan a smaller study."
            )
        if not 2 <= self.points <= 100:
            raise ValueError(f"points: {self.points} is not a number of points from 2 to 100.")
        fewest, most = (2, self.people) if self.is_between_conditions else (1, 1)
        if not fewest <= self.conditions <= most:
            raise ValueError(f"conditions: {self.conditions} is not possible here. Enter {_range_text(fewest, most)}.")

    @property
    def headline(self) -> Headline:
        """Return what the answers are."""
        return HEADLINES[self.protocol]

    @property
    def is_between_conditions(self) -> bool:
        """Return whether people in one condition are compared with people in another."""
        return self.headline.is_between_conditions

    @property
    def people_each(self) -> int:
        """Return how many people are in one condition."""
        return self.people // self.conditions

    @property
    def kind(self) -> str:
        """Return what an answer about the pair is, see `Headline`."""
        return self.headline.kind

    @property
    def answers(self) -> int:
        """Return the number of answers about the pair."""
        return self.people * self.prompts_each

    @property
    def labels_per_prompt(self) -> float:
        """Return how many people answer about each prompt on average."""
        return self.answers / self.prompts

    @property
    def scale_ends(self) -> tuple[float, float]:
        """Return the smallest and the largest possible headline."""
        if self.kind == "point":
            return (-(self.points - 1) / 2, (self.points - 1) / 2)
        return _SCALE_ENDS.get(self.kind, (0.0, 1.0))

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Return the ends of the scale as the report gives them to its analysis: None for scores and d', which it compares by t alone."""
        return None if self.kind in ("score", "sensitivity") else self.scale_ends

    @property
    def null(self) -> float:
        """Return the value of the headline without a difference."""
        return self.headline.null

    def is_about_prompts(self, population: str) -> bool:
        """Return whether the report's claim is about prompts like these, if that is declared.

        Answers of SPA concern all prompts that a person read. So they are about prompts like these only if nobody reads
        the prompts of somebody else.
        """
        if self.kind == "chance":
            return population == "people_and_prompts" and self.answers <= self.prompts
        if self.is_between_conditions:
            return self.prompts >= FEWEST_PROMPTS  # whatever is declared, as in the report
        return population == "people_and_prompts" and self.prompts >= FEWEST_PROMPTS


# The ends of the scale of a headline, where it is no probability. A difference of d' has none.
_SCALE_ENDS = {"score": (-100.0, 100.0), "accuracy": (-1.0, 1.0), "sensitivity": (-math.inf, math.inf)}


def _range_text(fewest: int, most: int) -> str:
    return str(most) if fewest == most else f"a number from {fewest} to {most}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target(PlainRecord):
    """What the study is to find.

    Attributes
    ----------
    difference : float, default 0.6
        Probability that a random person prefers x to y for a random prompt; .5 is no difference. In humanlike and
        between conditions: the probability of a right answer, under condition x.
    baseline : float, default 0.5
        Between conditions: the probability of a right answer under condition y. Elsewhere .5.
    stopping : str, default "none"
        One of `STOPPING`: the study ends at its size, or the anytime-valid rule of two choices checks after every person.
    goal : str, default "difference"
        One of `GOALS`: x and y differ; they are equivalent; x is not worse, or is better, by more than the margin.
    margin : float or None
        The margin of the last three, on the scale of the headline (`StudySize.bounds`).
    significance : float, default 0.05
        Two-sided significance level of the family.
    tests : int, default 1
        Comparisons of the family. The level is divided by it (Bonferroni, and the first step of Holm).
    wanted : float, default 0.8
        Wanted power.
    population : {"people_and_prompts", "people"}, default "people_and_prompts"
        What the claim is about, see `clusters.annotator_prompt_clustered_mean`.

    Raises
    ------
    ValueError
        If a value is not possible. The message says what to change.
    """

    difference: float = 0.6
    goal: str = "difference"
    margin: float | None = None
    significance: float = 0.05
    tests: int = 1
    wanted: float = 0.8
    population: str = "people_and_prompts"
    baseline: float = 0.5
    stopping: str = "none"

    def __post_init__(self) -> None:
        for name in ("difference", "baseline"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f"{name}: {getattr(self, name)!r} is not a probability between 0 and 1, such as 0.6.")
        if self.goal not in GOALS:
            raise ValueError(f"goal: {self.goal!r} is not one of {', '.join(GOALS)}.")
        if self.goal != "difference" and self.margin is None:
            raise ValueError("margin: this goal needs a margin. Declare the largest difference that does not matter.")
        if self.margin is not None and not (math.isfinite(self.margin) and self.margin > 0):
            raise ValueError(f"margin: {self.margin!r} is not a number above 0.")
        for name in ("significance", "wanted"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f"{name}: {getattr(self, name)!r} is not a number between 0 and 1.")
        if not 1 <= self.tests <= 10_000:
            raise ValueError(f"tests: {self.tests} is not a number of comparisons from 1 to 10000.")
        if self.population not in ("people_and_prompts", "people"):
            raise ValueError(f"population: {self.population!r} is not people_and_prompts or people.")
        if self.stopping not in STOPPING:
            raise ValueError(f"stopping: {self.stopping!r} is not one of {', '.join(STOPPING)}.")
        if self.is_sequential and self.population != "people":
            raise ValueError(
                "population: the anytime-valid rule counts people, so the claim is about exactly these prompts. Choose that, or no "
                "stopping rule."
            )

    @property
    def is_sequential(self) -> bool:
        """Return whether the anytime-valid rule decides: of a difference or of equivalence, it tests nothing else."""
        return self.stopping == "anytime" and self.goal in ("difference", EQUIVALENCE)

    def limit(self, null: float) -> float:
        """Return the value of the headline that a claim excludes: `null`, or `null` moved by the margin; of equivalence the upper one.

        >>> Target(goal="noninferiority", margin=0.1).limit(0.5), Target().limit(0.5)
        (0.4, 0.5)
        """
        if self.margin is None or self.goal == "difference":
            return null
        return null - self.margin if self.goal == NONINFERIORITY else null + self.margin

    @property
    def level(self) -> float:
        """Return the significance level of one comparison."""
        return self.significance / self.tests
