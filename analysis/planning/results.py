"""What is stored of a simulated plan: its numbers, what each size costs, sequential designs and the advice."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from analysis.report.planned import counted, money_text, percent, points_text, scale_of, size_sentence
from analysis.stats.planning.closed_forms import (
    components,
    plan_of_components,
    quick_plan,
    smallest_difference,
    variance_of_person,
)
from analysis.stats.planning.comparisons import quick_claims, target_of_claim
from analysis.stats.planning.inputs import (
    EQUIVALENCE,
    MOST_ANSWERS,
    MOST_PEOPLE,
    MOST_PROMPTS,
    StudySize,
    Target,
    Variation,
)
from analysis.stats.planning.sizes import Budget, other_protocols, plan_budget
from annotators.pay.costs import ChannelCost, channel_costs
from annotators.recruitment.channels import REGISTRY
from studies.access import Action, filter_allowed
from studies.figures import Axis, Frame, at, path_of
from studies.models import Study

from .advice import advice_sentences, assurance_sentence, finding_sentence, live_power, simulated_advice
from .inputs import PlanInputs

if TYPE_CHECKING:
    from analysis.stats.planning.study_plans import SimulatedSize, StudyPlan


# What panels take: fees as they publish them, and what earlier studies of this site paid. A plan fills them in.


# The table's rows of this site begin with this, followed by the channel.
OWN = "site:"


@dataclass(frozen=True, slots=True)
class PanelFees:
    """The fees of a panel. ``rate``: share of the pay, None if not known. ``screen_out_pay``: the least, by currency.

    ``source``: who says so, and when it was read.
    """

    key: str
    channel: str
    group: str
    rate: float | None
    source: str
    screen_out_pay: Mapping[str, float] | None = None

    @property
    def label(self) -> str:
        return f"{REGISTRY[self.channel].label}{f', {self.group}' if self.group else ''}"


_PROLIFIC = (
    "prolific.com/pricing, read on 2026-09-20; screen-outs: least pay by its help pages, 2026. Tax comes on top."
)
_CONNECT = "Help of CloudResearch Connect, “Project Cost”, read on 2026-11-27. Tax may come on top."
_LEAST = {"USD": 0.14, "GBP": 0.10}
_NO_PANEL = "No panel: you invite and pay people yourself."
_NOT_KNOWN = "heval knows no fees of this panel. Enter those of your contract."
DOCUMENTED = (
    PanelFees("prolific_academic", "prolific", "universities and non-profits", 0.333, _PROLIFIC, _LEAST),
    PanelFees("prolific_other", "prolific", "others", 0.428, _PROLIFIC, _LEAST),
    PanelFees("connect_academic", "connect", "universities and non-profits", 0.25, _CONNECT),
    PanelFees("connect_other", "connect", "others", 0.40, _CONNECT),
    PanelFees("sona", "sona", "", None, "SONA gives course credits. heval knows no fees."),
    PanelFees("invitation", "invitation", "", 0.0, _NO_PANEL),
    PanelFees("open_link", "open_link", "", 0.0, _NO_PANEL),
)
DOCUMENTED_KEYS = tuple(panel.key for panel in DOCUMENTED if panel.rate is not None)


def all_panels() -> list[PanelFees]:
    """Return the documented panels, and every other channel that takes new links, without fees."""
    known = {panel.channel for panel in DOCUMENTED}
    others = [slug for slug, channel in REGISTRY.items() if channel.takes_new_links and slug not in known]
    return [*DOCUMENTED, *(PanelFees(slug, slug, "", None, _NOT_KNOWN) for slug in others)]


def documented_rate(key: str) -> float:
    """Return the fee of a panel as a share of the pay. Raise ValueError if it is not known."""
    rates = {panel.key: panel.rate for panel in DOCUMENTED if panel.rate is not None}
    if key not in rates:
        raise ValueError(f"{key!r} is not one of {', '.join(rates)}. Give fee_rate.")
    return rates[key]


def site_costs(user: Any, currency: str) -> dict[str, ChannelCost]:
    """Return what the studies that the user may read paid, by channel."""
    return channel_costs(filter_allowed(user, Study.objects.all(), Action.VIEW), currency)


def panel_values(key: str, currency: str, own: Mapping[str, ChannelCost]) -> dict[str, float | None]:
    """Return what choosing a panel puts in the form: its fees, None if they are not known, and the pay of a screen-out if known.

    An unknown key changes nothing: the address may be old.
    """
    cost = own.get(key.removeprefix(OWN)) if key.startswith(OWN) else None
    if cost is not None:
        values: dict[str, float | None] = {"fee_rate": cost.fee_rate}
        return values if cost.screen_out_pay is None else values | {"screen_out_pay": round(cost.screen_out_pay, 2)}
    panel = next((one for one in all_panels() if one.key == key), None)
    if panel is None:
        return {}
    least = (panel.screen_out_pay or {}).get(currency)
    return {"fee_rate": panel.rate} | ({} if least is None else {"screen_out_pay": least})


def panel_rows(
    inputs: PlanInputs, currency: str, own: Mapping[str, ChannelCost], linked: Collection[str] = ()
) -> list[dict[str, Any]]:
    """Return what the planned study costs at each panel, with the source of its fees. ``linked``: channels of the study's links."""
    by_site = {
        channel: PanelFees(f"{OWN}{channel}", channel, "as this site paid", cost.fee_rate, _own_source(cost))
        for channel, cost in own.items()
        if channel in REGISTRY
    }
    panels = all_panels()
    places = {panel.channel: place for place, panel in reversed(list(enumerate(panels)))}
    panels = sorted([*by_site.values(), *panels], key=lambda panel: places.get(panel.channel, len(places)))
    return [_panel_row(panel, inputs, currency, own, panel.channel in linked) for panel in panels]


