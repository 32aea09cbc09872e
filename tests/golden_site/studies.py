"""One study for every way to a number: all protocols, and what leads the analyses along other paths."""

import csv
import random
from pathlib import Path

from django.conf import settings
from django.db.models import F

from analysis.coding import record
from analysis.coding.codebook import EXPLANATIONS, REJECTIONS
from analysis.coding.sampling import draw_sample
from analysis.simulate import simulate_answers
from analysis.watch import look
from annotators import assign, settle
from annotators.exclude import exclude, reverse_exclusion
from annotators.importing import import_answers
from annotators.models import Assignment, Inquiry, PageVisit, Response
from studies import lifecycle
from studies.draw import DrawnBatch, write_batches
from studies.models import Arm, Batch, Contrast, Exposure, Item, Output, Question, Study, StudyMember
from studies.protocols import DrawnItem
from tests.builders import (
    COMMENT,
    SCREENING,
    add_choice,
    add_marks,
    add_ranking,
    add_rating,
    add_relative,
    add_spa,
    add_survey,
    choice_study,
    draft_study,
    exposures_draft,
    humanlike_draft,
    launched,
    recruitment,
    spa_draft,
    user,
)

from .people import CROWD, People, closed

STRENGTHS = {"alpha": 0.0, "beta": 0.6, "gamma": 1.1}
SKIP = [{"key": "cannot_judge", "label": "I cannot judge"}]
HINT = {"help": "Slowly, please."}


def titled(title: str, **columns) -> dict:
    return {"title": title, "seed": len(title), "owner": user("olga")} | columns


def plan(study: Study, x: str = "", y: str = "", **columns) -> None:
    systems = {system.name: system for system in study.systems.all()}
    Contrast.objects.create(study=study, x=systems.get(x), y=systems.get(y), **columns)


def skippable(study: Study, *protocols: str) -> None:
    Question.objects.filter(section__study=study, section__protocol__in=protocols).update(skip_reasons=SKIP)


def amended(study: Study, reason="a hint", item: Item | None = None) -> None:
    question = Question.objects.filter(section__study=study, section__purpose="live").order_by("pk").first()
    changes = {"question": {question.pk: HINT}} | ({"item": {item.pk: {"retired": True}}} if item else {})
    lifecycle.amend(Study.objects.get(pk=study.pk), changes, user("olga"), reason=reason)


# The paper, with everybody who spoils data


def paper(**columns) -> Study:
    """SPA, a rating that reuses its items, screening, a comment; every rule that needs no reviewer; all ways to end."""
    rules = [
        ("not_native", {"question": "mother", "options": ["english", "other, but fluent"]}),
        ("answered", {"question": "mother", "options": ["none"]}),
        ("repeated", {"policy": "drop_all"}),
        ("incomplete", {"share": 0.9}),
        ("too_fast", {"words_per_minute": 700, "z": -3}),
        ("copied_text", {}),
        ("unverified", {}),
        ("incoherent", {"tau": 1.1, "symmetric": False}),
        ("straight_lining", {}),
    ]
    draft = spa_draft(
        systems=("ada", "babbage", "curie", "davinci", "human"), prompts=40, target_n=30, rules=rules, m=3,
        **titled("paper", batches_per_annotator=2, wage_per_hour="12.00") | columns,
    )  # fmt: skip
    draft.exclusion_rules.filter(rule="unverified").update(role="sensitivity")
    survey = draft.sections.get(position=4)
    options = [{"key": key, "label": key} for key in ("english", "other, but fluent", "none")]
    Question.objects.create(
        section=survey, position=2, key="mother", text="What is your mother tongue?", scale={"kind": "choice", "options": options}
    )  # fmt: skip
    Question.objects.filter(section__study=draft, section__protocol="spa").update(skip_reasons=SKIP)
    for contrast, (expected, role, margin) in zip(
        draft.contrasts.order_by("pk"),
        ((">", "primary", 0.1), ("~", "primary", 0.15), ("<", "secondary", None), ("", "exploratory", 0.05)),
        strict=True,
    ):
        Contrast.objects.filter(pk=contrast.pk).update(expected=expected, role=role, margin=margin)
    rating = draft.sections.get(protocol="rating")
    plan(draft, "human", "ada", section=rating, estimand="superiority", expected=">", family="ratings", margin=0.1)
    plan(
        draft,
        "human",
        "davinci",
        section=rating,
        estimand="difference",
        expected="~",
        family="ratings",
        margin=0.5,
        level=0.1,
    )
    return launched(draft, user("olga"))


