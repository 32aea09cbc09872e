"""Every protocol by itself and beside the others, amended, and with systems that were never side by side."""

import random
from pathlib import Path

from django.conf import settings

from analysis.coding import samples
from analysis.coding.codebook import EXPLANATIONS_CODEBOOK, REJECTIONS_CODEBOOK
from analysis.coding.samples import draw_coding_sample
from annotators.models import PageVisit
from annotators.places import assign
from annotators.places.exclusions import exclude_assignments
from studies.design.draw import DrawnBatch, store_drawn_batches
from studies.models import Arm, Batch, Output, Question, Study, StudyMember
from studies.protocols import DrawnItem
from tests.builders import (
    COMMENT,
    SCREENING,
    add_marks,
    add_rating,
    add_spa,
    add_survey,
    draft_study,
    exposures_draft,
    humanlike_draft,
    launched,
    user,
)

from .drafts import STRENGTHS, amended, everything_drafted, plan, titled
from .people import People, closed


def every_protocol() -> Study:
    study = launched(everything_drafted(**titled("every protocol", target_n=14)))
    people = People(study, STRENGTHS)
    came = people.come(*range(12))
    people.comes(12, until=5), people.comes(13, until=14)
    exclude_assignments(came[4:5], "technical", user("olga"))
    return closed(study)


def everything_from(n: int, title: str) -> Study:
    study = launched(everything_drafted(**titled(title, target_n=4)))
    People(study, STRENGTHS).come(*range(n))
    return closed(study)


def everything_from_nobody() -> Study:
    return everything_from(0, "every protocol, nobody")


def everything_from_one() -> Study:
    return everything_from(1, "every protocol, one person")


def human_or_machine() -> Study:
    study = humanlike_draft(
        conditions=("none", "instructions", "examples", "comparison"),
        domains=("news", "stories"),
        machines=("gpt2", "gpt3"),
        texts=20,
        target_n=32,
        **titled("human or machine"),
    )
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
        ("explanations", "union"),
        ("explanations", "third"),
        ("explanations", "both_counted"),
        ("rejections", "intersection"),
    ):
        codebook = EXPLANATIONS_CODEBOOK if kind == "explanations" else REJECTIONS_CODEBOOK
        labels = sorted(codebook.keys)
        seats = coders[: 3 if rule == "third" else 2]
        sample = draw_coding_sample(
            study, kind=kind, rule=rule, codebook=codebook, per_arm=2, coders=seats, by=user("olga")
        )
        for item in sample.items.order_by("number"):
            said = [label for label in labels if rng.random() < (0.25 if kind == "explanations" else 0.1)]
            for coder in coders[:2]:
                mine = [label for label in labels if (label in said) != (rng.random() < 0.05)]
                samples.store_coding(item, coder, mine, not mine, 0)
        if rule == "third":
            for item in samples.items_of_seat(sample, 3, samples.current_codings_by_item(sample))[:3]:
                samples.store_coding(item, coders[2], labels[:1], False, 0)
    assign.withdraw(came[7])
    return closed(study)


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
        section=section,
        position=2,
        key="sense",
        criterion="sense",
        text="Does the story of {label} make sense?",
        scale={"kind": "likert", "low": "no", "high": "yes"},
    )
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
                section=section,
                position=section.questions.count() + n,
                key=f"{criterion}-{one.key}",
                criterion=criterion,
                x=one.x,
                y=one.y,
                text=f"As to {criterion}, is {{x}} better than {{y}}?",
                scale=one.scale,
            )
            for n, one in enumerate(asked, 1)
        )
        plan(study, "beta", "alpha", criterion=criterion, role="secondary", expected=">")
    add_survey(study, position=2, purpose="screening", questions=[SCREENING])
    options = [{"key": key, "label": key} for key in ("prose", "verse", "plays")]
    add_survey(
        study,
        position=3,
        questions=[
            {
                "key": "reads",
                "text": "What do you read?",
                "required": False,
                "scale": {"kind": "multiple", "options": options},
            },
            {"key": "age", "text": "How old are you?", "scale": {"kind": "number", "minimum": 18, "maximum": 99}},
            {"key": "liked", "text": "Did you like it?", "scale": {"kind": "likert", "low": "no", "high": "yes"}},
            COMMENT,
        ],
    )
    launched(study)
    People(study, STRENGTHS).come(*range(16))
    return closed(study)


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
    store_drawn_batches(
        study, batches, places_per_batch=1, origin=Batch.Origin.IMPORTED, keys=[f"b{n}" for n in range(12)]
    )
    launched(study)
    People(study, STRENGTHS).come(*range(12))
    return closed(study)
