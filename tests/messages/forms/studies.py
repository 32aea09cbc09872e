"""The lines of a study's page, its sections, prompts, outputs and practice items, and of the pages that import."""

from django.core.exceptions import PermissionDenied
from django.urls import reverse
from django.utils import timezone

from analysis.models import ApiToken
from studies.access import Action, check_permission_or_404
from studies.imports.study_templates import keep_as_template
from studies.imports.tables import run
from studies.models import ExclusionRule, Job, StudyMember
from studies.services.known_answers import create_practice_item_and_delete_test_runs as create_practice_item
from tests import builders
from tests.admin_pages import logged_in, study_url
from tests.messages.forms.scenarios import (
    me,
    posted,
    row,
    row_added,
    said,
    says_refused,
    sends,
    study_saved,
    system,
    upload,
)
from tests.messages.lines import At, Shown
from tests.messages.pages.scenarios import draft, launched
from tests.messages.pages.study import trained


def beside_a_visitor():
    visitor = builders.user("visitor")
    visitor.is_staff = False
    visitor.save()
    return draft()


def section_saved(make=draft, protocol=None, **changes):
    def scenario():
        study = make()
        section = study.sections.get(protocol=protocol) if protocol else study.sections.first()
        return sends(reverse("admin:studies_section_change", args=[section.pk]), "section_form", **changes)

    return scenario


def question(**columns):
    """The first question of a section, changed."""
    return section_saved(**{f"questions-0-{name}": value for name, value in columns.items()})


def surveyed():
    study = draft()
    builders.add_survey(study, position=2, questions=[builders.SCREENING])
    return study


def answers(text):
    return section_saved(surveyed, "survey", **{"questions-0-scale_options": text})


def generated(**data):
    whole = {"generate-which": "neighbours", "generate-text": "Is {x} better than {y}?", **data}
    return posted(
        lambda: draft().sections.first(),
        lambda s: reverse("admin:studies_section_generate_questions", args=[s.pk]),
        **whole,
    )


def stimulus(kind, **changes):
    def scenario():
        study = draft()
        one = (
            study.prompts.order_by("key").last()
            if kind == "prompt"
            else study.systems.get(name="alpha").outputs.first()
        )
        return sends(reverse(f"admin:studies_{kind}_change", args=[one.pk]), f"{kind}_form", **changes)

    return scenario


def practised(act):
    """An act upon the training section and the outputs of a study, by their system and prompt."""

    def scenario():
        study = trained()
        outputs = {
            (one.system.name, one.prompt.key): one
            for name in study.systems.all()
            for one in name.outputs.select_related("prompt", "system")
        }
        return says_refused(lambda: act(study.sections.get(purpose="training"), outputs))()

    return scenario


def practice_form(section, **changes):
    human = section.study.systems.get(name="human")
    return {"prompt": "news-human-001", "first": human.pk, "second": "", "explanation": ""} | changes


def unknown_prompt():
    section = trained().sections.get(purpose="training")
    url = reverse("admin:studies_section_practice", args=[section.pk])
    return said(logged_in(me()).post(url, practice_form(section, prompt="nothing")))


def rule_settings(value):
    def scenario():
        study = draft()
        ExclusionRule.objects.create(study=study, rule="incoherent", settings={"tau": 1.3})
        return sends(study_url(study), "study_form", **{"exclusion_rules-0-parameters-tau": value})

    return scenario


def denied(about, action, is_staff=True, scope=""):
    """What a colleague reads who may only look at a study; with a token of this scope that is bound to it, if one is given."""

    def scenario():
        study, colleague = draft(), builders.user("vera")
        StudyMember.objects.create(study=study, user=colleague, role="viewer")
        type(colleague).objects.filter(pk=colleague.pk).update(is_staff=is_staff)
        colleague.refresh_from_db()
        token = ApiToken(user=colleague, study=study, scope=scope) if scope else None
        return says_refused(
            lambda: check_permission_or_404(colleague, action, about(study), token=token), PermissionDenied
        )()

    return scenario


def two_rules():
    study = draft()
    ExclusionRule.objects.create(study=study, rule="too_fast")
    new = row("exclusion_rules", 1, rule="too_fast", role="report", position="2")
    return sends(study_url(study), "study_form", **new)


def unchanged_amendment():
    study = launched()
    client, url = logged_in(me()), study_url(study, "amend/")
    page = client.get(url)
    from tests.admin_pages import changed, forms_of

    form = next(form for form in forms_of(page) if "reason" in form.inputs)
    return said(client.post(url, changed(form.sent(), reason="Because.")))


def imports(**data):
    return posted(draft, lambda study: reverse("import", args=[study.pk]), file=upload("x"), **data)


def prepares(**data):
    whole = {"manner": "none", "ends": "whole", "act": "preview"} | data
    return posted(draft, lambda study: reverse("import_preparation", args=[study.pk]), **whole)


def large_bundle():
    from studies.admin.views import BundleForm

    form = BundleForm({}, {"file": upload("{}")})
    form.files["file"].size = 10**12
    return [Shown(text) for errors in form.errors.values() for text in errors]


def cancelled_import():
    """A job reads the file, and is cancelled."""
    study, client = draft(), logged_in(me())
    page = client.post(reverse("import", args=[study.pk]), {"file": upload("prompt_key,system,text\np1,alpha,One.\n")})
    stored = run.get_upload(page["Location"].rstrip("/").rpartition("/")[2], study.pk)
    job = Job.objects.create(kind="import", study=study, by=me(), state="cancelled", ended_at=timezone.now())
    stored.job, stored.report = str(job.code), None
    stored.save()
    return said(client.get(page["Location"]))