def mother_tongue(word):
    """Everybody answers the question about language so."""

    def change(asks, sent):
        for slot, ask in asks.items():
            if ask.field.kind == "choice" and word in [option.key for option in ask.field.options]:
                sent[slot] = word

    return change


def all_of(*changes):
    def change(asks, sent):
        for one in changes:
            one(asks, sent)

    return change


def numbers(value):
    """Every whole number is this one."""

    def change(asks, sent):
        for slot, ask in asks.items():
            if ask.field.kind == "number":
                sent[slot] = str(value)
                sent.pop(f"{slot}.skip", None)

    return change


def copying(words):
    def change(asks, sent):
        for slot, ask in asks.items():
            if ask.field.kind == "text":
                sent[slot] = words

    return change


def screened_out(asks, sent):
    for slot, ask in asks.items():
        if ask.field.kind == "choice" and any(option.screens_out for option in ask.field.options):
            sent[slot] = next(option.key for option in ask.field.options if option.screens_out)


def spoiled_paper() -> Study:
    study = paper()
    people = People(study, {"ada": 0.0, "babbage": 0.6, "curie": 0.9, "davinci": 1.3, "human": 1.4})
    english = mother_tongue("english")
    people.come(*range(14), change=english)
    people.come(*range(14, 17), change=mother_tongue("other, but fluent"))
    people.comes(17, change=mother_tongue("none"))
    people.comes(18, change=all_of(english, numbers(90)))  # incoherent, and the same throughout
    people.comes(19, change=all_of(english, numbers(100)))
    people.comes(20, change=english, exceptions=0.6)  # leaves much unanswered
    people.takes(people.comes(21, change=english), 0.2)
    people.comes(22, change=english), people.comes(22, change=english)
    text = Output.objects.filter(system__study=study, system__name="human").order_by("pk")[:1].get().text
    people.comes(23, change=all_of(english, copying(text)))
    people.comes(24, change=screened_out)
    assign.release(people.comes(25, until=2, change=english).pk, "returned")
    Assignment.objects.filter(pk=people.comes(26, until=3, change=english).pk).update(reserved_until=F("claimed_at"))
    assign.sweep()
    assign.withdraw(people.comes(27, change=english))
    late = people.comes(28, change=english)
    assign.release(late.pk, "expired")
    Assignment.objects.filter(pk=late.pk).update(is_late=True, released_at=F("submitted_at"), released_reason="expired")
    owner = user("olga")
    first, second, third = Assignment.objects.filter(study=study, submitted_at__isnull=False).order_by("pk")[:3]
    exclude([first], "technical", owner, "The page was blank.", reopen=True)
    mistaken, _ = exclude([second, third], "own_wish", owner)
    reverse_exclusion(mistaken, owner, "a mistake")
    people.comes(29, until=4, change=english)
    Inquiry.objects.create(assignment=third, kind="report", label="B", text="This text is odd.", page_key="s2")
    Inquiry.objects.create(assignment=second, kind="question", text="May I come again?")
    return closed(study)


# All protocols at once


def everything_drafted(**columns) -> Study:
    study = draft_study(prompts=200, instructions="", annotators_per_batch=2, **columns)
    spa = add_spa(study, position=1, m=2)
    add_rating(study, position=2, reuses=spa, m=2)
    add_rating(study, position=3, m=3)
    for position, add in enumerate((add_relative, add_ranking, add_marks, add_choice), 4):
        study.contrasts.all().delete()
        options = {"stopping": "none", "strategy": "any", "allows_tie": True} if add is add_choice else {}
        add(study, position=position, m=6 if add in (add_relative, add_choice) else 3, **options)
    skippable(study, "rating", "relative", "two_choice")
    return study


