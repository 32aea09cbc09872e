"""Whatever the checklist accepts gets a result, and what is estimated beforehand is what is asked.

Designs are made of every protocol and its estimands, every coverage and fixed or random letters, of arms that show all systems, one each, or
some in common, of drawn items or ready-made ones with one, two or all outputs, and of a second section of every protocol that shows the same
items again. The checklist either names a planned comparison that no batch can answer, before launch, or robots answer the design, and then
the report has an estimate of every planned comparison.
"""

import random
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from itertools import product

import pytest

from analysis.report.build import build_report
from annotators.models import Assignment
from annotators.pages.record import full_page_state
from annotators.participation.simulate import CrowdSettings, record_simulated_answers
from studies.design import checklist
from studies.design.draw import DrawnBatch, store_drawn_batches
from studies.design.workload import estimate_stored_or_trial_batch_workloads
from studies.models import Arm, Batch, Contrast, Output, Study
from studies.protocols import REGISTRY, DrawnItem
from studies.stimuli.texts import reading_minutes, word_count
from tests.builders import add_section, draft_study, launched

pytestmark = pytest.mark.django_db

# Which systems each arm shows. A name after a colon makes it a human author.
ARMS = {
    "all systems": [()],
    "one system each": [("alpha",), ("beta",), ("gamma",)],
    "in common": [("alpha", "gamma"), ("beta", "gamma")],
    "two of each": [("alpha", "beta"), ("alpha", "beta", "gamma")],
}
ITEMS = ("drawn", "one output", "two outputs", "all outputs")
TARGET = 12


@dataclass(frozen=True)
class Planned:
    """One design. ``again``: the protocol of a second section that shows the items of the first again; ``is_first``: whether the
    comparison is about the first section. ``human``: whether gamma is a human author."""

    protocol: str
    estimand: str = ""
    arms: str = "all systems"
    items: str = "drawn"
    coverage: str = "balanced"
    labels: str = "random"
    again: str = ""
    is_first: bool = True
    human: bool = False
    settings: tuple = ()

    def __str__(self):
        named = [
            self.protocol,
            self.estimand,
            self.arms,
            self.items,
            self.coverage,
            self.labels,
            f"again {self.again}" * bool(self.again),
        ]
        return ", ".join(filter(None, [*named, "human" * self.human, "of the second" * (not self.is_first)]))


@cache
def protocols():
    """The protocols that estimate something, with their estimands; a new one is here without a change of this file."""
    found = {slug: tuple(REGISTRY[slug].estimands(None)) for slug in sorted(REGISTRY)}
    found = {slug: estimands for slug, estimands in found.items() if estimands}
    assert len(found) >= 7 and sum(map(len, found.values())) >= 12
    return found


def section_of(study, slug, position, *, reuses=None, labels="random", settings=()):
    """A section of a protocol with its own questions, or one of the kind with which its questions begin."""
    form = REGISTRY[slug].settings_form
    # Strategies that count labels need as many places as there are items; that is another test's subject.
    given = {"labels": labels, "strategy": "any", "stopping": "none"}
    given = {name: value for name, value in given.items() if form and name in form.base_fields} | dict(settings)
    pair = [study.systems.get(name=name) for name in ("alpha", "beta")]
    return add_section(study, slug, position=position, m=4, reuses=reuses, pairs=[pair], settings=given)


def drafted(planned: Planned) -> Study:
    # An even number of prompts, so that both systems of "one output" are shown equally often.
    study = draft_study(
        systems=("alpha", "beta", "gamma"),
        prompts=8,
        target_n=TARGET,
        coverage=planned.coverage,
        wage_per_hour="10",
        title=str(planned),
    )
    if planned.human:
        study.systems.filter(name="gamma").update(is_human=True)
    by_name = {system.name: system for system in study.systems.all()}
    if planned.arms != "all systems":
        study.arms.all().delete()
        for number, names in enumerate(ARMS[planned.arms], 1):
            arm = Arm.objects.create(study=study, name=f"arm {number}")
            arm.systems.set([by_name[name] for name in names])
    first = section_of(study, planned.protocol, 1, labels=planned.labels, settings=planned.settings)
    second = section_of(study, planned.again, 2, reuses=first) if planned.again else None
    Contrast.objects.create(
        study=study,
        x=by_name["alpha"],
        y=by_name["beta"],
        estimand=planned.estimand,
        section=first if planned.is_first else second,
    )
    if planned.items != "drawn":
        ready_made(study, first, {"one output": 1, "two outputs": 2, "all outputs": 3}[planned.items])
    return study


