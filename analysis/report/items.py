"""What the numbers are about: for each planned comparison, items in which one side won clearly, and items that divide people.

The job stores the names of items, outputs and commenting annotators, and numbers. Texts are read when a page is shown, so none is in
a report's JSON or its files, and the comments of people who withdraw later are gone from older reports as well.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from django.db.models import F
from django.urls import reverse

from analysis.data.context import AnalysisContext
from analysis.data.flat_rows import annotator_pseudonym
from analysis.protocols import REGISTRY, HeadlineAnswers, headline_name
from analysis.protocols.blocks import Block, cells
from analysis.protocols.blocks.comparisons import Comparison
from analysis.protocols.kinds.answers import read_rewrites
from analysis.stats.planning.inputs import HEADLINES
from annotators.counting import Use, select
from annotators.models import Response
from studies.design.subjects import join_words
from studies.models import Exposure, Item, Output, Study
from studies.protocols import REGISTRY as PROTOCOLS
from studies.protocols.base.fields import TEXT_KINDS

if TYPE_CHECKING:
    from pandas import Categorical, DataFrame

    from analysis.stats.arrays import FloatArray
    from analysis.stats.results import Estimate

MOST_ITEMS = 3  # of each kind
MOST_REWRITTEN = 20
# An item counts as if this number of further answers were in the middle, so that a single answer does not come first.
ADDED_ANSWERS = 2
# Sums in another order differ by less than this.
CLOSE = 1e-7
LONG_TEXT = 400
KINDS = (
    ("won", "Where {winner} won most clearly"),
    ("lost", "Where {winner} lost most clearly"),
    ("split", "Where people disagreed most"),
)
# Of texts about which people guessed who wrote them.
KINDS_OF_GUESSES = (
    ("won", "Texts whose author most people got right"),
    ("lost", "Texts whose author most people got wrong"),
    ("split", "Texts that divided people most"),
)
REWRITTEN = ("rewritten", "Texts that people rewrote")
SIDES = (("human", "Explanations of people who said “human”"), ("machine", "Explanations of people who said “machine”"))
NO_ITEMS = "each answer is about several items at once, or about no pair of outputs"
ITEM_COLUMNS = {"section": "section__position", "number": "number", "retired": "retired_in"}
OutputsByItem = Mapping[str, Mapping[str, tuple[int, ...]]]


def build_items(
    context: AnalysisContext, blocks: Sequence[Block], headline: Sequence[HeadlineAnswers]
) -> list[dict[str, Any]]:
    """Return the clearest and the most divided items of each planned comparison of a protocol.

    ``headline``: the answers behind the headlines of the protocol.
    """
    analysis, name = REGISTRY[context.protocol], headline_name(context.protocol)
    shown = _outputs_by_item(context.sections)
    claims = analysis.planned_claims(context.sections).values()
    planned = {one.key: one for claimed in claims for one in claimed if one.is_planned}
    answers = {one.comparison.key: one for one in headline}
    rows = {section.position: _RowsOfSection.read(context, section) for section in context.sections}
    found = []
    for compared, guessed in analysis.guesses(context):
        about = _about(replace(compared, role=planned[key].role) if (key := compared.key) in planned else compared)
        found.append(about | {"protocol": context.protocol} | _guessed_items(guessed, rows[compared.section]))
    if found:
        return found
    for key, compared in planned.items():
        estimate = estimate_of_comparison(blocks, analysis.headline_blocks.get(name, ""), key)
        about = _about(compared) | {"protocol": context.protocol}
        found.append(about | _items_of(answers.get(key), estimate, HEADLINES.get(name), rows, shown))
    return found


@dataclass(frozen=True, slots=True)
class _RowsOfSection:
    """What the items of all comparisons of a section need of its rows: the items of each prompt, and who commented on each item.

    A comment is about one system, or about none. ``rewrites`` (if a question asks for them): see ``read_rewrites``.
    """

    items: Mapping[str, Sequence[str]]
    comments: Mapping[str, Sequence[tuple[str | None, str]]]
    rewrites: "DataFrame | None" = None

    @classmethod
    def read(cls, context: AnalysisContext, section: Any) -> "_RowsOfSection":
        rewrites = read_rewrites(context.rows, section)
        rows = context.rows
        rows = rows[(rows["section"] == section.position) & rows["is_kept"].astype(bool) & rows["item"].notna()]
        items: dict[str, list[str]] = {}
        for prompt, item in rows[["prompt", "item"]].drop_duplicates().itertuples(index=False):
            items.setdefault(prompt, []).append(item)
        free = list(section.questions.filter(scale__kind="text").values_list("key", flat=True))
        comments: dict[str, list[tuple[str | None, str]]] = {}
        texts = rows[rows["question"].isin(free) & (rows["text"] != "")]
        for item, system, annotator in texts[["item", "system", "annotator"]].itertuples(index=False):
            comments.setdefault(item, []).append((system if isinstance(system, str) else None, annotator))
        return cls(items, comments, rewrites)


def _outputs_by_item(sections: Sequence[Any]) -> OutputsByItem:
    """Return the samples of each system that each item shows."""
    rows = Exposure.objects.filter(item__section__in={section.reuses_id or section.pk for section in sections})
    rows = rows.filter(item__kind=Item.Kind.LIVE).order_by("item", "output__sample")
    shown: dict[str, dict[str, tuple[int, ...]]] = {}
    for section, number, system, sample in rows.values_list(
        "item__section__position", "item__number", "output__system__name", "output__sample"
    ):
        outputs = shown.setdefault(f"s{section}.{number}", {})
        outputs[system] = (*outputs.get(system, ()), sample)
    return shown


def _about(compared: Comparison) -> dict[str, Any]:
    return {
        "contrast": compared.key,
        "label": join_words(
            f"{compared.subject.x or compared.x} against {compared.subject.y or compared.y}", compared.subject.note
        ),
        "role": compared.role,
        "x": compared.x,
        "y": compared.y,
        "winner": "",
        "side": -1 if compared.is_lower_better else 1,
        "null": None,
        "reason": "",
    } | {kind: [] for kind, _ in KINDS}


def estimate_of_comparison(blocks: Sequence[Block], headline: str, key: str) -> "Estimate | None":
    """Return the recommended estimate of a comparison: the headline, or the first one of protocols whose plans estimate no block."""
    found = [
        (block.name != headline, number, estimate)
        for number, block in enumerate(blocks)
        if block.mode == "recommended"
        for estimate in block.estimates
        if cells.contrast_of(estimate).get("key") == key
    ]
    return min(found, key=lambda one: one[:2])[2] if found else None


def _items_of(
    answers: HeadlineAnswers | None,
    estimate: "Estimate | None",
    headline: Any,
    rows: Mapping[int, _RowsOfSection],
    shown: OutputsByItem,
) -> dict[str, Any]:
    if answers is None or answers.keys is None:
        return {"reason": NO_ITEMS}
    if not len(answers.values):
        return {"reason": "nobody judged the two side by side"}
    null, compared = headline.null, answers.comparison
    judged = _JudgedItems(answers, answers.keys, rows[compared.section], shown)
    split = judged.first(lambda one: one["sd"] ** 2 if one["n"] > 1 else 0.0, judged.variances)
    if estimate is None or estimate.estimate is None:
        return {"null": null, "reason": "nothing could be estimated, so no side won", "split": split}
    side = estimate.estimate - (cells.claim_of(estimate).null or 0.0)
    if not side:
        return {"null": null, "reason": "the estimate is on neither side", "split": split}
    # How far each item is on the side of the estimate.
    sign = 1 if side > 0 else -1
    return {
        "null": null,
        "winner": compared.x if (side > 0) is not compared.is_lower_better else compared.y,
        "side": sign,
        "won": judged.first(lambda one: (one["mean"] - null) * sign, (judged.means - null) * sign),
        "lost": judged.first(lambda one: (null - one["mean"]) * sign, (null - judged.means) * sign),
        "split": split,
    }


def _guessed_items(guesses: "DataFrame", rows: _RowsOfSection) -> dict[str, Any]:
    """Return the texts that most people got right, or wrong, and those that divide people, with who gave reasons on which side."""
    texts = []
    for (prompt, system, _), own in guesses.groupby(["prompt", "system", "sample"], observed=True):
        said = dict(zip(own["annotator"], own["says"], strict=True))
        items = sorted(set(own["item"]), key=_number)
        people = sorted({person for item in items for _, person in rows.comments.get(item, ()) if person in said})
        texts.append(
            {
                "prompt": prompt,
                "items": items,
                "n": len(own),
                "mean": float(own["correct"].mean()),
                "sd": round(float(own["correct"].std(ddof=0)), 12),
                "system": system,
                "x": [int(own["sample"].iloc[0])],
                "y": [],
                "comments": people,
                "sides": {side: [one for one in people if said[one] == n] for n, (side, _) in enumerate(SIDES)},
            }
        )

    def first(amount_of: Callable[[dict[str, Any]], float]) -> list[dict[str, Any]]:
        chosen = [one for one in texts if amount_of(one) > 0]
        return sorted(chosen, key=lambda one: (*_place(one, amount_of(one)), one["system"]))[:MOST_ITEMS]

    return {
        "null": 0.5,
        "is_guessed": True,
        "won": first(lambda one: one["mean"] - 0.5),
        "lost": first(lambda one: 0.5 - one["mean"]),
        "split": first(lambda one: one["sd"] ** 2 if one["n"] > 1 else 0.0),
    } | ({} if rows.rewrites is None else {"rewritten": _rewritten_items(rows.rewrites, set(guesses["annotator"]))})


def _rewritten_items(rewrites: "DataFrame", people: Collection[str]) -> list[dict[str, Any]]:
    """Return the texts that these people rewrote most often, with who did and the share of its words that each of them kept."""
    own_rewrites = rewrites[rewrites["annotator"].isin(people)]
    found: list[dict[str, Any]] = []
    for (prompt, system, _), own in own_rewrites.groupby(["prompt", "system", "sample"], observed=True):
        kept = own["kept"].dropna()
        found.append(
            {
                "prompt": prompt,
                "items": sorted(set(own["item"]), key=_number),
                "n": len(own),
                "mean": float(kept.mean()) if len(kept) else None,
                "system": system,
                "x": [int(own["sample"].iloc[0])],
                "y": [],
                "comments": sorted(set(own["annotator"])),
                "kept": dict(
                    zip(own["annotator"], own["kept"].astype(object).where(own["kept"].notna(), None), strict=True)
                ),
            }
        )
    return sorted(found, key=lambda one: (-one["n"], one["prompt"], one["system"], one["x"]))[:MOST_REWRITTEN]


def _place(item: Mapping[str, Any], amount: float) -> tuple[float, int, str, list[str]]:
    """Return what sorts an item: its distance or variance less that of added answers, and its name where two are equal."""
    n = item["n"]
    return round(-amount * n / (n + ADDED_ANSWERS), 9), -n, item["prompt"], item["items"]


class _JudgedItems:
    """Each prompt with the outputs of the two systems of a comparison that were judged for it.

    Where a page shows a single output, the outputs of a prompt are one item, because the headline compares their means.
    """

    def __init__(
        self, answers: HeadlineAnswers, prompts: "Categorical[Any]", rows: _RowsOfSection, shown: OutputsByItem
    ) -> None:
        import numpy as np
        import pandas as pd

        from analysis.stats.arrays import label_codes

        self.answers, self.prompts, self.rows, self.shown = answers, prompts, rows, shown
        self.items = pd.Categorical([None] * len(prompts)) if answers.items is None else answers.items
        x, y = answers.comparison.x, answers.comparison.y
        self.prompt_names, self.item_names = prompts.categories.tolist(), self.items.categories.tolist()
        self.has_items = bool((self.items.codes >= 0).any())
        outputs = {name: (shown.get(name, {}).get(x, ()), shown.get(name, {}).get(y, ())) for name in self.item_names}
        # The last number is for answers without an item.
        of_items = np.append(pd.factorize(pd.Series(outputs, dtype=object))[0], -1)[self.items.codes]
        codes, _ = label_codes(
            prompts.codes.astype(np.int64) * (len(self.item_names) + 1) + of_items, "cells", len(prompts)
        )
        self.order, self.sizes = np.argsort(codes, kind="stable"), np.bincount(codes)
        self.ends = np.cumsum(self.sizes)
        self.means = np.bincount(codes, weights=answers.values) / self.sizes
        self.variances = np.bincount(codes, (answers.values - self.means[codes]) ** 2) / self.sizes

    def first(self, amount_of: Callable[[dict[str, Any]], float], amounts: "FloatArray") -> list[dict[str, Any]]:
        """Return the first items with a positive amount; see ``_place``. ``amounts``: about those of all items."""
        import numpy as np

        weighted = amounts * self.sizes / (self.sizes + ADDED_ANSWERS)
        least = np.sort(weighted)[-MOST_ITEMS:][0] if len(weighted) else 0.0
        found = [self._item(int(number)) for number in np.flatnonzero((weighted > least - CLOSE) & (weighted > -CLOSE))]
        found = sorted((one for one in found if amount_of(one) > 0), key=lambda one: _place(one, amount_of(one)))
        return [one | self._outputs_and_comments(one["items"]) for one in found[:MOST_ITEMS]]

    def _item(self, number: int) -> dict[str, Any]:
        compared, end = self.answers.comparison, self.ends[number]
        found = self.order[end - self.sizes[number] : end]
        prompt = self.prompt_names[self.prompts.codes[found[0]]]
        named = self.rows.items.get(prompt, ())
        if self.has_items:
            named = [self.item_names[code] for code in set(self.items.codes[found].tolist()) - {-1}]
        items = [item for item in named if not {compared.x, compared.y}.isdisjoint(self.shown.get(item, {}))]
        return {
            "prompt": prompt,
            "items": sorted(items, key=_number),
            "n": len(found),
            "mean": float(self.means[number]),
            "sd": round(math.sqrt(self.variances[number]), 12),
        }

    def _outputs_and_comments(self, items: Sequence[str]) -> dict[str, list[Any]]:
        x, y = self.answers.comparison.x, self.answers.comparison.y
        people = {
            person for item in items for system, person in self.rows.comments.get(item, ()) if system in (None, x, y)
        }
        return {
            side: sorted({n for item in items for n in self.shown[item].get(system, ())})
            for side, system in (("x", x), ("y", y))
        } | {"comments": sorted(people)}


def _number(item: str) -> tuple[int, int]:
    section, _, number = item[1:].partition(".")
    return int(section), int(number)


def items_context(
    study: Study, stored: Mapping[str, Any], *, is_public: bool = False, shows_comments: bool = True
) -> dict[str, Any] | None:
    """Return the items of a stored report with their texts and comments, or None if its version has no items.

    A public page has no texts that may not be passed on, and its images have addresses below its own.
    """
    if "items" not in stored:
        return None
    chosen = [one for compared in stored["items"] for kind, _ in (*KINDS, REWRITTEN) for one in compared.get(kind, ())]
    comments = _comments(study, stored["parameters"]["origins"], chosen) if shows_comments else {}
    texts: dict[tuple[str, str, int], Output] = {}
    retired: set[str] = set()
    outputs = Output.objects.filter(system__study=study, prompt__key__in={one["prompt"] for one in chosen})
    of_item = {name: F(f"exposures__item__{path}") for name, path in ITEM_COLUMNS.items()}
    output: Any  # with the columns of an item that shows it
    for output in outputs.select_related("prompt", "system").annotate(**of_item):
        texts[output.prompt.key, output.system.name, output.sample] = output
        if output.retired:
            retired.add(f"s{output.section}.{output.number}")

    def groups(compared: Mapping[str, Any]) -> list[dict[str, Any]]:
        return [
            {
                "kind": kind,
                "title": title.format(winner=compared["winner"]),
                "items": [
                    _item_context(study, compared, one, texts, comments, retired, is_public) for one in compared[kind]
                ],
            }
            for kind, title in (*(KINDS_OF_GUESSES if compared.get("is_guessed") else KINDS), REWRITTEN)
            if kind in compared
            if compared["winner"] or compared.get("is_guessed") or kind == "split"
        ]

    without = Counter((one["protocol"], one["reason"]) for one in stored["items"] if one["null"] is None)
    return {
        "compared": [one | {"groups": groups(one)} for one in stored["items"] if one["null"] is not None],
        "without": [
            f"No items for {cells.format_count(n, 'comparison')} ({PROTOCOLS[protocol].label}): {reason}."
            for (protocol, reason), n in without.items()
        ],
    }


def _comments(
    study: Study, origins: Sequence[str], chosen: Sequence[Mapping[str, Any]]
) -> dict[tuple[str, str], list[tuple[str | None, str, bool]]]:
    """Return the comments about items by item and pseudonym, each with the system that it is about and whether it is a rewrite.

    Those of people who withdrew are gone.
    """
    names = {name for one in chosen if one["comments"] for name in one["items"]}
    if not names:
        return {}
    found: dict[tuple[str, str], list[tuple[str | None, str, bool]]] = {}
    rows = select(Use.RESULTS, Response.objects.filter(assignment__study=study, erased_at=None), origins)
    rows = rows.filter(question__scale__kind__in=TEXT_KINDS, item__number__in={_number(name)[1] for name in names})
    columns = ("item__section__position", "item__number", "assignment__annotator__code")
    about = ("exposure__output__system__name", "text", "question__scale__kind")
    for section, number, code, *comment in rows.exclude(text="").order_by("pk").values_list(*columns, *about):
        if (name := f"s{section}.{number}") in names:
            found.setdefault((name, annotator_pseudonym(study, code)), []).append(
                (comment[0], comment[1], comment[2] == "rewrite")
            )
    return found


def _item_context(
    study: Study,
    compared: Mapping[str, Any],
    item: Mapping[str, Any],
    texts: Mapping[tuple[str, str, int], Output],
    comments: Mapping[tuple[str, str], Sequence[tuple[str | None, str, bool]]],
    retired: set[str],
    is_public: bool,
) -> dict[str, Any]:
    is_retired = bool(item["items"]) and retired.issuperset(item["items"])
    named = [item["system"]] if "system" in item else [compared[side] for side in "xy"]
    outputs = [
        (system, texts.get((item["prompt"], system, sample)))
        for side, system in zip("xy", named, strict=False)
        for sample in item[side] or (0,)
    ]

    def said(people: Sequence[str]) -> list[dict[str, Any]]:
        return [
            {
                "system": "" if "system" in item else system,
                "text": text,
                "kept": None if (share := item.get("kept", {}).get(person)) is None else cells.format_percent(share),
            }
            for name in item["items"]
            for person in people
            for system, text, is_rewrite in comments.get((name, person), ())
            if system in (None, *named) and is_rewrite is ("kept" in item)
        ]

    prompt = next((output.prompt for _, output in outputs if output is not None), None)
    shown = [(f"Prompt {item['prompt']}", prompt)] + ([("Source", prompt)] if prompt and prompt.source else [])
    return {
        "result": _result_in_words(compared, item),
        "is_retired": is_retired,
        "texts": []
        if is_retired
        else [
            _text_context(study, name, stimulus, "source" if name == "Source" else "text", is_public)
            for name, stimulus in (*shown, *outputs)
        ],
        # A rewrite has words of its text, so it is shown only where the text is.
        "comments": []
        if "sides" in item or ("kept" in item and (is_retired or (is_public and study.stimuli_source)))
        else said(item["comments"]),
        "sides": [{"title": title, "comments": said(item["sides"][side])} for side, title in SIDES]
        if any(map(said, item.get("sides", {}).values()))
        else [],
    }


def _result_in_words(compared: Mapping[str, Any], item: Mapping[str, Any]) -> str:
    """Return the result of an item for the winner: the share of answers, or the mean difference."""
    if "kept" in item:
        share = (
            "no words to keep" if item["mean"] is None else f"{cells.format_percent(item['mean'])} of its words kept"
        )
        return f"{share}, {cells.format_count(item['n'], 'rewrite')}"
    if "system" in item:
        return f"{cells.format_percent(item['mean'])} right, {cells.format_count(item['n'], 'answer')}"
    named = compared["winner"] or compared["x"]
    mean = 2 * compared["null"] - item["mean"] if compared["side"] < 0 else item["mean"]
    n = cells.format_count(item["n"], "answer")
    if compared["null"]:
        return f"{cells.format_percent(mean)} for {named}, {n}"
    return f"{'+' if mean > 0 else ''}{cells.format_number(mean)} for {named} on average, {n}"


def _text_context(study: Study, name: str, stimulus: Any, column: str, is_public: bool) -> dict[str, Any]:
    if is_public and study.stimuli_source:
        return {"name": name, "is_withheld": True}
    text = getattr(stimulus, column, "") or ""
    media = getattr(stimulus, "media", "") if column == "text" else ""
    return {
        "name": name,
        "is_missing": stimulus is None or not (text or media or getattr(stimulus, "is_empty", False)),
        "is_empty": getattr(stimulus, "is_empty", False),
        "text": text,
        "is_long": len(text) > LONG_TEXT,
        "beginning": text[:LONG_TEXT],
        "language": getattr(stimulus, "language", ""),
        "url": media and (f"media/{media}" if is_public else reverse("admin:studies_media", args=[study.pk, media])),
        "alt": getattr(stimulus, "alt", "") or "",
    }
