"""Human or machine: what is drawn, which page follows which answer, what is shown after practice, and what the checklist says."""

import re
from collections import Counter
from decimal import Decimal

import pytest
from django.test import Client

from annotators.models import Response
from annotators.pages.presentation import get_practice_feedback, split_at_quotes
from annotators.pages.record import PageOutOfOrder, full_page_state, record_page_answers
from studies.design.draw import BatchDraw, UnfillableBatch, draw_batches
from studies.models import Arm, Item, Output, Study
from studies.protocols import REGISTRY, PageItem, PageQuestion, PageSection
from studies.protocols.base.fields import parse_scale
from studies.services.known_answers import create_practice_item_and_delete_test_runs, delete_practice_item_and_test_runs
from studies.services.lifecycle import ActionRefused, open_more_places
from tests.builders import add_humanlike, humanlike_draft, launched
from tests.players import claimed, form, open_page

pytestmark = pytest.mark.django_db


def problems(section, blocking=True):
    protocol = REGISTRY["humanlike"]
    found = [*protocol.problems(section), *protocol.drawing_problems(section, BatchDraw(section.study))]
    return [p.text for p in found if p.is_blocking == blocking]


def live(study):
    return study.sections.get(purpose="live")


def kinds_of(study, batch):
    """Names of the systems of a drawn batch's live texts."""
    names = dict(Output.objects.filter(system__study=study).values_list("pk", "system__name"))
    return Counter(names[output] for _, item in batch.items for output in item.outputs)


def test_half_the_texts_are_human_and_every_text_is_shown_equally_often():
    study = humanlike_draft(domains=("news",), texts=10, m=5)
    drawn = draw_batches(study, 0, 20)
    splits = [kinds_of(study, batch)["human"] for batch in drawn]
    assert set(splits) == {2, 3}
    shown = Counter(output for batch in drawn for _, item in batch.items for output in item.outputs)
    by_kind = {}
    for pk, name in Output.objects.filter(system__study=study).values_list("pk", "system__name"):
        by_kind.setdefault(name, []).append(shown[pk])
    assert all(max(counts) - min(counts) <= 1 for counts in by_kind.values()), by_kind
    assert all(len({item.prompt for _, item in batch.items}) == 5 for batch in drawn)


def test_a_coin_decides_each_text_where_that_is_wished():
    study = humanlike_draft(domains=("news",), texts=30, m=6)
    section = live(study)
    section.settings = section.settings | {"mix": "random"}
    section.save()
    assert len({kinds_of(study, batch)["human"] for batch in draw_batches(study, 0, 30)}) > 3


def test_one_prompt_with_both_kinds_is_shown_once():
    study = humanlike_draft(domains=("news",), texts=6, m=6)
    prompts = list(study.prompts.order_by("key"))
    human, machine = (study.systems.get(name=name) for name in ("human", "gpt3"))
    for prompt in prompts:
        for system in (human, machine):
            Output.objects.get_or_create(system=system, prompt=prompt, defaults={"text": f"{prompt.key} {system.pk}"})
    for batch in draw_batches(study, 0, 8):
        assert len({item.prompt for _, item in batch.items}) == 6 and kinds_of(study, batch) == {"human": 3, "gpt3": 3}


@pytest.mark.parametrize("coverage", ["balanced", "independent"])
def test_batches_follow_from_seed_number_and_design(coverage):
    study = humanlike_draft(conditions=("none", "examples"), coverage=coverage)
    assert draw_batches(study, 7, 1) == draw_batches(study, 0, 12)[7:8]


def test_arms_get_their_domain_and_their_machine():
    study = humanlike_draft(machines=("gpt2", "gpt3"), texts=4)
    domains = dict(study.prompts.values_list("pk", "domain"))
    for batch in draw_batches(study, 0, 12):
        arm = study.arms.get(pk=batch.arm_id)
        assert {domains[item.prompt] for _, item in batch.items} == {arm.domain}
        assert set(kinds_of(study, batch)) == set(arm.systems.values_list("name", flat=True))


def test_practice_texts_are_never_shown_where_it_counts():
    study = humanlike_draft(conditions=("none", "examples", "comparison"), texts=6)
    practised = set(study.items.values_list("prompt", flat=True))
    assert len(practised) == 18
    drawn = draw_batches(study, 0, 18)
    assert not {item.prompt for batch in drawn for _, item in batch.items if item.item is None} & practised
    trained = {batch.arm_id: sum(item.item is not None for _, item in batch.items) for batch in drawn}
    conditions = dict(study.arms.values_list("pk", "condition"))
    assert {(conditions[arm], n) for arm, n in trained.items()} == {("none", 0), ("examples", 3), ("comparison", 3)}


