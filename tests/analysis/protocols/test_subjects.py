"""Every result names its subject: no two sentences, rows or labels are equal, whatever a design asks.

All comparisons of a design get the same numbers, so that only the words can distinguish two of them.
"""

import ast
import re
from collections import Counter
from itertools import pairwise
from types import SimpleNamespace

import pytest
from pandas import DataFrame

from analysis.protocols import best_worst, marks, ranking, rating
from analysis.protocols import best_worst as best_worst_layouts
from analysis.protocols import marks as marks_layouts
from analysis.protocols import ranking as ranking_layouts
from analysis.protocols.blocks import Block, build_planned_conclusions
from analysis.protocols.blocks.cells import comparison_label
from analysis.protocols.blocks.layouts import METHOD_NAMES, build_figure, figure_row
from analysis.protocols.blocks.sentences import _family_words, build_conclusion_sentences
from analysis.protocols.families import planned_claims
from analysis.protocols.humanlike.planned_comparisons import phrases_of_comparison as human_phrases
from analysis.protocols.method_tables import _method_label_and_null
from analysis.protocols.rating import layouts as rating_layouts
from analysis.protocols.rating.utilities import PHRASES as UTILITY_PHRASES
from analysis.protocols.relative import phrases_of_score
from analysis.protocols.spa import layouts as spa_layouts
from analysis.protocols.spa.comparisons import PHRASES as SPA_PHRASES
from analysis.protocols.spa_and_rating import build_overview
from analysis.protocols.two_choice import layouts as choice_layouts
from analysis.protocols.two_choice.preference import preference_phrases
from analysis.report.report_tables import estimates_table, submitted_answer_counts_table
from analysis.stats.results import Estimate, HypothesisTest, Interval
from studies.design.checklist import find_design_problems
from studies.design.comparisons import planned_claim_sentences
from studies.design.subjects import numbered_name
from studies.models import Arm, Contrast, Question, SectionArm, System
from studies.services.questions import add_missing_questions, default_question_text, select_system_pairs
from tests.analysis.protocols.drawn import overlaps_and_overflows
from tests.builders import (
    COMMENT,
    SCREENING,
    add_humanlike,
    add_section,
    add_spa,
    add_survey,
    draft_study,
    humanlike_draft,
)
from tests.conftest import ROOT
from tests.golden_site.hashes import stored
from tests.rules import SOURCES, parsed, walk
from tests.rules import name as file_name

pytestmark = pytest.mark.django_db

LONG = "Please think of a reader who does not know the story and who wants to be entertained: how"
# Questions of a section: (key, text, criterion).
QUESTIONS = {
    "one question": [("q1", "How fluent is it?", "")],
    "texts alone": [("q1", "How fluent is it?", ""), ("q2", "How interesting is it?\n\n*0* is bad.", "")],
    "criteria": [("q1", "How good is it?", "fluency"), ("q2", "How good is it?", "interest")],
    "a criterion and the whole": [("q1", "How fluent is it?", "fluency"), ("q2", "How good is it?", "")],
    "one criterion twice": [("q1", "How fluent is it?", "style"), ("q2", "How elegant is it?", "style")],
    "equal texts": [("q1", "Is it good?", ""), ("q2", "Is it good?", "")],
    "texts of one beginning": [("q1", f"{LONG} tense is it?", ""), ("q2", f"{LONG} funny is it?", "")],
}
# Sections of a study: the m of each, and whether each has an arm of its own.
SECTIONS = {
    "one section": ((4,), False),
    "more and more examples": ((1, 8), False),
    "equal sections": ((4, 4), False),
    "sections of arms": ((4, 4), True),
    "three sections": ((1, 4, 4), False),
}
ASKED = {
    **dict.fromkeys(("rating", "relative", "ranking", "two_choice"), tuple(QUESTIONS)),
    "spa": ("one question", "criteria", "a criterion and the whole"),
    "best_worst": ("one question", "criteria"),
    "marks": ("one question",),
}
ESTIMANDS = {"rating": ("", "difference", "utility"), "marks": ("score", "penalty")}
# The phrases of each block, and its null.
PHRASES = {
    "rating.superiority": (rating.superiority_phrases, 0.5),
    "rating.difference": (rating.DIFFERENCE_PHRASES, 0.0),
    "rating.utility_difference": (UTILITY_PHRASES, 0.0),
    "spa.pairs": (SPA_PHRASES, 0.5),
    "relative.score": (phrases_of_score(2.0), 0.0),
    "ranking.share": (ranking.PHRASES, 0.5),
    "choice.preference": (preference_phrases, 0.5),
    "best_worst.strength": (best_worst.PHRASES, 0.0),
    "marks.score": (marks.PHRASES[marks.SCORE], 0.0),
    "marks.penalty": (marks.PHRASES[marks.PENALTY], 0.0),
    **{f"humanlike.{name}": (human_phrases, 0.0) for name in ("sensitivity", "criterion", "accuracy")},
}
SYSTEMS = ("alpha", "beta", "gamma")


