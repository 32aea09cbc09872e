"""Walks through the pages of work: every protocol, scale, kind of output, practice, test, and what a page refuses."""

import re
from itertools import cycle

from django.test import Client

from annotators.models import PageVisit
from annotators.places.places import new_limited_address
from studies.models import Output, Prompt, Question, Section, Study
from studies.protocols import REGISTRY
from tests import builders
from tests.annotators.pages.practised import CASES, practised_draft
from tests.annotators.views import varied_studies
from tests.attention import instructed, wrong_answers
from tests.builders import recruitment
from tests.players import claimed
from tests.samples import sample_draft

from .foreign import foreign, launched_abroad
from .walking import LONG, WORDS, answer_all, explore, fresh, look, next_key, path_of, send, walk

FORMATS = (
    {"format": "markdown", "text": "# Ж\n\n**Ы** `ы`\n\n- ы"},
    {"format": "turns", "text": "Ж: ы\nЫ: ж"},
    {"format": "code", "text": "ы = 1"},
    {"is_empty": True, "text": ""},
    {"warning": foreign("Somebody dies.")},
    {},
)


def begin(draft: Study, person: str = "anna", **link):
    study = launched_abroad(draft)
    return claimed(study, person, recruitment(study, **link), is_consented=True)


def _every_page_of(slug: str, *, is_thorough: bool = True, **settings):
    draft = sample_draft(slug, 2 if REGISTRY[slug].has_items else 0, 3)
    for section in draft.sections.all():
        Section.objects.filter(pk=section.pk).update(settings=section.settings | settings)
    explore(begin(draft), is_thorough=is_thorough)


@walk
def protocols_with_the_default_noun() -> None:
    for slug in REGISTRY:
        _every_page_of(slug)


@walk
def protocols_with_a_noun_and_an_explanation() -> None:
    for slug in REGISTRY:
        if REGISTRY[slug].has_items:
            _every_page_of(slug, is_thorough=False, noun="story", explanation="Read **well**.", layout="one")
    _every_page_of("ranking", is_thorough=False, allows_ties=False)
    _every_page_of("humanlike", is_thorough=False, prompt="shown", why_up_to=4)
    _every_page_of("two_choice", is_thorough=False, allows_tie=True)
    _every_page_of("two_choice", is_thorough=False, allows_tie=True, tie="Both.")
    categories = "style | A style | Words"
    _every_page_of("marks", is_thorough=False, categories=categories, severities="minor | Small | 1 | Not bad")


@walk
def scales() -> None:
    draft = varied_studies.every_scale()
    section = draft.sections.get(position=1)
    lengths = {"kind": "text", "minimum_length": 20, "maximum_length": 90}
    ends = {"low": "low", "middle": "middle", "high": "high"}
    for n, scale in enumerate(
        (lengths, {"kind": "percent"} | ends, {"kind": "number"} | ends, {"kind": "likert", "maximum": 11} | ends)
    ):
        Question.objects.create(section=section, position=80 + n, key=f"more{n}", text="More?", scale=scale)
    Question.objects.create(
        section=section,
        position=90,
        key="none",
        text="None?",
        scale={"kind": "acknowledgement"},
        help="Do **tick** it.",
    )
    explore(begin(draft))
    for made in (varied_studies.criteria(), varied_studies.reasons()):
        explore(begin(made))


@walk
def kinds_of_outputs() -> None:
    for slug in ("rating", "two_choice", "spa", "best_worst"):
        draft = sample_draft(slug, 4, 2)
        for output, columns in zip(Output.objects.filter(system__study=draft).order_by("pk"), cycle(FORMATS)):
            Output.objects.filter(pk=output.pk).update(**columns)
        Prompt.objects.filter(study=draft).update(source="A long document. " * 60)
        one = begin(draft)
        explore(one, is_thorough=slug == "rating")
    two = claimed(one.study, "bert", recruitment(one.study))
    while not fresh(two).submitted_at:
        path = path_of(two, f"{next_key(two)}/")
        names = re.findall(r'name="(unseen[^"]+)"', Client().get(path).content.decode())
        send(two, **dict.fromkeys(names, "1"))
        Client().get(path)


@walk
def long_texts() -> None:
    for slug in ("rating", "two_choice", "marks", "humanlike", "relative"):
        draft = sample_draft(slug, 2, 1)
        Output.objects.filter(system__study=draft).update(text="Somebody wrote this down. " * 300)
        explore(begin(draft), is_thorough=False)


