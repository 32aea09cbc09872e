"""Nothing that tells a system, an arm or an item's kind ever reaches an annotator's browser.

Three proofs. A crawl with canaries: every secret word of a study is a rare word, and no response holds it in any coding. Twins:
two studies that differ in every secret give the same bytes. And counts: over many people neither letters nor places go with systems.
"""

import base64
import hashlib
import html
import io
import random
import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

import pytest
from django.db import transaction
from django.http import HttpResponse
from PIL import Image

from annotators.models import Assignment
from annotators.pages.sequence import _build_itinerary
from annotators.places.batch_plan import get_batch_plan
from studies.models import Arm, Exposure, Output, Prompt, Question, Study, System
from studies.protocols import REGISTRY
from studies.services import lifecycle
from studies.stimuli.images import encode_image, store_image
from tests.builders import COMMENT, SCREENING, add_section, add_survey, choice_study, panel, spa_study, warnings_of
from tests.leaks import all_bytes, leaks
from tests.robots import Page, Robot
from tests.samples import blocking, checked, compared

pytestmark = pytest.mark.django_db
SECRETS = [
    "title", "arm", "prompt_key", "domain", "attribute", "original", "file", "family", "criterion", "batch_key", "group",
    "other_person", "question_key", "software",
]  # fmt: skip


def systems_of(slug: str) -> list[str]:
    return [f"system{n}" for n in range(max(3, REGISTRY[slug].sample.systems))]


def canaries(salt: str, slug: str = "survey") -> dict[str, str]:
    """A rare word for each secret of a protocol's study; systems stay in the same order of names whatever the salt."""
    words = {}
    for secret in [*SECRETS, *systems_of(slug)]:
        digest = hashlib.sha256(f"{salt}{secret}".encode()).hexdigest()
        rare = "".join("qxzjvkwypb"[int(c, 16) % 10] for c in digest[:22])
        words[secret] = f"{secret[-1] if secret[-1].isdigit() else 'c'}{rare}"
    return words


def picture(colour, software: str) -> bytes:
    image, out = Image.new("RGB", (40, 30), colour), io.BytesIO()
    exif = image.getexif()
    exif[0x0131] = software
    image.save(out, "JPEG", exif=exif)
    return out.getvalue()


@dataclass(frozen=True)
class Special:
    """What the study of a protocol has beyond its sample, because more could leak by it. ``references``: of systems by number;
    ``again``: a protocol that shows the items once more; ``asked``: columns of its questions; ``seen``: what pages must have shown."""

    settings: Mapping = field(default_factory=dict)
    references: Mapping[int, str] = field(default_factory=dict)
    again: str = ""
    asked: Mapping = field(default_factory=dict)
    seen: tuple[str, ...] = ()


CANNOT = {
    "help": "Natural means natural.",
    "skip_reasons": [{"key": "cannot_judge", "label": "I cannot judge"}],
}
SPECIAL = {
    "spa": Special(references={2: "maximal"}, again="rating", seen=("what is the chance that writer ", "How good")),
    "two_choice": Special({"allows_tie": True}, {0: "reference"}, asked=CANNOT, seen=("Natural means natural.",)),
    "relative": Special({"pairs": "reference"}, {0: "reference"}, asked=CANNOT, seen=("Text A is much better",)),
    "ranking": Special(seen=("The place of B",)),
    "marks": Special(seen=("Mark an error", "3: So it was.")),
}
every_protocol = pytest.mark.parametrize("slug", sorted(REGISTRY))