def _own_source(cost: ChannelCost) -> str:
    paid = f"{counted(cost.people, 'person')} by {counted(cost.links, 'link')} of this site"
    fees = (
        "their panel reported no fees"
        if cost.fee_rate is None
        else f"fees of {counted(cost.people_with_fees, 'person')} by {counted(cost.links_with_fees, 'link')}"
    )
    screened = f"; {counted(cost.screened_out, 'person')} screened out" if cost.screened_out else ""
    return f"The ledger: {paid}; {fees}{screened}."


def _panel_row(
    panel: PanelFees, inputs: PlanInputs, currency: str, own: Mapping[str, ChannelCost], is_linked: bool
) -> dict[str, Any]:
    values = panel_values(panel.key, currency, own)
    known = {name: value for name, value in values.items() if value is not None}
    budget = plan_budget(inputs.size, inputs.pace, replace(inputs.prices, **{"fee_rate": 0.0} | known))
    return {
        "key": panel.key,
        "label": panel.label,
        "source": panel.source,
        "rate": panel.rate,
        "fee": "not known" if panel.rate is None else f"{100 * panel.rate:.1f} %".replace(".0 %", " %"),
        "screen_out": f"{known['screen_out_pay']:.2f}" if "screen_out_pay" in known else "",
        "total": budget.total,
        "money": money_text(budget.total, currency),
        "is_linked": is_linked,
    }


# Curves of power and interval width against people, prompts and money, as places for a template that draws SVG.


FACTORS = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)
# Farther along, the curve of prompts is flat.
MOST_TIMES_PROMPTS = 12
WIDTH, HEIGHT = 320, 210
LEFT, RIGHT, TOP, BOTTOM = 48, 306, 14, 168


@dataclass(frozen=True, slots=True)
class Point:
    """A size on a curve, and where the curve shows it."""

    x: float
    size: StudySize
    power: float
    half_width: float
    total: float


@dataclass(frozen=True, slots=True)
class Line:
    """``mark``: what the figure shows in place of a long label."""

    label: str
    points: tuple[Point, ...]
    mark: str = ""


class OwnVariation(NamedTuple):
    """How much people and prompts vary in one comparison of a pilot."""

    protocol: str
    comparison: str
    variation: Variation


