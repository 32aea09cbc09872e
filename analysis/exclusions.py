"""Exclusion rules: each says of every submitted assignment pass, fail or unknown, with its evidence; unknown never excludes.

Rules see the answers as they were given, never what other rules left, so that the kept set does not depend on their order. A
rule that looks at what was answered to the questions under study is not outcome-blind, and is left out of the recommended
estimates. Nothing here imports pandas when it is loaded: the registry is filled in every web process.
"""

import csv
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from django import forms

from studies.protocols import REGISTRY as PROTOCOLS
from studies.rules import REGISTRY, register

if TYPE_CHECKING:
    from pandas import DataFrame

    from studies.models import Section

PASS, FAIL, UNKNOWN = "pass", "fail", "unknown"
# Applied to every study, declared or not: people's decisions, and answers that came after the place was given away.
ALWAYS = ("manual", "late")
MIN_CONSTANT = 8
MIN_RUN, RUN_SHARE = 10, 0.8
COPIED_TOKENS, COPIED_SHARE = 8, 0.8


@dataclass(frozen=True, slots=True)
class Material:
    """What rules may look at: the frames of submitted assignments, decisions of people, and texts read on demand.

    ``words``: the words shown in each batch; ``shown``: the texts shown in each batch, by batch number; ``reviews``: what reviewers
    decided of each annotator's work, the reasons where they refuse it and '' where not; ``asked``: the items of each live section for
    those who were asked about fewer than the draw gave others, because an item was retired or a third label alone was wanted.
    """

    responses: "DataFrame"
    assignments: "DataFrame"
    decisions: Mapping[int, str] = field(default_factory=dict)
    allowed: int = 1
    words: Callable[[], Mapping[int, int]] = dict
    shown: Callable[[], Mapping[int, list[str]]] = dict
    reviews: Callable[[], Mapping[int, str]] = dict
    asked: Callable[[], Mapping[int, tuple[tuple[int, int], ...]]] = dict

    @property
    def submitted(self) -> list[int]:
        return self.assignments.loc[self.assignments["is_submitted"], "assignment"].tolist()


@dataclass(slots=True)
class Flags:
    """What a rule found: a state for each assignment, and for those that fail (or might) what it rests on."""

    states: dict[int, str] = field(default_factory=dict)
    evidence: dict[int, str] = field(default_factory=dict)

    def add(self, assignment: int, state: str, evidence: str = "") -> None:
        self.states[assignment] = state
        if evidence:
            self.evidence[assignment] = evidence


def _quoted(key: str) -> str:
    return '"{}"'.format(key.replace('"', '""')) if "," in key or key.startswith('"') else key


class Keys(forms.CharField):
    """Keys of answer options, separated by commas; kept as a list. A key that has a comma in it is written in quotes."""

    def prepare_value(self, value):
        if not isinstance(value, list | tuple):
            return value
        return ", ".join(_quoted(str(key)) for key in value)

    def to_python(self, value):
        if isinstance(value, list | tuple):  # as it is stored
            return [str(key) for key in value]
        try:
            rows = list(csv.reader((super().to_python(value) or "").splitlines(), skipinitialspace=True))
        except csv.Error as error:
            raise forms.ValidationError(f"The keys cannot be read: {error}.") from None
        return [key.strip() for row in rows for key in row if key.strip()]

    def validate(self, value):
        if self.required and not value:
            raise forms.ValidationError(self.error_messages["required"], code="required")

    def run_validators(self, value):
        for key in value:
            super().run_validators(key)


class TauSettings(forms.Form):
    tau = forms.DecimalField(
        min_value=0, max_value=2, decimal_places=2, initial=1.1, label="largest sum of two answers (tau)",
        help_text="Whose two answers to some pair add up to more than this. 2 excludes nobody.",
    )  # fmt: skip
    symmetric = forms.BooleanField(
        required=False,
        initial=False,
        label="sums that are too small too",
        help_text="Also those whose answers add up to less than 2 minus tau.",
    )

    def clean(self):
        cleaned = super().clean()
        # Settings are kept as JSON, which has no decimals.
        if cleaned.get("tau") is not None:
            cleaned["tau"] = float(cleaned["tau"])
        return cleaned


class AnswerSettings(forms.Form):
    question = forms.SlugField(max_length=50, help_text="Its name in the data.")
    options = Keys(label="answers", help_text="Keys of its answers, separated by commas.")