def secret_study(words: dict[str, str], media_root, slug: str) -> Study:
    """Texts, and where the protocol takes them Markdown, dialogues and images, every secret a canary; alike but for the secrets."""
    study = Study.objects.create(
        title=words["title"],
        public_title="Short texts",
        seed=3,
        purpose="You read.",
        instructions="Read.",
        consent="I agree.",
        debriefing="Thanks.",
        contact="research@example.org",
        target_n=2,
        minutes=10,
        reward=1,
        exclusion_group=words["group"],
    )
    special = SPECIAL.get(slug, Special())
    systems = [
        System.objects.create(study=study, name=words[name], is_human=n == 1, reference=special.references.get(n, ""))
        for n, name in enumerate(systems_of(slug))
    ]
    Arm.objects.create(study=study, name=words["arm"], condition="none")
    for n in range(4):
        prompt = Prompt.objects.create(
            study=study,
            key=f"{n}{words['prompt_key']}",
            text=f"Prompt number {n}" if n else "",
            attributes={"from": words["attribute"]},
        )
        for place, system in enumerate(systems):
            text = f"Tale {n} by number {place}. It ended well.\nSo it was."
            Output.objects.create(system=system, prompt=prompt, text=text, original=words["original"])
    # The crawl sets the seed on the first page.
    add_survey(study, position=1, purpose="screening", questions=[SCREENING])
    add_secret_section(study, slug, words, special)
    add_survey(study, position=study.sections.count() + 1, questions=[COMMENT])
    with suppress(_Refused), transaction.atomic():
        show_in_every_format(study, media_root, words["software"])
        if blocking(study):
            raise _Refused
    return lifecycle.launch(checked(study, slug), None, warnings_of(study))


class _Refused(Exception):
    """The protocol shows plain texts alone."""


def show_in_every_format(study: Study, media_root, software: str) -> None:
    for output in Output.objects.filter(system__study=study).select_related("prompt").order_by("pk"):
        n, place = int(output.prompt.key[0]), int(output.system.name[0])
        if n == 1:
            output.format = "markdown"
        elif n == 2:
            output.format, output.text = "turns", f"A: hello {place}\nB: bye {place}"
        elif n == 3:
            image = encode_image(picture((40 * place, 90, 160), software))
            store_image(media_root, image)
            output.text, output.media, output.alt = "", image.name, "a coloured square"
        output.save()


def add_secret_section(study: Study, slug: str, words: dict[str, str], special: Special) -> None:
    section = add_section(study, slug, position=2, m=4, settings=special.settings)
    for n, question in enumerate(section.questions.all(), 1):
        # The keys of questions that a protocol brings have a meaning.
        key = question.key if REGISTRY[slug].questions else f"q{n}{words['question_key']}"[:50]
        Question.objects.filter(pk=question.pk).update(key=key, criterion=words["criterion"], **special.asked)
    compared(section, family=words["family"], criterion=words["criterion"])
    if special.again:
        add_section(study, special.again, position=3, m=1, reuses=section)


def visited(study, person, seed=11):
    """Every response of one person's whole way, with its detours: the refused page, the locked page, images, notes, 404s."""
    door = panel(study)
    robot = Robot(f"/e/{door.key}/?who={person}&session=s")
    robot.start()
    Assignment.objects.filter(study=study).update(seed=seed)
    assignment = Assignment.objects.get(study=study)
    here = f"/p/{assignment.code}/"
    for address in ("consent/", "question/", "withdraw/", "m/0123456789abcdef", "nonsense/", "s2.ask/"):
        robot.get(here + address)
    images = set()
    page = Page(robot.get(here).content.decode())
    while (form := next((f for f in page.forms if "go" in dict(f.buttons)), None)) is not None:
        robot.post(form.action, {"go": "1", "strange": "1"})
        robot.post(form.action, {"layout": "one"})
        images |= set(re.findall(r"/p/[\w-]+/m/[0-9a-f]+", robot.responses[-1].content.decode()))
        response = robot.post(form.action, robot.fill(form, page))
        robot.get(form.action)
        page = Page(response.content.decode())
    for url in sorted(images):
        robot.get(url)
    robot.get("/p/nobody/"), robot.get("/e/nobody/"), robot.get(f"/e/{door.key}/?who={person}&session=s")
    return robot.responses, assignment.code, door.key