def add_questions(section, asked):
    """Give the section these questions, on the scale of its first one."""
    match section.protocol:
        case "spa":
            section.questions.all().delete()
            for _, _, criterion in asked:
                pairs = select_system_pairs(section, "neighbours")
                add_missing_questions(section, pairs, default_question_text(section), by=None, criterion=criterion)
        case "marks":
            pass
        case "best_worst":
            section.questions.update(criterion=asked[0][2])
        case _:
            scale = section.questions.first().scale
            section.questions.all().delete()
            for position, (key, text, criterion) in enumerate(asked, 1):
                Question.objects.create(
                    section=section, position=position, key=key, text=text, criterion=criterion, scale=scale
                )


def add_sections(study, protocol, sections, questions, first_position=1):
    sizes, have_own_arms = SECTIONS[sections]
    for position, m in enumerate(sizes, first_position):
        section = add_section(study, protocol, position=position, m=m)
        add_questions(section, QUESTIONS[questions])
        if have_own_arms:
            SectionArm.objects.create(section=section, arm=Arm.objects.create(study=study, name=f"arm {position}"))


def made(protocol, sections, questions):
    study = draft_study(systems=SYSTEMS, prompts=1)
    if protocol == "rating":
        for name, reference in (("top", "maximal"), ("bottom", "minimal")):
            System.objects.create(study=study, name=name, reference=reference)
    add_sections(study, protocol, sections, questions)
    alpha, beta, gamma = System.objects.filter(study=study, name__in=SYSTEMS).order_by("name")
    for estimand in ESTIMANDS.get(protocol, ("",)):
        for family, x, y, role in (("first", beta, alpha, "primary"), ("second", beta, gamma, "secondary")):
            Contrast.objects.create(study=study, x=x, y=y, estimand=estimand, family=family, role=role)
    return study


def claims_of(study):
    by_protocol = {}
    for section in study.sections.filter(purpose="live").order_by("position"):
        by_protocol.setdefault(section.protocol, []).append(section)
    claims = {}
    for slug, sections in by_protocol.items():
        claims |= planned_claims({slug: sections})
    return claims


def estimate_of(compared, key, null, value=0.64):
    low, high = (None, None) if value is None else (value - 0.1, value + 0.1)
    test = HypothesisTest(
        name="two_way_t", null=null, statistic=2.5, pvalue=0.02, df=18.5, pvalue_adjusted=0.04, adjust="bonferroni",
        family=compared.family, family_size=2, stars="*", star_scheme="10/5/1",
    )  # fmt: skip
    estimate = Estimate(
        analysis=f"any.{key}",
        estimand=key,
        unit="annotator",
        n=20,
        estimate=value,
        status="ok" if value is not None else "no_data",
        reason="" if value is not None else "nobody answered",
        interval=None if value is None else Interval(0.95, low, high, "two_way_cv3_t"),
        test=test if value is not None else None,
        detail={"verdict": "different", "n_above": 3, "n_ties": 1, "n_below": 2},
    )
    return compared.tag_estimate(estimate, key, null=null, scored="points, 1 to 5")


