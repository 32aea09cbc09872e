"""The paper's experiment: with everybody who spoils data, with hardly anybody, and before its end."""

import random

from django.db.models import F

from annotators.models import Assignment, Inquiry
from annotators.participation.simulate import record_simulated_answers
from annotators.places import assign
from annotators.places.exclusions import create_exclusion_reversal, exclude_assignments
from studies.models import Contrast, Output, Question, Study
from studies.services import lifecycle
from tests.builders import (
    launched,
    recruitment,
    spa_draft,
    user,
)

from .drafts import SKIP, STRENGTHS, plan, titled
from .people import CROWD, People, closed


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
        systems=("ada", "babbage", "curie", "davinci", "human"),
        prompts=40,
        target_n=30,
        rules=rules,
        m=3,
        **titled("paper", batches_per_annotator=2, wage_per_hour="12.00") | columns,
    )
    draft.exclusion_rules.filter(rule="unverified").update(role="sensitivity")
    survey = draft.sections.get(position=4)
    options = [{"key": key, "label": key} for key in ("english", "other, but fluent", "none")]
    Question.objects.create(
        section=survey,
        position=2,
        key="mother",
        text="What is your mother tongue?",
        scale={"kind": "choice", "options": options},
    )
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
    assign.release_assignment(people.comes(25, until=2, change=english).pk, "returned")
    Assignment.objects.filter(pk=people.comes(26, until=3, change=english).pk).update(reserved_until=F("claimed_at"))
    assign.release_expired_places()
    assign.withdraw(people.comes(27, change=english))
    late = people.comes(28, change=english)
    assign.release_assignment(late.pk, "expired")
    Assignment.objects.filter(pk=late.pk).update(is_late=True, released_at=F("submitted_at"), released_reason="expired")
    owner = user("olga")
    first, second, third = Assignment.objects.filter(study=study, submitted_at__isnull=False).order_by("pk")[:3]
    exclude_assignments([first], "technical", owner, "The page was blank.", should_reopen_places=True)
    mistaken, _ = exclude_assignments([second, third], "own_wish", owner)
    create_exclusion_reversal(mistaken, owner, "a mistake")
    people.comes(29, until=4, change=english)
    Inquiry.objects.create(assignment=third, kind="report", label="B", text="This text is odd.", page_key="s2")
    Inquiry.objects.create(assignment=second, kind="question", text="May I come again?")
    return closed(study)


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
    record_simulated_answers(study, 14, STRENGTHS, random.Random(4))
    People(study, STRENGTHS, CROWD).come(*range(2))
    return closed(study)
