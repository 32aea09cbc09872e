"""The pages of rankings and error marks tell no system, arm, kind or key: the crawl and the twins of ``test_blinding``."""

import re

import pytest

from studies import lifecycle
from studies.models import Arm, Contrast, Output, Prompt, Question, Section, Study, System
from studies.protocols import REGISTRY
from tests.builders import SCREENING, add_survey, warnings_of
from tests.test_blinding import all_bytes, any_answer, canaries, leaks, visited

pytestmark = pytest.mark.django_db


def secret_study(words) -> Study:
    study = Study.objects.create(
        title=words["title"], public_title="Short texts", seed=3, purpose="You read.", consent="I agree.", debriefing="Thanks.",
        contact="research@example.org", target_n=2, minutes=10, reward=1, exclusion_group=words["group"],
    )  # fmt: skip
    systems = [System.objects.create(study=study, name=words[f"system{n}"], is_human=n == 1) for n in range(3)]
    Arm.objects.create(study=study, name=words["arm"])
    for n in range(4):
        prompt = Prompt.objects.create(
            study=study, key=f"{n}{words['prompt_key']}", text=f"Prompt {n}", attributes={"from": words["attribute"]}
        )
        for place, system in enumerate(systems):
            text = f"Tale {n} by number {place}. It ended well.\nSo it was."
            Output.objects.create(system=system, prompt=prompt, text=text, original=words["original"])
    add_survey(
        study, position=1, purpose="screening", questions=[SCREENING]
    )  # the crawl sets the seed on the first page
    for position, protocol in enumerate(("ranking", "marks"), 2):
        section = Section.objects.create(study=study, position=position, protocol=protocol, m=2)
        for n, columns in enumerate(REGISTRY[protocol].questions, 1):
            Question.objects.create(section=section, position=n, criterion=words["criterion"], **columns)
    Contrast.objects.create(study=study, x=systems[1], y=systems[0], family=words["family"], expected=">", margin=0.1)
    return lifecycle.launch(study, None, warnings_of(study))


def ranked(name, kind, values, asked, page, robot):
    """Places for the places; everything else as the crawl answers it."""
    return "2" if kind == "text" and name.startswith("s2.") else any_answer(name, kind, values, asked, page, robot)


def test_no_canary_is_seen_and_a_leak_would_be():
    words = canaries("one")
    responses, _, _ = visited(secret_study(words), "w", answer=ranked)
    seen = all_bytes(responses)
    assert b"The place of B" in seen and b"Mark an error" in seen and b"3: So it was." in seen and b"Thank you" in seen
    assert leaks(seen, words) == []
    assert leaks(seen + words["system2"].encode(), words) == ["system2"]


def test_twins_that_differ_in_every_secret_give_the_same_bytes(monkeypatch):
    from annotators import pages as annotators_pages

    # Letters are drawn by the item's own number in the database, which is another for the second twin.
    draw = annotators_pages.random_of
    monkeypatch.setattr(
        annotators_pages, "random_of", lambda seed, what, *more: draw(seed, what, *(() if what == "item" else more))
    )
    pages = []
    for salt in ("one", "two"):
        responses, code, key = visited(secret_study(canaries(salt)), "w", answer=ranked)
        seen = all_bytes(responses).decode().replace(code, "CODE").replace(key, "KEY")
        seen = re.sub(r"\b[2-9A-HJ-NP-Z]{5}-[2-9A-HJ-NP-Z]{5}\b", "RECEIPT", seen)
        seen = re.sub(r"'Content-Length': '[0-9]+'", "", seen)
        seen = re.sub(
            r'(datetime|data-until|data-minutes)="[^"]*"|[0-9]{1,2} [A-Z][a-z]+ 20[0-9]{2}[^<]*|for [0-9]+ more minutes?',
            "TIME",
            seen,
        )
        pages.append(seen)
    assert pages[0] == pages[1]