def every_protocol() -> Study:
    study = launched(everything_drafted(**titled("every protocol", target_n=14)))
    people = People(study, STRENGTHS)
    came = people.come(*range(12))
    people.comes(12, until=5), people.comes(13, until=14)
    exclude(came[4:5], "technical", user("olga"))
    return closed(study)


# Human or machine, coded and reviewed


def human_or_machine() -> Study:
    study = humanlike_draft(
        conditions=("none", "instructions", "examples", "comparison"), domains=("news", "stories"), machines=("gpt2", "gpt3"),
        texts=20, target_n=32, **titled("human or machine"),
    )  # fmt: skip
    plan(study, x_condition="examples", y_condition="none", expected=">", margin=0.2)
    plan(study, x_condition="comparison", y_condition="none", estimand="accuracy", margin=0.1, family="training")
    plan(study, x_condition="instructions", y_condition="none", estimand="criterion", role="secondary")
    plan(study, estimand="accuracy", expected=">", margin=0.05)
    plan(study, "gpt3", "gpt2", expected="<")
    study.exclusion_rules.create(position=1, rule="failed_review")
    study = launched(study, user("olga"))
    people = People(study, {"human": 0.0, "gpt2": -1.2, "gpt3": -0.3})
    came = people.come(*range(28))
    people.comes(28, until=3)
    coders = [user(name) for name in ("carl", "cora", "thea")]
    for coder in coders:
        StudyMember.objects.create(study=study, user=coder, role=StudyMember.Role.CODER)
    rng = random.Random(3)
    for kind, rule in (
        ("explanations", "union"), ("explanations", "third"), ("explanations", "both_counted"), ("rejections", "intersection"),
    ):  # fmt: skip
        codebook = EXPLANATIONS if kind == "explanations" else REJECTIONS
        labels = sorted(codebook.keys)
        seats = coders[: 3 if rule == "third" else 2]
        sample = draw_sample(study, kind=kind, rule=rule, codebook=codebook, per_arm=2, coders=seats, by=user("olga"))
        for item in sample.items.order_by("number"):
            said = [label for label in labels if rng.random() < (0.25 if kind == "explanations" else 0.1)]
            for coder in coders[:2]:
                mine = [label for label in labels if (label in said) != (rng.random() < 0.05)]
                record.code(item, coder, mine, not mine, 0)
        if rule == "third":
            for item in record.items_for(sample, 3, record.given(sample))[:3]:
                record.code(item, coders[2], labels[:1], False, 0)
    assign.withdraw(came[7])
    return closed(study)


# Other scales, references, criteria


def utilities() -> Study:
    study = draft_study(
        systems=("alpha", "beta", "bottom", "top"), prompts=60, instructions="", **titled("utilities", target_n=12)
    )
    for name, kind in (("top", "maximal"), ("bottom", "minimal")):
        study.systems.filter(name=name).update(reference=kind)
    section = add_rating(study, position=1, m=3)
    section.questions.update(scale={"kind": "continuous", "minimum": 0, "maximum": 100, "low": "bad", "high": "good"})
    for estimand in ("utility", "difference"):
        plan(study, "beta", "alpha", estimand=estimand, expected=">", margin=0.3 if estimand == "utility" else None)
    launched(study)
    People(study, {"bottom": -2.0, "alpha": 0.0, "beta": 0.5, "top": 2.5}).come(*range(12))
    return closed(study)


def parts_of_the_scale() -> Study:
    """Ratings as parts of the scale on two criteria, against a human reference; points with a margin; fixed letters."""
    study = draft_study(
        systems=("alpha", "beta", "human"), prompts=40, instructions="", **titled("parts of the scale", target_n=10)
    )
    study.systems.filter(name="human").update(reference="reference")
    section = add_rating(study, position=1, m=3, scores="unit", labels="fixed", layout="one")
    section.questions.update(criterion="fluency")
    Question.objects.create(
        section=section, position=2, key="sense", criterion="sense", text="Does the story of {label} make sense?",
        scale={"kind": "likert", "low": "no", "high": "yes"},
    )  # fmt: skip
    for criterion in ("fluency", "sense"):
        plan(study, "human", "alpha", criterion=criterion, expected=">", margin=0.1)
        plan(study, "beta", "alpha", criterion=criterion, role="secondary", estimand="superiority")
    launched(study)
    People(study, {"alpha": 0.0, "beta": 0.3, "human": 1.0}).come(*range(10))
    return closed(study)


