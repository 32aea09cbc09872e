"""Nothing that tells a system, an arm or an item's kind ever reaches an annotator's browser.

Three proofs. A crawl with canaries: every secret word of a study is a rare word, and no response holds it in any coding. Twins:
two studies that differ in every secret give the same bytes. And counts: over many people neither letters nor places go with systems.
"""

import base64
import binascii
import hashlib
import html
import io
import json
import random
import re
import urllib.parse
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest
from django.http import HttpResponse
from PIL import Image

from annotators.models import Assignment
from annotators.pages import _way, plan_of
from studies import lifecycle
from studies.media import encode_image, store
from studies.models import Arm, Contrast, Exposure, Output, Prompt, Question, Section, Study, System
from studies.protocols import REGISTRY
from tests.builders import COMMENT, SCREENING, add_survey, choice_study, panel, spa_study, warnings_of
from tests.robots import Page, Robot

pytestmark = pytest.mark.django_db
SECRETS = [
    "title", "system0", "system1", "system2", "arm", "prompt_key", "domain", "attribute", "original", "file", "family", "criterion",
    "batch_key", "group", "other_person", "question_key", "software",
]  # fmt: skip


def canaries(salt: str) -> dict[str, str]:
    """A rare word for each secret; systems stay in the same order of names whatever the salt."""
    words = {}
    for secret in SECRETS:
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


def secret_study(words: dict[str, str], media_root, case: "Case") -> Study:
    """Texts, and where the protocol takes them Markdown, dialogues and images, every secret a canary; alike but for the secrets."""
    study = Study.objects.create(
        title=words["title"], public_title="Short texts", seed=3, purpose="You read.", instructions="Read.", consent="I agree.",
        debriefing="Thanks.", contact="research@example.org", target_n=2, minutes=10, reward=1, exclusion_group=words["group"],
    )  # fmt: skip
    systems = [
        System.objects.create(
            study=study, name=words[f"system{n}"], is_human=n == 1, reference=case.references.get(n, "")
        )
        for n in range(3)
    ]
    Arm.objects.create(study=study, name=words["arm"], condition="none")
    for n in range(4):
        prompt = Prompt.objects.create(
            study=study, key=f"{n}{words['prompt_key']}", text=f"Prompt number {n}" if n or not case.has_formats else "",
            attributes={"from": words["attribute"]},
        )  # fmt: skip
        for place, system in enumerate(systems):
            columns = {"text": f"Tale {n} by number {place}. It ended well.\nSo it was.", "original": words["original"]}
            if not case.has_formats:
                pass
            elif n == 1:
                columns["format"] = "markdown"
            elif n == 2:
                columns |= {"format": "turns", "text": f"A: hello {place}\nB: bye {place}"}
            elif n == 3:
                image = encode_image(picture((40 * place, 90, 160), words["software"]))
                store(media_root, image)
                columns = {"media": image.name, "alt": "a coloured square"}
            Output.objects.create(system=system, prompt=prompt, **columns)
    # The crawl sets the seed on the first page.
    add_survey(study, position=1, purpose="screening", questions=[SCREENING])
    case.add(study, systems, words)
    add_survey(study, position=study.sections.count() + 1, questions=[COMMENT])
    Contrast.objects.create(
        study=study, x=systems[1], y=systems[0], family=words["family"], criterion=case.criterion(words), expected=">",
        margin=case.margin,
    )  # fmt: skip
    return lifecycle.launch(study, None, warnings_of(study))


def add_spa_and_rating(study, systems, words):
    spa = Section.objects.create(study=study, position=2, protocol="spa", m=4)
    for n, (x, y) in enumerate([(0, 1), (1, 0), (1, 2), (2, 1)], 1):
        Question.objects.create(
            section=spa, position=n, key=f"q{n}{words['question_key']}"[:50], x=systems[x], y=systems[y], criterion=words["criterion"],
            scale={"kind": "percent"}, text="What is the chance that writer {x} is better than writer {y}?",
        )  # fmt: skip
    rating = Section.objects.create(study=study, position=3, protocol="rating", m=1, reuses=spa)
    Question.objects.create(
        section=rating, position=1, key=words["question_key"], text="How good is {label}?", scale={"kind": "likert"}
    )


def add_pairs(protocol, settings, scale, text):
    def add(study, systems, words):
        section = Section.objects.create(
            study=study, position=2, protocol=protocol, m=4, settings=settings | {"noun": "text", "explanation": "Take your time."}
        )  # fmt: skip
        Question.objects.create(
            section=section, position=1, key=words["question_key"], text=text, help="Natural means natural.",
            criterion=words["criterion"], scale=scale, skip_reasons=[{"key": "cannot_judge", "label": "I cannot judge"}],
        )  # fmt: skip

    return add