@every_protocol
def test_no_canary_is_seen_by_an_annotator(settings, tmp_path, slug):
    settings.MEDIA_ROOT = tmp_path
    words = canaries("one", slug)
    study = secret_study(words, tmp_path, slug)
    responses, _, _ = visited(study, "w")
    seen = all_bytes(responses)
    assert Assignment.objects.get().submitted_at
    assert_shown(html.unescape(seen.decode(errors="replace")), study, slug)
    has_images = REGISTRY[slug].has_items and Output.objects.exclude(media="").exists()
    assert any(r.headers["Content-Type"] == "image/webp" for r in responses) == has_images
    assert leaks(seen, words) == []
    # A name for its bytes, or the day of its file, would be the same for everybody who is shown it.
    assert not any(
        {"ETag", "Last-Modified"} & set(r.headers) or "public" in r.headers["Cache-Control"] for r in responses
    )


def assert_shown(seen: str, study: Study, slug: str) -> None:
    """The crawl was where the protocol asks its questions about texts; else it would have found no secrets either."""
    asked = Question.objects.filter(section__study=study, section__protocol=slug).values_list("text", flat=True)
    assert any(all(part in seen for part in re.split(r"{[a-z]+}", text)) for text in asked), asked
    assert "Tale 0 by number" in seen or not REGISTRY[slug].has_items
    assert [words for words in SPECIAL.get(slug, Special()).seen if words not in seen] == []


@pytest.mark.parametrize(
    "coded",
    [
        lambda w: w,
        lambda w: base64.b64encode(w[::-1].encode()).decode(),
        lambda w: f"<i data-x='{w.upper()}'>",
        lambda w: hashlib.md5(w.encode()).hexdigest(),
        lambda w: w.encode().hex(),
    ],
)
def test_the_crawl_finds_a_leak(coded):
    words = canaries("one")
    page = HttpResponse(f"<p>{coded(words['system1'])}</p>")
    assert leaks(all_bytes([page]), words) == ["system1"]


@every_protocol
def test_a_leak_is_found_on_the_pages_of_every_protocol(settings, tmp_path, monkeypatch, slug):
    """The negative control of the whole crawl: a protocol that words its questions with a system's name."""
    settings.MEDIA_ROOT = tmp_path
    words = canaries("one", slug)
    study = secret_study(words, tmp_path, slug)
    protocol = type(REGISTRY[slug])
    asks = protocol.page_fields

    def telling(self, page):
        return {slot: replace(ask, text=f"{ask.text} {words['system1']}") for slot, ask in asks(self, page).items()}

    monkeypatch.setattr(protocol, "page_fields", telling)
    responses, _, _ = visited(study, "w")
    assert leaks(all_bytes(responses), words) == ["system1"]


def test_a_leaking_template_is_caught(settings, tmp_path, monkeypatch):
    from annotators.pages import presentation

    settings.MEDIA_ROOT = tmp_path
    words = canaries("one", "spa")
    study = secret_study(words, tmp_path, "spa")
    monkeypatch.setattr(presentation, "render_cached_markdown", lambda text: f"<p>{words['system1']}</p>")
    responses, _, _ = visited(study, "w")
    assert leaks(all_bytes(responses), words) == ["system1"]


@every_protocol
def test_twins_that_differ_in_every_secret_give_the_same_bytes(settings, tmp_path, monkeypatch, slug):
    from studies.design import draw

    settings.MEDIA_ROOT = tmp_path
    original = draw.seeded_random
    if (
        REGISTRY[slug].labels == "item"
    ):  # drawn by the item's number in the database, which is another for the second twin
        monkeypatch.setattr(
            draw,
            "seeded_random",
            lambda seed, what, *more: original(seed, what, *(() if what == "item" else more)),
        )
    pages = []
    for salt in ("one", "two"):
        # One person in both studies would read that they take part in another one.
        person = f"w{salt}"
        responses, code, key = visited(secret_study(canaries(salt, slug), tmp_path, slug), person)
        seen = all_bytes(r for r in responses if r.headers["Content-Type"] != "image/webp").decode()
        seen = seen.replace(code, "CODE").replace(key, "KEY").replace(f"who={person}", "who=PERSON")
        # What is keyed by the code differs with the code: the receipt, the images' names; and clocks move.
        seen = re.sub(r"/m/[0-9a-f]{32}", "/m/ID", seen)
        seen = re.sub(r"\b[2-9A-HJ-NP-Z]{5}-[2-9A-HJ-NP-Z]{5}\b", "RECEIPT", seen)
        # A form that may claim a place by an id in a link has a random token of its own.
        seen = re.sub(r'name="form" value="[\w-]{22}"', "FORM", seen)
        # An id in a link opens the place by an address of its own each time.
        seen = re.sub(r"/p/gAAAA[\w=-]+/", "/p/LIMITED/", seen)
        seen = re.sub(r"'Content-Length': '[0-9]+'", "", seen)  # of the same bytes, but for clocks
        seen = re.sub(
            r'(datetime|data-until|data-seconds)="[^"]*"|[0-9]{1,2} [A-Z][a-z]+ 20[0-9]{2}[^<]*|for [0-9]+ more minutes?',
            "TIME",
            seen,
        )
        pages.append(seen)
    assert pages[0] == pages[1]


