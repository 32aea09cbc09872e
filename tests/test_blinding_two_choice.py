"""The pages that show pairs tell no system, arm, kind, criterion's name or side: the crawl and the twins of ``test_blinding``."""

import re

import pytest

from studies import lifecycle
from studies.media import encode_image, store
from studies.models import Arm, Contrast, Output, Prompt, Question, Section, Study, System
from studies.protocols import REGISTRY
from tests.builders import SCREENING, add_survey, warnings_of
from tests.test_blinding import all_bytes, canaries, leaks, picture, visited

pytestmark = pytest.mark.django_db
CHOICE = {
    "protocol": "two_choice", "settings": {"allows_tie": True}, "scale": {"kind": "output"}, "text": "Which is more natural?",
    "seen": b"Which is more natural?",
}  # fmt: skip
RELATIVE = {
    "protocol": "relative", "settings": {"pairs": "reference"}, "scale": REGISTRY["relative"].questions[0]["scale"],
    "text": "Which is better?", "seen": b"Text A is much better",
}  # fmt: skip
either = pytest.mark.parametrize("asked", [CHOICE, RELATIVE], ids=["two_choice", "relative"])


def secret_study(words, media_root, asked) -> Study:
    """Pairs of texts, Markdown, dialogues and images, every secret a canary; the same stimuli whatever the secrets."""
    study = Study.objects.create(
        title=words["title"], public_title="Short texts", seed=3, purpose="You read.", consent="I agree.", debriefing="Thanks.",
        contact="research@example.org", target_n=2, minutes=10, reward=1, exclusion_group=words["group"],
    )  # fmt: skip
    systems = [
        System.objects.create(
            study=study, name=words[f"system{n}"], is_human=n == 1, reference="" if n else "reference"
        )
        for n in range(3)
    ]
    Arm.objects.create(study=study, name=words["arm"])
    for n in range(4):
        prompt = Prompt.objects.create(
            study=study,
            key=f"{n}{words['prompt_key']}",
            text="" if n == 0 else f"Prompt {n}",
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
    add_survey(
        study, position=1, purpose="screening", questions=[SCREENING]
    )  # the crawl sets the seed on the first page
    section = Section.objects.create(
        study=study,
        position=2,
        protocol=asked["protocol"],
        m=4,
        settings=asked["settings"] | {"noun": "text", "explanation": "Take your time."},
    )
    Question.objects.create(
        section=section, position=1, key=words["question_key"], text=asked["text"], help="Natural means natural.",
        criterion=words["criterion"], scale=asked["scale"], skip_reasons=[{"key": "cannot_judge", "label": "I cannot judge"}],
    )  # fmt: skip
    Contrast.objects.create(study=study, x=systems[1], y=systems[0], family=words["family"], expected=">", margin=0.1)
    return lifecycle.launch(study, None, warnings_of(study))


@either
def test_no_canary_is_seen(settings, tmp_path, asked):
    settings.MEDIA_ROOT = tmp_path
    words = canaries("one")
    responses, _, _ = visited(secret_study(words, tmp_path, asked), "w")
    seen = all_bytes(responses)
    assert asked["seen"] in seen and b"Natural means natural." in seen
    assert any(r.headers["Content-Type"] == "image/webp" for r in responses)
    assert leaks(seen, words) == []


def test_a_leak_would_be_seen(settings, tmp_path, monkeypatch):
    from annotators import show

    settings.MEDIA_ROOT = tmp_path
    words = canaries("one")
    study = secret_study(words, tmp_path, CHOICE)
    monkeypatch.setattr(show, "cached_markdown", lambda text: f"<p>{words['system2']}</p>")
    responses, _, _ = visited(study, "w")
    assert leaks(all_bytes(responses), words) == ["system2"]


@either
def test_twins_that_differ_in_every_secret_give_the_same_bytes(settings, tmp_path, monkeypatch, asked):
    from annotators import pages as annotators_pages

    settings.MEDIA_ROOT = tmp_path
    # Sides are drawn by the item's own number in the database, which is another for the second twin.
    draw = annotators_pages.random_of
    monkeypatch.setattr(
        annotators_pages, "random_of", lambda seed, what, *more: draw(seed, what, *(() if what == "item" else more))
    )
    pages = []
    for salt in ("one", "two"):
        responses, code, key = visited(secret_study(canaries(salt), tmp_path, asked), "w")
        seen = all_bytes(r for r in responses if r.headers["Content-Type"] != "image/webp").decode()
        seen = seen.replace(code, "CODE").replace(key, "KEY")
        seen = re.sub(r"/m/[0-9a-f]{32}", "/m/ID", seen)
        seen = re.sub(r"\b[2-9A-HJ-NP-Z]{5}-[2-9A-HJ-NP-Z]{5}\b", "RECEIPT", seen)
        seen = re.sub(r"'Content-Length': '[0-9]+'", "", seen)
        seen = re.sub(
            r'(datetime|data-until|data-minutes)="[^"]*"|[0-9]{1,2} [A-Z][a-z]+ 20[0-9]{2}[^<]*|for [0-9]+ more minutes?',
            "TIME",
            seen,
        )
        pages.append(seen)
    assert pages[0] == pages[1]