def blocks_of(study, value=0.64):
    blocks = []
    for name, compared in claims_of(study).items():
        block = re.sub(r"_\d+$", "", name)
        make, null = PHRASES[block]
        key = block.partition(".")[2]
        estimates = tuple(estimate_of(one, key, null, value) for one in compared)
        conclusions = build_planned_conclusions(estimates, make)
        blocks.append(Block(name, name, "recommended", estimates=estimates, conclusions=conclusions))
    return blocks


def answers_table(study):
    """Return the table of answers of a study in which one person gave each answer."""
    asked = list(Question.objects.filter(section__study=study).values_list("section__position", "key"))
    row = {"assignment": 1, "value": 1.0, "chosen_system": None, "is_erased": False}
    row |= dict.fromkeys(("choice", "text", "skip_reason"), "")
    rows = [row | {"section": section, "question": key} for section, key in asked]
    table = submitted_answer_counts_table(
        SimpleNamespace(responses=DataFrame(rows), submitted=[1], sections=list(study.sections.order_by("position")))
    )
    # The position and the key are in the stored rows, and no column shows them.
    assert {(row["section"], row["question"]) for row in table["rows"]} == set(asked)
    return table


def layouts_of(blocks):
    """Return the tables and figures of the protocols that show these blocks."""
    tables, figures = [estimates_table(blocks)], []
    for block in blocks:
        estimates = block.estimates
        match re.sub(r"_\d+$", "", block.name):
            case "rating.superiority":
                tables.append(rating_layouts.rating_comparisons_table(estimates, estimates, estimates))
                figures.append(rating_layouts.superiority_figure(estimates))
            case "spa.pairs":
                tables.append(spa_layouts.naming_order_gap_table(estimates))
                figures += [
                    spa_layouts.forest_figure(estimates, estimates),
                    spa_layouts.naming_order_gap_figure(estimates),
                ]
            case "ranking.share":
                tables.append(ranking_layouts.pairs_table(estimates))
                figures.append(ranking_layouts.shares_figure(estimates))
            case "choice.preference":
                tables.append(choice_layouts.decisions_table(estimates, estimates, [None] * len(estimates)))
                figures.append(choice_layouts.shares_figure(estimates, estimates))
            case "best_worst.strength":
                tables.append(best_worst_layouts.pairs_table(estimates))
                figures.append(best_worst_layouts.pairs_figure(estimates))
            case "marks.score" | "marks.penalty":
                estimand = block.name.partition(".")[2]
                tables.append(marks_layouts.pairs_table(estimates, estimand))
                figures.append(marks_layouts.differences_figure(estimates, estimand))
            case "relative.score":
                rows = [figure_row(one, comparison_label(one), "points") for one in estimates]
                figures.append(build_figure("relative", "Points", rows, description="", axis="points", reference=0.0))
    tables += build_overview(blocks, "10/5/1").tables
    return tables, figures


def twice(things):
    return [thing for thing, n in Counter(things).items() if n > 1]


def each_is_named(study, values=(0.64, -0.2, None)):
    """Nothing that a reader sees is there twice. Return the number of sentences."""
    n_sentences = 0
    for value in values:
        blocks = blocks_of(study, value)
        sentences = build_conclusion_sentences(blocks)
        n_sentences += len(sentences)
        assert twice(one["claim"] for one in sentences) == []
        assert twice(one["apa"] for one in sentences if one["apa"]) == []
        said = [one[name] for one in sentences for name in ("claim", "text", "apa")]
        tables, figures = layouts_of(blocks)
        for table in [*tables, answers_table(study)]:
            shown = [tuple(str(row[column["key"]]) for column in table["columns"]) for row in table["rows"]]
            assert twice(shown) == [], table["name"]
            said += [table["title"], table["note"], *(cell for row in shown for cell in row)]
        for figure in figures:
            assert twice((row["label"], row["series"]) for row in figure["rows"]) == [], figure["name"]
            said += [row["label"] for row in figure["rows"]]
        # Counters and keys are not words. A key is the last resort, for questions of equal texts.
        counters = r"\bsection \d|\bm = \d" if has_equal_texts(study) else r"\bsection \d|\bm = \d|\bq\d\b"
        assert [text for text in said if re.search(counters, text)] == []
    return n_sentences