class RepeatedSettings(forms.Form):
    policy = forms.ChoiceField(
        choices=[
            ("drop_all", "leave out all that the person submitted"),
            ("keep_first", "keep what was submitted first"),
        ],
        initial="drop_all",
        label="where somebody submitted more than allowed",
    )


class IncompleteSettings(forms.Form):
    share = forms.FloatField(
        min_value=0.01, max_value=1, initial=1.0, label="answered at least", help_text="Share of the questions asked."
    )


class TooFastSettings(forms.Form):
    words_per_minute = forms.IntegerField(
        min_value=100,
        max_value=5000,
        initial=700,
        label="fastest reading, words per minute",
        help_text="Faster than this nobody reads.",
    )
    z = forms.FloatField(
        required=False, max_value=-1, initial=-3, label="fastest beside others (robust z)",
        help_text="Also those whose time is so far below the others' of their arm (robust z of log seconds). Empty: not.",
    )  # fmt: skip


@register(
    "incoherent", "incoherent: two answers to one pair add up to too much (tau)",
    settings_form=TauSettings, is_outcome_blind=False, source="Ethayarajh and Jurafsky 2022, section 5.2",
)  # fmt: skip
def incoherent(material: Material, tau: float = 1.1, symmetric: bool = False) -> Flags:
    """Finds who gave P[x > y] and P[y > x] that add up to more than tau, for any pair; one pair is enough.

    It selects on the answers themselves: one-order estimates after it are biased downwards, so the recommended estimates are
    made without it and show what it would do.
    """
    limit = round(100 * float(tau))
    flags = Flags(dict.fromkeys(material.submitted, UNKNOWN))
    rows = material.responses
    rows = rows[rows["x"].notna() & rows["value"].notna() & (rows["purpose"] == "live")]
    answers: dict[tuple, int] = {}
    columns = ("assignment", "section", "criterion", "x", "y", "value")
    for assignment, section, criterion, x, y, value in zip(*(rows[name] for name in columns), strict=True):
        percent = round(100 * value)
        answers[assignment, section, criterion, x, y] = percent
        reverse = answers.get((assignment, section, criterion, y, x))
        if reverse is None or flags.states.get(assignment) is None:
            continue
        total = percent + reverse
        if total > limit or (symmetric and total < 200 - limit):
            flags.add(assignment, FAIL, f"{x} over {y} and {y} over {x} add up to {total} %")
        elif flags.states[assignment] == UNKNOWN:
            flags.states[assignment] = PASS
    return flags


def answer_problems(sections: Iterable["Section"], question: str, options: list[str]) -> Iterator[str]:
    """Why a rule about the answers to a question could not find what it should: the question or an answer does not exist.

    ``sections``: those of the study, with their questions.
    """
    asked = [
        (each, PROTOCOLS[section.protocol].answer_keys(section, each))
        for section in sections
        if section.protocol in PROTOCOLS
        for each in section.questions.all()
    ]
    there = dict.fromkeys(key for each, keys in asked if each.key == question for key in keys)
    if not any(each.key == question for each, _ in asked):
        choices = dict.fromkeys(each.key for each, keys in asked if keys)
        known = (
            f"Questions with answers to choose from are: {', '.join(choices)}."
            if choices
            else "The study has no question with answers to choose from."
        )
        yield f"the study has no question with the key “{question}”. {known}"
    elif not there:
        yield f"the question “{question}” has no answers to choose from."
    elif unknown := [key for key in options if key not in there]:
        keys = "keys" if len(unknown) > 1 else "key"
        yield f"the question “{question}” has no answer with the {keys} {', '.join(f'“{key}”' for key in unknown)}. Its answers have the keys: {', '.join(there)}."


def _answered(material: Material, question: str, options: list[str], fails_if_chosen: bool) -> Flags:
    flags = Flags(dict.fromkeys(material.submitted, UNKNOWN))
    rows = material.responses
    rows = rows[(rows["question"] == question) & ~rows["is_erased"]]
    chosen: dict[int, set[str]] = {}
    for assignment, choice, value in zip(rows["assignment"], rows["choice"], rows["value"], strict=True):
        # A box of a multiple choice that was left empty is stored as 0.
        if choice and value != 0:
            chosen.setdefault(assignment, set()).add(choice)
    for assignment, keys in chosen.items():
        if assignment in flags.states:
            is_found = bool(keys & set(options))
            state = FAIL if is_found == fails_if_chosen else PASS
            flags.add(assignment, state, f"{question}: {', '.join(sorted(keys))}" if state == FAIL else "")
    return flags


