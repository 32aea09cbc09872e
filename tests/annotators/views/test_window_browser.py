"""Nothing lies outside the window and nothing covers the focus: every protocol, with outputs that are hard to show."""

import io
from functools import partial

import pytest
from django.test import Client
from PIL import Image

from annotators.pages.record import full_page_state
from annotators.pages.sequence import opaque_media_id
from studies.models import Exposure, Output, Prompt, Question
from studies.protocols import REGISTRY
from studies.stimuli.images import encode_image, store_image
from tests.accessibility import violations
from tests.browsing import PHONE, shot
from tests.builders import humanlike_draft, launched, painted, recruitment
from tests.illustrated import Line
from tests.outside import SIZES, wrong_by_links, wrong_on
from tests.players import claimed, sent_from
from tests.samples import blocking, sample_draft

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

WORDS = "A definition of what is asked about says in plain words what counts and what does not count here. "
CRITERIA = (40, 10, 105)
LONG_WORD = "Donaudampfschiff" * 38
CODE = "    result = [transform(value, key=lambda one: one.weight, reverse=True) for value in values if value is not None and value.is_ready()]"
COLUMNS = 16
TABLE = "\n".join(["| measured " * COLUMNS + "|", "| --- " * COLUMNS + "|", *["| 1,234,567 km " * COLUMNS + "|"] * 3])
CELL = f"| a | b |\n| --- | --- |\n| {LONG_WORD} | x |"
LINKS = f"See [a long name of a link](https://example.org/) and <https://example.org/{'path/' * 40}> ![pic](x.png)"
ARABIC = "كان يا ما كان في قديم الزمان قطار توقف بين محطتين ولم يتكلم أحد. 12 (x) " * 12
MARKDOWN = f"```\n{CODE}\n```\n\nand `{CODE.strip().replace(' ', '_')}`\n\n{TABLE}\n\n{CELL}\n\n# {LONG_WORD}\n\n> {LONG_WORD}\n\n{LINKS}"
PLAIN = (
    f"A word: {LONG_WORD} and on.\n\t{CODE}\n{ARABIC}\n"
    + ("When the train came to a halt nobody spoke, " * 25 + "and it was dark. ") * 25
)
TURNS = f"Anna: {LONG_WORD}\nمريم: نعم\nBert: " + "well " * 60
# The images are made in each test.
HARD = {"markdown": MARKDOWN, "plain": PLAIN, "turns": TURNS, "image": "", "image that fails": ""}


def humanlike_pairs(m: int, target_n: int):
    """Two texts side by side, and the page that tells the truth."""
    return humanlike_draft(
        conditions=("comparison",), domains=("news",), instructions="", target_n=target_n, m=1, texts=3
    )


DRAFTS = {slug: partial(sample_draft, slug) for slug in REGISTRY} | {"humanlike, pairs": humanlike_pairs}
# The others take minutes: each has pages of its own, but scripts and styles are the same.
QUICK_DRAFTS = ("humanlike, pairs", "marks", "spa")


def made_hard(draft, media_root) -> tuple[dict[str, str], str]:
    """Give the outputs what is hard to show, as far as the protocol takes it: by output's key what it is, and the image that fails."""
    before = blocking(draft)
    outputs = list(Output.objects.filter(system__study=draft).order_by("prompt__key", "system__name", "pk"))
    ((small, failing),) = painted((60, 70), 1, media_root)
    media, taken = {"image": large_image(media_root), "image that fails": failing}, {}
    first = Output.objects.filter(pk=outputs[0].pk)
    for name, text in HARD.items():
        columns = {"format": "plain" if name in media else name, "text": text, "media": media.get(name, "")}
        old = first.values(*columns).get()
        first.update(**columns)
        if blocking(draft) == before:
            taken[name] = columns
        first.update(**old)
    names = list(taken)
    of_output = {output.pk: names[n % len(names)] for n, output in enumerate(outputs)}
    for pk, name in of_output.items():
        Output.objects.filter(pk=pk).update(**taken[name])
    for n, prompt in enumerate(Prompt.objects.filter(study=draft).order_by("key")):
        hard = (f"{LONG_WORD}\n{CODE}", "Write it. " * 90, "Write a tale.")[n % 3]
        Prompt.objects.filter(pk=prompt.pk).update(text=hard, media=small if n % 2 else "")
    assert blocking(draft) == before
    return of_output, failing


