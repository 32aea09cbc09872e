"""No row changes where a form of the admin is sent back as it is shown."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.contrib import admin
from django.test import RequestFactory

from annotators.models import OutcomePay, Recruitment
from annotators.recruitment.channels import REGISTRY as CHANNELS
from studies.imports.study_templates import STUDY_TEMPLATES, create_draft_from_template
from studies.models import ExclusionRule, Question, Section
from studies.models.design import REGISTRY as RULES
from studies.protocols import REGISTRY as PROTOCOLS
from studies.protocols.base.fields import SCALE_KINDS
from tests import builders
from tests.untouched.drafts import hard_study, with_stimuli
from tests.untouched.rows import OURS, pages_of, save_all
from tests.untouched.values import LONG, MOMENT, columns_of, scales, variants

pytestmark = pytest.mark.django_db


@pytest.mark.slow
@pytest.mark.parametrize("blueprint", STUDY_TEMPLATES, ids=lambda one: one.slug)
def test_a_draft_from_a_template(client, owner, blueprint):
    with_stimuli(create_draft_from_template(blueprint, owner), 1)
    pages = pages_of("studies/study", "studies/section")
    assert len(pages) > 1
    save_all(client, pages)


@pytest.mark.slow
@pytest.mark.parametrize("slug", PROTOCOLS)
def test_a_section_of_every_protocol_with_every_setting(client, owner, slug):
    protocol = PROTOCOLS[slug]
    study = builders.draft_study(owner=owner, prompts=1)
    found = list(variants(protocol.settings_form)) if protocol.settings_form else [{}]
    # Some settings were never stored: a bundle may leave them out.
    found.append({name: value for n, (name, value) in enumerate(found[-1].items()) if n % 2})
    for n, settings in enumerate([*found, {}]):
        section = Section.objects.create(
            study=study,
            position=3 + 2 * n,
            protocol=slug,
            m=n if protocol.has_items else 0,
            settings=settings,
            purpose=Section.Purpose.values[n % len(Section.Purpose.values)],
        )
        section.arms.set(study.arms.all() if n % 2 else [])
        asked = protocol.questions or [
            {
                "key": "q",
                "text": LONG,
                "scale": next(one for one in scales() if one["kind"] == protocol.default_scale_kind),
            }
        ]
        if n == 0:
            Question.objects.bulk_create(
                Question(section=section, position=4 + 3 * k, **columns) for k, columns in enumerate(asked)
            )
    assert len(pages_of("studies/section")) >= 2
    save_all(client, pages_of("studies/study", "studies/section"))


@pytest.mark.slow
def test_a_question_of_every_scale(client, owner):
    study = builders.draft_study(owner=owner, prompts=1)
    found = list(scales())
    assert {scale["kind"] for scale in found} == set(SCALE_KINDS)
    systems = list(study.systems.all())
    for position, asked in ((2, found), (5, [{}, None])):
        section = Section.objects.create(study=study, position=position, protocol="survey", m=0)
        Question.objects.bulk_create(
            Question(
                section=section,
                position=2 * n + 3,
                scale=scale or {},
                required=n % 2 == 0,
                skip_reasons=[{"key": "can't", "label": "I | cannot"}] if n % 3 else [],
                x=systems[0] if n % 2 else None,
                y=systems[1] if n % 2 else None,
                **columns_of(Question, ("position", "required"), key=f"q{n}"),
            )
            for n, scale in enumerate(asked)
        )
    save_all(client, pages_of("studies/section"))


@pytest.mark.slow
def test_every_rule_with_every_setting(client, owner):
    found = {slug: list(variants(rule.settings_form)) if rule.settings_form else [] for slug, rule in RULES.items()}
    for slug, each in found.items():  # settings that were never stored, where the rule has defaults for all of them
        each += [{}] if not each or RULES[slug].bound_form({}).is_valid() else []
    assert max(map(len, found.values())) > 2
    for n in range(max(map(len, found.values()))):
        study = builders.draft_study(owner=owner, prompts=1)
        ExclusionRule.objects.bulk_create(
            ExclusionRule(
                study=study,
                rule=slug,
                position=1 + 2 * k if n % 2 else 1,
                settings=each[n % len(each)],
                role=ExclusionRule.Role.values[n % len(ExclusionRule.Role.values)],
            )
            for k, (slug, each) in enumerate(found.items())
        )
    pages = pages_of("studies/study")
    assert len(pages) > 2
    save_all(client, pages)


@pytest.mark.slow
def test_every_column_of_a_draft_and_its_rows(client, owner):
    hard_study(owner)
    pages = pages_of("studies")
    kinds = {url.split("/")[3] for url in pages}
    assert kinds >= {"study", "section", "prompt", "output"}
    # One prompt and one output hold odd columns; the others hold what the builder wrote.
    alike = {url.split("/")[3]: url for url in reversed(pages)}
    save_all(
        client, [url for url in pages if url.split("/")[3] in ("study", "section") or url == alike[url.split("/")[3]]]
    )


def promise_rules() -> Iterator[dict]:
    for rule in OutcomePay.Rule.values:
        yield dict.fromkeys(OutcomePay.Outcome.values, "1.05" if rule == OutcomePay.Rule.AMOUNT else rule)


@pytest.mark.parametrize("slug", CHANNELS)
def test_a_link_of_every_channel_with_every_setting(client, owner, slug):
    study = builders.spa_study(owner, target_n=2)
    channel = CHANNELS[slug]
    promises = list(promise_rules())
    for n, settings in enumerate(variants(channel.settings_form) if channel.settings_form else [{}]):
        columns = columns_of(Recruitment, ("channel", "key", "pool"), opens_at=MOMENT - timedelta(days=n + 1))
        made = builders.recruitment(study, slug, settings=settings, **columns if n % 2 else {})
        if n % 3:
            made.arms.set(study.arms.all())
            builders.promised(made, **promises[n % len(promises)])
    save_all(client, pages_of("annotators/recruitment"))


def test_every_row_of_the_admin_that_may_be_changed_is_saved_above(client, owner):
    """A model that gets a form in the admin is enumerated here; the tests above save its rows."""
    request = RequestFactory().get("/")
    request.user = builders.user("root", is_superuser=True)
    changeable = {
        model._meta.label
        for model, model_admin in admin.site._registry.items()
        if model._meta.app_label in OURS and model_admin.has_change_permission(request)
    }
    assert changeable == {
        "studies.Study",
        "studies.Section",
        "studies.Prompt",
        "studies.Output",
        "annotators.Recruitment",
    }