def add_ranking_and_marks(study, systems, words):
    for position, protocol in enumerate(("ranking", "marks"), 2):
        section = Section.objects.create(study=study, position=position, protocol=protocol, m=2)
        for n, columns in enumerate(REGISTRY[protocol].questions, 1):
            Question.objects.create(section=section, position=n, criterion=words["criterion"], **columns)


def any_answer(name, kind, values, asked, page, robot):
    if name.endswith(".skip"):
        return None
    return {"textarea": "fine", "text": "50"}.get(kind, values[0])


def ranked(name, kind, values, asked, page, robot):
    """Places for the places; everything else as the crawl answers it."""
    return "2" if kind == "text" and name.startswith("s2.") else any_answer(name, kind, values, asked, page, robot)


@dataclass(frozen=True)
class Case:
    """What a study asks, what its pages must have shown, and what differs by it. ``is_by_item``: labels or sides are drawn by the
    item's own number in the database, which is another for the second twin."""

    add: Callable
    seen: tuple[bytes, ...] = ()
    references: Mapping[int, str] = field(default_factory=dict)
    answer: Callable = any_answer
    has_formats: bool = True
    is_by_item: bool = True
    margin: float | None = 0.1
    contrast_criterion: str = ""

    def criterion(self, words):
        return words.get(self.contrast_criterion, "")


SPA = Case(
    add_spa_and_rating, references={2: "maximal"}, is_by_item=False, margin=None, contrast_criterion="criterion",
    seen=(b"What is the chance that writer A",),
)  # fmt: skip
CHOICE = Case(
    add_pairs("two_choice", {"allows_tie": True}, {"kind": "output"}, "Which is more natural?"), references={0: "reference"},
    seen=(b"Which is more natural?", b"Natural means natural."),
)  # fmt: skip
RELATIVE = Case(
    add_pairs("relative", {"pairs": "reference"}, REGISTRY["relative"].questions[0]["scale"], "Which is better?"),
    references={0: "reference"}, seen=(b"Text A is much better", b"Natural means natural."),
)  # fmt: skip
PLACES = Case(
    add_ranking_and_marks, answer=ranked, has_formats=False,
    seen=(b"The place of B", b"Mark an error", b"3: So it was.", b"Thank you"),
)  # fmt: skip
CASES = {"spa": SPA, "two_choice": CHOICE, "relative": RELATIVE, "ranking_and_marks": PLACES}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


def visited(study, person, seed=11, answer=any_answer):
    """Every response of one person's whole way, with its detours: the refused page, the locked page, images, notes, 404s."""
    door = panel(study)
    robot = Robot(f"/e/{door.key}/?who={person}&session=s", answer)
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


def all_bytes(responses) -> bytes:
    parts = []
    for response in responses:
        parts.append(f"{response.status_code} {response.headers}".encode())
        parts.append(b"".join(response.streaming_content) if response.streaming else response.content)
    return b"\n".join(parts)


def codings(word: str) -> set[bytes]:
    raw = word.encode()
    found = {
        raw,
        raw[::-1],
        html.escape(word).encode(),
        urllib.parse.quote(word).encode(),
        json.dumps(word)[1:-1].encode(),
        raw.hex().encode(),
    }
    for offset in range(3):
        coded = base64.b64encode(b"x" * offset + raw)
        found.add(coded[4 if offset else 0 : -4])
        found.add(base64.b64encode(b"x" * offset + raw[::-1])[4 if offset else 0 : -4])
    for name in ("md5", "sha1", "sha256"):
        digest = hashlib.new(name, raw)
        found |= {digest.hexdigest().encode(), base64.b64encode(digest.digest())}
    found.add(f"{binascii.crc32(raw):08x}".encode())
    return found


def leaks(haystack: bytes, words: dict[str, str]) -> list[str]:
    low = haystack.lower()
    return [secret for secret, word in words.items() if any(c in haystack or c.lower() in low for c in codings(word))]


@every_case
def test_no_canary_is_seen_by_an_annotator(settings, tmp_path, case):
    settings.MEDIA_ROOT = tmp_path
    words = canaries("one")
    responses, _, _ = visited(secret_study(words, tmp_path, case), "w", answer=case.answer)
    seen = all_bytes(responses)
    assert len(responses) > 40 or not case.has_formats
    assert [each for each in case.seen if each not in seen] == []
    assert any(r.headers["Content-Type"] == "image/webp" for r in responses) == case.has_formats
    assert leaks(seen, words) == []
    # A name for its bytes, or the day of its file, would be the same for everybody who is shown it.
    assert not any(
        {"ETag", "Last-Modified"} & set(r.headers) or "public" in r.headers["Cache-Control"] for r in responses
    )