@every_protocol
def test_what_a_page_is_made_from_leads_nowhere(settings, tmp_path, slug):
    """Walk every attribute of the records that templates get: no model, no name of a system."""
    from dataclasses import fields, is_dataclass

    from django.db.models import Model

    from annotators.pages.presentation import build_shown_page
    from annotators.pages.record import full_page_state

    settings.MEDIA_ROOT = tmp_path
    words = canaries("one", slug)
    study = secret_study(words, tmp_path, slug)
    Robot(f"/e/{panel(study).key}/?who=w").start()
    assignment = Assignment.objects.select_related("study").get()
    seen = []

    def walk(value, depth=0):
        assert not isinstance(value, Model), value
        assert depth < 12
        seen.append(value)
        if is_dataclass(value):
            for each in fields(value):
                walk(getattr(value, each.name), depth + 1)
        elif isinstance(value, list | tuple | set):
            for each in value:
                walk(each, depth + 1)
        elif isinstance(value, dict):
            for pair in value.items():
                walk(pair, depth + 1)

    for step in full_page_state(assignment).steps.values():
        walk(build_shown_page(assignment, step.page, step.page_fields()))
    assert len(seen) > 100 and leaks(" ".join(map(str, seen)).encode(), words) == []


PEOPLE = 400


def is_even(counts: Counter) -> bool:
    """Whether each of these came up about equally often: none further from it than five standard deviations."""
    mean = counts.total() / len(counts)
    return all(abs(n - mean) < 5 * mean**0.5 for n in counts.values())


def laid_for_many(study):
    """(person, place, item, letter, system) of every text that so many people are shown of one batch."""
    assignment = Assignment(study=study, batch=study.batches.first(), design=study.designs.get())
    plan, systems = get_batch_plan(assignment), dict(Exposure.objects.values_list("pk", "output__system__name"))
    rng = random.Random(1)
    for person in range(PEOPLE):
        for one in _build_itinerary(plan, rng.getrandbits(60)).sections:
            for item in one.items:
                for letter, exposure in item.exposures:
                    yield person, item.position, item.id, letter, systems[exposure]


@pytest.mark.parametrize(
    "make", [lambda: spa_study(with_rating=False), lambda: choice_study(m=3, target_n=4)], ids=["spa", "choice"]
)
def test_neither_letters_nor_places_tell_whose_a_text_is(make):
    shown = list(laid_for_many(make()))
    letters = Counter((letter, system) for _, place, _, letter, system in shown if place == 1)
    assert len(letters) == len({r[3] for r in shown}) * len({r[4] for r in shown}) and is_even(letters)
    places = Counter((place, item) for _, place, item, letter, _ in shown if letter == "A")
    assert len(places) == len({r[1] for r in shown}) ** 2 and is_even(places)


def test_the_letter_in_one_pair_does_not_tell_it_in_the_next():
    of_person = {}
    for person, place, _, letter, system in laid_for_many(choice_study(m=3, target_n=4)):
        if system == "alpha":
            of_person.setdefault(person, {})[place] = letter
    pairs = Counter((letters[1], letters[2]) for letters in of_person.values())
    assert len(of_person) == PEOPLE and len(pairs) == 4 and is_even(pairs)
