"""The form of the page Plan. Its fields are those of `PlanInputs`; shares are in percent."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from django import forms

from analysis.report.planned import CORRECTION_LABELS, comparisons_text
from analysis.stats.planning.comparisons import CORRECTIONS, Comparisons
from analysis.stats.planning.inputs import (
    EQUIVALENCE,
    HEADLINES,
    MOST_PEOPLE,
    MOST_PROMPTS,
    StudySize,
    Target,
    Variation,
)
from analysis.stats.planning.priors import PRIORS, prior_of
from analysis.stats.planning.sizes import Pace, Prices

from .inputs import PlanInputs, build_record, target_problems

# Takes the comparisons, families and corrections of the draft, or of the plan that is shown.
DECLARED, OF_PLAN = "declared", "plan"
GOALS = [
    ("difference", "x and y differ"),
    ("noninferiority", "x is not worse than y by more than the margin"),
    ("superiority_by_margin", "x is better than y by more than the margin"),
    (EQUIVALENCE, "x and y are equivalent within the margin"),
]
# Fields that show percent of what the records hold as shares.
PERCENT = frozenset(
    (
        "difference",
        "baseline",
        "significance",
        "wanted",
        "fee_rate",
        "dropped_out_share",
        "excluded_share",
        "screened_out_share",
        "test_share",
    )
)
BY_HAND = ""


def _whole(label: str, most: int, help_text: str = "") -> forms.IntegerField:
    return forms.IntegerField(label=label, min_value=1, max_value=most, help_text=help_text)


def number_field(
    label: str, help_text: str = "", *, low: float = 0, high: float | None = None, **more: Any
) -> forms.FloatField:
    widget = forms.NumberInput(attrs={"step": "any"})
    return forms.FloatField(label=label, min_value=low, max_value=high, help_text=help_text, widget=widget, **more)


def _share(label: str, help_text: str = "") -> forms.FloatField:
    return number_field(label, help_text, high=99)


class PlanForm(forms.Form):
    """``sections`` are the groups of fields as the page shows them: heading and names. The first is open."""

    sections = (
        ("Three numbers that matter", ("people", "prompts", "difference")),
        ("What one person does", ("protocol", "prompts_each", "points", "conditions")),
        ("Goal and power", ("goal", "margin", "stopping", "baseline", "wanted")),
        ("Comparisons and claim", ("correction", "tests", "significance", "population")),
        (
            "How much people and prompts vary",
            ("prior", "sd_people", "sd_prompts", "sd_quality_people", "sd_quality_prompts", "sd_quality"),
        ),
        (
            "People who do not count, and test questions",
            ("dropped_out_share", "excluded_share", "screened_out_share", "test_share"),
        ),
        (
            "Time",
            (
                "words_per_prompt",
                "words_per_output",
                "outputs_per_prompt",
                "answers_per_prompt",
                "words_per_minute",
                "seconds_per_answer",
                "other_minutes",
            ),
        ),
        ("Pay and fees", ("wage_per_hour", "reward", "fee_rate", "screen_out_pay")),
    )

    protocol = forms.ChoiceField(
        label="Protocol", choices=[(name, headline.label) for name, headline in HEADLINES.items()]
    )
    people = _whole("People", MOST_PEOPLE, "Annotators whose answers count.")
    prompts = _whole("Prompts", MOST_PROMPTS, "Count prompts of one document, dialogue or topic once.")
    prompts_each = _whole("Prompts each", MOST_PROMPTS, "Prompts about which one person compares x and y.")
    points = number_field("Points of the scale", "Only for rating and relative points.", low=2, high=100)
    conditions = _whole(
        "Conditions", 100, "Between conditions: people are spread over this many, and two are compared."
    )

    goal = forms.ChoiceField(label="Goal", choices=GOALS)
    difference = number_field(
        "Smallest difference that matters, %",
        "How often a random person prefers x for a random prompt; 50 is no difference. Human or machine: right answers.",
        low=1,
        high=99,
    )
    margin = number_field(
        "Margin",
        "On the scale of the result: .05 is 5 points of a probability. Not for the first goal.",
        required=False,
    )
    stopping = forms.ChoiceField(
        label="Stopping rule",
        choices=[
            ("none", "none: the study ends at its size"),
            ("anytime", "anytime-valid: checked after every person"),
        ],
        help_text="Only for two choices. The anytime-valid rule needs a claim about exactly these prompts.",
    )
    baseline = number_field(
        "Right answers in the other condition, %",
        "Only between conditions. The smallest difference is then the share in the first one.",
        low=1,
        high=99,
    )
    wanted = number_field("Wanted power, %", low=1, high=99.9)

    prior = forms.ChoiceField(
        label="Taken from",
        required=False,
        help_text="With another choice than “entered by hand”, heval ignores the five numbers below.",
    )
    sd_people = number_field(
        "Standard deviation of people", "Relative to one person's answer about one prompt.", high=10
    )
    sd_prompts = number_field("Standard deviation of prompts", high=10)
    sd_quality_people = number_field(
        "Quality: people", "The last three are only for ratings: how much the quality of both outputs varies.", high=10
    )
    sd_quality_prompts = number_field("Quality: prompts", high=10)
    sd_quality = number_field("Quality: answers", high=10)

    correction = forms.ChoiceField(
        label="Correction",
        help_text="“As declared” takes the comparisons, families and their order from the draft, and ignores the number below.",
    )
    tests = _whole(
        "Comparisons",
        10_000,
        "Of one family, or cells that are each tested against chance. The approximate power divides the level by their number.",
    )
    significance = number_field("Significance level, %", low=0.01, high=49)
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

    words_per_prompt = number_field("Words of a prompt")
    words_per_output = number_field("Words of an output")
    outputs_per_prompt = number_field("Outputs read for a prompt", "Empty: as usual in the protocol.", required=False)
    answers_per_prompt = number_field("Answers about a prompt", "Empty: as usual in the protocol.", required=False)
    words_per_minute = number_field("Words read in a minute", low=1)
    seconds_per_answer = number_field("Seconds for an answer")
    other_minutes = number_field("Minutes for everything else")

    wage_per_hour = number_field("Pay for an hour")
    reward = number_field("Pay for one annotator", "Empty: by the hour.", required=False)
    fee_rate = number_field(
        "Fees and tax of the panel, %",
        "Percent of the pay. The table “Cost by panel” fills it in. Empty: not known, and not counted.",
        required=False,
    )
    screen_out_pay = number_field("Pay of a screened-out person")

    def __init__(
        self,
        start: PlanInputs,
        data: Mapping[str, Any] | None = None,
        pilots: Mapping[str, Variation | None] | None = None,
        declared: Comparisons | None = None,
        fees: Mapping[str, float | None] | None = None,
    ):
        """``data``: what was sent. A field that it lacks has the value of ``start``, so that a link may name only some.

        ``pilots``: those that may be chosen, with their variation. None: the sent numbers are the pilot's. ``declared``: the
        comparisons of the draft. ``fees``: values that a chosen panel puts in their fields, None for one that is not known.
        """
        own = start.comparisons
        self.declared = {DECLARED: declared} if declared is not None and declared.claims else {}
        if own.claims and own != declared:
            self.declared[OF_PLAN] = own
        correction = next((key for key, found in self.declared.items() if found == own), own.method)
        initial = form_values(start) | {"correction": correction}
        sent = None
        if data is not None:
            sent = {name: "" if value is None else value for name, value in initial.items()}
            sent |= {name: value for name, value in data.items() if name in self.base_fields}
            # The fields show the numbers that count.
            known = {**(pilots or {}), **{prior.key: prior.variation for prior in PRIORS}}
            if variation := known.get(sent["prior"]):
                sent |= {name: value for name, value in variation.as_dict().items() if name in self.base_fields}
            if found := self.declared.get(sent["correction"]):
                sent["tests"] = found.first_family_size
            sent |= {name: "" if value is None else _shown(name, value) for name, value in (fees or {}).items()}
        super().__init__(sent, initial=initial)
        self.pilots = dict(pilots or {})
        if start.prior not in {"", *(prior.key for prior in PRIORS)}:
            self.pilots.setdefault(start.prior, start.variation)
        names = [(key, variation.source if variation else "the pilot study") for key, variation in self.pilots.items()]
        self._offer("prior", [*((prior.key, prior.label) for prior in PRIORS), *names, (BY_HAND, "entered by hand")])
        labels = {DECLARED: "as declared", OF_PLAN: "as in this plan"}
        taken = [(key, f"{labels[key]}: {comparisons_text(found)}") for key, found in self.declared.items()]
        self._offer("correction", [*taken, *((method, CORRECTION_LABELS[method]) for method in CORRECTIONS)])
        self.start = start
        for name, bound in self.fields.items():
            # Names such as "margin" must not meet those of the frame's own inputs.
            bound.widget.attrs["id"] = f"plan-{name}"
            if bound.help_text:
                bound.widget.attrs["aria-describedby"] = f"plan-{name}-help"

    def _offer(self, name: str, choices: list[tuple[str, str]]) -> None:
        self.fields[name].choices = choices  # type: ignore[attr-defined]  # a choice field of this form

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
        pace, start = records["pace"], self.start
        if records["size"] and pace and pace == start.pace:
            # The numbers of the design are those of its own protocol.
            records["pace"] = pace.in_protocol(start.size.protocol, records["size"].protocol)
        records["variation"] = self._variation(cleaned["prior"], values, errors)
        chosen = cleaned["correction"]
        comparisons = self.declared.get(chosen) or Comparisons(method=chosen)
        if not errors:
            errors |= target_problems(records["size"], records["target"])
        for name, text in errors.items():
            self.add_error(name if name in self.fields else None, text)
        if not errors:
            self.inputs = PlanInputs(**records, prior=cleaned["prior"], comparisons=comparisons)
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

    def sent_again(self) -> dict[str, Any]:
        """Return the values of the fields of a valid form, as a hidden form sends them."""
        return form_values(self.inputs) | {"correction": self.cleaned_data["correction"]}

    def groups(self) -> list[dict[str, Any]]:
        """Return the fields in their groups. A group with an error is open."""
        return [
            {
                "heading": heading,
                "fields": [self[name] for name in names],
                "is_open": any(self[name].errors for name in names),
                "is_basic": place == 0,
            }
            for place, (heading, names) in enumerate(self.sections)
        ]


def form_values(inputs: PlanInputs) -> dict[str, Any]:
    """Return the values of the form's fields, but for the correction, which also depends on the draft."""
    values: dict[str, Any] = {"prior": inputs.prior}
    for record in (inputs.size, inputs.target, inputs.variation, inputs.pace, inputs.prices):
        values |= record.as_dict()
    values.pop("source")
    return {name: _shown(name, value) for name, value in values.items()}


def _shown(name: str, value: Any) -> Any:
    if name in PERCENT:
        value = round(100 * value, 6)
    return int(value) if isinstance(value, float) and value == int(value) else value
