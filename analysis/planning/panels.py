"""What panels take: fees as they publish them, and what earlier studies of this site paid. A plan fills them in."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from analysis.stats.planning.sizes import plan_budget
from annotators.pay.channel_costs import ChannelCost, channel_costs
from annotators.recruitment.channels import REGISTRY
from studies.access import Action, filter_allowed
from studies.models import Study

from .advice import counted, money_text
from .inputs import PlanInputs

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
    return [_row(panel, inputs, currency, own, panel.channel in linked) for panel in panels]


def _own_source(cost: ChannelCost) -> str:
    paid = f"{counted(cost.people, 'person')} by {counted(cost.links, 'link')} of this site"
    fees = (
        "their panel reported no fees"
        if cost.fee_rate is None
        else f"fees of {counted(cost.people_with_fees, 'person')} by {counted(cost.links_with_fees, 'link')}"
    )
    screened = f"; {counted(cost.screened_out, 'person')} screened out" if cost.screened_out else ""
    return f"The ledger: {paid}; {fees}{screened}."


def _row(
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