def test_practice_items_are_those_of_the_arms_domain():
    study = humanlike_draft(conditions=("examples",))
    domains = dict(study.items.values_list("pk", "prompt__domain"))
    for batch in draw_batches(study, 0, 6):
        arm = study.arms.get(pk=batch.arm_id)
        assert {domains[item.item] for _, item in batch.items if item.item is not None} == {arm.domain}


def test_more_places_are_drawn_as_if_they_had_been_from_the_start():
    study = humanlike_draft(conditions=("examples",), domains=("news",), target_n=4, target_cap=10)
    whole = draw_batches(study, 0, 8)
    study = launched(study)
    open_more_places(study, 4, by=None)
    later = [sorted(b.placements.values_list("item__prompt", flat=True)) for b in study.batches.order_by("number")[4:]]
    practice = dict(study.items.filter(kind="practice").values_list("pk", "prompt"))
    assert later == [sorted(item.prompt or practice[item.item] for _, item in b.items) for b in whole[4:]]


def test_too_few_texts_of_a_kind_is_no_endless_search():
    study = humanlike_draft(domains=("news",), texts=1, m=4)
    with pytest.raises(UnfillableBatch):
        draw_batches(study, 0, 1)
    assert problems(live(study)) == [
        "Arm news gpt3 none has 1 human texts; a batch needs 2.",
        "Arm news gpt3 none has 1 machine texts; a batch needs 2.",
    ]


def one_answered(value, **settings):
    """An assignment that answered its first text; gives it with the following page."""
    study = humanlike_draft(domains=("news",), instructions="", target_n=2)
    section = live(study)
    section.settings = section.settings | settings
    section.save()
    assignment = claimed(launched(study), "w")
    _, page, asks = open_page(assignment)
    (slot,) = asks
    assert record_page_answers(assignment, page.key, form(**{slot: value})).next_key == f"{page.key}f"
    return assignment, page


@pytest.mark.parametrize("answer, asked", [("1", "why"), ("2", "change"), ("3", "change"), ("4", "change")])
def test_the_follow_up_depends_on_the_answer(answer, asked):
    assignment, page = one_answered(answer)
    _, follow, asks = open_page(assignment)
    assert [question.key for question in follow.questions] == [asked]
    (slot,) = asks
    following = record_page_answers(assignment, follow.key, form(**{slot: "because of the ending"})).next_key
    assert following == "s1.p2"
    stored = Response.objects.filter(assignment=assignment).order_by("pk")
    assert [(r.question.key, r.value, r.text) for r in stored] == [
        ("source", int(answer), ""),
        (asked, None, "because of the ending"),
    ]
    assert len({(r.item_id, r.exposure_id) for r in stored}) == 1


def test_up_to_which_answer_why_is_asked_is_a_setting():
    assignment, _ = one_answered("2", why_up_to=2)
    assert [question.key for question in open_page(assignment)[1].questions] == ["why"]


def test_pages_are_as_many_before_the_answers_as_after_them():
    assignment, _ = one_answered("1")
    assert len(full_page_state(assignment).sequence.keys) == 10


def test_the_reason_is_not_asked_before_the_judgement():
    study = humanlike_draft(domains=("news",), instructions="", target_n=1)
    assignment = claimed(launched(study), "w")
    open_page(assignment)
    with pytest.raises(PageOutOfOrder):
        record_page_answers(assignment, "s1.p1f", form(**{"s1.q2.i1.A": "because"}))


def trained(condition, answer=None):
    """The first practice page of an assignment of this condition, answered rightly (or with this)."""
    study = launched(humanlike_draft(conditions=(condition,), domains=("news",), instructions="", target_n=2))
    assignment = claimed(study, "w")
    _, page, asks = open_page(assignment)
    ((slot, ask),) = asks.items()
    return assignment, page, slot, ask


def truth_of(page):
    return Item.objects.get(pk=page.items[0].id).expected.get()


def test_the_truth_of_a_practice_text_is_shown_after_the_guess_and_not_before():
    assignment, page, slot, _ = trained("examples")
    behind = full_page_state(assignment).steps[f"{page.key}t"].page
    assert get_practice_feedback(assignment, behind) == ()
    expected = truth_of(page)
    wrong = "1" if expected.low > 2 else "4"
    assert record_page_answers(assignment, page.key, form(**{slot: wrong})).next_key == behind.key
    (told,) = get_practice_feedback(assignment, behind)
    word = "person" if expected.high == 2 else "machine"
    assert told.truth == f"A {word} wrote this." and not told.is_right
    assert told.said == ("Definitely human-written" if wrong == "1" else "Definitely machine-generated")
    assert told.quotes == ("once upon a time",) and "both begin so" in told.explanation
    step, page, asks = open_page(assignment)
    assert step.page.key == behind.key and asks == {}
    assert record_page_answers(assignment, behind.key, form(go="1")).next_key == "s1.p2"


