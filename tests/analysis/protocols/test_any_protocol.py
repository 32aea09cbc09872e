"""A protocol that nothing knows gets its sentence, table and figure into a report; without words of its own, a plain sentence."""

from dataclasses import replace

import pytest

from analysis import protocols as analyses
from analysis.protocols import ProtocolAnalysis
from analysis.protocols.blocks import Block, ConclusionPhrases, Overview, build_planned_conclusions
from analysis.protocols.blocks.cells import contrast_of
from analysis.protocols.blocks.comparisons import comparison_from_contrast
from analysis.protocols.blocks.layouts import build_figure, build_table, figure_row
from analysis.report.build import build_report
from analysis.report.report_data import NAME
from studies import protocols
from studies.models import Contrast, Exposure, Question, Section, Study
from studies.protocols import PageField, Protocol
from studies.protocols.base.fields import ExposureChoiceField
from studies.services import lifecycle
from tests.builders import draft_study, launched
from tests.players import answered, claimed, open_page

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("same_orders")]
PEOPLE = 24
# The first letters of the systems that they pick, two each.
PICKED = "bbggbabbggbg" * 4


class Pick(Protocol):
    slug = "pick_example"
    label = "pick one"

    def estimands(self, section):
        return {"share": "share of the choices between x and y that fall on x"}

    def page_fields(self, page):
        return {
            page.slot(question, item): PageField(
                ExposureChoiceField(question.required, exposures=item.exposures),
                question.id,
                answer_column="chosen",
                item_id=item.id,
            )
            for item in page.items
            for question in page.questions
        }


class Silent(ProtocolAnalysis):
    """Estimates what was planned, and says nothing of it."""

    slug = "pick_example"

    def estimates(self, context):
        from analysis.stats.clusters import clustered_mean

        (section,) = context.sections
        found = []
        for contrast in section.study.contrasts.select_related("x", "y").order_by("pk"):
            compared = comparison_from_contrast(contrast, section, "")
            rows = context.rows[
                context.rows["chosen_system"].isin([compared.x, compared.y]) & context.rows["is_kept"].astype(bool)
            ]
            share = clustered_mean(
                (rows["chosen_system"] == compared.x).to_numpy(float),
                rows["annotator"].to_numpy(object),
                null=0.5,
                level=context.level,
                bounds=(0, 1),
                analysis="pick.share",
                estimand="share of choices for x",
            )
            found.append(compared.tag_estimate(share, "share"))
        return tuple(found)

    def analyse(self, context):
        return [Block("pick.shares", "How often x was picked", "recommended", estimates=self.estimates(context))]


class Judging(Silent):
    """Weighs its tests in their family, and says nothing of it."""

    def analyse(self, context):
        (block,) = super().analyse(context)
        name = block.name
        contrasts = context.sections[0].study.contrasts.select_related("x", "y").order_by("pk")
        pairs = [
            (comparison_from_contrast(one, context.sections[0], ""), share)
            for one, share in zip(contrasts, block.estimates, strict=True)
        ]
        return [replace(block, estimates=(yield {name: pairs})[name])]


def wording(one):
    x, y = (contrast_of(one)[name] for name in "xy")
    return ConclusionPhrases(
        above_claim=f"{x} was picked rather than {y}.",
        below_claim=f"{y} was picked rather than {x}.",
        same=f"{x} and {y} were picked alike",
        open=f"It remains open whether {x} or {y} is picked.",
        before=f"The share of {x} is",
        symbol=f"share of {x}",
        kind="percent",
    )


class Telling(Judging):
    """The same with words, a table, a figure, and a line of the summary."""

    build_overview = staticmethod(lambda blocks, scheme: Overview(summary=[f"{len(blocks)} block, stars by {scheme}."]))

    def analyse(self, context):
        (block,) = yield from super().analyse(context)
        shares = block.estimates
        rows = [{"x": contrast_of(one)["x"], "share": one.estimate, "n": one.n} for one in shares]
        return [
            Block(
                "pick.shares",
                "How often x was picked",
                "recommended",
                estimates=shares,
                conclusions=build_planned_conclusions(shares, wording),
                tables=[
                    build_table(
                        "picks", "What was picked", "x|System|text; share|Share|percent; n|n|integer", rows, "first"
                    )
                ],
                figures=[
                    build_figure(
                        "picks",
                        "Picks",
                        [figure_row(one, "x", "share") for one in shares],
                        description="Shares.",
                        axis="share",
                    )
                ],
            )
        ]