def has_equal_texts(study):
    """Whether two questions of a section can be known only by their keys."""
    return any(twice(section.questions.values_list("text", "criterion", "x", "y")) for section in study.sections.all())


@pytest.mark.slow
@pytest.mark.parametrize("sections", SECTIONS)
@pytest.mark.parametrize("protocol", ASKED)
def test_no_two_results_of_a_design_have_the_same_name(protocol, sections):
    values = (0.64, None) if sections == "one section" else (0.64,)
    for questions in ASKED[protocol]:
        n_comparisons = len(SECTIONS[sections][0]) * 2 * len(ESTIMANDS.get(protocol, ("",)))
        assert each_is_named(made(protocol, sections, questions), values) >= len(values) * n_comparisons, questions


@pytest.mark.parametrize("n_sections", [1, 2])
@pytest.mark.parametrize("machines", [("gpt2",), ("gpt2", "gpt3")])
def test_conditions_and_machine_systems_are_named_in_words(machines, n_sections):
    study = humanlike_draft(conditions=("none", "examples"), domains=("news",), machines=machines, texts=2)
    if n_sections == 2:
        add_humanlike(study, position=5, m=3)
    for estimand in ("sensitivity", "criterion", "accuracy"):
        Contrast.objects.create(study=study, estimand=estimand)
    assert each_is_named(study) >= 3 * 3 * len(machines) * n_sections
    claims = [one["claim"] for one in build_conclusion_sentences(blocks_of(study))]
    assert all(re.search(r"no training|training by examples", claim) for claim in claims), claims
    assert not any(re.search(r", none\b|\bunder (none|examples)\b", claim) for claim in claims), claims


def told_twice(study) -> list[str]:
    return [problem.text for problem in find_design_problems(study) if problem.name.startswith("planned_twice")]


@pytest.mark.parametrize("protocol", [one for one, asked in ASKED.items() if "criteria" in asked])
def test_a_pair_that_is_planned_on_all_criteria_and_on_one_is_one_claim_about_that_one(protocol):
    study = made(protocol, "one section", "criteria")
    first = study.contrasts.select_related("x", "y").first()
    columns = {"x": first.x, "y": first.y, "estimand": first.estimand, "family": first.family, "role": first.role}
    own = Contrast.objects.create(study=study, criterion="fluency", level=0.01, **columns)
    n_own = 0
    for comparisons in claims_of(study).values():
        planned = [one for one in comparisons if (one.family, one.y) == (own.family, own.y.name)]
        assert twice(one.key for one in planned) == []
        n_own += sum(one.level == 0.01 for one in planned)
        assert {one.criterion for one in planned if one.level == 0.01} <= {"fluency"}
    assert n_own == 1
    assert told_twice(study) == [
        f"{first} and {own} are in one family and about the same answers. The report uses the more specific one. "
        "Delete one of them."
    ]


def test_protocols_of_one_study_do_not_take_each_others_words():
    study = made("rating", "equal sections", "criteria")
    others = ("relative", "ranking", "two_choice", "best_worst", "marks")
    for position, protocol in enumerate(others, 3):
        add_questions(add_section(study, protocol, position=position, m=4), QUESTIONS["criteria"])
    assert each_is_named(study) >= 3 * 2 * (2 * 2 * 3 + 2 * 3 + 1 + 1)