def test_the_truth_of_a_practice_pair_is_shown_after_the_guess():
    assignment, page, slot, ask = trained("comparison")
    assert ask.answer_column == "chosen" and [label for label, _ in page.items[0].exposures] == ["A", "B"]
    expected = truth_of(page)
    label = next(label for label, exposure in page.items[0].exposures if exposure == expected.exposure_id)
    assert expected.exposure.output.system.name == "gpt3"
    record_page_answers(assignment, page.key, form(**{slot: label}))
    (told,) = get_practice_feedback(assignment, full_page_state(assignment).steps[f"{page.key}t"].page)
    assert (
        told.is_right
        and told.said == f"Text {label}"
        and told.truth == f"A machine wrote {label}, a person wrote the other one."
    )


def test_the_sides_of_a_pair_vary_between_people():
    study = launched(humanlike_draft(conditions=("comparison",), domains=("news",), instructions="", target_n=12))
    sides = Counter()
    for n in range(12):
        _, page, _ = open_page(claimed(study, f"w{n}"))
        chosen = truth_of(page).exposure_id
        sides[next(label for label, exposure in page.items[0].exposures if exposure == chosen)] += 1
    assert set(sides) == {"A", "B"}


def test_nothing_is_shown_about_texts_that_count():
    study = launched(humanlike_draft(conditions=("examples",), domains=("news",), target_n=1))
    keys = full_page_state(claimed(study, "w")).sequence.keys
    assert [key for key in keys if key.endswith("t") and key != "start"] == ["s1.p1t", "s1.p2t", "s1.p3t"]


def test_what_an_explanation_quotes_is_marked():
    parts = split_at_quotes("It was so, and so it was. <b>", ["it was", "so", "absent"])
    assert [(p.text, p.is_marked) for p in parts] == [
        ("It was ", False),
        ("so", True),
        (", and ", False),
        ("so", True),
        (" ", False),
        ("it was", True),
        (". <b>", False),
    ]
    assert [p.is_marked for p in split_at_quotes("whole", ["absent"])] == [False]
    # Only whole words, where words have spaces between them.
    parts = split_at_quotes("neither weather nor other the", ["the"])
    assert [p.text for p in parts if p.is_marked] == ["the"] and len(parts) == 2
    assert [p.text for p in split_at_quotes("我喜欢火车站", ["火车"]) if p.is_marked] == ["火车"]


def test_practice_is_made_of_one_text_or_of_a_human_and_a_machine_text():
    study = humanlike_draft(conditions=("examples",), domains=("news",))
    section = study.sections.get(purpose="training")
    prompt = study.prompts.filter(key__startswith="examples").first()
    human, machine = Output.objects.filter(prompt=prompt).order_by("-system__is_human")
    elsewhere = Output.objects.filter(system=human.system).exclude(prompt=prompt).first()
    for outputs, words in (
        ([], "No text is chosen"),
        ([human, elsewhere], "have different prompts"),
        ([human, human], "two different"),
    ):
        with pytest.raises(ActionRefused, match=words):
            create_practice_item_and_delete_test_runs(section, outputs, by=None)
    with pytest.raises(ActionRefused, match="training sections"):
        create_practice_item_and_delete_test_runs(live(study), [human], by=None)
    item = create_practice_item_and_delete_test_runs(section, [machine, human], "why", by=None)
    assert item.expected.get().exposure.output == machine
    with pytest.raises(ActionRefused, match="already"):
        create_practice_item_and_delete_test_runs(section, [machine, human], by=None)
    delete_practice_item_and_test_runs(item, by=None)
    assert not Item.objects.filter(pk=item.pk).exists()


def test_what_is_missing_is_named():
    study = humanlike_draft(conditions=("examples",), domains=("news",))
    section = live(study)
    assert problems(section) == []
    section.questions.filter(key="source").update(scale={"kind": "likert", "maximum": 5})
    assert "even number of points" in problems(section)[0]
    section.questions.filter(key="source").delete()
    assert "“source”" in problems(section)[0]
    study.systems.update(is_human=False)
    assert any("no human system" in text for text in problems(section))
    bare = add_humanlike(study, position=9, purpose="training", keys=("source",))
    assert problems(bare) == ["A training section needs practice items. Create them on the section's page."]


