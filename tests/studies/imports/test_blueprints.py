"""Ready-made templates: each is a whole bundle, becomes a draft by one button, and lacks nothing but what a researcher must bring."""

import json
from html import unescape
from importlib.resources import files

import pytest
from django.urls import reverse

from analysis.protocols.families import describe_families
from boards.services import snapshots
from studies.design.checklist import find_design_problems
from studies.design.draw import seeded_random
from studies.imports.bundle_files import bundle_text, create_draft_from_bundle
from studies.imports.study_templates import (
    STUDY_TEMPLATES,
    TEMPLATES_BY_SLUG,
    create_draft_from_template,
    load_template_bundle,
)
from studies.models import Output, Prompt, Study, audit
from studies.protocols import REGISTRY
from studies.protocols.base.fields import parse_scale
from studies.services.known_answers import (
    GivenTestQuestion,
    questions_about_items,
    store_given_test_questions_and_delete_test_runs,
)
from tests.analysis.api.rest import api_of
from tests.boards import builders
from tests.builders import launched, user
from tests.players import submitted

pytestmark = pytest.mark.django_db
every = pytest.mark.parametrize("blueprint", STUDY_TEMPLATES, ids=[one.slug for one in STUDY_TEMPLATES])
# What only stimuli, people to write to, or an ethics board can give.
BROUGHT = (
    "no contact for annotators",
    "The study has no systems",
    "A pair needs two systems",
    "prompts with an output of every system; there are 0",
    "needs practice items",
    "no section has test questions",
    " texts; a batch needs ",
)


def test_every_file_is_a_template_and_every_template_a_file():
    names = {path.name for path in files("studies.imports.study_templates").iterdir() if path.name.endswith(".json")}
    assert names == {f"{slug}.json" for slug in TEMPLATES_BY_SLUG} and len(TEMPLATES_BY_SLUG) == len(STUDY_TEMPLATES)
    assert all(one.as_in_source and one.deviations and one.required_inputs and one.place for one in STUDY_TEMPLATES)


@every
def test_a_template_is_a_draft_that_lacks_only_what_must_be_brought(blueprint):
    study = create_draft_from_template(blueprint, user())
    assert study.state == "draft" and study.target_n and study.minutes and study.reward
    blocking = [problem.text for problem in find_design_problems(study) if problem.is_blocking]
    assert blocking and not [text for text in blocking if not any(words in text for words in BROUGHT)]
    assert not study.prompts.exists() and not study.batches.exists()
    # Written out again it is the same, but for the seed: two drafts of one template draw differently.
    assert json.loads(bundle_text(study)) | {"study": None} == load_template_bundle(blueprint) | {"study": None}
    assert (
        create_draft_from_template(blueprint, user()).seed
        != study.seed
        != load_template_bundle(blueprint)["study"]["seed"]
    )
    for section in study.sections.all():
        form = REGISTRY[section.protocol].settings_form
        assert form is None or set(section.settings) == set(form.base_fields), section


def test_the_papers_numbers_stand_in_them():
    drafts = {slug: create_draft_from_template(one, user()) for slug, one in TEMPLATES_BY_SLUG.items()}
    images = drafts["image_makers"]
    assert list(images.sections.filter(protocol="spa").order_by("position").values_list("m", flat=True)) == [1, 2, 4, 8]
    assert {s.settings["labels"] for s in images.sections.filter(protocol="spa")} == {"continue"}
    assert images.exclusion_rules.get(rule="incoherent").settings["tau"] == 1.1
    paid = {slug: (study.target_n, str(study.reward), study.minutes) for slug, study in drafts.items()}
    assert paid["story_writers"] == (100, "5.00", 20) and paid["image_makers"] == (60, "3.00", 10)
    assert paid["human_or_machine"][:2] == (780, "1.25") and paid["human_or_machine_trained"][0] == 1560
    trained = drafts["human_or_machine_trained"].arms
    assert {
        c: str(trained.filter(condition=c).first().reward) for c in ("none", "instructions", "examples", "comparison")
    } == {
        "none": "1.25",
        "instructions": "1.25",
        "examples": "1.75",
        "comparison": "2.25",
    }
    assert set(trained.values_list("wanted", flat=True)) == {130} and trained.count() == 12
    pairs = drafts["two_choice_sentences"]
    assert pairs.sections.get().m * pairs.target_n == 5000 and pairs.annotators_per_batch == 10
    for slug, n in (("rated_answers", 300), ("rated_explanations", 800), ("rated_translations", 800)):
        section = drafts[slug].sections.get()
        assert section.m * drafts[slug].target_n == n and section.settings["shown"] == "one"
        assert len(section.questions.get().scale["labels"]) == 5
    first, second = drafts["compared_summaries"].sections.order_by("position")
    assert second.reuses == first and (first.settings["source"], second.settings["source"]) == ("hidden", "shown")
    assert [question.key for question in second.questions.order_by("position")][-1] == "overall"