def test_answers_to_questions_of_every_purpose_and_kind_are_named():
    study = humanlike_draft(conditions=("examples", "comparison"), domains=("news",), machines=("gpt2",), texts=2)
    comment = COMMENT | {"key": "q1"}
    add_survey(study, position=10, purpose="screening", questions=[SCREENING, SCREENING | {"key": "q2"}])
    add_survey(study, position=11, purpose="attention", questions=[comment])
    add_survey(study, position=12, questions=[comment, comment | {"key": "q2", "text": ""}])
    add_spa(study, position=13, m=1)
    shown = [(row["asked_in"], row["asked"]) for row in answers_table(study)["rows"]]
    assert twice(shown) == []
    training = "Human or machine, with 3 texts, in the arm news gpt2 {} (training)"
    surveys = {"Survey", "Survey (screening)", "Survey (attention checks)"}
    others = {
        "Human or machine, with 5 texts",
        "SPA, after 1 example",
        *map(training.format, ("examples", "comparison")),
    }
    assert {where for where, _ in shown} == surveys | others
    assert {("Survey", f"“{COMMENT['text']}”"), ("Survey", "q2"), ("SPA, after 1 example", "gpt2 > human")} < set(shown)
    assert {asked for where, asked in shown if where == "Survey (screening)"} == {"fluent", "q2"}


@pytest.mark.parametrize("sections", ["equal sections", "sections of arms"])
@pytest.mark.parametrize("protocol", ASKED)
def test_the_checklist_names_each_section_in_words(protocol, sections):
    study = made(protocol, sections, "one question")
    study.sections.update(settings={"noun": "x" * 200})
    study.contrasts.filter(estimand="").update(hypothesis="noninferiority", margin=0.05)
    said = [problem.text for problem in find_design_problems(study)] + planned_claim_sentences(study)
    names = [numbered_name(section) for section in study.sections.all()]
    assert twice(names) == [] and all(any(f"ection {one}" in text for text in said) for one in names), said
    assert [text for text in said if re.search(r"\bsection \d+(?! \()", text, re.IGNORECASE)] == []


# Files and the audit log name a section by its position, and a key that seeds random draws never changes.
BY_POSITION = (
    "studies/imports",
    "annotators/imports",
    "studies/services",
    "studies/admin/section.py",
    "annotators/places/batch_plan.py",
    "analysis/protocols/rating/estimates.py",
    "analysis/protocols/ranking.py",
)


def test_no_message_names_a_section_by_its_position():
    """An f-string with "section" before a position is in one of the places above. Each of these places still has one."""
    found = set()
    for path in SOURCES:
        for node in walk(parsed(path)):
            parts = node.values if isinstance(node, ast.JoinedStr) else []
            for before, value in pairwise(parts):
                is_section = isinstance(before, ast.Constant) and re.search(r"(?i)\bsection $", str(before.value))
                if is_section and "position" in ast.unparse(value):
                    found.add(file_name(path))
    assert [one for one in found if not one.startswith(BY_POSITION)] == []
    assert [one for one in BY_POSITION if not any(path.startswith(one) for path in found)] == []


def figures_of_designs():
    for protocol, asked in ASKED.items():
        for questions in asked:
            yield from layouts_of(blocks_of(made(protocol, "three sections", questions)))[1]
    long_names = [f"gpt-4o-mini-2024-07-18-{name}" for name in SYSTEMS]
    study = made("spa", "three sections", "criteria")
    for system, name in zip(System.objects.filter(study=study).order_by("name"), long_names, strict=True):
        System.objects.filter(pk=system.pk).update(name=name)
    yield from layouts_of(blocks_of(study))[1]
    yield from layouts_of(blocks_of(study, value=-123456.0))[1]


@pytest.mark.slow
def test_no_text_of_a_figure_lies_on_another():
    n_figures = n_texts = 0
    for figure in figures_of_designs():
        found, on_each_other, outside = overlaps_and_overflows(figure)
        assert on_each_other == outside == [], figure["name"]
        n_figures, n_texts = n_figures + 1, n_texts + found
    assert n_figures > 40 and n_texts > 1000, (n_figures, n_texts)


def test_two_results_of_one_label_would_be_found():
    rows = [{"label": "x > y", "series": "a", "estimate": 0.6, "low": 0.5, "high": 0.7}] * 2
    figure = build_figure("f", "Chance", rows, description="", axis="P", reference=0.5, limits=[0, 1])
    assert overlaps_and_overflows(figure)[1]