@register(
    "not_native", "not native: the answer to a question about language is not one of those wanted",
    settings_form=AnswerSettings, problems=answer_problems, source="Ethayarajh and Jurafsky 2022, appendix A.2",
)  # fmt: skip
def not_native(material: Material, question: str, options: list[str]) -> Flags:
    """Finds whose answer to the named question is none of the options given. Who was not asked is unknown."""
    return _answered(material, question, options, fails_if_chosen=False)


@register(
    "answered", "answered: gave one of the named answers to a question",
    settings_form=AnswerSettings, problems=answer_problems,
)  # fmt: skip
def answered(material: Material, question: str, options: list[str]) -> Flags:
    """Finds who gave one of the options to the named question (of a survey, say). Who was not asked is unknown."""
    return _answered(material, question, options, fails_if_chosen=True)


@register(
    "repeated", "repeated: the same person submitted more often than allowed",
    settings_form=RepeatedSettings, source="Ethayarajh and Jurafsky 2022, appendix A.2",
)  # fmt: skip
def repeated(material: Material, policy: str = "drop_all") -> Flags:
    """Finds people who submitted more batches than the study gives one person; all of them, or all but the first."""
    flags = Flags()
    rows = material.assignments
    rows = rows[rows["is_submitted"]].sort_values(["submitted_at", "assignment"])
    for _, mine in rows.groupby("annotator", sort=False):
        for place, assignment in enumerate(mine["assignment"]):
            is_over = len(mine) > material.allowed and (policy == "drop_all" or place >= material.allowed)
            evidence = f"submitted {len(mine)} times, {material.allowed} allowed"
            flags.add(assignment, FAIL if is_over else PASS, evidence if is_over else "")
    return flags


@register("late", "late: submitted after the place had been given to somebody else, or after the study was closed")
def late(material: Material) -> Flags:
    """Finds assignments that were submitted after they had been released. Applied to every study."""
    rows = material.assignments
    rows = rows[rows["is_submitted"]]
    flags = Flags()
    for assignment, is_late, reason in zip(rows["assignment"], rows["is_late"], rows["released_reason"], strict=True):
        flags.add(assignment, FAIL if is_late else PASS, f"released before: {reason}" if is_late else "")
    return flags


@register("manual", "left out by a researcher's decision")
def manual(material: Material) -> Flags:
    """Finds assignments for which an exclusion was entered and not taken back. Applied to every study."""
    flags = Flags()
    for assignment in material.submitted:
        reason = material.decisions.get(assignment)
        flags.add(assignment, PASS if reason is None else FAIL, reason or "")
    return flags


@register("incomplete", "incomplete: too few of the questions answered", settings_form=IncompleteSettings)
def incomplete(material: Material, share: float = 1.0) -> Flags:
    """Finds who answered less than the given share of what others of their arm were asked in live sections.

    Skipped, erased and unreadable answers count as not given; voluntary words are not counted, and error marks in one text are one
    answer. Who was asked about fewer items (one was retired, or a third label was wanted) is compared with others of whom that is so.
    """
    flags = Flags()
    rows = material.responses
    rows = rows[rows["purpose"] == "live"]
    is_words = (rows["text"] != "") & rows["value"].isna() & (rows["choice"] == "") & rows["chosen_system"].isna()
    voluntary = set(rows.loc[is_words, "question"])
    rows = rows[~rows["question"].isin(voluntary)]
    given = rows[
        (rows["value"].notna() | (rows["choice"] != "") | rows["chosen_system"].notna()) & (rows["skip_reason"] == "")
    ]
    fewer = material.asked()
    counts = _places(given)
    submitted = material.assignments[material.assignments["is_submitted"]]
    like = {
        assignment: (arm, fewer.get(assignment))
        for assignment, arm in zip(material.assignments["assignment"], material.assignments["arm"], strict=True)
    }
    asked: dict[Any, int] = {}
    for assignment, n in _places(rows).items():
        if assignment in like:
            asked[like[assignment]] = max(n, asked.get(like[assignment], 0))
    for assignment in submitted["assignment"]:
        wanted = asked.get(like[assignment], 0)
        if not wanted:
            flags.add(assignment, UNKNOWN)
            continue
        n = counts.get(assignment, 0)
        is_short = n < share * wanted - 1e-9
        flags.add(assignment, FAIL if is_short else PASS, f"answered {n} of {wanted}" if is_short else "")
    return flags