def ready_made(study, section, most):
    """Batches of items with at most so many outputs each, in turn over the systems of the arm."""
    outputs = {(o.prompt_id, o.system_id): o.pk for o in Output.objects.filter(system__study=study)}
    prompts = list(study.prompts.order_by("key").values_list("pk", flat=True))
    everybody = list(study.systems.order_by("name").values_list("pk", flat=True))
    arms = [
        (arm.pk, sorted(arm.systems.values_list("pk", flat=True)) or everybody) for arm in study.arms.order_by("name")
    ]
    batches = []
    for number in range(TARGET):
        arm, systems = arms[number % len(arms)]
        items = []
        for place in range(section.m):
            prompt = prompts[(number * section.m + place) % len(prompts)]
            turn = number // len(arms) + place
            shown = sorted(systems[(turn + n) % len(systems)] for n in range(min(most, len(systems))))
            items.append((section.pk, DrawnItem(prompt, tuple(outputs[prompt, system] for system in shown))))
        batches.append(DrawnBatch(number, arm, tuple(items)))
    store_drawn_batches(
        study, batches, places_per_batch=1, origin=Batch.Origin.IMPORTED, keys=[f"b{n}" for n in range(TARGET)]
    )


def small_designs():
    """Every protocol by arms and items, with coverage and letters in turns; then its other estimands; then every protocol shown again."""
    for turn, (slug, arms, items) in enumerate(product(protocols(), ARMS, ITEMS)):
        coverage, labels = sorted(Study.Coverage.values)[turn % 2], ("random", "fixed")[turn // 2 % 2]
        yield Planned(slug, "", arms, items, coverage, labels, human=slug == "humanlike")
    for slug, estimands in protocols().items():
        for estimand, arms in product(estimands[1:], ("all systems", "one system each", "in common")):
            yield Planned(slug, estimand, arms, human=slug == "humanlike")
    for slug, again in product(protocols(), protocols()):
        yield Planned(slug, again=again, is_first=False, human="humanlike" in (slug, again))


def every_design():
    for slug, estimands in protocols().items():
        for estimand, arms, items, coverage, labels, human in product(
            ("", *estimands[1:]), ARMS, ITEMS, Study.Coverage.values, ("random", "fixed"), (False, True)
        ):
            yield Planned(slug, estimand, arms, items, coverage, labels, human=human)
        for again, is_first, arms, items in product(protocols(), (True, False), ARMS, ITEMS):
            yield Planned(slug, arms=arms, items=items, again=again, is_first=is_first, human=True)


def asked_on_pages(assignment):
    """What the pages of an assignment asked for: answers and words to read, each text once."""
    standing = full_page_state(assignment)
    asks = {
        (page.key, ask.question_id, ask.item_id, ask.exposure_id)
        for page, protocol in ((step.page, step.protocol) for step in standing.steps.values())
        for ask in protocol.page_fields(page).values()
    }
    items = {item.id for step in standing.steps.values() for item in step.page.items}
    exposures = {
        exposure for step in standing.steps.values() for item in step.page.items for _, exposure in item.exposures
    }
    return len(asks), items, exposures


def checked_workload(study):
    """The estimate of each batch is what its pages asked for; pay an hour follows from it."""
    estimated = {int(one.batch): one for one in estimate_stored_or_trial_batch_workloads(study)}
    exposures = {
        exposure: (output.text, item, output.prompt.text)
        for output in Output.objects.filter(system__study=study).select_related("prompt")
        for exposure, item in output.exposures.values_list("pk", "item_id")
    }
    n = 0
    for assignment in (
        Assignment.objects.filter(study=study).exclude(submitted_at=None).select_related("study", "batch")
    ):
        answers, _, shown = asked_on_pages(assignment)
        texts = [exposures[one] for one in shown]
        words = sum(word_count(text) for text, _, _ in texts) + sum(map(word_count, {prompt for *_, prompt in texts}))
        burden = estimated[assignment.batch.number]
        minutes = reading_minutes(words, study.words_per_minute) + answers / 4
        assert (burden.questions, burden.words) == (answers, words), (study.title, burden)
        assert burden.minutes == pytest.approx(minutes)
        assert burden.per_hour == pytest.approx(float(Decimal(study.reward)) * 60 / minutes)
        n += 1
    assert n == TARGET, study.title


def checked_estimate(study, planned):
    """Every planned comparison has an estimate among the recommended ones, and a sentence that holds a number."""
    report = build_report(study, {"origins": ["robot"], "resamples": 99})
    assert not report["problems"], (study.title, report["problems"])
    # The first block about planned comparisons (of the estimand that was named) has the estimates that the sentences are made of;
    # what follows it are checks.
    blocks = [
        [
            estimate
            for estimate in block["estimates"]
            if (about := estimate["settings"].get("contrast"))
            and about["is_planned"]
            and estimate["settings"].get("key", planned.estimand)
            == (planned.estimand or estimate["settings"].get("key", ""))
        ]
        for block in report["blocks"]
        if block["mode"] == "recommended"
    ]
    estimates = next(filter(None, blocks), [])
    assert estimates and all(estimate["estimate"] is not None for estimate in estimates), (study.title, estimates)
    assert report["conclusions"], study.title
    assert all(any(sign.isdigit() for sign in one["text"]) for one in report["conclusions"]), (
        study.title,
        report["conclusions"],
    )
    for one, estimate in product(report["conclusions"], estimates):
        if estimate["settings"].get("comparison") == "not side by side":
            assert "not side by side" in one["text"] and "prompts" in one["text"], (study.title, one)
    return {estimate["settings"].get("comparison") == "not side by side" for estimate in estimates}


def refused(study):
    """Why the checklist lets nobody launch the study: its blocking problems, each with words and a place; [] where it accepts it."""
    reasons = [problem for problem in checklist.find_design_problems(study) if problem.is_blocking]
    assert all(problem.text.strip() and problem.field for problem in reasons), reasons
    return reasons


def played(study, planned):
    """Robots answer an accepted study; gives whether its planned comparison was side by side."""
    study = launched(study)
    record_simulated_answers(study, TARGET, rng=random.Random(1), crowd=CrowdSettings(screened_out=0))
    checked_workload(study)
    return checked_estimate(study, planned)


@pytest.mark.slow
def test_whatever_the_checklist_accepts_gets_a_result():
    """All small designs are looked at; of those that are accepted one is played for each estimand, with and without systems that share no arm, and one for each protocol
    that shows items again."""
    n, accepted, outcomes = 0, {}, {}
    for planned in small_designs():
        n += 1
        study = drafted(planned)
        if refused(study):
            continue
        accepted[planned.protocol] = accepted.get(planned.protocol, 0) + 1
        is_split = planned.arms in ("one system each", "in common")
        kind = (planned.protocol, planned.estimand, is_split) if not planned.again else ("again", planned.again)
        if kind not in outcomes:
            outcomes[kind] = played(study, planned)
    assert n == len(protocols()) * (len(ARMS) * len(ITEMS) + len(protocols())) + 3 * sum(
        len(e) - 1 for e in protocols().values()
    )
    assert accepted.keys() == protocols().keys()
    apart = {kind for kind, found in outcomes.items() if True in found}
    assert {kind[0] for kind in apart} >= {
        slug for slug in protocols() if REGISTRY[slug].comparison_scope == "" and slug != "humanlike"
    }
    assert len(outcomes) > 15


@pytest.mark.slow
@pytest.mark.parametrize(
    "slug", sorted(slug for slug in REGISTRY if REGISTRY[slug].comparison_scope == "" and slug != "humanlike")
)
def test_one_output_per_prompt_and_annotator_is_compared_and_costs_what_it_asks(slug):
    """Direct assessment: eight ready-made items of one output each ask half of what items with two would."""
    planned = Planned(slug, items="one output")
    study = drafted(planned)
    assert not refused(study)
    assert played(study, planned) == {True}


@pytest.mark.slow
@pytest.mark.parametrize("slug", sorted(REGISTRY))
def test_every_accepted_design_gets_a_result(slug):
    for planned in every_design():
        if planned.protocol == slug and not refused(study := drafted(planned)):
            played(study, planned)


def test_a_comparison_that_no_batch_can_answer_is_named_with_the_reason_and_what_to_do():
    for planned, words in (
        (
            Planned("ranking", arms="in common", coverage="balanced"),
            ("sees together", "no batch shows alpha with beta", "give one arm both"),
        ),
        (Planned("rating", items="one output"), ()),
        (
            Planned("relative", arms="one system each"),
            ("two systems are needed to make a pair", "show more systems in this arm"),
        ),
        (Planned("spa", arms="in common"), ("does not show beta", "Add the system to the arm")),
        (Planned("two_choice", again="two_choice", is_first=False), ("Give it its own items",)),
        (Planned("humanlike", human=True), ("its own arm",)),
    ):
        text = " ".join(problem.text for problem in refused(drafted(planned)))
        assert bool(text) == bool(words), (str(planned), text)
        assert all(word in text for word in words), (str(planned), text)


def test_a_target_that_leaves_an_arm_without_a_batch_is_said_before_launch():
    study = drafted(Planned("rating", arms="one system each"))
    study.target_n = 1
    study.save()
    (problem,) = refused(study)
    assert (
        problem.name == "unanswered:alpha against beta"
        and "no batch shows" in problem.text
        and "target" in problem.text
    )
    study.target_n = TARGET
    study.save()
    assert not refused(study)


@pytest.mark.slow
def test_prompts_need_the_outputs_of_the_systems_of_their_arm_alone():
    """Each system has prompts of its own: nothing is missing, and the comparison is over different prompts."""
    planned = Planned("rating", arms="one system each")
    study = drafted(planned)
    third = study.arms.get(name="arm 3")
    third.systems.clear()
    third.delete()
    prompts = list(study.prompts.order_by("key"))
    Output.objects.filter(system__name="alpha", prompt__in=prompts[::2]).delete()
    Output.objects.filter(system__name="beta", prompt__in=prompts[1::2]).delete()
    assert not refused(study)
    names = {problem.name for problem in checklist.find_design_problems(study)}
    assert {"outputs_missing:arm 1", "outputs_missing:arm 2"} <= names
    assert played(study, planned) == {True}