def all_estimates():
    for parts in stored().values():
        for block in parts["blocks"]:
            for estimate in block["estimates"]:
                for one in (estimate, *estimate["sensitivity"]):
                    yield block["name"], one


def test_every_method_and_interval_of_the_stored_reports_has_words():
    analyses, methods = set(), set()
    for name, one in all_estimates():
        methods |= {between["method"] for between in (one["interval"], one["interval_adjusted"]) if between}
        if name in ("spa.pairs", "rating.superiority", "rating.difference"):
            analyses.add(one["analysis"])
    assert methods <= METHOD_NAMES.keys() and len(methods) > 10
    labels = {analysis: _method_label_and_null(analysis)[0] for analysis in analyses}
    assert len(labels) > 20 and {one for one in labels.values() if re.search(r"[_\[]|\w\.\w", one)} == set()
    assert twice(labels.values()) == []


def test_every_family_of_the_stored_reports_has_words_of_its_own():
    n = 0
    for parts in stored().values():
        # The stored reports have no titles.
        blocks = [one | {"title": re.sub(r"[._]", " ", f"{one['name']} {one['mode']}")} for one in parts["blocks"]]
        tests = [one["test"] for block in blocks for one in block["estimates"] if one["test"]]
        names = {one["family"] for one in tests if one.get("family")}
        words = [_family_words({"blocks": blocks}, name) for name in names]
        assert twice(words) == [] and [one for one in words if re.search(r"\w\.\w|_|^the tests in $", one)] == []
        n += len(words)
    assert n > 60


def test_a_caption_names_the_level_and_the_method_of_each_series():
    study = made("spa", "one section", "one question")
    (block,) = blocks_of(study)
    figure = spa_layouts.forest_figure(block.estimates, block.estimates)
    lines = "Lines are 95 % confidence intervals (t, with clusters in two ways)."
    assert figure["description"].endswith(f"50 % is no preference. {lines}")
    assert all("interval" not in row for row in figure["rows"])


def strings_for_readers():
    """Yield the place and the text of each string of the product that is not a docstring, and of each line of a page."""
    for folder in ("analysis", "annotators", "boards", "heval_site", "studies"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "migrations" in path.parts:
                continue
            tree = ast.parse(path.read_text(encoding="utf-8"))
            documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
            docstrings = {
                id(one.body[0].value)
                for one in ast.walk(tree)
                if isinstance(one, documented) and one.body and isinstance(one.body[0], ast.Expr)
            }
            for one in ast.walk(tree):
                if isinstance(one, ast.Constant) and isinstance(one.value, str) and id(one) not in docstrings:
                    yield f"{path.relative_to(ROOT)}:{one.lineno}", one.value
    for path in sorted((ROOT / "templates").rglob("*.html")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            yield f"{path.relative_to(ROOT)}:{number}", line


@pytest.mark.slow
def test_no_text_says_the_paper_without_its_name():
    found = list(strings_for_readers())
    assert len(found) > 5000
    assert [place for place, text in found if re.search(r"\bthe paper('s)?\b", text, re.IGNORECASE)] == []


@pytest.mark.parametrize("protocol", [one for one, asked in ASKED.items() if "criteria" in asked])
def test_a_pair_that_is_planned_in_both_directions_is_warned_of(protocol):
    study = made(protocol, "one section", "criteria")
    first = study.contrasts.select_related("x", "y").first()
    columns = {"x": first.y, "y": first.x, "estimand": first.estimand, "family": first.family, "role": first.role}
    back = Contrast.objects.create(study=study, criterion="fluency", **columns)
    (told,) = told_twice(study)
    ends = (
        "The report uses the more specific one" if protocol == "spa" else "in both directions, which count as two tests"
    )
    assert told.startswith(f"{first} and {back} are in one family and about the same answers") and ends in told
    # Another family is another question.
    Contrast.objects.filter(pk=back.pk).update(family="other")
    assert told_twice(study) == []