def _places(rows: "DataFrame") -> dict[int, int]:
    """What each assignment was asked about: a question about an item, or about one of its outputs, counts once."""
    keys = ["assignment", "section", "question", "item", "system", "sample"]
    return rows[keys].drop_duplicates().groupby("assignment").size().to_dict()


@register(
    "too_fast", "too fast: done in less time than reading takes", settings_form=TooFastSettings,
    source="Clark et al. 2021, section 3",
)  # fmt: skip
def too_fast(material: Material, words_per_minute: int = 700, z: float | None = -3) -> Flags:
    """Finds who submitted sooner than the words of their batch can be read, or far sooner than the others of their arm.

    Time is from start to submission by the server's clock. What the page's script counts is no evidence.
    """
    flags = Flags()
    rows = material.assignments[material.assignments["is_submitted"]]
    words = material.words()
    logs: dict[str, list[float]] = {}
    for arm, seconds in zip(rows["arm"], rows["seconds"], strict=True):
        if seconds == seconds and seconds > 0:
            logs.setdefault(arm, []).append(math.log(seconds))
    centre = {arm: _median_and_spread(values) for arm, values in logs.items()}
    for assignment, arm, batch, seconds in zip(
        rows["assignment"], rows["arm"], rows["batch"], rows["seconds"], strict=True
    ):
        if seconds != seconds:
            flags.add(assignment, UNKNOWN)
            continue
        needed = 60 * words.get(batch, 0) / words_per_minute
        if seconds < needed:
            flags.add(assignment, FAIL, f"{seconds:.0f} s for {words[batch]} words")
            continue
        middle, spread = centre.get(arm, (0.0, 0.0))
        distance = (math.log(max(seconds, 1e-3)) - middle) / spread if spread > 0 else 0.0
        if z is not None and distance < z:
            flags.add(assignment, FAIL, f"{seconds:.0f} s, {-distance:.1f} spreads below the arm's median")
        else:
            flags.add(assignment, PASS)
    return flags


def _median_and_spread(values: list[float]) -> tuple[float, float]:
    def median(numbers):
        ordered = sorted(numbers)
        half = len(ordered) // 2
        return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2

    middle = median(values)
    return middle, 1.4826 * median([abs(value - middle) for value in values])


@register(
    "straight_lining", "straight lining: the same answer throughout where that cannot be meant", is_outcome_blind=False
)
def straight_lining(material: Material) -> Flags:
    """Finds one answer given over and over where it contradicts itself: both directions of a pair, and not 50 %.

    A long run of equal ratings is listed as unknown, with its length: it may be what the person thinks, and excludes nobody.
    """
    flags = Flags(dict.fromkeys(material.submitted, PASS))
    rows = material.responses
    rows = rows[rows["value"].notna() & (rows["purpose"] == "live") & (rows["choice"] == "")]
    rows = rows.sort_values(["assignment", "received_at", "section", "position", "id"], kind="stable")
    for assignment, mine in rows.groupby("assignment", sort=False):
        if assignment not in flags.states:
            continue
        for _, part in mine.groupby("section", sort=False):
            values = [round(value, 6) for value in part["value"]]
            value, longest = max(
                ((value, len(list(run))) for value, run in groupby(values)), key=lambda found: found[1]
            )
            is_long = longest >= max(MIN_RUN, RUN_SHARE * len(values))
            is_constant = len(set(values)) == 1 and len(values) >= MIN_CONSTANT
            if not (is_long or is_constant):
                continue
            pairs = set(zip(part["x"], part["y"], strict=True))
            both = any(isinstance(x, str) and (y, x) in pairs for x, y in pairs)
            evidence = f"{longest} times {value:g} of the scale in a row, of {len(values)} answers"
            if both and value != 0.5:
                flags.add(assignment, FAIL, evidence)
            elif not both and flags.states[assignment] == PASS:
                flags.add(assignment, UNKNOWN, evidence)
    return flags


