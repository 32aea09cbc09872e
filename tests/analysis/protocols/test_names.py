"""Every table, figure and family of a report has a name of its own, whatever sections, arms and models the study has."""

import re
from collections import Counter

import pytest

from analysis.report.build import build_report
from studies.models import Contrast, Study
from studies.services import lifecycle
from tests.analysis.protocols.drawn import overlaps_and_overflows
from tests.builders import (
    add_choice,
    add_humanlike,
    add_marks,
    add_ranking,
    add_rating,
    add_relative,
    add_spa,
    draft_study,
    humanlike_draft,
    launched,
)
from tests.players import play

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("same_orders")]
COUNTER = re.compile(r"\b[Ss]ection \d|\bm ?= ?\d|\bthe paper\b")
# Clark et al. hold their means over domains to the threshold of their cells, without counting them.
COUNTED_ONCE = "humanlike.paper"


def reported(study, people):
    for n in range(people):
        play(study, n)
    lifecycle.start_closing(Study.objects.get(pk=study.pk), by=None)
    lifecycle.end_grace_period(Study.objects.get(pk=study.pk), by=None)
    report = build_report(Study.objects.get(pk=study.pk), {"resamples": 99})
    assert not report["problems"], report["problems"]
    return report


def twice(things):
    return [thing for thing, n in Counter(things).items() if n > 1]


def each_has_its_own_name(report):
    for what in ("tables", "figures"):
        names = [one["name"] for one in report[what]]
        assert len(names) > 1 or what == "figures"
        assert all(re.fullmatch(r"[-a-zA-Z0-9_]+", name) for name in names), "part of an address"
        assert twice(names) == twice(one["title"] for one in report[what]) == []
    sizes = {one["family"]: one["size"] for one in report["families"]}
    assert len(sizes) == len(report["families"])
    tests = Counter(
        e["test"]["family"] for b in report["blocks"] for e in b["estimates"] if e["test"] and e["test"]["family"]
    )
    assert {family: n for family, n in tests.items() if n > sizes[family] and not family.startswith(COUNTED_ONCE)} == {}
    for figure in report["figures"]:
        if figure.get("kind", "intervals") == "intervals":
            assert twice((row["label"], row["series"]) for row in figure["rows"]) == [], figure["name"]
        assert overlaps_and_overflows(figure)[1:] == ([], []), figure["name"]
    for name in ("claim", "apa"):
        assert twice(one[name] for one in report["conclusions"] if one[name]) == []
    sections = [line for line in report["methods"] if "asked" in line]
    assert len(sections) == len(report["sections"]) and twice(sections) == []
    assert [line for line in report["methods"] if COUNTER.search(line)] == []
    for table in report["tables"]:
        cells = [str(row[c["key"]]) for row in table["rows"] for c in table["columns"] if c["kind"] == "text"]
        said = [table["title"], table["note"], *cells, *(c["label"] for c in table["columns"])]
        assert [text for text in said if COUNTER.search(text)] == [], table["name"]
        if table["name"] != "estimates":
            heads = [c["key"] for c in table["columns"] if c["kind"] == "text" or c["key"] == "m"]
            assert twice(tuple(str(row[key]) for key in heads) for row in table["rows"]) == [], table["name"]


@pytest.mark.slow
@pytest.mark.parametrize("add", [add_spa, add_rating, add_relative, add_ranking, add_marks, add_choice])
def test_two_sections_of_one_protocol(add):
    study = draft_study(prompts=60, target_n=6, instructions="")
    options = {"stopping": "none", "strategy": "any", "allows_tie": True} if add is add_choice else {}
    add(study, position=1, m=2, **options)
    study.contrasts.all().delete()
    add(study, position=2, m=3, **options)
    if add is add_rating:
        x, y = study.systems.order_by("name")[:2]
        Contrast.objects.create(study=study, x=y, y=x, expected=">")
    each_has_its_own_name(reported(launched(study), 6))


@pytest.mark.slow
def test_two_sections_of_human_or_machine():
    study = humanlike_draft(
        conditions=("none", "examples"), domains=("news", "stories"), machines=("gpt2", "gpt3"), texts=30, target_n=16
    )
    add_humanlike(study, position=5)
    each_has_its_own_name(reported(launched(study), 16))