def answers(study, person, letters):
    assignment = claimed(study, person)
    for letter in letters:
        _, page, asks = open_page(assignment)
        (slot,) = asks
        (item,) = page.items
        names = dict(Exposure.objects.values_list("pk", "output__system__name"))
        answered(assignment, page.key, **{slot: next(label for label, pk in item.exposures if names[pk][0] == letter)})


@pytest.fixture
def play(monkeypatch):
    def played(analysis, amends=False):
        monkeypatch.setitem(protocols.REGISTRY, Pick.slug, Pick())
        monkeypatch.setitem(analyses.REGISTRY, Pick.slug, analysis())
        study = draft_study(target_n=PEOPLE, prompts=30, instructions="")
        section = Section.objects.create(study=study, position=1, protocol=Pick.slug, m=2)
        question = Question.objects.create(section=section, position=1, key="best", text="Which is the best?")
        alpha, beta, gamma = study.systems.order_by("name")
        for x, y in ((beta, alpha), (gamma, beta)):
            Contrast.objects.create(study=study, x=x, y=y, role="primary", expected=">")
        study = launched(study)
        for n in range(PEOPLE):
            if amends and n == 1:
                lifecycle.amend(study, {"question": {question.pk: {"help": "Slowly."}}}, reason="a hint", by=None)
            answers(study, f"p{n}", PICKED[2 * n : 2 * n + 2])
        for step in (lifecycle.start_closing, lifecycle.end_grace_period):
            step(Study.objects.get(pk=study.pk), by=None)
        return build_report(Study.objects.get(pk=study.pk), {"resamples": 99})

    return played


@pytest.mark.slow
def test_a_protocol_brings_its_sentences_tables_figures_and_summary(play):
    report = play(Telling)
    assert not report["problems"] and report["no_conclusion"] == ""
    estimates = report["blocks"][0]["estimates"]
    assert len(estimates) == 2 and all(one["test"] and one["n"] > 5 for one in estimates)
    assert [one["contrast"] for one in report["conclusions"]] == [
        f"{one['settings']['contrast']['key']}, share" for one in estimates
    ]
    for one, estimate in zip(report["conclusions"], estimates, strict=True):
        x = estimate["settings"]["contrast"]["x"]
        assert one["text"].startswith(f"The share of {x} is ") and f"n = {estimate['n']} annotators." in one["text"]
        assert one["apa"].startswith(f"share of {x} = .")
    tables = {one["name"]: one for one in report["tables"]}
    assert [row["share"] for row in tables["picks"]["rows"]] == [one["estimate"] for one in estimates]
    (drawn,) = report["figures"]
    assert drawn["name"] == "picks" and [row["estimate"] for row in drawn["rows"]] == [
        one["estimate"] for one in estimates
    ]
    assert report["summary"] == ["1 block, stars by 10/5/1."]


@pytest.mark.slow
def test_what_was_planned_and_estimated_is_reported_though_the_protocol_says_nothing(play):
    report = play(Silent)
    assert not report["problems"] and report["no_conclusion"] == "", "something was answered, and estimated"
    estimates = report["blocks"][0]["estimates"]
    assert len(report["conclusions"]) == len(estimates) == 2
    for one, estimate in zip(report["conclusions"], estimates, strict=True):
        x, y = (estimate["settings"]["contrast"][name] for name in "xy")
        # Whether a p-value that no family was weighed for shows anything, nobody has said.
        assert one["claim"] == f"{x} and {y} were compared; no verdict was formed." and one["recovered"] == ""
        assert one["text"].startswith("Share of choices for x is 0.") and one["apa"]
        assert one["text"].endswith(f"n = {estimate['n']} annotators.")


@pytest.mark.slow
def test_a_plain_sentence_claims_what_its_family_allows(play):
    report = play(Judging)
    claims = {one["claim"]: one["recovered"] for one in report["conclusions"]}
    assert claims == {
        "beta and alpha differ: share of choices for x is above 0.5.": "recovered",
        "It remains open whether gamma and beta differ.": "not shown",
    }


@pytest.mark.slow
@pytest.mark.parametrize("analysis", [Silent, Telling])
def test_it_is_set_beside_the_newest_version_too(play, analysis):
    report = play(analysis, amends=True)
    (newest,) = [block for block in report["blocks"] if block["name"] == NAME]
    assert [
        one["n"] < whole["n"] for one, whole in zip(newest["estimates"], report["blocks"][0]["estimates"], strict=True)
    ]
    assert "versions" in {one["name"] for one in report["tables"]}