@register(
    "copied_text", "copied text: words of the explanation are words of the texts shown", source="Clark et al. 2021"
)
def copied_text(material: Material) -> Flags:
    """Finds explanations of which at least 8 words in a row, and 80 % of all, stand in a text that the person was shown."""
    flags = Flags(dict.fromkeys(material.submitted, UNKNOWN))
    rows = material.responses
    rows = rows[(rows["text"] != "") & ~rows["is_erased"]]
    if not len(rows):
        return flags
    shown = material.shown()
    tokens: dict[int, list[list[str]]] = {}
    for assignment, batch, text in zip(rows["assignment"], rows["batch"], rows["text"], strict=True):
        if assignment not in flags.states:
            continue
        if flags.states[assignment] == UNKNOWN:
            flags.states[assignment] = PASS
        said = tokens_of(text[:20_000])
        if len(said) < COPIED_TOKENS:
            continue
        if batch not in tokens:
            tokens[batch] = [tokens_of(output) for output in shown.get(batch, [])]
        longest = max((longest_common_run(said, output) for output in tokens[batch]), default=0)
        if longest >= COPIED_TOKENS and longest >= COPIED_SHARE * len(said):
            flags.add(assignment, FAIL, f"{longest} of {len(said)} words in a row are copied")
    return flags


