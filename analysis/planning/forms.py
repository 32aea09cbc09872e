"""The form of the page Plan. Its fields are those of `PlanInputs`; shares are in percent."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from django import forms

from analysis.stats.plan_budget import Pace, Prices
from analysis.stats.plan_inputs import EQUIVALENCE, MOST_PEOPLE, MOST_PROMPTS, StudySize, Target, Variation
from analysis.stats.priors import PRIORS, prior_of

from .inputs import PlanInputs, build_record, margin_problem

PROTOCOL_LABELS = {
    "two_choice": "two choices",
    "rating": "rating",
    "ranking": "ranking or best-worst",
    "relative": "relative points",
    "spa": "stated chances (SPA)",
    "humanlike": "human or machine",
    "marks": "error marks",
}
GOALS = [
    ("difference", "x and y differ"),
    ("noninferiority", "x is not worse than y by more than the margin"),
    ("superiority_by_margin", "x is better than y by more than the margin"),
    (EQUIVALENCE, "x and y are equivalent within the margin"),
]
# Fields that show percent of what the records hold as shares.
PERCENT = frozenset(
    {"difference", "significance", "wanted", "fee_rate", "dropped_out_share", "excluded_share", "screened_out_share", "test_share"}
)  # fmt: skip
BY_HAND = ""


def _whole(label: str, most: int, help_text: str = "") -> forms.IntegerField:
    return forms.IntegerField(label=label, min_value=1, max_value=most, help_text=help_text)


def _number(
    label: str, help_text: str = "", *, low: float = 0, high: float | None = None, **more: Any
) -> forms.FloatField:
    widget = forms.NumberInput(attrs={"step": "any"})
    return forms.FloatField(label=label, min_value=low, max_value=high, help_text=help_text, widget=widget, **more)


def _share(label: str, help_text: str = "") -> forms.FloatField:
    return _number(label, help_text, high=99)


class PlanForm(forms.Form):
    """``sections`` are the groups of fields as the page shows them: heading, names, whether the group is open."""

    sections = (
        ("Size", ("protocol", "people", "prompts", "prompts_each", "points"), True),
        ("What to find", ("goal", "difference", "margin", "wanted"), True),
        ("How much people and prompts vary", ("prior", "sd_people", "sd_prompts", "sd_quality_people", "sd_quality_prompts", "sd_quality"), False),
        ("Comparisons and claim", ("tests", "significance", "population"), False),
        ("People who do not count, and test questions", ("dropped_out_share", "excluded_share", "screened_out_share", "test_share"), False),
        ("Time", ("words_per_prompt", "words_per_output", "words_per_minute", "seconds_per_answer", "other_minutes"), False),
        ("Pay and fees", ("wage_per_hour", "reward", "fee_rate", "screen_out_pay"), False),
    )  # fmt: skip

    protocol = forms.ChoiceField(label="Protocol", choices=list(PROTOCOL_LABELS.items()))
    people = _whole("People", MOST_PEOPLE, "Annotators whose answers count.")
    prompts = _whole("Prompts", MOST_PROMPTS)
    prompts_each = _whole("Prompts each", MOST_PROMPTS, "Prompts about which one person compares x and y.")
    points = _number("Points of the scale", "Only for rating and relative points.", low=2, high=100)

    goal = forms.ChoiceField(label="Goal", choices=GOALS)
    difference = _number(
        "Smallest difference that matters, %",
        "How often a random person prefers x for a random prompt; 50 is no difference.",
        low=1,
        high=99,
    )
    margin = _number(
        "Margin",
        "On the scale of the result: .05 is 5 points of a probability. Not for the first goal.",
        required=False,
    )
    wanted = _number("Wanted power, %", low=1, high=99.9)

    prior = forms.ChoiceField(
        label="Taken from",
        required=False,
        help_text="With another choice than “entered by hand”, heval ignores the five numbers below.",
    )
    sd_people = _number("Standard deviation of people", "Relative to one person's answer about one prompt.", high=10)
    sd_prompts = _number("Standard deviation of prompts", high=10)
    sd_quality_people = _number(
        "Quality: people", "The last three are only for ratings: how much the quality of both outputs varies.", high=10
    )
    sd_quality_prompts = _number("Quality: prompts", high=10)
    sd_quality = _number("Quality: answers", high=10)

    tests = _whole(
        "Comparisons",
        10_000,
        "Primary ones. heval divides the level by their number, as Bonferroni's correction and the first step of Holm's do.",
    )
    significance = _number("Significance level, %", low=0.01, high=49)
    population = forms.ChoiceField(
        label="The claim is about",
        choices=[
            ("people_and_prompts", "people and prompts like these"),
            ("people", "people like these, exactly these prompts"),
        ],
    )

    dropped_out_share = _share("Drop-outs, %", "They start, do not finish, and are not paid.")
    excluded_share = _share("Exclusions, %", "They finish and are paid, but do not count.")
    screened_out_share = _share("Screened out, %")
    test_share = _share("Test questions, % of all items")

    words_per_prompt = _number("Words of a prompt")
    words_per_output = _number("Words of an output")
    words_per_minute = _number("Words read in a minute", low=1)
    seconds_per_answer = _number("Seconds for an answer")
    other_minutes = _number("Minutes before and after")

    wage_per_hour = _number("Pay for an hour")
    reward = _number("Pay for one annotator", "Empty: by the hour.", required=False)
    fee_rate = _number("Fees and tax of the panel, %", "Percent of the pay.")
    screen_out_pay = _number("Pay of a screened-out person")

    def __init__(
        self,
        start: PlanInputs,
        data: Mapping[str, Any] | None = None,
        pilots: Mapping[str, Variation | None] | None = None,
    ):
        """``data``: what was sent. A field that it lacks has the value of ``start``, so that a link may name only some.

        ``pilots``: those that may be chosen, with their variation. None: the sent numbers are the pilot's.
        """
        initial = form_values(start)
        sent = None
        if data is not None:
            sent = {name: "" if value is None else value for name, value in initial.items()}
            sent |= {name: value for name, value in data.items() if name in self.base_fields}
            known = {**(pilots or {}), **{prior.key: prior.variation for prior in PRIORS}}
            if variation := known.get(sent["prior"]):  # the fields show the numbers that count
                sent |= {name: value for name, value in variation.as_dict().items() if name in self.base_fields}
        super().__init__(sent, initial=initial)
        self.pilots = dict(pilots or {})
        if start.prior not in {"", *(prior.key for prior in PRIORS)}:
            self.pilots.setdefault(start.prior, start.variation)
        own = [(key, variation.source if variation else "the pilot study") for key, variation in self.pilots.items()]
        choices = [*((prior.key, prior.label) for prior in PRIORS), *own, (BY_HAND, "entered by hand")]
        self.fields["prior"].choices = choices  # type: ignore[attr-defined]  # a choice field of this form
        self.start = start
        for name, bound in self.fields.items():
            # Names such as "margin" must not meet those of the frame's own inputs.
            bound.widget.attrs["id"] = f"plan-{name}"
            if bound.help_text:
                bound.widget.attrs["aria-describedby"] = f"plan-{name}-help"

    def clean_points(self) -> int:
        points = self.cleaned_data["points"]
        if points != int(points):
            raise forms.ValidationError("Enter a whole number of points.")
        return int(points)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if self.errors:
            return cleaned
        values = {
            name: round(value / 100, 10) if name in PERCENT else value
            for name, value in cleaned.items()
            if value is not None
        }
        errors: dict[str, str] = {}
        records: dict[str, Any] = {}
        for name, kind in (("size", StudySize), ("target", Target), ("pace", Pace), ("prices", Prices)):
            own = {one.name: values[one.name] for one in fields(kind) if one.name in values}
            records[name] = build_record(kind, own, errors)
        records["variation"] = self._variation(cleaned["prior"], values, errors)
        if not errors and (problem := margin_problem(records["size"], records["target"])):
            errors["margin"] = problem
        for name, text in errors.items():
            self.add_error(name if name in self.fields else None, text)
        if not errors:
            self.inputs = PlanInputs(**records, prior=cleaned["prior"])
        return cleaned

    def _variation(self, prior: str, values: Mapping[str, Any], errors: dict[str, str]) -> Variation | None:
        if known := self.pilots.get(prior):
            return known
        start = self.start.variation
        if prior == self.start.prior and (values["sd_people"], values["sd_prompts"]) == (
            start.sd_people,
            start.sd_prompts,
        ):
            return start  # a stored plan of this pilot, with the source that it names
        if prior == BY_HAND or prior in self.pilots:
            own = {one.name: values[one.name] for one in fields(Variation) if one.name in values}
            source = "the pilot study" if prior in self.pilots else "entered by hand"
            return build_record(Variation, own | {"source": source}, errors)
        return prior_of(prior).variation

    def groups(self) -> list[dict[str, Any]]:
        """Return the fields in their groups. A group with an error is open."""
        return [
            {
                "heading": heading,
                "fields": [self[name] for name in names],
                "is_open": is_open or any(self[name].errors for name in names),
                "is_basic": is_open,
            }
            for heading, names, is_open in self.sections
        ]


def form_values(inputs: PlanInputs) -> dict[str, Any]:
    """Return the values of the form's fields."""
    values: dict[str, Any] = {"prior": inputs.prior}
    for record in (inputs.size, inputs.target, inputs.variation, inputs.pace, inputs.prices):
        values |= record.as_dict()
    values.pop("source")
    return {name: _shown(name, value) for name, value in values.items()}


def _shown(name: str, value: Any) -> Any:
    if name in PERCENT:
        value = round(100 * value, 6)
    return int(value) if isinstance(value, float) and value == int(value) else value
