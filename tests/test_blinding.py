"""Nothing that tells a system, an arm or an item's kind ever reaches an annotator's browser.

Two proofs. A crawl with canaries: every secret word of a study is a rare word, and no response holds it in any coding. And
twins: two studies that differ in every secret give the same bytes.
"""

import base64
import binascii
import hashlib
import html
import io
import json
import re
import urllib.parse

import pytest
from django.http import HttpResponse
from PIL import Image

from annotators.models import Assignment
from studies import lifecycle
from studies.media import encode_image, store
from studies.models import Arm, Contrast, Output, Prompt, Question, Section, Study, System
from tests.builders import COMMENT, SCREENING, add_survey, panel, warnings_of
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


def secret_study(words: dict[str, str], media_root) -> Study:
    """SPA over texts, Markdown, dialogues and images, with a rating and surveys, every secret a canary."""
    study = Study.objects.create(
        title=words["title"], public_title="Short texts", seed=3, purpose="You read.", instructions="Read.", consent="I agree.",
        debriefing="Thanks.", contact="research@example.org", target_n=4, minutes=10, reward=1, exclusion_group=words["group"],
    )  # fmt: skip
    systems = [
        System.objects.create(
            study=study, name=words[f"system{n}"], is_human=n == 1, reference="maximal" if n == 2 else ""
        )
        for n in range(3)
    ]
    Arm.objects.create(study=study, name=words["arm"], condition="none")
    for n in range(4):
        prompt = Prompt.objects.create(
            study=study,
            key=f"{n}{words['prompt_key']}",
            text=f"Prompt number {n}",
            attributes={"from": words["attribute"]},
        )
        for place, system in enumerate(systems):
            columns = {"text": f"Tale {n} by number {place}.", "original": words["original"]}
            if n == 1:
                columns["format"] = "markdown"
            elif n == 2:
                columns |= {"format": "turns", "text": f"A: hello {place}\nB: bye {place}"}
            elif n == 3:
                image = encode_image(picture((40 * place, 90, 160), words["software"]))
                store(media_root, image)
                columns = {"media": image.name, "alt": "a coloured square"}
            Output.objects.create(system=system, prompt=prompt, **columns)
    add_survey(study, position=1, purpose="screening", questions=[SCREENING])
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
    add_survey(study, position=4, questions=[COMMENT])
    Contrast.objects.create(
        study=study, x=systems[1], y=systems[0], family=words["family"], criterion=words["criterion"], expected=">"
    )
    return lifecycle.launch(study, None, warnings_of(study))


def any_answer(name, kind, values, asked, page, robot):
    if name.endswith(".skip"):
        return None
    return {"textarea": "fine", "text": "50"}.get(kind, values[0])


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


def test_no_canary_is_seen_by_an_annotator(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    words = canaries("one")
    responses, _, _ = visited(secret_study(words, tmp_path), "w")
    assert len(responses) > 40
    assert any(r.headers["Content-Type"] == "image/webp" for r in responses)
    assert leaks(all_bytes(responses), words) == []


@pytest.mark.parametrize("coded", [
    lambda w: w, lambda w: base64.b64encode(w[::-1].encode()).decode(), lambda w: f"<i data-x='{w.upper()}'>",
    lambda w: hashlib.md5(w.encode()).hexdigest(), lambda w: w.encode().hex(),
])  # fmt: skip
def test_the_crawl_finds_a_leak(coded):
    words = canaries("one")
    page = HttpResponse(f"<p>{coded(words['system1'])}</p>")
    assert leaks(all_bytes([page]), words) == ["system1"]


def test_a_leaking_template_is_caught(settings, tmp_path, monkeypatch):
    """The negative control of the whole crawl: a page that prints a system's name is found."""
    from annotators import show

    settings.MEDIA_ROOT = tmp_path
    words = canaries("one")
    study = secret_study(words, tmp_path)
    monkeypatch.setattr(show, "cached_markdown", lambda text: f"<p>{words['system1']}</p>")
    responses, _, _ = visited(study, "w")
    assert leaks(all_bytes(responses), words) == ["system1"]


def test_twins_that_differ_in_every_secret_give_the_same_bytes(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    pages = []
    for salt in ("one", "two"):
        study = secret_study(canaries(salt), tmp_path)
        responses, code, key = visited(study, "w")
        seen = all_bytes(r for r in responses if r.headers["Content-Type"] != "image/webp").decode()
        seen = seen.replace(code, "CODE").replace(key, "KEY")
        # What is keyed by the code differs with the code: the receipt, the images' names; and clocks move.
        seen = re.sub(r"/m/[0-9a-f]{32}", "/m/ID", seen)
        seen = re.sub(r"\b[2-9A-HJ-NP-Z]{5}-[2-9A-HJ-NP-Z]{5}\b", "RECEIPT", seen)
        seen = re.sub(r"'Content-Length': '[0-9]+'", "", seen)  # of the same bytes, but for clocks
        seen = re.sub(
            r'(datetime|data-until|data-minutes)="[^"]*"|[0-9]{1,2} [A-Z][a-z]+ 20[0-9]{2}[^<]*|for [0-9]+ more minutes?',
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
    study = secret_study(words, tmp_path)
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