@walk
def one_text_only() -> None:
    draft = builders.draft_study(systems=("alpha", "beta"), prompts=4, target_n=2, instructions="")
    builders.add_rating(draft, position=1, m=1, shown="one")
    draft.sections.update(m=1)
    explore(begin(draft))
    for m in (1, 2):
        for systems in (("alpha", "beta"), ("alpha", "beta", "gamma")):
            for prompts in ("shared", "own"):
                made = builders.draft_study(systems=systems, prompts=8, target_n=2, instructions="")
                builders.add_spa(made, position=1, m=m, prompts=prompts)
                explore(begin(made), is_thorough=False)
    for slug in ("two_choice", "relative"):
        without_prompts = sample_draft(slug, 2, 1)
        Prompt.objects.filter(study=without_prompts).update(text="")
        explore(begin(without_prompts), is_thorough=False)


@walk
def rewriting() -> None:
    draft = sample_draft("marks", 2, 3)
    scale = {"kind": "rewrite", "maximum_length": 900}
    Question.objects.create(section=draft.sections.get(), position=9, key="new", text="Rewrite it.", scale=scale)
    one = begin(draft)
    path, fields = path_of(one, f"{next_key(one)}/"), _fields(one)
    Client().get(path)
    (slot, ask), *_ = ((slot, ask) for slot, ask in fields.items() if ask.field.kind == "rewrite")
    for text in (ask.field.original, " "):
        Client().post(path, {slot: text, "go": "1"})
    explore(one)


def _fields(assignment):
    from annotators.pages.record import full_page_state

    state = full_page_state(fresh(assignment))
    return state.steps[state.next_key].page_fields()


@walk
def images(media) -> None:
    from tests.illustrated import illustrated

    for slug in ("rating", "two_choice", "spa", "marks", "humanlike"):
        draft = illustrated(slug, media, m=2, target_n=1)
        one = begin(draft)
        path = path_of(one, f"{next_key(one)}/")
        page = Client().get(path).content.decode()
        names = [name for name in ("unseen.i1", "unseen.i1.A", "unseen.i2.B") if f'name="{name}"' in page]
        # "Not seen" twice: as a draft, which a correction shows again, and as stored.
        Client().post(path, dict.fromkeys(names, "1") | {"go": "1"})
        send(one, **dict.fromkeys(names, "1"))
        Client().get(path)
        explore(one, is_thorough=False)


@walk
def practice_and_its_feedback() -> None:
    for slug in CASES:
        for pass_mark in (None, 2) if slug == "rating" else (None,):
            draft, _ = practised_draft(slug, n_items=4 if pass_mark else 2, pass_mark=pass_mark)
            explore(begin(draft), is_thorough=False)
    draft, section = practised_draft("rating", n_items=1, pass_mark=None)
    Question.objects.filter(section__study=draft).exclude(section=section).delete()
    draft.sections.exclude(pk=section.pk).delete()
    section.questions.update(required=False)
    draft = launched_abroad(draft)
    explore(claimed(draft, "anna", recruitment(draft)), is_thorough=False)
    one = claimed(draft, "bert", recruitment(draft))
    look(one, "")
    Client().post(path_of(one, f"{next_key(one)}/"), {"go": "1"}, follow=True)
    look(one, "")
    for conditions in (("examples",), ("comparison",)):
        draft = builders.humanlike_draft(
            conditions=conditions, domains=("news",), target_n=4, m=1, texts=6, instructions=""
        )
        explore(begin(draft), is_thorough=False)


@walk
def errors_that_need_each_other() -> None:
    """Best and worst alike, ranks that are missing or the same, marks and no marks."""
    for slug, settings in (("ranking", {"allows_ties": False}), ("best_worst", {}), ("marks", {})):
        for noun in ("text", "story"):
            draft = sample_draft(slug, 2, 1)
            for section in draft.sections.all():
                Section.objects.filter(pk=section.pk).update(settings=section.settings | settings | {"noun": noun})
            Question.objects.filter(section__study=draft).update(required=slug == "marks")
            one = begin(draft)
            path, slots = path_of(one, f"{next_key(one)}/"), list(_fields(one))
            Client().get(path)
            wrong = {
                "ranking": [dict.fromkeys(slots, "1"), {slots[0]: "1"}, {slots[0]: "1", slots[1]: "1"}],
                "best_worst": [dict.fromkeys(slots, "A"), {slots[0]: "A"}, {slots[1]: "B"}],
            }.get(slug) or _wrong_marks(slots)
            for answers in wrong:
                Client().post(path, answers | {"go": "1"})
            if slug == "marks":
                Client().post(path, {slots[-1]: "50", "go": "1"} | _mark(slots[1], "1") | _mark(slots[2], "0"))
                Client().get(path)


def _mark(slot: str, where: str, category: str = "style", severity: str = "minor") -> dict[str, str]:
    return {f"{slot}.where": where, f"{slot}.category": category, f"{slot}.severity": severity}