def one_order() -> Study:
    """SPA in one direction alone, by fixed letters, with criteria beside the overall question; nobody rates."""
    study = draft_study(prompts=20, instructions="", **titled("one order", target_n=8))
    add_spa(study, position=1, m=3, both=False, naming="listed", labels="fixed")
    study.exclusion_rules.create(position=1, rule="incoherent", settings={"tau": 1.2, "symmetric": True})
    launched(study)
    People(study, STRENGTHS).come(*range(8))
    return closed(study)


def exposures() -> Study:
    """Images after 1, 2, 4 and 8 exposures, on a criterion too."""
    rules = [("incoherent", {"tau": 1.1})]
    draft = exposures_draft(
        Path(settings.MEDIA_ROOT), rules=rules, criterion="detail", **titled("exposures", target_n=12)
    )
    study = launched(draft)
    People(study, {"raw": 0.8, "scrambled": 0.0}).come(*range(12))
    visits = PageVisit.objects.filter(assignment__study=study, recorded_at__isnull=False).order_by("pk")[:2]
    PageVisit.objects.filter(pk__in=[visit.pk for visit in visits]).update(unseen="A1 B2")
    return closed(study)


def criteria() -> Study:
    """SPA on an overall question and two criteria, which are regressed; surveys of every kind of answer."""
    study = draft_study(prompts=30, instructions="", **titled("criteria", target_n=16))
    section = add_spa(study, position=1, m=3)
    asked = list(section.questions.order_by("position"))
    for criterion in ("grammar", "interest"):
        Question.objects.bulk_create(
            Question(
                section=section, position=section.questions.count() + n, key=f"{criterion}-{one.key}", criterion=criterion, x=one.x,
                y=one.y, text=f"As to {criterion}, is {{x}} better than {{y}}?", scale=one.scale,
            )
            for n, one in enumerate(asked, 1)
        )  # fmt: skip
        plan(study, "beta", "alpha", criterion=criterion, role="secondary", expected=">")
    add_survey(study, position=2, purpose="screening", questions=[SCREENING])
    options = [{"key": key, "label": key} for key in ("prose", "verse", "plays")]
    add_survey(
        study, position=3,
        questions=[
            {"key": "reads", "text": "What do you read?", "required": False, "scale": {"kind": "multiple", "options": options}},
            {"key": "age", "text": "How old are you?", "scale": {"kind": "number", "minimum": 18, "maximum": 99}},
            {"key": "liked", "text": "Did you like it?", "scale": {"kind": "likert", "low": "no", "high": "yes"}},
            COMMENT,
        ],
    )  # fmt: skip
    launched(study)
    People(study, STRENGTHS).come(*range(16))
    return closed(study)


# Two choices: strategies and stopping


def choosing(title: str, target_n: int, **options) -> Study:
    return choice_study(by=user("olga"), title=title, seed=len(title), target_n=target_n, **options)


def stops_itself() -> Study:
    """An anytime-valid rule that decides before the budget is spent; the study closes itself."""
    study = choosing("stops itself", 60, m=6, prompts=400, settings={"strategy": "one", "stopping": "anytime"})
    people = People(study, {"alpha": 0.0, "beta": 2.2})
    for n in range(60):
        people.comes(n)
        if look(Study.objects.get(pk=study.pk))["is_over"]:
            break
    return closed(study)


def first_crossing() -> Study:
    study = choosing(
        "first crossing", 12, m=4, prompts=48, settings={"strategy": "one", "stopping": "first", "delta": 0.05}
    )
    People(study, {"alpha": 0.0, "beta": 0.8}).come(*range(12))
    return closed(study)


