"""What nobody changed stays as it is: every form is sent back as a browser shows it, twice, and no row of the database changes.

Forms, rows and values are enumerated: the admin's registry, the addresses of the site, the registries of protocols, rules and channels,
the columns of the models and the choices of each settings form. A new member of one of them is covered without an edit here.
"""

import json
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from urllib.parse import urljoin, urlsplit

import pytest
from django import forms
from django.apps import apps
from django.contrib import admin
from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db.models import QuerySet
from django.test import RequestFactory
from django.urls import get_resolver, resolve, reverse

from analysis.api import urls as api_urls
from analysis.api.serializers import StudySerializer
from analysis.report.parameters import checked_parameters
from annotators.models import OutcomePay, Recruitment
from annotators.recruitment import sample
from annotators.recruitment.channels import REGISTRY as CHANNELS
from annotators.recruitment.panels import rounds
from annotators.recruitment.panels.secrets import keep
from studies.admin.acts import ACTS
from studies.design.definition import STUDY_FIELDS, canonical, design_of
from studies.imports.blueprints import BLUEPRINTS, draft_of
from studies.imports.bundle import bundle_text
from studies.models import (
    Arm,
    Contrast,
    ExclusionRule,
    Job,
    Output,
    Prompt,
    Question,
    Section,
    Study,
    System,
    audit,
)
from studies.models.rules import REGISTRY as RULES
from studies.protocols import REGISTRY as PROTOCOLS
from studies.protocols.base.scales import KINDS, read_scale
from studies.services import lifecycle
from studies.stimuli.normalising import Preparation
from tests import builders
from tests.admin_pages import errors_of, forms_of, logged_in, press
from tests.test_urls import addresses, filled, world  # noqa: F401 - a fixture

from .analysis.api.rest import api_of

pytestmark = pytest.mark.django_db

DAY, MOMENT = date(2031, 5, 17), datetime(2031, 5, 17, 10, 11, 12, 131415, tzinfo=UTC)
OURS = ("studies", "annotators", "analysis")


def rows() -> dict[str, str]:
    """Every row of every table of the project, the log of the studies included, and every study's canonical design."""
    found = {}
    for model in apps.get_models():
        if model._meta.app_label in OURS and not model._meta.proxy:
            names = [field.attname for field in model._meta.concrete_fields]
            for row in QuerySet(model).order_by("pk").values_list(*names):
                named = dict(zip(names, row, strict=True))
                found[f"{model._meta.label} {named['id']}"] = json.dumps(named, sort_keys=True, default=str)
    for study in Study.objects.all():
        found[f"design {study.pk}"] = canonical(design_of(study))
    return found


def differences(before: dict[str, str], after: dict[str, str]) -> list[str]:
    found = []
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name, "(no row)"), after.get(name, "(no row)")
        if old != new:
            place = max(0, next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), 0) - 30)
            found.append(f"{name}: …{old[place : place + 90]}… became …{new[place : place + 90]}…")
    return found


def change_pages() -> Iterator[str]:
    """The change page of every row that the admin knows."""
    for model in admin.site._registry:
        if model._meta.app_label in OURS:
            for pk in QuerySet(model).order_by("pk").values_list("pk", flat=True):
                yield reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_change", args=[pk])


def save_all(client, urls: list[str]) -> None:
    """Open each page and press Save, twice, the second time by another button where there is one. Fails where a row changes."""
    assert urls
    before = rows()
    for url in urls:
        for turn in range(2):
            page = client.get(url)
            assert page.status_code == 200, url
            own = next(form for form in forms_of(page) if form.attrs.get("id", "").endswith("_form"))
            buttons = [button for button in own.buttons if button[0] in ("_save", "_continue")]
            assert buttons, url
            cache.clear()  # limits of requests are another matter
            response = press(client, url, own, buttons[turn % len(buttons)])
            assert response.status_code == 302, (url, response.status_code, errors_of(response))
        found = differences(before, rows())
        assert not found, (url, found)