def test_what_is_unwise_is_named():
    study = humanlike_draft(conditions=("none", "examples"), domains=("news",))
    training = study.sections.get(purpose="training")
    training.arms.clear()
    training.m, training.position = 4, 9
    training.save()
    words = " ".join(problems(training, blocking=False))
    assert "3 of 4 practice items" in words and "condition is “none”" in words and "too late" in words
    section = live(study)
    section.questions.exclude(key="source").delete()
    Arm.objects.filter(study=study).update(condition="none")
    words = " ".join(problems(section, blocking=False))
    assert "asks for reasons" in words and "Two arms have the same domain, systems and condition" in words


def test_a_copy_of_the_study_draws_the_same_texts():
    from studies.imports.bundle_files import create_draft_from_bundle, serialize_bundle

    study = humanlike_draft(conditions=("none", "examples", "comparison"))
    copy = create_draft_from_bundle(serialize_bundle(study), None)

    def texts(one):
        of_prompt = dict(one.prompts.values_list("pk", "key"))
        of_item = dict(one.items.values_list("pk", "prompt__key"))
        return [
            [of_prompt.get(i.prompt) or of_item[i.item] for _, i in batch.items] for batch in draw_batches(one, 0, 9)
        ]

    assert Study.objects.count() == 2 and texts(copy) == texts(study)


def test_texts_of_one_side_come_in_by_import(tmp_path):
    from studies.imports.tables import Options, import_stimuli_file

    study = humanlike_draft(domains=("news",), texts=0)
    rows = [
        f'{{"prompt_key": "p{n}", "domain": "news", "outputs": {{"{system}": "Text {n} of this kind."}}}}'
        for n, system in enumerate(["human", "gpt3"] * 6)
    ]
    path = tmp_path / "texts.jsonl"
    path.write_text("\n".join(rows))
    import_stimuli_file(study, path, options=Options(), by=None)
    assert study.prompts.count() == 12 and problems(live(study)) == []
    assert kinds_of(study, draw_batches(study, 0, 1)[0])["human"] in (2, 3)


@pytest.mark.slow
def test_every_page_can_be_previewed_and_tried():
    from django.contrib.auth.models import AnonymousUser
    from django.test import RequestFactory

    from annotators.admin.preview import render_preview_page
    from annotators.places.batch_plan import erase_test_run_data, start_test_run
    from tests.players import answered

    study = humanlike_draft(conditions=("examples", "comparison"), domains=("news",))
    arm = study.arms.get(condition="comparison")
    request = RequestFactory().get("/")
    request.user = AnonymousUser()
    keys = render_preview_page(request, study, "", arm).keys
    pages = [render_preview_page(request, study, key, arm).html for key in keys]
    assert sum("You will see the correct answer after you have given yours" in page for page in pages) == 3
    assert any("Why did you select" in page and "What would you change" in page for page in pages)
    assignment = start_test_run(study, None, arm)
    while (key := full_page_state(assignment).next_key) is not None:
        assert answered(assignment, key, comment="because").sent is None
    assert (
        erase_test_run_data(study) == 1
        and study.items.filter(kind="practice").count() == 6
        and study.items.count() == 6
    )


def test_the_follow_up_repeats_the_words_that_were_chosen_and_no_truth():
    """What they answered is on the page that asks why, in the words of the point; before an answer nothing does."""
    protocol = REGISTRY["humanlike"]
    scale = parse_scale(
        {"kind": "likert", "labels": ["surely a person", "perhaps a person", "perhaps a program", "surely a program"]}
    )
    questions = tuple(
        PageQuestion(n, n, key, key, "", scale if key == "source" else parse_scale({"kind": "text"}))
        for n, key in enumerate(("source", "why", "change"), 1)
    )
    section = PageSection(1, 1, {}, questions)
    item = PageItem(1, 7, (("A", 70),))
    said = {}
    for value in (None, Decimal(1), Decimal("3.0000")):
        answers = {} if value is None else {"s1.q1.i1.A": value}
        said[value] = [(page.step, page.said) for page in protocol.pages(section, [item], answers)]
    assert said[None] == [("judge", ""), ("why", "")]
    assert said[Decimal(1)] == [("judge", ""), ("why", "surely a person")]
    assert said[Decimal("3.0000")] == [("judge", ""), ("why", "perhaps a program")]


def test_the_follow_up_page_says_what_was_answered():
    study = launched(humanlike_draft(domains=("news",), m=1, target_n=2))
    assignment = claimed(study, "w")
    client = Client()
    first = client.get(f"/p/{assignment.code}/", follow=True)
    while "Who do you think" not in first.content.decode():
        address = first.request["PATH_INFO"]
        first = client.post(address, {"go": "1"}, follow=True)
    slot = re.search(r'name="(s\d+\.q1\.i1\.\w+)"', first.content.decode())[1]
    page = client.post(first.request["PATH_INFO"], {slot: "3"}, follow=True).content.decode()
    assert "You answered: <b>Possibly machine-generated</b>" in page and "In your own words" in page