def beside_each_other(
    inputs: PlanInputs, own: Sequence[OwnVariation] = (), labels: Mapping[str, str] | None = None
) -> list[tuple[PlanInputs, list[tuple[str, PlanInputs]]]]:
    """Return the planned protocol, and ratings and SPA beside it, each with the inputs of its lines by their names.

    A protocol has a line for each comparison of a pilot (``own``), or else for each level and goal of the plan's comparisons. A margin is
    on the scale of its own protocol, so a goal by a margin has no other protocols. ``labels``: words for the names of comparisons.
    """
    names: dict[Target, list[str]] = {}
    claims, _ = inputs.comparisons.claims_of(inputs.target)
    members = Counter(claim.family for claim in claims)
    for claim in claims:
        target = replace(target_of_claim(claim, inputs.target), tests=members[claim.family])
        names.setdefault(target, []).append((labels or {}).get(claim.name, claim.name))
    others = other_protocols(inputs.size) if inputs.target.goal == "difference" else []
    found = []
    for size in (inputs.size, *(one for one in others if one.headline.is_drawn_beside)):
        at = replace(inputs, size=size, pace=inputs.pace.in_protocol(inputs.size.protocol, size.protocol))
        targets = names or {inputs.target: []}
        if size != inputs.size:
            at = replace(at, target=replace(inputs.target, stopping="none"))
            alike = {replace(one, stopping="none"): said for one, said in targets.items() if one.goal == "difference"}
            targets = alike or {at.target: []}
        lines = [(one.comparison, replace(at, variation=one.variation)) for one in own if one.protocol == size.protocol]
        # Of a pilot that says nothing of this protocol, the variation of its first comparison counts.
        lines = lines or [(_claims_text(said, one), replace(at, target=one)) for one, said in targets.items()]
        found.append((at, lines))
    return found


def _claims_text(names: Sequence[str], target: Target) -> str:
    who = names[0] if len(names) == 1 else counted(len(names), "comparison") if names else "one comparison"
    return f"{who}, level {100 * target.level:.3g} %"


def _protocols_curve(
    inputs: PlanInputs, currency: str, own: Sequence[OwnVariation], labels: Mapping[str, str] | None
) -> list[dict[str, Any]]:
    """Return power against people in each protocol, or nothing if the curve of people has the same line."""
    compared = beside_each_other(inputs, own, labels)
    if sum(len(lines) for _, lines in compared) < 2:
        return []
    panels, rows = [], []
    for own_inputs, asked in compared:
        protocol = own_inputs.size.protocol
        lines = [
            replace(_people_line(f"{own_inputs.size.headline.label}: {name}", one), mark=str(number))
            for number, (name, one) in enumerate(asked, 1)
        ]
        label = f"{own_inputs.size.headline.label}: power, %"
        panels.append(
            _panel(
                f"beside-{protocol}",
                label,
                "people",
                lines,
                own_inputs.size,
                "power",
                100,
                [0, 100],
                own_inputs.target.wanted * 100,
            )
        )
        for line, (_, one) in zip(lines, asked, strict=True):
            label = f"{line.label} ({line.mark})" if len(lines) > 1 else line.label
            rows += [_row(label, point, one, currency) for point in line.points]
    title = "More people, the protocols side by side"
    return [{"key": "beside", "title": title, "lines_are": "Protocol and comparison", "panels": panels, "rows": rows}]


def _people_line(label: str, inputs: PlanInputs) -> Line:
    sizes = [_with_people(inputs.size, factor) for factor in FACTORS]
    return _line(label, sizes, inputs, lambda point: point.size.people)