# What fields may hold


LONG = "\n  blanks at both ends, “quotes”, <b>&amp;</b>, \\| \n\n\ttwo paragraphs  \n"
LINE = "“quotes”, <b>&amp;</b> and 何か 🙂"
WORDS = (
    LINE, "abc", "ABC-12x", "123", "US, GB", "a" * 24, "https://example.org/done?cc={code}", "yourschool.sona-systems.com",
    "Completed = submitted", "key | Label | explanation", "key | Label | 1 | explanation\nworse | Label | 5 | explanation", "EUR", "pt-BR",
)  # fmt: skip
LISTS = (["yes"], ["yes", "no"], ["of age, or nearly", '"so" to say', "b"])


def accepted(field: forms.Field, values) -> list:
    found = []
    for value in values:
        try:
            field.clean(value)
        except (ValidationError, AttributeError, TypeError):
            continue
        found.append(value)
    return found


def values_of(field: forms.Field) -> list:
    """What may be stored for a setting: every choice, both ends of a number, several texts; as a bundle brings it, not as a form leaves it."""
    keys = [key for key, _ in getattr(field, "choices", ())]
    initial = field.initial() if callable(field.initial) else field.initial
    match field:
        case forms.BooleanField():
            return [True, False]
        case forms.MultipleChoiceField():
            return accepted(field, [[], keys, keys[-1:]])
        case forms.ChoiceField():
            assert len(keys) <= MOST
            return keys
        case forms.DecimalField() | forms.FloatField():
            low, high = field.min_value or 0, field.max_value or 10
            middle = round(float(low) + float(high - low) / 3, getattr(field, "decimal_places", None) or 9)
            return accepted(field, [initial, low, high, middle, *([] if field.required else [None])])
        case forms.IntegerField():
            low, high = field.min_value or 0, field.max_value or 10
            return accepted(field, [initial, low, high, (low + high) // 2 | 1, *([] if field.required else [None])])
    if type(field).__name__ == "Keys":
        return [list(each) for each in LISTS]
    long = [LONG] if isinstance(field.widget, forms.Textarea) else []
    shown = [words for words in WORDS if "\n" not in words or long]
    return accepted(field, [*([initial] if initial else []), *([] if field.required else [""]), *long, *shown])


MOST = 6  # values of one field; no choice has more


def variants(settings_form: type[forms.Form]) -> Iterator[dict]:
    """Settings that the form accepts, so many that each value of each field is among them where the others allow it."""
    blank = settings_form()
    values = {name: values_of(field) for name, field in blank.fields.items()}
    usual = {name: found[0] for name, found in values.items() if found}
    values = {
        name: [value for value in found if name not in settings_form(usual | {name: value}).errors][:MOST]
        for name, found in values.items()
    }
    assert all(values.values()), (settings_form, [name for name, found in values.items() if not found])
    base = {name: found[0] for name, found in values.items()}
    kept = [name for name, field in blank.fields.items() if isinstance(field, forms.BooleanField | forms.ChoiceField)]
    seen: dict[str, set[str]] = {name: set() for name in values}
    for n in range(max(map(len, values.values()))):
        wanted = {name: found[n % len(found)] for name, found in values.items()}
        for again in range(3):
            form = settings_form(wanted)
            if form.is_valid():
                break
            # Some values do not go together: first those that are refused are given up, then all but the choices.
            wanted |= {
                name: base[name]
                for name in (form.errors if again == 0 else base)
                if name in base and not (again and name in kept)
            }
        assert form.is_valid(), (settings_form, form.errors)
        for name in values:
            seen[name].add(repr(wanted[name]))
        yield wanted
    for name in kept:
        assert seen[name] == {repr(value) for value in values[name]}, (settings_form, name)


def columns_of(model, skipped=(), **given) -> dict:
    """A value for each editable column of a model that is not its usual one, as a bundle or a program may store it."""
    found = {}
    for column in model._meta.concrete_fields:
        if not column.editable or column.primary_key or column.is_relation or column.name in skipped:
            continue
        kind = column.get_internal_type()
        if column.choices:
            values = [key for key, _ in reversed(column.flatchoices)]
        elif kind == "BooleanField":
            values = [not column.default]
        elif kind in ("CharField", "SlugField"):
            values = [LINE, *WORDS]
        elif kind == "TextField":
            values = [LONG]
        elif kind == "DecimalField":
            values = [Decimal("7.50"), Decimal("0.05")]
        elif kind in ("DateField", "DateTimeField"):
            values = [{"DateField": DAY, "DateTimeField": MOMENT}[kind]]
        elif kind == "JSONField":
            continue
        else:
            values = [0.1, 97, 3, 600] if kind == "FloatField" else [97, 3, 600]
        for value in values:
            try:
                found[column.name] = column.clean(value, None)
                break
            except ValidationError:
                continue
        assert column.name in found, column
    return found | given


# Drafts that hold them


def with_stimuli(study: Study, prompts: int = 2) -> Study:
    made = Prompt.objects.bulk_create(Prompt(study=study, key=f"p{n}", text=f"Prompt {n}.") for n in range(prompts))
    systems = list(study.systems.all())
    Output.objects.bulk_create(
        Output(system=system, prompt=prompt, text=f"Words of {system.pk}.") for prompt in made for system in systems
    )
    return study


@pytest.fixture
def owner():
    return builders.user("olga")


@pytest.fixture
def client(owner):
    return logged_in(owner)


def pages_of(*models: str) -> list[str]:
    return [url for url in change_pages() if url.startswith(tuple(f"/admin/{model}/" for model in models))]


@pytest.mark.parametrize("blueprint", BLUEPRINTS, ids=lambda one: one.slug)
def test_a_draft_from_a_template(client, owner, blueprint):
    with_stimuli(draft_of(blueprint, owner), 1)
    pages = pages_of("studies/study", "studies/section")
    assert len(pages) > 1
    save_all(client, pages)


@pytest.mark.parametrize("slug", PROTOCOLS)
def test_a_section_of_every_protocol_with_every_setting(client, owner, slug):
    protocol = PROTOCOLS[slug]
    study = builders.draft_study(owner=owner, prompts=1)
    found = list(variants(protocol.settings_form)) if protocol.settings_form else [{}]
    # Some settings were never stored: a bundle may leave them out.
    found.append({name: value for n, (name, value) in enumerate(found[-1].items()) if n % 2})
    for n, settings in enumerate([*found, {}]):
        section = Section.objects.create(
            study=study, position=3 + 2 * n, protocol=slug, m=n if protocol.has_items else 0, settings=settings,
            purpose=Section.Purpose.values[n % len(Section.Purpose.values)],
        )  # fmt: skip
        section.arms.set(study.arms.all() if n % 2 else [])
        asked = protocol.questions or [
            {"key": "q", "text": LONG, "scale": next(one for one in scales() if one["kind"] == protocol.question_kind)}
        ]
        if n == 0:
            Question.objects.bulk_create(
                Question(section=section, position=4 + 3 * k, **columns) for k, columns in enumerate(asked)
            )
    assert len(pages_of("studies/section")) >= 2
    save_all(client, pages_of("studies/study", "studies/section"))


def scales() -> Iterator[dict]:
    """Each kind of scale: as short as can be, with each part that it may have, and with all of them."""
    from studies.admin.forms.scales import PARTS

    parts = {
        "minimum": 0, "maximum": 7, "low": " worst", "middle": "so | so", "high": "best ", "is_best_first": True,
        "labels": ["very bad", "", "good", "good | very good"], "minimum_length": 3, "maximum_length": 2000, "is_long": False,
        "options": [
            {"key": "yes", "label": "Yes, | of course"}, {"key": "a|b", "label": "No", "screens_out": True}, {"key": "c, d", "label": "\\|"},
        ],
    }  # fmt: skip
    assert set(PARTS) == set(KINDS)
    for kind, names in PARTS.items():
        usual = {"kind": kind} | ({"options": parts["options"]} if "options" in names else {})
        for scale in (
            usual,
            *(usual | {name: parts[name]} for name in names),
            usual | {name: parts[name] for name in names if name not in ("minimum", "maximum")},
        ):
            try:
                read_scale(scale)
            except ValueError:
                continue
            yield scale


def test_a_question_of_every_scale(client, owner):
    study = builders.draft_study(owner=owner, prompts=1)
    found = list(scales())
    assert {scale["kind"] for scale in found} == set(KINDS)
    systems = list(study.systems.all())
    for position, asked in ((2, found), (5, [{}, None])):
        section = Section.objects.create(study=study, position=position, protocol="survey", m=0)
        Question.objects.bulk_create(
            Question(
                section=section, position=2 * n + 3, scale=scale or {}, required=n % 2 == 0,
                skip_reasons=[{"key": "can't", "label": "I | cannot"}] if n % 3 else [],
                x=systems[0] if n % 2 else None, y=systems[1] if n % 2 else None,
                **columns_of(Question, ("position", "required"), key=f"q{n}"),
            )
            for n, scale in enumerate(asked)
        )  # fmt: skip
    save_all(client, pages_of("studies/section"))


def test_every_rule_with_every_setting(client, owner):
    found = {slug: list(variants(rule.settings_form)) if rule.settings_form else [] for slug, rule in RULES.items()}
    for slug, each in found.items():  # settings that were never stored, where the rule has defaults for all of them
        each += [{}] if not each or RULES[slug].bound({}).is_valid() else []
    assert max(map(len, found.values())) > 2
    for n in range(max(map(len, found.values()))):
        study = builders.draft_study(owner=owner, prompts=1)
        ExclusionRule.objects.bulk_create(
            ExclusionRule(
                study=study, rule=slug, position=1 + 2 * k if n % 2 else 1, settings=each[n % len(each)],
                role=ExclusionRule.Role.values[n % len(ExclusionRule.Role.values)],
            )
            for k, (slug, each) in enumerate(found.items())
        )  # fmt: skip
    pages = pages_of("studies/study")
    assert len(pages) > 2
    save_all(client, pages)


def hard_study(owner) -> Study:
    """A draft whose every column holds what a form could spoil: blanks at ends, line breaks, gaps in numbers, other ways to write a scale."""
    # The language and the currency are pages' own words elsewhere; a cap below the target is refused.
    study = builders.draft_study(owner=owner, **columns_of(Study, ("owner", "target_n"), target_cap=9999))
    alpha, beta, gamma = study.systems.order_by("name")
    Arm.objects.filter(study=study).update(**columns_of(Arm))
    second = Arm.objects.create(study=study, name="second", wanted=3)
    second.systems.set([alpha, beta])
    Prompt.objects.filter(study=study, key="p000").update(
        **columns_of(Prompt, source=LONG, attributes={"b": LONG, "a": "1"})
    )
    Output.objects.filter(prompt__key="p001", system=alpha).update(**columns_of(Output, ("is_empty", "sample")))
    screening = Section.objects.create(study=study, position=2, protocol="survey", purpose="screening", m=0)
    Question.objects.create(
        section=screening,
        position=5,
        **columns_of(Question, ("position",), scale=next(one for one in scales() if "options" in one)),
    )
    spa = builders.add_spa(study, position=4)
    rating = builders.add_rating(study, position=7, reuses=spa)
    rating.arms.set([second])
    Contrast.objects.filter(study=study).delete()
    ranking = builders.add_ranking(study, position=9)
    Contrast.objects.filter(study=study).delete()
    System.objects.filter(pk=alpha.pk).update(**columns_of(System))
    usual = columns_of(Contrast, ("x_condition", "y_condition", "estimand"))
    Contrast.objects.create(study=study, x=alpha, y=beta, **usual)
    Contrast.objects.create(
        study=study,
        x=gamma,
        y=beta,
        section=ranking,
        estimand=next(iter(PROTOCOLS["ranking"].estimands(ranking))),
        level=0.1,
    )
    Contrast.objects.create(study=study, x_condition="examples", y_condition="none")
    ExclusionRule.objects.create(
        study=study,
        rule="answered",
        position=3,
        settings={"question": screening.questions.get().key, "options": ["yes", "a|b", "c, d"]},
    )
    ExclusionRule.objects.create(study=study, rule="too_fast", position=3, settings={"z": -2})
    Study.objects.filter(pk=study.pk).update(preparation=PREPARATION)
    return Study.objects.get(pk=study.pk)


PREPARATION = {
    "prompt_filters": [
        {"filter": "has_no_question"}, {"filter": "begins_with", "text": "Write "}, {"filter": "begins_with", "text": "W"},
        {"filter": "has_none", "strings": ["nothing like this", " x y z "]},
    ],
    "length": {"manner": "none", "trimmed": ["beta"]},
}  # fmt: skip


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


# Pages beside the admin's forms


def pressed(client, url: str, inputs: set[str], **typed: str):
    """Send the form with these inputs by its first button; ``typed`` is filled in."""
    page = client.get(url)
    form = next(one for one in forms_of(page) if inputs <= set(one.inputs))
    form.fields = [field for field in form.fields if field[0] not in typed] + list(typed.items())
    return press(client, url, form, form.buttons[0])


@pytest.mark.parametrize("stored", [{}, PREPARATION, Preparation().as_json()], ids=["none", "odd", "whole"])
def test_the_preparation_of_stimuli(client, owner, stored):
    study = builders.draft_study(owner=owner, prompts=2)
    Prompt.objects.filter(study=study).update(text=" Write W. ")
    Study.objects.filter(pk=study.pk).update(preparation=stored)
    url = reverse("import_preparation", args=[study.code])
    before = rows()
    for _ in range(2):
        page = client.get(url)
        form = next(one for one in forms_of(page) if "manner" in one.inputs)
        page = press(client, url, form, ("act", "look"))
        form = next(one for one in forms_of(page) if "manner" in one.inputs)
        assert ("act", "prepare") in form.buttons
        page = press(client, url, form, ("act", "prepare"))
        assert page.status_code == 200 and "Done:" in page.content.decode()
        assert not differences(before, rows())


def test_the_pages_of_a_panel(client, owner):
    """Secrets, rounds and the columns of the sample."""
    study = builders.spa_study(owner, target_n=20)
    sample.declare(study, [("Age", "number", True), ("Country of  residence", "category", False)], owner)
    publishing = [slug for slug, channel in CHANNELS.items() if channel.publishes]
    assert publishing
    for slug in publishing:
        made = builders.recruitment(study, slug, pool=slug)
        keep(made, dict.fromkeys(CHANNELS[slug].secrets, "s3cret"), owner)
        rounds.plan(made, owner, people=7, round_places=3, lost_percent=11)
        before = rows()
        for name, inputs in (
            ("panel", set(CHANNELS[slug].secrets)),
            ("panel_rounds", {"lost_percent"}),
            ("sample", {"numbers"}),
        ):
            for _ in range(2):
                response = pressed(client, reverse(f"admin:annotators_{name}", args=[made.pk]), inputs)
                assert response.status_code == 302, (name, errors_of(response))
                assert not differences(before, rows()), name


def test_the_parameters_of_a_report(client, owner):
    """The form as it is shown asks for what the report is by itself."""
    study = builders.spa_study(owner, target_n=2)
    response = pressed(client, reverse("analyses", args=[study.code]), {"level", "resamples"})
    assert response.status_code == 302
    job = Job.objects.get(kind="analyse")
    assert checked_parameters(job.arguments["parameters"], study) == checked_parameters({}, study)


def test_an_amendment_without_a_change_makes_no_version(client, owner):
    study = hard_study(owner)
    # What only a launch would refuse is put right.
    study.contrasts.all().delete()
    study.arms.update(wanted=None, domain="")
    study.arms.get(name="second").systems.clear()
    builders.launched(study, owner)
    before = rows()
    for _ in range(2):
        response = pressed(client, reverse("admin:studies_amend", args=[study.pk]), {"reason"}, reason="Nothing.")
        assert response.status_code == 422 and "Nothing would change." in errors_of(response)
    with pytest.raises(lifecycle.NotNow, match="Nothing would change"):
        same = {column: getattr(study, column) for column in sorted(Study.amendable)}
        lifecycle.amend(study, {"study": {None: same}}, owner, "Nothing.")
    assert not differences(before, rows()) and study.designs.count() == 1
    # The page of a launched study, with its members, is a form too.
    save_all(client, pages_of("studies/study"))


# The other ways out and in


def drafts(owner, media_root) -> list[Study]:
    """A draft of each template with stimuli, the odd one, and one with images."""
    made = [with_stimuli(draft_of(blueprint, owner), 1) for blueprint in BLUEPRINTS]
    return [*made, hard_study(owner), builders.exposures_draft(media_root, owner=owner)]


def test_a_bundle_that_is_exported_and_imported(client, owner, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    made = drafts(owner, tmp_path)
    assert len(made) > 2
    for study in made:
        before = rows()
        text = client.get(reverse("bundle", args=[study.code])).content
        assert not differences(before, rows())
        file = SimpleUploadedFile("study.bundle.json", text)
        response = client.post(reverse("bundle_upload"), {"file": file})
        assert response.status_code == 302, response.content.decode()[-3000:]
        again = Study.objects.latest("pk")
        assert again.pk != study.pk and not differences(
            {"": canonical(design_of(study))}, {"": canonical(design_of(again))}
        )
        assert bundle_text(again).encode() == text


# What a clone has of its own: who it is, and its draw.
OF_A_CLONE = {"title", "seed", "keeps_origin_out"}


def test_a_clone(client, owner, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    for study in drafts(owner, tmp_path):
        before = {name: row for name, row in rows().items() if not name.startswith("studies.AuditEvent")}
        response = pressed(client, reverse("admin:studies_act", args=[study.pk, "clone"]), {"title"})
        assert response.status_code == 302
        copy = study.clones.get()
        after = rows()
        assert not differences(before, {name: row for name, row in after.items() if name in before})
        own = [design_of(one) for one in (study, copy)]
        assert {name for name in own[0]["study"] if own[0]["study"][name] != own[1]["study"][name]} <= OF_A_CLONE
        for design in own:
            design["study"] = {name: value for name, value in design["study"].items() if name not in OF_A_CLONE}
        assert canonical(own[0]) == canonical(own[1])


# Addresses that take a POST and are no resource that could be read and written back.
ASKED_FOR = {
    "api-studies": "makes a study (written back below)", "api-exclusions": "excludes people", "api-exclusion-reverse": "takes an exclusion back",
    "api-payments": "writes down a payment", "api-analyses": "starts an analysis", "api-exports": "starts an export", "api-job": "cancels a job",
    "api-archive": "starts an archive",
}  # fmt: skip


def test_what_is_read_over_rest_and_written_back(owner, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    api = api_of(owner)
    study, images = hard_study(owner), builders.exposures_draft(tmp_path, owner=owner)
    written = set()
    for pattern in api_urls.urlpatterns:
        view = getattr(pattern.callback, "view_class", None)
        methods = [method for method in ("put", "patch", "post", "delete") if hasattr(view, method)]
        if not methods or pattern.name in ASKED_FOR:
            continue
        written.add(pattern.name)
        for each in (study, images):
            url = reverse(pattern.name, args=[each.code])
            found = json.loads(api.get(url).body)
            before = rows()
            sent = found["results"] if isinstance(found, dict) and "results" in found else found
            for method in methods * 2:
                answer = api.send(method.upper(), url, sent)
                assert answer.status_code == 200, (url, method, answer.body[:2000])
                assert not differences(before, rows()), (url, method)
    assert written >= {"api-study", "api-systems", "api-prompts", "api-outputs"}
    assert set(ASKED_FOR) <= {pattern.name for pattern in api_urls.urlpatterns}
    # The same once more, as a new study.
    read = json.loads(api.get(reverse("api-study", args=[study.code])).body)
    fields = StudySerializer().fields
    writable = {name: read[name] for name in STUDY_FIELDS if not fields[name].read_only}
    assert len(writable) > 20
    made = json.loads(api.post(reverse("api-studies"), writable).body)
    assert {name: made[name] for name in writable} == writable
    again = Study.objects.get(code=made["code"])
    assert {name: design_of(again)["study"][name] for name in writable} == {
        name: design_of(study)["study"][name] for name in writable
    }


def test_an_image_is_sent_back_over_rest_and_never_made(owner, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    study = builders.exposures_draft(tmp_path, owner=owner)
    url, api = reverse("api-outputs", args=[study.code]), api_of(owner)
    row = json.loads(api.get(url).body)["results"][0]
    before = rows()
    for changes, status, said in (
        ({"sample": 7}, 400, "imported in a zip"),
        ({"media": "0" * 64 + ".webp"}, 409, "another media"),
        ({"text": "words"}, 400, "An image has no text"),
        ({"is_empty": True}, 400, "An image has no text"),
        ({"media": ""}, 400, "Give a text"),
        ({"media": 3}, 400, "Give a text"),
    ):
        answer = api.post(url, [row | changes])
        assert (answer.status_code, said in answer.body.decode()) == (status, True), (changes, answer.body)
    assert not differences(before, rows())


# Every form of the site


# Pages whose forms hold what is stored, by the beginning of their address: an untouched one is sent here, and tested above with more values.
HOLD = (
    "admin/annotators/recruitment/<int:pk>/panel/ ", "admin/annotators/recruitment/<int:pk>/panel/rounds/", "admin/annotators/recruitment/<int:pk>/sample/",
    "admin/annotators/recruitment/<path:object_id>/", "admin/studies/output/<path:object_id>/", "admin/studies/prompt/<path:object_id>/",
    "admin/studies/section/<path:object_id>/", "admin/studies/study/<path:object_id>/", "studies/<uuid:code>/import/preparation/",
    "admin/studies/study/<int:pk>/amend/",
)  # fmt: skip
# Pages whose forms ask for something that is then done, or made: pressing the button is the change.
DO = {
    "admin/analysis/apitoken/": "makes or revokes a token", "admin/analysis/codingsample/": "draws a sample, or codes",
    "admin/annotators/assignment/": "excludes, releases, takes back", "admin/annotators/inquiry/": "preview, tries, inbox",
    "admin/annotators/recruitment/add/": "makes a link", "admin/annotators/recruitment/<int:pk>/panel/appeal/": "answers an appeal",
    "admin/annotators/recruitment/<int:pk>/panel/assignment/": "decides about work", "admin/annotators/recruitment/<int:pk>/panel/submission/": "decides about work",
    "admin/annotators/recruitment/<int:pk>/panel/publish/": "publishes", "admin/annotators/recruitment/<int:pk>/panel/order/": "takes back an order",
    "admin/annotators/recruitment/<int:pk>/pay/": "pays a bonus", "admin/annotators/recruitment/<int:pk>/rehearsal/": "plays a rehearsal",
    "admin/password_change/": "Django's own", "admin/studies/section/<int:pk>/practice/": "makes a practice item",
    "admin/studies/section/<int:pk>/write/": "writes questions", "admin/studies/section/add/": "makes a section", "admin/studies/study/add/": "makes a study", "admin/studies/study/<int:pk>/launch/": "launches",
    "admin/studies/study/<int:pk>/<slug:name>/do/": "an act of a study", "e/<slug:key>/": "a person comes", "p/<str:code>/": "a person answers",
    "studies/<uuid:code>/analyses/": "starts an analysis (its parameters are tested above)", "studies/<uuid:code>/import/": "reads a file",
    "studies/bundle/": "reads a bundle",
}  # fmt: skip


def asked_routes(ids, study) -> Iterator[tuple[str, str]]:
    """Each address of the site with ids of this study, and each section of it."""
    for route in sorted(set(addresses(get_resolver()))):
        if "studies/section/<" in route:
            for section in study.sections.all():
                yield route, "/" + re.sub(r"<(path:object_id|int:pk)>", str(section.pk), route)
        elif "studies/output/<" in route:
            yield (
                route,
                "/" + route.replace("<path:object_id>", str(Output.objects.filter(system__study=study).first().pk)),
            )
        elif "<slug:name>/do/" in route:
            for name in ACTS:
                yield route, "/" + route.replace("<int:pk>", str(study.pk)).replace("<slug:name>", name)
        else:
            yield route, filled(route, ids)


def test_every_form_of_the_site_is_known_and_sent(world):  # noqa: F811 - the fixture
    """A page with a new form fails here until somebody says whether the form holds what is stored."""
    owner = world["people"]["owner"]
    draft = hard_study(owner)
    training = Section.objects.create(study=draft, position=20, protocol="humanlike", purpose="training", m=1)
    assert training.pk
    audit.record("edit", study=draft, by=owner)
    root = logged_in(world["people"]["administrator"])
    publishing = next(slug for slug, channel in CHANNELS.items() if channel.publishes)
    settings = next(variants(CHANNELS[publishing].settings_form))
    link = builders.promised(builders.recruitment(world["study"], publishing, pool="other", settings=settings))
    keep(link, dict.fromkeys(CHANNELS[publishing].secrets, "s3cret"), owner)
    rounds.plan(link, owner, people=3, round_places=1, lost_percent=0)
    of_draft = world | {"study": draft, "door": builders.panel(draft, key="of-draft")}
    of_link = world | {"door": link}
    unknown, used, sent = [], set(), 0
    for each, study in ((world, world["study"]), (of_draft, draft), (of_link, world["study"])):
        for route, url in asked_routes(each, study):
            if route.startswith(("api/", "docs/")) or route.endswith((".csv", ".json")):
                continue  # no forms
            if (each is of_link and "recruitment" not in route) or (each is of_draft and route.startswith("p/")):
                continue  # the same page as in the first round
            cache.clear()
            page = root.get(url)
            if page.status_code != 200 or page.streaming or "html" not in page.get("Content-Type", ""):
                continue
            for form in forms_of(page):
                is_list = form.attrs.get("id") == "changelist-form"
                if not form.is_post or not form.buttons or not set(form.inputs) - {None} or is_list:
                    continue
                # A form belongs to the address that it is sent to.
                target = resolve(urlsplit(urljoin(url, form.attrs.get("action") or url)).path).route
                held = next((one for one in HOLD if f"{target} ".startswith(one)), None)
                done = any(target.startswith(one) for one in DO)
                used.add(held)
                if held is None:
                    unknown += [] if done else [f"{target} on {route}"]
                    continue
                if "file" in form.inputs:  # a field for a file holds nothing
                    continue
                before = rows()
                answer = press(root, url, form, form.buttons[0])
                assert answer.status_code in (200, 302, 422), (url, answer.status_code, errors_of(answer))
                assert not differences(before, rows()), (url, differences(before, rows()))
                sent += 1
    assert not unknown, sorted(set(unknown))
    assert not (set(HOLD) - used), sorted(set(HOLD) - used)
    assert sent > len(HOLD)