def test_the_template_of_a_claim_by_a_margin_says_what_the_report_will_claim(client):
    study = create_draft_from_template(TEMPLATES_BY_SLUG["not_worse"], user())
    claims = study.contrasts.order_by("role")
    assert [(one.role, one.criterion, one.hypothesis, one.margin) for one in claims] == [
        ("primary", "correct", "noninferiority", 0.3),
        ("secondary", "readable", "noninferiority", 0.3),
    ]
    assert {(one.x.name, one.y.name, one.population) for one in claims} == {
        ("new system", "reference system", "people_and_prompts")
    }
    with_stimuli(study, study.sections.get().m * study.target_n // study.annotators_per_batch)
    study = Study.objects.get(pk=study.pk)
    assert not [problem.text for problem in find_design_problems(study) if problem.is_blocking]
    assert [(row["name"], row["after"], row["n_sentences"]) for row in describe_families(study)] == [
        ("primary", "", 1),
        ("secondary", "primary", 1),
    ]
    client.force_login(user())
    page = client.get(f"/admin/studies/study/{study.pk}/launch/").content.decode()
    claim = "new system is not worse than reference system by more than 0.3 on correct"
    assert f"{claim}” if the whole 95 % interval is above −0.3" in page


def test_the_story_template_has_attention_checks_that_are_asked_among_its_questions():
    study = create_draft_from_template(TEMPLATES_BY_SLUG["story_writers"], user())
    checks = study.sections.get(purpose="attention").questions.all()
    assert len(checks) == 2 and all(parse_scale(one.scale).right_key and one.required for one in checks)
    Study.objects.filter(pk=study.pk).update(target_n=20)
    with_stimuli(study, 40)
    study = launched(Study.objects.get(pk=study.pk), user())
    answered = submitted(study, "one").responses.values_list("question__section__purpose", "question__key")
    assert {key for purpose, key in answered if purpose == "attention"} == {"reads", "careful"}


@pytest.mark.parametrize("slug", [one.slug for one in STUDY_TEMPLATES if one.warnings])
def test_what_a_template_has_as_in_its_source_is_one_line_on_the_checklist(client, slug):
    template = TEMPLATES_BY_SLUG[slug]
    study = create_draft_from_template(template, user())
    with_stimuli(study, 100)
    found = {problem.key for problem in find_design_problems(Study.objects.get(pk=study.pk))}
    assert found == {"no_consent", *template.warnings}, (
        "each of them exists, and only what a person must do is beside them"
    )
    client.force_login(user())
    page = client.get(f"/admin/studies/study/{study.pk}/launch/")
    text = page.content.decode()
    assert text.count('name="acknowledge"') == 2 and f"As in {template.source}, {template.place}:" in unescape(text)
    sent = client.post(f"/admin/studies/study/{study.pk}/launch/", {"acknowledge": ["template"]})
    assert sent.context["acknowledged"] == set(template.warnings)
    other = client.post(f"/admin/studies/study/{study.pk}/launch/", {"acknowledge": ["no_consent"]})
    assert other.context["acknowledged"] == {"no_consent"}


def with_stimuli(study, n):
    Study.objects.filter(pk=study.pk).update(contact="research@example.org")
    systems = study.systems.all()
    for prompt in Prompt.objects.bulk_create(Prompt(study=study, key=f"p{n}", text=f"Prompt {n}.") for n in range(n)):
        Output.objects.bulk_create(
            Output(system=system, prompt=prompt, text=f"Words of {system.pk} on {prompt.key}.") for system in systems
        )


@pytest.mark.slow
@pytest.mark.parametrize("slug", [one.slug for one in STUDY_TEMPLATES if one.board])
def test_a_board_template_opens_a_board_with_a_round_once_it_has_prompts(slug):
    owner = user()
    template = create_draft_from_template(TEMPLATES_BY_SLUG[slug], owner)
    Study.objects.filter(pk=template.pk).update(contact="research@example.org")
    template = Study.objects.get(pk=template.pk)
    for n in range(48):
        prompt = Prompt.objects.create(study=template, key=f"p{n}", text=f"Prompt {n}.", source="A document.")
        Output.objects.bulk_create(
            Output(system=system, prompt=prompt, text=f"Reference for {n}.") for system in template.systems.all()
        )
    assert not template.contrasts.exists()
    section = template.sections.order_by("position").first()
    question = questions_about_items(section)[-1]
    # About prompts that the board does not sample: a batch shows no prompt twice, so others could stay without a label.
    keys = sorted(template.prompts.values_list("key", flat=True))
    spare = set(keys) - set(seeded_random(5, "board", "subsample").sample(keys, 40))
    given = [GivenTestQuestion(1, key, f"Words about {key}.", 3, 5, worse=f"Nothing of {key}.") for key in spare]
    store_given_test_questions_and_delete_test_runs(section, question, given, by=owner)
    template = Study.objects.get(pk=template.pk)
    board = builders.open_board(owner, template, labels_per_output=1, double_label_share=0, sample_size=40)
    team, _ = builders.team_of(board)
    for name in ("weak", "good"):
        builders.submit(board, team, name)
    builders.play_round(
        board, {"good": 1.5, "weak": -1.5, **dict.fromkeys(template.systems.values_list("name", flat=True), 0.0)}
    )
    snapshot = snapshots.take_snapshot(board, owner)
    overall = snapshot.result["criteria"][0]["key"]
    scores = {row["name"]: row["scores"][overall] for row in snapshots.display_rows(snapshot)}
    # The reference of the relative scale is the middle of all scores, and no row.
    assert list(scores) == ["good", "weak"]
    # A board gives a few outputs a second label.
    assert all(40 == score["prompts"] <= score["labels"] < 50 for score in scores.values())
    assert 0 <= scores["weak"]["estimate"] < 50 < scores["good"]["estimate"] <= 100


@pytest.mark.parametrize(("slug", "budget"), [("rated_answers", "350.00"), ("rated_translations", "600.00")])
def test_a_board_of_a_template_has_the_papers_rule_budget_and_hours(client, slug, budget):
    template = create_draft_from_template(TEMPLATES_BY_SLUG[slug], user())
    rule = template.exclusion_rules.get(rule="test_question_model")
    assert (rule.role, rule.settings["model"], rule.settings["cutoff"]) == ("primary", "class_learned2", 0.99)
    shares = template.sections.get().settings
    assert (shares["positive_share"], shares["negative_share"]) == (0.05, 0.05)
    client.force_login(user())
    assert f"?template={template.pk}" in client.get("/boards/new/").text
    form = client.get(f"/boards/new/?template={template.pk}").context["form"]
    fields = {
        name: form[name].value() for names in (names for _, names in form.groups()) for name in [n.name for n in names]
    }
    assert fields["launch_weekdays"] == ["0", "1", "2", "3", "4"] and fields["launch_hour"] == 10
    assert (fields["time_zone"], fields["template"]) == ("America/Los_Angeles", template.pk)
    sent = {"slug": "paper", "title": "Paper", "template": str(template.code), "launch_hour": 9}
    made = api_of(user()).post("boards/", sent).json()
    assert made["budget_per_submission"] == budget and made["time_zone"] == "America/Los_Angeles"
    # What is sent counts.
    assert (made["launch_hour"], made["opens_by_itself"], made["labels_per_output"]) == (9, True, 1)


@pytest.mark.parametrize("slug", ["story_writers", "two_choice_sentences", "not_worse"])
def test_with_stimuli_a_template_is_launched_and_answered(slug):
    study = create_draft_from_template(TEMPLATES_BY_SLUG[slug], user())
    Study.objects.filter(pk=study.pk).update(target_n=20)
    with_stimuli(study, 40)
    assert submitted(launched(Study.objects.get(pk=study.pk), user()), "one").submitted_at


def test_one_button_makes_a_draft_with_its_checklist(client):
    client.force_login(user())
    assert reverse("study_templates") in client.get(reverse("admin:studies_study_changelist")).content.decode()
    page = client.get(reverse("study_templates")).content.decode()
    assert page.count("Make a draft") == len(STUDY_TEMPLATES)
    n_papers = sum(one.is_from_paper for one in STUDY_TEMPLATES)
    assert page.count("As published") == page.count("Differences from the publication") == n_papers
    assert page.count("As the method asks") == page.count("What we chose") == len(STUDY_TEMPLATES) - n_papers == 2
    done = client.post(reverse("study_templates"), {"template": "image_makers"}, follow=True)
    text = done.content.decode()
    assert "Image makers" in text and "there are 0" in text and "no contact for annotators" in text
    study = Study.objects.get(title="Image makers")
    assert study.owner == user() and study.members.get().role == "owner"
    assert audit.events_of(study).filter(verb="import bundle").exists()
    file = client.get(reverse("study_template", args=["image_makers"]))
    assert create_draft_from_bundle(file.content, user()).title == study.title


@pytest.mark.parametrize("name", ["", "nobody", "../secret", "image_makers.json", "\x00", "x" * 5000])
def test_a_template_that_is_none_makes_nothing(client, name):
    client.force_login(user())
    answer = client.post(reverse("study_templates"), {"template": name})
    assert answer.status_code == 400 and "This template does not exist" in answer.content.decode()
    assert client.post(reverse("study_templates")).status_code == 400 and not Study.objects.exists()
    assert client.get("/admin/studies/study/new/templates/nobody.json").status_code == 404


def test_who_may_make_no_study_sees_no_templates(client, django_user_model):
    client.force_login(django_user_model.objects.create_user("guest", password="x"))
    for address in (reverse("study_templates"), reverse("study_template", args=["image_makers"])):
        assert client.get(address).status_code == 403