def design_curves(
    inputs: PlanInputs, currency: str, own: Sequence[OwnVariation] = (), labels: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """Return the curves against people, prompts and money, each with its two figures and the rows of its table.

    Behind the first one, the protocols are side by side. ``own``: the comparisons of a pilot. ``labels``: words for declared ones.
    """
    size = inputs.size
    found = [
        _curve("people", "More people, the same prompts", "people", [_people_line("", inputs)], inputs, currency),
        *_protocols_curve(inputs, currency, own, labels),
    ]
    if size.kind != "chance":
        prompts = _line("", _prompt_sizes(size), inputs, lambda point: point.size.prompts)
        found.append(
            _curve(
                "prompts",
                "More prompts, the same people and answers: fewer labels for each prompt",
                "prompts",
                [prompts],
                inputs,
                currency,
            )
        )
    lines = [_line("people", [_with_people(size, factor) for factor in FACTORS], inputs, lambda point: point.total)]
    if size.kind != "chance":
        both = [_with_both(size, factor) for factor in FACTORS]
        lines.append(_line("people and prompts", both, inputs, lambda point: point.total))
    title = "More money, for people alone" + (" or for people and prompts together" if len(lines) > 1 else "")
    found.append(_curve("money", title, currency, lines, inputs, currency))
    return found


def _line(label: str, sizes: Sequence[StudySize | None], inputs: PlanInputs, x_of: Any) -> Line:
    parts = components(inputs.size, inputs.target, inputs.variation)
    points = {}
    for size in (inputs.size, *sizes):
        if size is None:
            continue
        quick = plan_of_components(parts, size, inputs.target)
        total = plan_budget(size, inputs.pace, inputs.prices).total
        point = Point(0, size, quick.power, quick.half_width, total)
        points[size] = replace(point, x=float(x_of(point)))
    return Line(label, tuple(sorted(points.values(), key=lambda point: (point.x, point.size.people))))


def _with_people(size: StudySize, factor: float) -> StudySize | None:
    """Return the size with other people, or None if they do not see all prompts."""
    people = max(6, round(size.people * factor))
    if people > MOST_PEOPLE or not size.prompts <= people * size.prompts_each <= MOST_ANSWERS:
        return None
    return replace(size, people=people)


def _with_both(size: StudySize, factor: float) -> StudySize | None:
    people = max(6, round(size.people * factor))
    prompts = max(size.prompts_each, round(size.prompts * people / size.people))
    if people > MOST_PEOPLE or not prompts <= min(MOST_PROMPTS, people * size.prompts_each) <= MOST_ANSWERS:
        return None
    return replace(size, people=people, prompts=prompts)


def _prompt_sizes(size: StudySize) -> list[StudySize]:
    low = size.prompts_each
    high = min(MOST_PROMPTS, size.answers, max(MOST_TIMES_PROMPTS * size.prompts, low))
    numbers = {round(low * (high / low) ** (k / 9)) for k in range(10)}
    return [replace(size, prompts=n) for n in sorted(numbers)]


def _curve(key: str, title: str, unit: str, lines: Sequence[Line], inputs: PlanInputs, currency: str) -> dict[str, Any]:
    scale, width_unit, _ = scale_of(inputs.size.protocol)
    return {
        "key": key,
        "title": title,
        "lines_are": "More of" if len(lines) > 1 else "",
        "panels": [
            _panel(
                f"{key}-power", "Power, %", unit, lines, inputs.size, "power", 100, [0, 100], inputs.target.wanted * 100
            ),
            _panel(f"{key}-width", f"Interval, ± {width_unit}", unit, lines, inputs.size, "half_width", scale, [0]),
        ],
        "rows": [_row(line.label, point, inputs, currency) for line in lines for point in line.points],
    }


def _row(label: str, point: Point, inputs: PlanInputs, currency: str) -> dict[str, Any]:
    return {
        "label": label,
        "is_planned": point.size == inputs.size,
        "people": point.size.people,
        "prompts": point.size.prompts,
        "labels": f"{point.size.labels_per_prompt:.3g}",
        "money": money_text(point.total, currency),
        "power": percent(point.power),
        "width": f"± {points_text(point.half_width, inputs.size.protocol)}",
    }


def _panel(
    key: str,
    label: str,
    unit: str,
    lines: Sequence[Line],
    planned: StudySize,
    name: str,
    scale: float,
    shown: list[float],
    wanted: float | None = None,
) -> dict[str, Any]:
    xs = [point.x for line in lines for point in line.points]
    ys = [scale * getattr(point, name) for line in lines for point in line.points]
    across, upwards = Axis([0.0, *xs], LEFT, RIGHT), Axis([*shown, *ys], BOTTOM, TOP)
    places = [
        [(across.place(point.x), upwards.place(scale * getattr(point, name))) for point in line.points]
        for line in lines
    ]
    # The names of two lines stay apart: above the higher end, below the lower one. Each mark has a place of its own along the lines.
    highest = min(own[-1][1] for own in places)
    drawn = []
    for number, (line, own) in enumerate(zip(lines, places, strict=True)):
        x, y = own[-1 - number % len(own)] if line.mark else own[-1]
        drawn.append(
            {
                "number": number,
                "points": path_of(own),
                "label": (line.mark or line.label) if len(lines) > 1 else "",
                "label_x": at(x),
                "label_y": at(y + (-7 if line.mark or y == highest else 17)),
            }
        )
    here = next(point for point in lines[0].points if point.size == planned)
    return {
        "key": key,
        "label": label,
        "frame": Frame(WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM, across.ticks, upwards.ticks, unit),
        "lines": drawn,
        "wanted": None if wanted is None else at(upwards.place(wanted)),
        "x": at(across.place(here.x)),
        "y": at(upwards.place(scale * getattr(here, name))),
        "text": f"{label} against {unit}: {scale * getattr(here, name):.1f} at {here.x:,.0f} {unit}, the current design",
    }


# The approximate numbers of a plan as data, for REST and `heval study plan`. They take milliseconds and load no numpy.


def quick_numbers(
    inputs: PlanInputs, currency: str, draws: Sequence[Variation] = (), own: Sequence[OwnVariation] = ()
) -> dict[str, Any]:
    """Return power, interval, smallest difference, people, time and money, with sentences and advice.

    ``draws``: what a pilot leaves open. Power and interval are averaged over them. ``own``: the comparisons of a pilot.
    """
    size, target, variation = inputs.size, inputs.target, inputs.variation
    budget, quick = plan_budget(size, inputs.pace, inputs.prices), quick_plan(size, target, variation)
    live = live_power(inputs, draws)
    return {
        "inputs": inputs.as_json(),
        "fingerprint": inputs.fingerprint(),
        "is_approximate": True,
        **quick.as_dict(),
        **live.as_dict(),
        "smallest_difference": smallest_difference(size, target, variation) if target.goal == "difference" else None,
        "comparisons": [
            {
                "name": one.claim.name,
                "family": one.claim.family,
                "method": one.method,
                "family_size": one.family_size,
                "power": one.power,
                "power_at_most": one.power_at_most,
            }
            for one in quick_claims(size, target, variation, *inputs.comparisons.claims_of(target))
        ],
        "power_by_people": [
            {
                "protocol": at.size.protocol,
                "comparison": name,
                "level": one.target.level,
                "points": [
                    {"people": point.size.people, "power": point.power} for point in _people_line(name, one).points
                ],
            }
            for at, lines in beside_each_other(inputs, own)
            for name, one in lines
        ],
        "currency": currency,
        "budget": budget.as_dict(),
        "panels": [
            {name: row[name] for name in ("key", "label", "rate", "total", "source")}
            for row in panel_rows(inputs, currency, {})
        ],
        "sentences": [
            size_sentence(size, budget, currency),
            finding_sentence(size, target, live.power, live.half_width, "approximate"),
            *([text] if (text := assurance_sentence(live)) else []),
        ],
        "advice": advice_sentences(inputs),
    }


# The pieces of a plan. Each is computed from its own arguments, in any order and by any process, with the same
# result.


# A piece > its result, both as JSON.
Piece = dict[str, Any]
# Computes all pieces and returns their results in the same order.
ComputePieces = Callable[[Sequence[Piece]], list[Any]]


def plan_pieces(inputs: PlanInputs, seed: int, draws: Sequence[Variation] = ()) -> list[Piece]:
    """Return the pieces: sequential designs, several comparisons, and each simulated size. The longest come first."""
    from analysis.stats.planning.study_plans import plan_parts

    parts = plan_parts(inputs.size, inputs.target, inputs.variation, seed=seed)
    shared = {
        "variation": inputs.variation.as_dict(),
        # Only these two differ between draws.
        "draws": [[draw.sd_people, draw.sd_prompts] for draw in draws],
    }
    return [
        {"sequential": {"inputs": inputs.as_json(), "seed": seed}},
        {"claims": {"inputs": inputs.as_json(), "seed": seed}} | shared,
        *({"size": part.as_dict()} | shared for part in parts),
    ]


def compute_piece(piece: Piece) -> Any:
    """Return the result of a piece."""
    from analysis.stats.planning.study_plans import PlanPart, simulate_part

    if asked := piece.get("sequential"):
        return compare_sequential(PlanInputs.from_json(asked["inputs"]), seed=asked["seed"])
    variation = Variation(**piece["variation"])
    draws = [replace(variation, sd_people=people, sd_prompts=prompts) for people, prompts in piece["draws"]]
    if asked := piece.get("claims"):
        return compare_claims(PlanInputs.from_json(asked["inputs"]), draws, seed=asked["seed"])
    part = piece["size"]
    return simulate_part(
        PlanPart(
            kind=part["kind"],
            size=StudySize(**part["size"]),
            target=Target(**part["target"]),
            runs=part["runs"],
            seed=tuple(part["seed"]),
        ),
        draws or variation,
    ).as_dict()


def simulated_size(result: dict[str, Any]) -> "SimulatedSize":
    """Return the record of a simulated size from the result of its piece."""
    from analysis.stats.planning.study_plans import SimulatedSize

    return SimulatedSize(**result | {"size": StudySize(**result["size"])})


def compute_here(pieces: Sequence[Piece]) -> list[Any]:
    """Compute all pieces in this process, one after the other."""
    return [compute_piece(piece) for piece in pieces]


LOOKS = 5
BET_RUNS = 400
# Beyond this many answers, watching each person is not simulated.
MOST_WATCHED_ANSWERS = 200_000
SHAPES = {"obrien_fleming": "O'Brien and Fleming", "pocock": "Pocock"}


def describe_plan(plan: "StudyPlan", sequential: dict[str, Any], inputs: PlanInputs) -> dict[str, Any]:
    """Return the stored result of a plan with the comparison of sequential designs, as JSON-safe values."""

    def cost(size: StudySize) -> Budget:
        return plan_budget(size, inputs.pace.in_protocol(inputs.size.protocol, size.protocol), inputs.prices)

    def costs(sizes: "Iterable[SimulatedSize]") -> list[dict[str, Any]]:
        return [cost(one.size).as_dict() for one in sizes]

    def one_cost(found: "SimulatedSize | None") -> dict[str, Any] | None:
        return cost(found.size).as_dict() if found else None

    simulated = plan.as_dict()
    return {
        "plan": simulated,
        "budget": cost(inputs.size).as_dict(),
        "budgets": {
            "people": costs(plan.people),
            "prompts": costs(plan.prompts),
            "protocols": costs(plan.protocols),
            "needed_people": one_cost(plan.needed_people),
            "needed_prompts": one_cost(plan.needed_prompts),
            "needed_both": one_cost(plan.needed_both),
        },
        "sequential": sequential,
        "advice": simulated_advice(inputs, simulated),
    }


def compare_claims(inputs: PlanInputs, draws: Sequence[Variation] = (), *, seed: int) -> dict[str, Any]:
    """Return the power of each comparison after the declared correction, as ``comparisons``. Empty with one comparison."""
    claims, families = inputs.comparisons.claims_of(inputs.target)
    if not claims:
        return {}
    from analysis.stats.planning.study_plans import simulate_claims

    found = simulate_claims(inputs.size, inputs.target, draws or inputs.variation, claims, families, seed=seed)
    return {"comparisons": found.as_dict()}


def compare_sequential(inputs: PlanInputs, *, seed: int) -> dict[str, Any]:
    """Return the fixed design, two group-sequential ones and one that is watched after each person, all with the same most people.

    All are about exactly these prompts: evidence is added person by person. `wrong` is the probability of a claim if there is
    no difference, or if it is exactly the margin.
    """
    size, target = inputs.size, inputs.target
    looks = sorted({max(2, round(size.people * k / LOOKS)) for k in range(1, LOOKS + 1)})
    if target.goal == EQUIVALENCE:
        return {"reason": "A study of equivalence has a fixed size: it needs all of its people.", "designs": []}
    if size.is_between_conditions:
        return {"reason": "A comparison between conditions has a fixed size: heval looks at it once.", "designs": []}
    if size.people < 6 or len(looks) < 2:
        return {"reason": "With fewer than six people there is nothing to stop early.", "designs": []}
    from analysis.stats.planning.simulated_studies import PlanOptions
    from analysis.stats.planning.stopping import compute_group_sequential_power
    from analysis.stats.stopping_boundaries import group_sequential_design

    parts = components(size, target, inputs.variation)
    sd = math.sqrt(variance_of_person(parts, size))
    distance = parts.mean - target.limit(size.null)
    options = PlanOptions(significance=target.significance, tests=target.tests)
    each = plan_budget(size, inputs.pace, inputs.prices).total / size.people
    designs = []
    for name, checked_at, shape in (
        ("fixed", [size.people], "obrien_fleming"),
        *(("group", looks, shape) for shape in SHAPES),
    ):
        found, null = (
            compute_group_sequential_power(
                value, sd, checked_at, shape=shape, is_one_sided=target.goal != "difference", options=options
            )
            for value in (distance, 0.0)
        )
        expected = found.detail["expected_n"]
        boundaries = group_sequential_design(
            [n / checked_at[-1] for n in checked_at], shape=shape, significance=target.level
        )
        designs.append(
            {
                "name": name,
                "shape": shape if name == "group" else "",
                "power": found.power,
                "power_error": found.detail["simulation_error"],
                "wrong": null.power,
                "wrong_error": null.detail["simulation_error"],
                "expected_people": expected,
                "most_people": size.people,
                "expected_money": expected * each,
                "most_money": size.people * each,
                "looks": [
                    {"people": n, "p": float(p), "z": float(z), "stops": stops}
                    for n, p, z, stops in zip(
                        checked_at, boundaries.nominal, boundaries.z, found.detail["stopping"], strict=True
                    )
                ],
            }
        )
    if size.answers <= MOST_WATCHED_ANSWERS:
        designs.append(_watched(inputs, target.limit(size.null), each, seed))
    return {"reason": "", "designs": designs}


def _watched(inputs: PlanInputs, limit: float, each: float, seed: int) -> dict[str, Any]:
    """Return the anytime-valid design: bets against the limit after every person."""
    from analysis.stats.bootstrap import monte_carlo_error
    from analysis.stats.planning.sizes import wrong_target

    size, target = inputs.size, inputs.target
    claims, stops = _bets(inputs, target, limit, (seed, 1_000_001))
    wrong, _ = _bets(inputs, wrong_target(size, target, inputs.variation), limit, (seed, 1_000_002))
    expected = sum(stops) / len(stops)
    return {
        "name": "anytime",
        "shape": "",
        "power": claims,
        "power_error": monte_carlo_error(claims, BET_RUNS),
        "wrong": wrong,
        "wrong_error": monte_carlo_error(wrong, BET_RUNS),
        "expected_people": expected,
        "most_people": size.people,
        "expected_money": expected * each,
        "most_money": size.people * each,
        "looks": [],
    }


def _bets(inputs: PlanInputs, target: Target, limit: float, seed: tuple[int, ...]) -> tuple[float, list[int]]:
    """Return the share of studies whose bets refute the limit, and after how many people each study ends."""
    from dataclasses import replace

    import numpy as np

    from analysis.stats.planning.simulated_studies import (
        assign_prompts,
        evidence_after_each_person,
        means_of_people,
        simulate_answers,
    )

    size = inputs.size
    rng = np.random.default_rng(seed)
    low, high = size.scale_ends
    n_blocks = max(20, math.ceil(BET_RUNS * size.answers / 400_000))
    refuted, ends = 0, []
    for block in range(n_blocks):
        runs = BET_RUNS // n_blocks + (block < BET_RUNS % n_blocks)
        if not runs:
            break
        people, prompts = assign_prompts(size, rng)
        about_these = replace(target, population="people")
        values = simulate_answers(size, about_these, inputs.variation, people, prompts, runs=runs, rng=rng)
        means = means_of_people(values, people, size)
        null = (limit - low) / (high - low)
        is_refuted = evidence_after_each_person(means, null, target.level) >= math.log(1 / target.level)
        if target.goal != "difference":  # a claim by a margin is about one side
            is_refuted &= np.cumsum(means, axis=1) / np.arange(1, size.people + 1) > null
        is_claimed = is_refuted.any(axis=1)
        refuted += int(is_claimed.sum())
        ends += np.where(is_claimed, is_refuted.argmax(axis=1) + 1, size.people).tolist()
    return refuted / len(ends), ends
