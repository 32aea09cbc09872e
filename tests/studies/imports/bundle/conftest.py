"""Two studies to be written into bundles: a plain one, and one with everything that a design may hold."""

import json
from decimal import Decimal

import pytest

from studies.design.draw import item_content_hash
from studies.imports.preparation import prepare_stimuli_and_delete_dropped_prompts
from studies.imports.tables import Options, import_stimuli_file
from studies.models import Arm, Expected, Exposure, Item, Output, Prompt, Study
from studies.stimuli.images import encode_image, store_image
from tests.builders import SCREENING, add_rating, add_spa, add_survey, draft_study, spa_draft
from tests.studies.imports.bundle.bundles import png


@pytest.fixture
def study(db):
    return spa_draft(prompts=6)


@pytest.fixture
def whole(db, tmp_path, settings):
    """A study that has something of everything a design may hold."""
    settings.MEDIA_ROOT = tmp_path / "media"
    study = draft_study(prompts=5, reward=Decimal("2.50"), withdrawal_until="2031-12-31", wage_per_hour="12.00")
    add_survey(study, position=1, purpose="screening", questions=[SCREENING])
    spa = add_spa(study, position=2, m=2)
    rating = add_rating(study, position=3, reuses=spa, m=1)
    second = Arm.objects.create(study=study, name="second", condition="examples", reward="3.10", domain="news")
    second.systems.set(study.systems.filter(name__in=["alpha", "beta"]))
    rating.arms.set([second])
    study.comparison_families.create(name="secondary", adjustment="hommel", after="primary")
    study.exclusion_rules.create(rule="incoherent", settings={}, position=1)
    alpha, beta = study.systems.order_by("name")[:2]
    study.contrasts.create(
        x=beta,
        y=alpha,
        section=rating,
        estimand="",
        criterion="tone",
        role="secondary",
        expected="~",
        margin=0.05,
        level=0.01,
    )
    picture = encode_image(png())
    store_image(settings.MEDIA_ROOT, picture)
    prompt = Prompt.objects.create(
        study=study,
        key="p900",
        text="Grüße, 軍は &amp; <b>\u2028x",
        source="S",
        domain="news",
        language="de",
        media=picture.name,
        attributes={"n": 3, "a": ["x", None, 1.5]},
    )
    Output.objects.create(system=alpha, prompt=prompt, media=picture.name, alt="a square")
    Output.objects.create(system=beta, prompt=prompt, is_empty=True)
    Output.objects.create(system=alpha, prompt=prompt, sample=1, text="**b**", format="markdown", language="fr")
    _add_ready_made(study, tmp_path)
    _add_test_item(study, spa)
    prepare_stimuli_and_delete_dropped_prompts(study, {"normalisation": {"tokeniser_quotes": True}}, by=None)
    return Study.objects.get(pk=study.pk)


def _add_ready_made(study, tmp_path):
    rows = [
        {
            "batch": f"r{b}",
            "position": n,
            "arm": "all",
            "section": 2,
            "prompt_key": f"q{n}",
            "prompt_text": f"Q {n}",
            "outputs": {name: f"``{name}'' {b} {n}" for name in ("alpha", "beta", "gamma")},
        }
        for b in range(2)
        for n in (2, 1)
    ]
    path = tmp_path / "b.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert import_stimuli_file(study, path, options=Options(makes_batches=True), by=None).is_written


def _add_test_item(study, section):
    prompt = study.prompts.get(key="p000")
    outputs = list(Output.objects.filter(prompt=prompt).order_by("system__name")[:2])
    number = section.items.count() + 1
    content = item_content_hash(prompt.pk, [o.pk for o in outputs], "test")
    item = Item.objects.create(study=study, section=section, number=number, prompt=prompt, kind="test", content=content)
    first, _ = [Exposure.objects.create(item=item, output=o, number=n) for n, o in enumerate(outputs)]
    questions = list(section.questions.all()[:2])
    Expected.objects.create(item=item, question=questions[0], low=0, high=20.5, explanation="It is copied.")
    Expected.objects.create(item=item, question=questions[1], exposure=first)