def _wrong_marks(slots: list[str]) -> list[dict[str, str]]:
    none, first, second, *_ = slots
    twice = _mark(first, "1") | _mark(second, "1")
    parts = [{f"{first}.{part}": value} for part, value in _parts()]
    whole = list(_mark(first, "1").items())
    pairs = [dict(whole[:2]), dict(whole[1:]), dict(whole[::2])]
    return [{}, twice, _mark(first, "999"), _mark(first, "1") | {none: "1"}, _mark(first, "1", "ы"), *parts, *pairs]


def _parts() -> list[tuple[str, str]]:
    return [("where", "1"), ("category", "style"), ("severity", "minor"), ("words", "0-9"), ("where", "ы")]


@walk
def attention_checks() -> None:
    from tests.attention import add_attention

    for n_wrong in (1, 2):
        draft = sample_draft("rating", 4, 2)
        add_attention(draft)
        one = begin(draft)
        while (key := next_key(one)) is not None and not fresh(one).released_at:
            wrong = dict(list(wrong_answers(fresh(one), key).items())[:n_wrong])
            n_wrong -= len(wrong)
            send(one, key, **wrong)
        look(one, "done/")


def quiz(**columns) -> Study:
    """A draft with a test before the work."""
    study = builders.draft_study(target_n=4, **columns)
    words = ("Agree", "Disagree", "Strongly agree", "Strongly disagree")
    section = builders.add_survey(
        study, position=1, purpose="screening", questions=[instructed(word) for word in words]
    )
    Section.objects.filter(pk=section.pk).update(m=2, pass_mark=2)
    builders.add_rating(study, position=2, m=2)
    return study


def fail_the_test(one):
    from tests.annotators.pages.quizzes import attempt

    if next_key(one) == "start":
        send(one)
    attempt(one, 1)
    look(one, "")
    send(one)
    look(one, "")
    attempt(one, 2)
    return fresh(one)


@walk
def a_test_before_the_work() -> None:
    one = begin(quiz())
    fail_the_test(one)
    look(one, "done/")


@walk
def screening() -> None:
    one = begin(builders.spa_draft(with_rating=False))
    look(one, "")
    Client().post(path_of(one, "s1/"), {"s1.q1": "no", "go": "1"})
    look(one, "done/", "withdraw/")
    Client().post(path_of(one, "s3/"), {"s3.q1": WORDS, "go": "1"})


@walk
def what_is_not_stored() -> None:
    """A second window, a page that was answered, the wrong order, no such page, drafts too long or too old, an end meanwhile."""
    one = begin(builders.spa_draft(with_rating=True))
    send(one)
    look(one, "s1/")
    client = Client()
    client.post(path_of(one, "s1/"), {"s1.q1": "no", "go": "1"})
    client.post(path_of(one, "s1/"), {"s1.q1": "yes", "save": "auto"})
    client.post(path_of(one, "s4/"), {"s4.q1": WORDS, "go": "1"})
    client.post(path_of(one, "s99.p1/"), {foreign("name"): WORDS, "go": "1"})
    answer_all(one, until="s4")
    client.get(path_of(one, "s4/"))
    client.post(path_of(one, "s4/"), {"s4.q1": foreign("word ") * 50_000, "save": "1"})
    client.post(path_of(one, "s4/"), {"s4.q1": foreign("word ") * 50_000, "save": "auto"})
    for tab in ("one", "two"):
        client.post(path_of(one, "s4/"), {"s4.q1": WORDS, "save": "auto", "tab": tab, "seen": ""})
    client.post(path_of(one, "s4/"), {"s4.q1": LONG, "go": "1"})
    client.post(path_of(one, "time/") + "?page=s4", {"s4.q1": WORDS})
    client.post(path_of(one, "time/") + "?page=s99", {"s4.q1": WORDS})
    assert PageVisit.objects.get(assignment=one, key="s4").draft
    answer_all(one)
    for data in ({"s4.q1": WORDS * 2, "go": "1"}, {"s4.q1": WORDS, "save": "auto"}, {"s4.q1": WORDS, "save": "1"}):
        client.post(path_of(one, "s4/"), data)
        client.post(path_of(one, "s9/"), data)
    limited = f"/p/{new_limited_address(one)}/s4/"
    for data in ({"s4.q1": WORDS, "go": "1"}, {"s4.q1": WORDS, "save": "auto"}):
        client.post(limited, data)
    # As in a database that was restored from a copy of a moment before.
    PageVisit.objects.filter(assignment=one, key="s4").update(recorded_at=None)
    client.post(path_of(one, "s4/"), {"s4.q1": WORDS * 2, "go": "1"})
    client.post(path_of(one, "withdraw/"), {"leave": "1"})
    client.post(path_of(one, "s4/"), {"s4.q1": WORDS * 2, "go": "1"})