@pytest.mark.parametrize("coded", [
    lambda w: w, lambda w: base64.b64encode(w[::-1].encode()).decode(), lambda w: f"<i data-x='{w.upper()}'>",
    lambda w: hashlib.md5(w.encode()).hexdigest(), lambda w: w.encode().hex(),
])  # fmt: skip
def test_the_crawl_finds_a_leak(coded):
    words = canaries("one")
    page = HttpResponse(f"<p>{coded(words['system1'])}</p>")
    assert leaks(all_bytes([page]), words) == ["system1"]


@pytest.mark.parametrize("case", [SPA, CHOICE], ids=["spa", "two_choice"])
def test_a_leaking_template_is_caught(settings, tmp_path, monkeypatch, case):
    """The negative control of the whole crawl: a page that prints a system's name is found."""
    from annotators import show

    settings.MEDIA_ROOT = tmp_path
    words = canaries("one")
    study = secret_study(words, tmp_path, case)
    monkeypatch.setattr(show, "cached_markdown", lambda text: f"<p>{words['system1']}</p>")
    responses, _, _ = visited(study, "w")
    assert leaks(all_bytes(responses), words) == ["system1"]


@every_case
def test_twins_that_differ_in_every_secret_give_the_same_bytes(settings, tmp_path, monkeypatch, case):
    from annotators import pages as annotators_pages

    settings.MEDIA_ROOT = tmp_path
    draw = annotators_pages.random_of
    if case.is_by_item:
        monkeypatch.setattr(
            annotators_pages, "random_of", lambda seed, what, *more: draw(seed, what, *(() if what == "item" else more))
        )
    pages = []
    for salt in ("one", "two"):
        # One person in both studies would read that they take part in another one.
        person = f"w{salt}"
        responses, code, key = visited(secret_study(canaries(salt), tmp_path, case), person, answer=case.answer)
        seen = all_bytes(r for r in responses if r.headers["Content-Type"] != "image/webp").decode()
        seen = seen.replace(code, "CODE").replace(key, "KEY").replace(f"who={person}", "who=PERSON")
        # What is keyed by the code differs with the code: the receipt, the images' names; and clocks move.
        seen = re.sub(r"/m/[0-9a-f]{32}", "/m/ID", seen)
        seen = re.sub(r"\b[2-9A-HJ-NP-Z]{5}-[2-9A-HJ-NP-Z]{5}\b", "RECEIPT", seen)
        seen = re.sub(r"'Content-Length': '[0-9]+'", "", seen)  # of the same bytes, but for clocks
        seen = re.sub(
            r'(datetime|data-until|data-seconds)="[^"]*"|[0-9]{1,2} [A-Z][a-z]+ 20[0-9]{2}[^<]*|for [0-9]+ more minutes?',
            "TIME",
            seen,
        )
        pages.append(seen)
    assert pages[0] == pages[1]


def test_what_a_page_is_made_from_leads_nowhere(settings, tmp_path):
    """Walk every attribute of the records that templates get: no model, no name of a system."""
    from dataclasses import fields, is_dataclass

    from django.db.models import Model

    from annotators.record import standing_of
    from annotators.show import shown_page

    settings.MEDIA_ROOT = tmp_path
    words = canaries("one")
    study = secret_study(words, tmp_path, SPA)
    Robot(f"/e/{panel(study).key}/?who=w", any_answer).start()
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

    for step in standing_of(assignment).steps.values():
        walk(shown_page(assignment, step.page, step.protocol.asks(step.page)))
    assert len(seen) > 200 and leaks(" ".join(map(str, seen)).encode(), words) == []


PEOPLE = 400


def is_even(counts: Counter) -> bool:
    """Whether each of these came up about equally often: none further from it than five standard deviations."""
    mean = counts.total() / len(counts)
    return all(abs(n - mean) < 5 * mean**0.5 for n in counts.values())


def laid_for_many(study):
    """(person, place, item, letter, system) of every text that so many people are shown of one batch."""
    assignment = Assignment(study=study, batch=study.batches.first(), design=study.designs.get())
    plan, systems = plan_of(assignment), dict(Exposure.objects.values_list("pk", "output__system__name"))
    rng = random.Random(1)
    for person in range(PEOPLE):
        for one in _way(plan, rng.getrandbits(60)).laid:
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