def majority() -> Study:
    settings = {"strategy": "majority", "workers": 3, "stopping": "stays", "allows_tie": True}
    study = choosing("majority", 12, m=4, prompts=16, margin=0.1, annotators_per_batch=3, settings=settings)
    People(study, {"alpha": 0.0, "beta": 0.5}).come(*range(12))
    return closed(study)


def max_three() -> Study:
    """Two workers for an item and a third where they disagree, from top-up batches; everybody has one criterion more."""
    settings = {"strategy": "max_three", "stopping": "anytime"}
    study = choosing("max three", 8, m=3, prompts=12, annotators_per_batch=2, settings=settings)
    people = People(study, {"alpha": 0.0, "beta": 0.4})
    people.come(*range(8))
    settle.settle(Study.objects.get(pk=study.pk))
    n = 8
    while Batch.objects.filter(study=study, origin="top_up", claimed__lt=F("wanted")).exists():
        people.comes(n)
        n += 1
        settle.settle(Study.objects.get(pk=study.pk))
    look(Study.objects.get(pk=study.pk))
    return closed(study)


# Amended designs


def amended_everything() -> Study:
    study = launched(everything_drafted(**titled("amended", target_n=16)))
    people = People(study, STRENGTHS)
    people.come(*range(6))
    amended(study, item=study.items.filter(section__position=3, placements__batch__number=0).order_by("number").first())
    people.come(*range(6, 14))
    return closed(study)


def amended_human_or_machine() -> Study:
    study = humanlike_draft(
        conditions=("none", "examples"),
        domains=("news", "stories"),
        texts=20,
        target_n=20,
        **titled("amended human or machine"),
    )
    plan(study, x_condition="examples", y_condition="none")
    launched(study)
    people = People(study, {"human": 0.0, "gpt3": -0.8})
    people.come(*range(8))
    amended(study)
    people.come(*range(8, 20))
    return closed(study)


# Not side by side


def apart(title: str, protocol: str, **section) -> Study:
    """Each arm sees one system: what is compared was never on one page."""
    study = draft_study(prompts=24, instructions="", **titled(title, target_n=18))
    study.arms.all().delete()
    for name in STRENGTHS:
        Arm.objects.create(study=study, name=f"{name} alone").systems.set([study.systems.get(name=name)])
    {"rating": add_rating, "marks": add_marks}[protocol](study, position=1, m=4, **section)
    if protocol == "rating":
        plan(study, "beta", "alpha", expected=">", margin=1.0)
        plan(study, "gamma", "alpha", estimand="superiority", expected=">")
    launched(study)
    People(study, STRENGTHS).come(*range(18))
    return closed(study)


def ratings_apart() -> Study:
    return apart("ratings apart", "rating")


def marks_apart() -> Study:
    return apart("marks apart", "marks")


def one_output_at_a_time() -> Study:
    """Ready-made batches whose items have one output each: the same people, other prompts."""
    study = draft_study(prompts=8, instructions="", **titled("one output at a time", target_n=12))
    section = add_rating(study, position=1, m=4)
    plan(study, "beta", "alpha", expected=">")
    outputs = {(o.prompt_id, o.system_id): o.pk for o in Output.objects.filter(system__study=study)}
    prompts = list(study.prompts.order_by("key").values_list("pk", flat=True))
    systems = list(study.systems.order_by("name").values_list("pk", flat=True))
    arm = study.arms.get()
    batches = []
    for number in range(12):
        shown = [(prompts[(4 * number + place) % 8], systems[(number + place) % 3]) for place in range(4)]
        items = tuple((section.pk, DrawnItem(prompt, (outputs[prompt, system],))) for prompt, system in shown)
        batches.append(DrawnBatch(number, arm.pk, items))
    write_batches(study, batches, wanted=1, origin=Batch.Origin.IMPORTED, keys=[f"b{n}" for n in range(12)])
    launched(study)
    People(study, STRENGTHS).come(*range(12))
    return closed(study)


# Imported answers