def tokens_of(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def longest_common_run(said: list[str], shown: list[str]) -> int:
    """The length of the longest run of tokens that stands in both; 0 below ``COPIED_TOKENS``."""
    size = COPIED_TOKENS
    starts: dict[tuple, list[int]] = {}
    for place in range(len(shown) - size + 1):
        starts.setdefault(tuple(shown[place : place + size]), []).append(place)
    longest = 0
    for place in range(len(said) - size + 1):
        if len(said) - place <= longest:
            break
        for start in starts.get(tuple(said[place : place + size]), ())[:50]:
            length = size
            while (
                place + length < len(said)
                and start + length < len(shown)
                and said[place + length] == shown[start + length]
            ):
                length += 1
            longest = max(longest, length)
    return longest


@register(
    "failed_review", "failed review: two reviewers found reasons to refuse the work", is_outcome_blind=False,
    source="Clark et al. 2021, section 2.3",
)  # fmt: skip
def failed_review(material: Material) -> Flags:
    """Finds annotators whose work reviewers refused, by the rule declared with their sample. Who was not reviewed is unknown.

    Reviewers know neither condition nor truth, but they read the answers: estimates after it are the paper's.
    """
    reviews = material.reviews()
    flags = Flags()
    for assignment in material.submitted:
        reasons = reviews.get(assignment)
        flags.add(assignment, UNKNOWN if reasons is None else FAIL if reasons else PASS, reasons or "")
    return flags


@register("unverified", "unverified: nobody but the address says who the person is")
def unverified(material: Material) -> Flags:
    """Finds assignments whose person only the address named, or who came by an open link: neither keyed nor confirmed."""
    flags = Flags()
    rows = material.assignments[material.assignments["is_submitted"]]
    for assignment, trust, is_identified in zip(rows["assignment"], rows["trust"], rows["is_identified"], strict=True):
        is_loose = trust == "claimed" or not is_identified
        flags.add(assignment, FAIL if is_loose else PASS, f"identity {trust}" if is_loose else "")
    return flags


@dataclass(frozen=True, slots=True)
class Applied:
    """A rule with its settings and what it found. ``role``: primary, sensitivity, or always."""

    slug: str
    label: str
    role: str
    settings: Mapping[str, Any]
    is_outcome_blind: bool
    flags: Flags
    problem: str = ""

    @property
    def failed(self) -> set[int]:
        return {assignment for assignment, state in self.flags.states.items() if state == FAIL}

    @property
    def excludes(self) -> bool:
        return self.role in ("primary", "always")


def apply_rules(study, material: Material) -> list[Applied]:
    """Every rule of the study's design, in its order, after those that always hold. A rule that cannot run excludes nobody."""
    declared = [
        (rule.rule, rule.settings or {}, rule.role) for rule in study.exclusion_rules.order_by("position", "rule")
    ]
    names = {slug for slug, _, _ in declared}
    wanted = [(slug, {}, "always") for slug in ALWAYS if slug not in names] + declared
    return [_applied(slug, settings, role, material) for slug, settings, role in wanted]


def _applied(slug: str, settings: Mapping[str, Any], role: str, material: Material) -> Applied:
    rule = REGISTRY.get(slug)
    nobody = Flags(dict.fromkeys(material.submitted, UNKNOWN))
    if rule is None:
        return Applied(slug, slug, role, settings, True, nobody, f"The rule {slug!r} is not installed.")
    make = partial(Applied, slug, rule.label, role)
    cleaned: dict[str, Any] = {}
    if (form := rule.bound(settings)) is not None:
        if not form.is_valid():
            found = "; ".join(f"{name}: {' '.join(errors)}" for name, errors in form.errors.items())
            return make(dict(settings), rule.is_outcome_blind, nobody, f"Its settings cannot be used: {found}")
        cleaned = form.cleaned_data
    return make(cleaned, rule.is_outcome_blind, rule.flag(material, **cleaned))


def kept(applied: list[Applied], submitted: list[int], *, is_paper: bool = False) -> list[int]:
    """Who stays: those whom no excluding rule finds. The recommended set passes over rules that look at outcomes."""
    rules = [rule for rule in applied if rule.excludes and (is_paper or rule.is_outcome_blind)]
    out = set().union(*(rule.failed for rule in rules))
    return [assignment for assignment in submitted if assignment not in out]


def flow(applied: list[Applied], assignments: "DataFrame") -> dict[str, Any]:
    """Who left by which rule: stages, each rule's marginal and sequential counts (also by arm), overlaps, and the people.

    Sequential counts follow the order of the rules; for each, n_in - n_excluded = n_out. Whoever began was released, is unfinished or
    submitted, and stands in one of these alone.
    """
    submitted = assignments[assignments["is_submitted"]]
    arm_of = dict(zip(submitted["assignment"], submitted["arm"], strict=True))
    name_of = dict(zip(submitted["assignment"], submitted["annotator"], strict=True))
    left = list(arm_of)
    found: dict[int, list[str]] = {}
    steps, people = [], []
    for rule in applied:
        for assignment in rule.failed & arm_of.keys():
            if rule.excludes:
                found.setdefault(assignment, []).append(rule.slug)
        out = [assignment for assignment in left if assignment in rule.failed] if rule.excludes else []
        before = Counter(arm_of[assignment] for assignment in left)
        gone = Counter(arm_of[assignment] for assignment in out)
        n_in = len(left)
        left = [assignment for assignment in left if assignment not in rule.failed] if rule.excludes else left
        steps.append(
            {
                "rule": rule.slug, "label": rule.label, "role": rule.role, "is_outcome_blind": rule.is_outcome_blind,
                "settings": dict(rule.settings), "problem": rule.problem, "n_in": n_in,
                "n_flagged": len(rule.failed & arm_of.keys()),
                "n_unknown": sum(state == UNKNOWN for state in rule.flags.states.values()),
                "n_excluded": len(out), "n_out": len(left),
                "by_arm": {arm: {"n_in": n, "n_excluded": gone.get(arm, 0)} for arm, n in sorted(before.items())},
            }
        )  # fmt: skip
        people += [
            {"annotator": name_of[assignment], "rule": rule.slug, "evidence": rule.flags.evidence.get(assignment, "")}
            for assignment in out
        ]
    overlaps = Counter(tuple(sorted(rules)) for rules in found.values())
    # Who came back after the place had gone and submitted is among those who did.
    unsubmitted = assignments[~assignments["is_submitted"]]
    reasons = Counter(reason for reason in unsubmitted["released_reason"] if reason)
    return {
        "unit": "assignment",
        "arrived": len(assignments),
        "turned_away": reasons.get("full", 0),
        "started": len(assignments) - reasons.get("full", 0),
        "released": {reason: n for reason, n in sorted(reasons.items()) if reason != "full"},
        "unfinished": int((~assignments["is_submitted"] & assignments["released_at"].isna()).sum()),
        "submitted": len(arm_of),
        "rules": steps,
        "overlaps": [
            {"rules": list(rules), "n": n} for rules, n in sorted(overlaps.items(), key=lambda o: (-o[1], o[0]))
        ],
        "people": sorted(people, key=lambda person: (person["rule"], person["annotator"])),
        "kept": len(left),
    }