FORMS = {
    "A colleague is listed": row_added("members", 1, username=lambda _: me().username, role="viewer"),
    "A study needs at least one owner": study_saved(**{"members-0-role": "viewer"}),
    "This account may": posted(
        lambda: beside_a_visitor(),
        lambda study: reverse("admin:studies_act", args=[study.pk, "invite"]),
        account="visitor",
        role="viewer",
    ),
    "Your account does": denied(lambda study: None, Action.CREATE, False),
    "Your role in this study": denied(lambda study: study, Action.EDIT),
    "This token is bound": denied(lambda study: None, Action.CREATE, scope="write"),
    "This token may only read": denied(lambda study: study, Action.EDIT, scope="read"),
    "This token may only make": denied(lambda study: study, Action.LAUNCH, scope="draft"),
    "No active user": row_added("members", 1, username="nobody", role="viewer"),
    "it contains no visible": At("Title", study_saved(title="\u2060")),
    "The target is 0": study_saved(target_n="0"),
    "The cap (…) is below": study_saved(target_n="6", target_cap="4"),
    "seconds are too": study_saved(idle_seconds="0"),
    "This is not a language": study_saved(language="en_GB!"),
    "This is not a currency": study_saved(currency="12"),
    "This is not a list": study_saved(compared_groups="age"),
    "Another … has this name": row_added("systems", 3, name="ALPHA"),
    "Only one system is chosen. Choose two systems.": row_added("contrasts", 2, x=system("alpha")),
    "Choose another system": row_added("contrasts", 2, x=system("alpha"), y=system("alpha")),
    "Only one condition": row_added("contrasts", 2, x_condition="none"),
    "Choose another condition": row_added("contrasts", 2, x_condition="none", y_condition="none"),
    "Systems and conditions": row_added(
        "contrasts", 2, x=system("alpha"), y=system("beta"), x_condition="none", y_condition="examples"
    ),
    "The margin must be above": row_added("contrasts", 2, x=system("alpha"), y=system("gamma"), margin="0"),
    "Two rows have this comparison": row_added(
        "contrasts", 2, x=system("alpha"), y=system("beta"), expected=">", role="primary", level="0.05"
    ),
    "has outputs or is named": study_saved(**{"systems-0-DELETE": "on"}),
    "A study needs at least one arm": study_saved(**{"arms-0-DELETE": "on"}),
    "Two rows have this rule": two_rules,
    "Some of these": rule_settings("-1"),
    "Only one system is chosen. Choose two systems or none": question(y=""),
    "Another question of this section": section_saved(**{"questions-0-key": "ab", "questions-1-key": "AB"}),
    "The minimum is above": question(scale_kind="text", scale_minimum_length="9", scale_maximum_length="3"),
    "There are … labels": question(scale_kind="likert", scale_minimum="1", scale_maximum="5", scale_labels="bad\ngood"),
    "Two lines have the key": answers("a | One\na | Two"),
    "has no output": unknown_prompt,
    "The number of characters": prepares(manner="words"),
    "No system is ticked": prepares(manner="longest_of_others"),
    "The file is not UTF-8": prepares(priming_file=upload(b"\xff\xfea")),
    "The file has more than 1 MB": prepares(priming_file=upload(b"a" * 1_100_000)),
    "The maximum is below": prepares(minimum_words="9", maximum_words="3"),
    "An output must be exactly": stimulus("output", text="Words.", is_empty="on"),
    "A file of single": imports(makes_pairs="on", makes_batches="on"),
    "Choose a file, or paste rows": imports(pasted="a\tb"),
    "You entered attributes": imports(pairs_by="tense"),
    "Line … has no key": answers(" | Yes"),
    "Line …: the key has … characters": answers(f"a | One\n{'k' * 51} | Two"),
    "Line …: only “screens": answers("a | One | maybe"),
    "This protocol shows": section_saved(surveyed, "survey", m="3"),
    "Another section has this position": section_saved(surveyed, "survey", position="1"),
    "The study has no system": generated(**{"generate-order": "alpha\nomega"}),
    "The question does not contain {x} and {y}. Add both; heval": generated(**{"generate-text": "Which is better?"}),
    "Another prompt has this key": stimulus("prompt", key="P001"),
    "This template does not": posted(draft, lambda _: reverse("study_templates"), own="0", title="Mine"),
    "has no usable title": posted(
        lambda: keep_as_template(draft(), None, "Mine"), lambda _: reverse("study_templates"), own="1", title=""
    ),
    "The file has … bytes": large_bundle,
    "You have not changed": unchanged_amendment,
    "The import was cancelled": cancelled_import,
    "The settings or the study": prepares(act="prepare", seen="another"),
    "Only training sections": practised(
        lambda s, o: create_practice_item(s.study.sections.get(purpose="live"), [], by=None)
    ),
    "No text is chosen": practised(lambda s, o: create_practice_item(s, [], by=None)),
    "The texts have different": practised(
        lambda s, o: create_practice_item(s, [o["human", "news-human-001"], o["gpt3", "news-gpt3-001"]], by=None)
    ),
    "The same text": practised(lambda s, o: create_practice_item(s, [o["human", "news-human-001"]] * 2, by=None)),
    "This protocol has no expected": practised(
        lambda s, o: (setattr(s, "protocol", "spa"), create_practice_item(s, [o["human", "news-human-001"]], by=None))
    ),
    "This practice item": practised(
        lambda s, o: [create_practice_item(s, [o["human", "news-human-001"]], by=None) for _ in range(2)]
    ),
}
