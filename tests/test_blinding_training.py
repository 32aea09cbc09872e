"""The truth about a practice text appears once the guess is stored and only there; nothing is ever shown about texts that count."""

import hashlib
import re
from dataclasses import replace

import pytest

from annotators.models import Assignment, Response
from studies.models import Arm, Output, Prompt, Study, System
from studies.services import lifecycle
from tests.builders import add_humanlike, add_practice, panel, warnings_of
from tests.leaks import all_bytes, codings, leaks
from tests.robots import Page, Robot

pytestmark = pytest.mark.django_db
SECRETS = ("title", "human", "machine", "arm", "prompt_key", "domain", "attribute", "original", "group", "family")


def rare(salt: str, name: str) -> str:
    digest = hashlib.sha256(f"{salt}{name}".encode()).hexdigest()
    return "c" + "".join("qxzjvkwypb"[int(c, 16) % 10] for c in digest[:22])


def secret_study(salt: str) -> tuple[Study, dict[str, str]]:
    """Practice with one text, practice with a pair, then texts that count; every secret a rare word."""
    words = {name: rare(salt, name) for name in SECRETS}
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
    # "a" and "b" in front: the systems stand in the same order of names whatever the salt.
    human = System.objects.create(study=study, name=f"a{words['human']}", is_human=True)
    machine = System.objects.create(study=study, name=f"b{words['machine']}")
    arm = Arm.objects.create(study=study, name=words["arm"], condition="examples", domain=words["domain"])

    def outputs(number: int) -> list[Output]:
        prompt = Prompt.objects.create(
            study=study,
            key=f"{number}{words['prompt_key']}",
            domain=words["domain"],
            text=f"Prompt {number}",
            attributes={"from": words["attribute"]},
        )
        return [
            Output.objects.create(
                system=system, prompt=prompt, text=f"Tale {number}, telling {place}.", original=words["original"]
            )
            for place, system in enumerate((human, machine))
        ]

    alone = add_humanlike(study, position=1, m=2, purpose="training", arms=[arm], keys=("source",))
    pair = add_humanlike(study, position=2, m=1, purpose="training", arms=[arm], keys=("source",))
    add_practice(alone, outputs(90)[:1], f"See {rare(salt, 'gold 90')}.")
    add_practice(alone, outputs(91)[1:], f"See {rare(salt, 'gold 91')}.")
    add_practice(pair, outputs(92), f"See {rare(salt, 'gold 92')}.")
    for number in range(8):
        outputs(number)
    add_humanlike(study, position=3, m=4)
    return lifecycle.launch(study, None, warnings_of(study)), words


def played(salt: str, look=lambda robot, page, code: None):
    """A person's whole way, with every address of feedback asked for before its time; ``look`` sees each page first."""
    study, words = secret_study(salt)
    door = panel(study)
    robot = Robot(f"/e/{door.key}/?who=w&session=s")
    robot.start()
    Assignment.objects.filter(study=study).update(seed=11)
    assignment = Assignment.objects.get(study=study)
    here = f"/p/{assignment.code}/"
    page = Page(robot.get(here).content.decode())
    while (form := next((f for f in page.forms if "go" in dict(f.buttons)), None)) is not None:
        for ahead in ("t", "ft", "f"):
            robot.get(form.action.rstrip("/") + f"{ahead}/")
            robot.client.head(form.action.rstrip("/") + f"{ahead}/")
            robot.post(form.action.rstrip("/") + f"{ahead}/", {"go": "1"})
        robot.post(form.action, {"go": "1", "strange": "1"})
        robot.post(form.action, {"save": "1"})
        look(robot, form.action, assignment)
        page = Page(robot.post(form.action, robot.fill(form, page)).content.decode())
    return study, words, robot, assignment, door


def gold_in(robot, salt: str) -> list[int]:
    seen = all_bytes(robot.responses)
    return [number for number in (90, 91, 92) if any(c in seen for c in codings(rare(salt, f"gold {number}")))]


def test_the_truth_is_shown_after_the_guess_and_nowhere_before():
    told: list[tuple[str, list[int], list[int]]] = []

    def look(robot, action, assignment):
        guessed = Response.objects.filter(assignment=assignment, question__section__purpose="training")
        numbers = [int(key[:2]) for key in guessed.values_list("item__prompt__key", flat=True)]
        told.append((action, sorted(numbers), gold_in(robot, "one")))

    study, words, robot, assignment, _ = played("one", look)
    # Before each page was answered, what had been shown was what had been guessed, no more.
    assert all(set(gold) <= set(guessed) for _, guessed, gold in told), told
    assert [guessed for _, guessed, _ in told][0] == [] and gold_in(robot, "one") == [90, 91, 92]
    # Every guess was answered with its truth, on the page right behind it.
    behind = [gold for action, _, gold in told if re.search(r"p[0-9]+t/$", action)]
    assert [len(gold) for gold in behind] == [1, 2, 3]
    assert leaks(all_bytes(robot.responses), words) == []


def test_nothing_is_shown_about_texts_that_count():
    _, _, robot, assignment, _ = played("one")
    live = [r for r in robot.responses if re.search(r"/s3\.", r.request["PATH_INFO"])]
    words = b" ".join(r.content for r in live)
    assert len(live) > 16 and b"wrote this." not in words and b"The answer</h1>" not in words
    assert Response.objects.filter(assignment=assignment, question__key="source").count() == 7


def test_a_page_that_shows_the_truth_too_early_is_found(monkeypatch):
    """The negative control: a page that prints the explanations of its items before any guess is caught."""
    from annotators.pages import presentation
    from studies.models import Expected

    real = presentation._items

    def careless(assignment, page, about, typed):
        rows = Expected.objects.filter(item__in=[item.id for item in page.items]).values_list("explanation", flat=True)
        shown = real(assignment, page, about, typed)
        return tuple(replace(one, exposures=tuple(_with(e, " ".join(rows)) for e in one.exposures)) for one in shown)

    monkeypatch.setattr(presentation, "_items", careless)
    told = []

    def look(robot, action, assignment):
        guessed = Response.objects.filter(assignment=assignment, question__section__purpose="training")
        told.append(([int(k[:2]) for k in guessed.values_list("item__prompt__key", flat=True)], gold_in(robot, "one")))

    played("one", look)
    assert any(not set(gold) <= set(guessed) for guessed, gold in told)


def _with(exposure, words):
    return replace(exposure, output=replace(exposure.output, text=f"{exposure.output.text} {words}"))


def test_twins_that_differ_in_every_secret_give_the_same_bytes():
    seen = []
    for salt in ("one", "two"):
        _, _, robot, assignment, door = played(salt)
        text = all_bytes(robot.responses).decode().replace(assignment.code, "CODE").replace(door.key, "KEY")
        for number in (90, 91, 92):
            text = text.replace(rare(salt, f"gold {number}"), f"GOLD {number}")
        text = re.sub(r"\b[2-9A-HJ-NP-Z]{5}-[2-9A-HJ-NP-Z]{5}\b", "RECEIPT", text)
        text = re.sub(r'name="form" value="[\w-]{22}"', "FORM", text)
        text = re.sub(r"/p/gAAAA[\w=-]+/", "/p/LIMITED/", text)
        text = re.sub(r"'Content-Length': '[0-9]+'", "", text)
        text = re.sub(
            r'(datetime|data-until|data-seconds)="[^"]*"|[0-9]{1,2} [A-Z][a-z]+ 20[0-9]{2}[^<]*|for [0-9]+ more minutes?',
            "TIME",
            text,
        )
        seen.append(text)
    assert seen[0] == seen[1]