def as_file(study: Study, path: Path) -> Path:
    """Every answer of a study as a row of a file, as a laboratory would keep it."""
    systems = dict(Exposure.objects.filter(item__study=study).values_list("pk", "output__system__name"))
    letters: dict[tuple[int, int], dict[str, str]] = {}
    for visit in PageVisit.objects.filter(assignment__study=study):
        for _, item, shown in visit.shown.get("items", []):
            letters.setdefault((visit.assignment_id, item), {}).update({label: systems[pk] for label, pk in shown})
    rows = []
    order = ("assignment", "question__section__position", "position", "pk")
    for one in (
        Response.objects.filter(assignment__study=study)
        .select_related("question__section", "item__prompt")
        .order_by(*order)
    ):
        is_rank = (
            one.question.section.protocol == "ranking"
        )  # what was typed; what it means beside the others is computed again
        row = {
            "annotator": f"w{one.assignment_id}", "section": one.question.section.position, "question": one.question.key,
            "prompt_key": one.item.prompt.key if one.item else "", "system": systems.get(one.exposure_id, ""),
            "value": one.text if is_rank else "" if one.value is None else one.value, "text": "" if is_rank else one.text,
            "chosen": systems.get(one.chosen_id, ""), "choice": one.choice, "skip_reason": one.skip_reason, "part": one.part,
            "position": one.position, "time": one.received_at.isoformat(),
        }  # fmt: skip
        rows.append(row | {f"shown:{k}": v for k, v in letters.get((one.assignment_id, one.item_id), {}).items()})
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names, restval="")
        writer.writeheader()
        writer.writerows(rows)
    return path


def without_marks(**columns) -> Study:
    study = everything_drafted(**columns)
    Question.objects.filter(section__study=study, section__protocol="marks").delete()
    study.sections.filter(protocol="marks").delete()
    return study


def imported() -> Study:
    """The answers of another study of the same design, brought in as a file."""
    study = launched(without_marks(**titled("given elsewhere", target_n=8)))
    People(study, STRENGTHS).come(*range(8))
    path = as_file(closed(study), Path(settings.MEDIA_ROOT) / "answers.csv")
    there = without_marks(**titled("imported", target_n=8, consent="", contact=""))
    report = import_answers(there, path, by=user("olga"))
    path.unlink()
    assert report.is_written, [str(one) for one in report.problems][:20]
    return Study.objects.get(pk=there.pk)


# Hardly anybody, and not yet


def few(title: str, n: int, **options) -> Study:
    study = launched(spa_draft(**titled(title, target_n=6), **options))
    People(study, STRENGTHS).come(*range(n))
    return study


def nobody() -> Study:
    return closed(few("nobody", 0))


def one_person() -> Study:
    return closed(few("one person", 1))


def two_people() -> Study:
    return closed(few("two people", 2))


def all_left_out() -> Study:
    return closed(few("all left out", 4, rules=[("unverified", {}), ("incomplete", {})]))


def collecting() -> Study:
    return few("collecting", 3)


def unblinded() -> Study:
    study = few("unblinded", 5)
    lifecycle.unblind(study, user("olga"), reason="a look")
    return Study.objects.get(pk=study.pk)


def all_alike() -> Study:
    """Everybody says the same: no variance, no test."""
    study = launched(spa_draft(**titled("all alike", target_n=6)))
    People(study, STRENGTHS).come(*range(6), change=numbers(50), exceptions=0)
    return closed(study)


def robots() -> Study:
    study = launched(spa_draft(**titled("robots", target_n=18)))
    recruitment(study)
    simulate_answers(study, 14, STRENGTHS, random.Random(4))
    People(study, STRENGTHS, CROWD).come(*range(2))
    return closed(study)


STUDIES = (
    spoiled_paper, every_protocol, human_or_machine, utilities, parts_of_the_scale, one_order, exposures, criteria, stops_itself,
    first_crossing, majority, max_three, amended_everything, amended_human_or_machine,
    ratings_apart, marks_apart, one_output_at_a_time, imported,
    nobody, one_person, two_people, all_left_out, collecting, unblinded, all_alike, robots,
)  # fmt: skip