def large_image(media_root) -> str:
    out = io.BytesIO()
    Image.new("RGB", (4000, 1500), (20, 90, 160)).save(out, "PNG")
    image = encode_image(out.getvalue())
    store_image(media_root, image)
    return image.name


def with_criteria(draft) -> None:
    """The definition of each question has 40 words; two further sections ask the same by definitions of 10 and of 105."""
    words = (WORDS * 10).split()
    (section,) = draft.sections.filter(purpose="live")
    questions = list(section.questions.order_by("position"))
    for place, number in enumerate(CRITERIA):
        if place:
            section.pk, section.position, section.m = None, section.position + 1, min(section.m, 1)
            section._state.adding = True
            section.save()
            for question in questions:
                question.pk, question.section = None, section
                question._state.adding = True
                question.save()
        Question.objects.filter(section=section).update(help=" ".join(words[:number]))


# How many items a first section has where one does not show every kind of output: with one text a page, or two.
ITEMS = {
    "humanlike": 8,
    "marks": 2,
    "rating": 3,
    "relative": 3,
    "two_choice": 3,
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK_DRAFTS else pytest.mark.slow) for name in sorted(DRAFTS)],
)
def test_nothing_lies_outside_the_window_and_nothing_covers_the_focus(name, browser, live_server, tmp_path, settings):
    settings.MEDIA_ROOT = tmp_path
    assert set(REGISTRY) <= set(DRAFTS)
    draft = DRAFTS[name](ITEMS.get(name, 1), 1)
    has_items = REGISTRY[draft.sections.order_by("position").last().protocol].has_items
    of_output, failing = made_hard(draft, tmp_path) if has_items else ({}, "")
    with_criteria(draft)
    study = launched(draft)
    assignment, client = claimed(study, "anna", recruitment(study)), Client()
    context = browser.new_context(viewport=PHONE)
    page, wrong, looked_at, seen = context.new_page(), [], set(), set()
    line = Line(page)
    while (key := full_page_state(assignment).next_key) is not None:
        path = f"/p/{assignment.code}/{key}/"
        step = full_page_state(assignment).steps[key]
        client.get(path)
        exposures = [exposure for item in step.page.items for _, exposure in item.exposures]
        shown = dict(Exposure.objects.filter(pk__in=exposures).values_list("pk", "output_id"))
        kinds = frozenset(of_output[shown[exposure]] for exposure in exposures)
        about = (step.protocol.slug, step.page.step, kinds, step.page.section.position)
        if about not in looked_at:
            seen |= kinds
            line.failing = failing_address(assignment, shown, of_output)
            page.goto(live_server.url + path)
            wrong += [f"{key} {one}" for one in wrong_on(page)]
            shot(page, f"{name}-{key}")
            if about[:2] not in {one[:2] for one in looked_at}:
                wrong += [f"{key} {one}" for one in violations(page)]
                if client.post(path, {"go": "1"}).status_code == 422:
                    page.evaluate("HTMLFormElement.prototype.submit.call(document.querySelector('#answers'))")
                    page.wait_for_selector("#problems")
                    page.wait_for_load_state()
                    for viewport, _ in SIZES.values():
                        page.set_viewport_size(viewport)
                        wrong += [f"{key} refused, {viewport['width']}: {one}" for one in wrong_by_links(page)]
            looked_at.add(about)
        if full_page_state(assignment).next_key == key:
            assert client.post(path, sent_from(path)).status_code == 302
    context.close()
    assert looked_at and seen == set(of_output.values())
    assert not wrong, "\n".join(wrong)


def failing_address(assignment, shown, of_output) -> str | None:
    """The image that this page asks for in vain."""
    for exposure, output in shown.items():
        if of_output[output] == "image that fails":
            return opaque_media_id(assignment.code, exposure)
    return None
