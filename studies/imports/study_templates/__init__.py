"""Study templates: the experiments of the four papers, and studies for one method, each as a bundle without stimuli, with a description.

The files are ordinary bundles. A draft that is made from one gets its own seed. Questions and scales quote the paper's wording if
the paper prints it. We wrote the instructions.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from importlib.resources import files
from itertools import product
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from studies.access import Action, check_permission_or_404, filter_allowed
from studies.design.workload import mean_reward
from studies.imports.bundle import MAX_BUNDLE_BYTES, BundleIncomplete
from studies.imports.bundle_files import create_draft_from_bundle, parse_bundle_json, serialize_bundle
from studies.models import OwnTemplate, ResearcherFacts, Study, audit, new_seed
from studies.protocols import ProtocolCard
from studies.services.lifecycle import ActionRefused, FieldsRefused

SPA = "Ethayarajh and Jurafsky 2022, The Authenticity Gap in Human Evaluation"
GOLD = "Clark et al. 2021, All That's ‘Human’ Is Not Gold"
DYNAMIC = "Thorleiksdóttir et al. 2022, Dynamic Human Evaluation for Relative Model Comparisons"
CONSORT = (
    "Piaggio, Elbourne, Pocock, Evans and Altman 2012, Reporting of Noninferiority and Equivalence Randomized Trials: Extension of "
    "the CONSORT 2010 Statement"
)
ALTERNATIVE = (
    "Calderon, Reichart and Dror 2025, The Alternative Annotator Test for LLM-as-a-Judge: How to Statistically Justify Replacing Human "
    "Annotators with LLMs"
)
GENIE = "Khashabi et al. 2022, Genie: Toward Reproducible and Standardized Human Evaluations for Text Generation"


@dataclass(frozen=True, slots=True)
class StudyTemplate:
    """One experiment. ``as_in_source`` lists what is as in the source, ``deviations`` what differs and why, ``required_inputs`` what a
    researcher must add. The source is an experiment (``is_from_paper``), or guidance on a method, which leaves the rest open.
    ``card``: how the page Question of a new study offers it. ``board``: the settings of a board of it. Such a template names no system and plans no comparison, because teams submit the systems."""

    slug: str
    title: str
    source: str
    place: str
    as_in_source: tuple[str, ...]
    deviations: tuple[str, ...]
    required_inputs: tuple[str, ...]
    is_from_paper: bool = True
    board: Mapping[str, Any] | None = None
    card: ProtocolCard | None = None
    # Keys of the checklist's warnings about what is as in the source. They are one line to acknowledge.
    warnings: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return files("studies.imports.study_templates").joinpath(f"{self.slug}.json").read_text(encoding="utf-8")


AGREEMENT = (
    "Genie maps strongly disagree … strongly agree to 0, .25, .5, .75, 1; points 1 to 5 are reported on 0 to 1 alike."
)
ONE_OUTPUT = "A page shows one output, for one prompt, and each output gets one label."
TEN_PAGES = "One task of Khashabi et al. is one output. Here a batch has ten, each for another prompt, and pays $1.25 for five minutes: $15 per hour."
NO_STATEMENT = "Khashabi et al. show their wording only in a figure. We wrote the statement."
TEST_QUESTIONS = (
    "test questions, which the rule about them needs: make them on the section's page or read them from a file"
)

NOISE_RULE = (
    "Positive and negative test questions, 5 % each. Their model with two learned components excludes annotators who are inattentive with "
    "a probability of .99."
)
NOISE_FIT = (
    "The model is fitted by bounded maximum likelihood, because the published algorithm can also flag people without a mistake. Khashabi et al. "
    "also bar them: switch on “Flagged annotators get no further batch”, which needs a consent text."
)
# Section 6. Monday is 0.
LAUNCHES = {
    "opens_by_itself": True,
    "launch_weekdays": "0,1,2,3,4",
    "launch_hour": 10,
    "time_zone": "America/Los_Angeles",
    "labels_per_output": 1,
}
LAUNCH_TIMES = "Rounds open on weekdays at 10 in Los Angeles. A submission may cost ${}."

STUDY_TEMPLATES = (
    StudyTemplate(
        "two_choice_sentences",
        "Two choices between sentences",
        DYNAMIC,
        "sections 5.1 to 5.3",
        (
            "Two systems, one criterion: naturalness, with its definition in each task.",
            "500 pairs, ten annotators each: 5,000 labels at $0.02.",
            "Delta .001, for Hoeffding's bound in the report; every strategy is replayed on the labels.",
        ),
        (
            "One task of Thorleiksdóttir et al. is one pair. Here a batch has 20 pairs and pays $0.40, for the 8 seconds per pair that they planned "
            "(in the published data people took 11 to 12 seconds: consider $0.60).",
            "We wrote the question: Thorleiksdóttir et al. show their wording only in a figure.",
            "heval draws the sides for each annotator. In Thorleiksdóttir et al. a pair's sides were the same for all ten.",
            "To stop as soon as the comparison is decided, choose the strategy “one worker” and the anytime-valid rule.",
        ),
        (
            "500 pairs of outputs, imported as prompts with an output of each system (single texts can be paired at import)",
            "the names of your two systems",
        ),
    ),
    StudyTemplate(
        "human_or_machine",
        "Human or machine, untrained",
        GOLD,
        "section 2",
        (
            "Three domains by two machines: six cells with 130 annotators each. Each annotator is in one cell.",
            "Five texts each on four points; “why” after the first point, “what would you change” after the others. Points and both questions "
            "are the words of Clark et al. (section 2.1).",
            "$1.25 per annotator. Work that reviewers refuse is excluded: copied, not fitting, not following, vague.",
        ),
        (
            "We wrote the question about the author of a text: Clark et al. show their wording only in a figure.",
            "Two or three of the five texts are human, and annotators do not know how many. Clark et al. do not print their shares.",
            "We wrote the instructions. Clark et al. print no duration: ten minutes are our guess.",
            "Refused work counts as outcome-dependent here, so the report also shows estimates without that rule.",
        ),
        (
            "50 human and 50 machine texts of at least 100 words for each domain and machine, with the domains stories, news, recipes",
            "the names of your machines",
        ),
    ),
    StudyTemplate(
        "human_or_machine_trained",
        "Human or machine, four training conditions",
        GOLD,
        "sections 2 and 3",
        (
            "Three domains by four conditions (none, instructions, three examples, three comparisons), 130 annotators each.",
            "$1.25 for none and instructions, $1.75 for examples, $2.25 for comparisons.",
            "The guess comes first, then the truth and an explanation. Practice texts never count and are never shown again.",
        ),
        (
            "All conditions run at the same time, in permuted blocks. Clark et al. collected the untrained condition first.",
            "We wrote the instructions. The minutes are our guess: 10, 10, 15 and 20.",
            "Planned comparisons of conditions use sensitivity. Clark et al. compare accuracy, which the report also shows.",
        ),
        (
            "50 human and 50 machine texts for each domain",
            "three practice texts and three pairs for each domain, with explanations",
            "the name of your machine",
        ),
    ),
    StudyTemplate(
        "story_writers",
        "Story writers: system-level probabilistic assessment and Likert",
        SPA,
        "section 6.1 and appendix A",
        (
            "Five writers with five prompts each. The five comparisons have the wording of Ethayarajh and Jurafsky and their one direction.",
            "Then, in the same batch, a rating of each writer's first continuation from 1 to 5.",
            "100 annotators, $5 for 20 minutes. Excluded: people who are not native speakers, or who submitted more than once.",
            "Attention checks are among the questions.",
            "Planned comparisons as Ethayarajh and Jurafsky expect them: human and davinci alike, every other pair in order.",
        ),
        (
            "heval draws the letters for each annotator. In Ethayarajh and Jurafsky A to E were the same writers for everybody.",
            "Ethayarajh and Jurafsky do not print their attention checks: we wrote them. The second wrong answer ends the work, with a pay of its own; "
            "they refused the work.",
            "One direction of a pair alone cannot tell a better writer from one that is named first: the checklist says so. A tick on the "
            "section's page adds the reverse questions.",
            "The filter tau is not used: Ethayarajh and Jurafsky did not use it here, and it needs both directions. The same page offers it.",
            "We chose the equivalence margin of two writers (10 points).",
        ),
        (
            "prompts with a continuation of each of the five writers (the batches of Ethayarajh and Jurafsky had 5 prompts each, 601 in all)",
            "the names of your systems, if they differ from these",
            "the pay of people who fail the attention checks, on the page of the link",
        ),
        warnings=("one_naming_order:2",),
    ),
    StudyTemplate(
        "image_makers",
        "Image makers: more and more examples",
        SPA,
        "appendix B",
        (
            "One pair of systems under four pairs of letters, with m = 1, 2, 4 and 8. To annotators they look like eight systems.",
            "Both directions of each pair: eight questions. Prompts are drawn without replacement over all four pairs.",
            "60 annotators, $3 for 10 minutes. Excluded: people who are not native speakers, several submissions, and by tau = 1.1.",
        ),
        (
            "heval draws which system of a pair has the first letter. In Ethayarajh and Jurafsky this was always the unscrambled one.",
            "The published page cut two letters off the captions. Here captions are complete.",
            "The questions are those of the story experiment, with “system” for “writer”. Ethayarajh and Jurafsky do not print them.",
            "The report also shows estimates without the filter, because the filter uses the answers.",
        ),
        (
            "at least 15 prompts with images of both systems (Ethayarajh and Jurafsky had 4 per prompt and system: import them as samples)",
        ),
        warnings=("few_prompts:2", "few_prompts:3"),
    ),
    StudyTemplate(
        "rated_answers",
        "Board: answers rated in five categories",
        GENIE,
        "sections 4, 6 and 7.1 (ARC-DA)",
        (
            "Five categories from strongly disagree to strongly agree.",
            ONE_OUTPUT,
            "300 questions.",
            AGREEMENT,
            NOISE_RULE,
            LAUNCH_TIMES.format(350),
        ),
        (
            NO_STATEMENT,
            TEN_PAGES,
            NOISE_FIT,
        ),
        ("300 questions as prompts; teams submit the answers", TEST_QUESTIONS),
        board=LAUNCHES | {"budget_per_submission": Decimal(350)},
    ),
    StudyTemplate(
        "rated_explanations",
        "Board: explanations rated in five categories",
        GENIE,
        "sections 4, 6 and 7.1 (αNLG)",
        (
            "Five categories from strongly disagree to strongly agree.",
            ONE_OUTPUT,
            "800 scenarios.",
            AGREEMENT,
            NOISE_RULE,
            LAUNCH_TIMES.format(600),
        ),
        (
            NO_STATEMENT,
            TEN_PAGES,
            NOISE_FIT,
            "We assume that αNLG is one of the tasks with 800 instances: Khashabi et al. only name sentence-level tasks.",
        ),
        ("800 scenarios as prompts; teams submit the explanations", TEST_QUESTIONS),
        board=LAUNCHES | {"budget_per_submission": Decimal(600)},
    ),
    StudyTemplate(
        "rated_translations",
        "Board: translations rated in five categories",
        GENIE,
        "sections 4, 6 and 7.1 (WMT DE-EN)",
        (
            "Five categories against the reference translation, as in Khashabi et al.; WMT itself uses a continuous scale.",
            ONE_OUTPUT,
            "800 sentences.",
            AGREEMENT,
            NOISE_RULE,
            LAUNCH_TIMES.format(600),
        ),
        (NO_STATEMENT, TEN_PAGES, NOISE_FIT),
        (
            "800 sentences as prompts, each with the reference translation as its source document; teams submit the translations",
            TEST_QUESTIONS,
        ),
        board=LAUNCHES | {"budget_per_submission": Decimal(600)},
    ),
    StudyTemplate(
        "compared_summaries",
        "Board: summaries compared with the reference, before and after reading the document",
        GENIE,
        "sections 6 and 7.1 (XSUM), and the published form",
        (
            "All five questions, both lines above them and the five points are those of the published form, with its misspellings.",
            "Two parts: the two summaries alone, then the same two with the document.",
            "Strongly prefer A, prefer A, neutral, prefer B, strongly prefer B count 1, .75, .5, .25, 0 for A. So .5 is as good as the reference.",
            "One document per batch, and the reference is on a random side.",
            NOISE_RULE,
            LAUNCH_TIMES.format(350),
        ),
        (
            "The points name “Summary A”, where the form says “A”.",
            "The form pays $0.40. An article of 430 words takes almost two minutes to read, so this batch pays $0.75 for three minutes: $15 per hour.",
            "The form has both parts on one page. Here each part is a page, and no answer of the first page can be changed after the document.",
            NOISE_FIT,
        ),
        (
            "300 documents as source documents of prompts without a text, each with an output of the system “reference”; teams submit the summaries",
            TEST_QUESTIONS,
        ),
        board=LAUNCHES | {"budget_per_submission": Decimal(350)},
    ),
    StudyTemplate(
        "not_worse",
        "Good enough: a new system is not worse than a reference system",
        CONSORT,
        "items 2b, 7a and 12a",
        (
            "The comparison asks whether the new system is worse by more than a margin, which is fixed before the data.",
            "The claim rests on the interval of the difference: it must lie above the limit as a whole.",
            "The number of people is chosen for this margin.",
        ),
        (
            "Margin: .3 of a point on a scale from 1 to 5. Choose your own from what a loss costs.",
            "Each of 48 people rates the answers of both systems for 10 of 160 prompts, and three people rate each answer. The claim is "
            "about people and prompts like these.",
            "98 of 100 simulated studies of this size show the claim if both systems are equally good, and 74 if the new one loses .1 of a "
            "point. In them the differences of two ratings have a standard deviation of 1.3.",
            "The first family is about correct answers. A second one, about answers that are easy to read, is tested only after it.",
            "$5.00 for 20 minutes is $15 per hour. There are no test questions: they need stimuli. People who do not read make systems "
            "look alike, so add some before the launch.",
        ),
        (
            "160 prompts with an answer of each system",
            "your margin, the names of your systems, and the two statements, if they do not fit your texts",
        ),
        is_from_paper=False,
    ),
    StudyTemplate(
        "judge_check",
        "Is this judge good enough?",
        ALTERNATIVE,
        "section 3",
        (
            "Three people judge each output, so that each of them can be compared with the two others.",
            "Each person judges at least 30 outputs beside other people.",
            "The judge's answers play no part in what people see.",
        ),
        (
            "A person says yes or no and writes the reason. The wording is ours: replace it by that of the judge's prompt.",
            "The page of the judge draws the outputs that people judge, and splits them: one part may be used for changing the judge, "
            "the other part decides.",
            "The page also compares agreement and the rates of right verdicts with minimums that you declare before the launch.",
            "$5.00 for 20 outputs in 20 minutes is $15 per hour. The target of 30 places is for 200 outputs; the draw sets yours.",
        ),
        (
            "prompts with the outputs of your systems, and the judge's scores of these outputs",
            "the question that your judge answers, and your minimums",
        ),
        is_from_paper=False,
        card=ProtocolCard(
            order=8,
            name="Is my judge good enough?",
            tells="Whether a model that judges outputs agrees with people as well as people agree with each other.",
            not_when="Not if you have no scores of a judge, or if they are not a yes or a no.",
            instructions="",
            most_criteria=0,
            fewest_systems=1,
        ),
    ),
)
TEMPLATES_BY_SLUG = {blueprint.slug: blueprint for blueprint in STUDY_TEMPLATES}


def load_template_bundle(template: StudyTemplate) -> dict[str, Any]:
    """Return the template as a bundle."""
    return parse_bundle_json(template.text)


def create_draft_from_template(template: StudyTemplate, owner: Any) -> Study:
    """Make a new draft of this experiment, with its own seed."""
    value = load_template_bundle(template)
    value["study"]["seed"] = new_seed()
    if template.is_from_paper:
        value["study"]["template"] = template.slug
    return create_draft_from_bundle(value, owner)


# The model text of a consent form, with the facts about the researchers filled in.


# A fact > the mark in a text while the fact is not known (studies.design.checklist.MARK).
MARKS = {
    "institution": "[… the institution]",
    "responsible": "[… the responsible person, with an address]",
    "contact": "[… an address for questions]",
    "ethics_contact": "[… the ethics board and its contact]",
    "legal_basis": "[… the legal basis]",
    "storage": "[… where the data are stored]",
    "retention": "[… how long they are kept]",
}


# What the text says with pay and without, and with the box about training programs and without.
PAY_WORDS = {
    True: {
        "time_and_pay": "**Time and pay.** The minutes and the pay are above, also the pay if your part ends early.",
        "use_of_id": ". We need it to pay you, and",
    },
    False: {
        "time_and_pay": "**Time.** The minutes are above. Nobody is paid for taking part.",
        "use_of_id": ", and",
    },
}
BOX_WORDS = {True: ", unless you allow it in a separate box", False: ""}


def model_consent_text(study: Study) -> str:
    """Return the model text for the study's pay and boxes, with a mark for each fact."""
    return _model_text(mean_reward(study) != 0, study.asks_to_share_preferences)


def _model_text(is_paid: bool, has_box: bool) -> str:
    text = files("studies.imports.study_templates").joinpath("consent.md").read_text(encoding="utf-8")
    return text.strip().format(**MARKS, **PAY_WORDS[is_paid], training=BOX_WORDS[has_box])


def follow_pay(study: Study, changed_facts: Mapping[str, tuple[str, str]] | None = None) -> str:
    """Return the study's consent text: a model text with the words for the study's pay and boxes, any other text as it is.

    ``changed_facts``: by the name of a fact, its old value, which a model text may have, and its new one.
    """
    for is_paid, has_box in product((True, False), repeat=2):
        pattern = re.escape(_model_text(is_paid, has_box))
        for name, mark in MARKS.items():
            pattern = pattern.replace(re.escape(mark), f"(?P<{name}>[^\n]+)")
        if found := re.fullmatch(pattern, study.consent.replace("\r\n", "\n").strip()):
            text = model_consent_text(study)
            for name, mark in MARKS.items():
                old, new = (value.strip().removesuffix(".") for value in (changed_facts or {}).get(name, ("", "")))
                text = text.replace(mark, new or mark if found[name] == old else found[name])
            return text
    return study.consent


def fill_marks(text: str, facts: ResearcherFacts) -> str:
    """Return the text with known facts in the place of their marks."""
    for name, mark in MARKS.items():
        if value := getattr(facts, name).strip().removesuffix("."):
            text = text.replace(mark, value)
    return text


# Templates of one's own: a study's bundle without its seed, and without texts unless its members want them.


# What the texts of a study are in a bundle, and what only they determine.
_TEXTS: dict[str, Any] = {"prompts": [], "outputs": [], "items": [], "batches": [], "images": {}}


def keep_as_template(study: Study, by: Any, title: str, has_texts: bool = False) -> OwnTemplate:
    """Keep the study's design as a template for its members. Raise ActionRefused."""
    check_permission_or_404(by, Action.CLONE, study)
    try:
        value = serialize_bundle(study)
    except BundleIncomplete as incomplete:
        raise ActionRefused(str(incomplete)) from None
    if not has_texts:
        value |= _TEXTS
    value["study"] = value["study"] | {"seed": 0}
    if len(json.dumps(value)) > MAX_BUNDLE_BYTES:
        raise ActionRefused("The texts and images are too large for a template. Keep the template without them.")
    with transaction.atomic():
        template = OwnTemplate.objects.create(study=study, title=title, bundle=value, has_texts=has_texts, by=by)
        audit.record("keep template", study=study, by=by, template=template.pk)
    return template


def own_templates_of(user: Any, token: Any = None) -> QuerySet[OwnTemplate]:
    """Return the templates that the user may make studies of, the newest first. ``token``: only those of its study, if it has one."""
    kept = OwnTemplate.objects.filter(archived_at=None).select_related("study", "by").defer("bundle")
    return filter_allowed(user, kept, Action.CLONE, token=token)


def create_draft_from_own_template(template: OwnTemplate, by: Any, title: str) -> Study:
    """Make a new draft of a kept template, with its own title and seed. Raise BundleRefused."""
    check_permission_or_404(by, Action.CLONE, template.study)
    study = create_draft_from_bundle(
        template.bundle | {"study": template.bundle["study"] | {"title": title, "seed": new_seed()}}, by
    )
    if (guide := template.study.guide) is not None:
        # The pages of a new study lead to its launch, too, and people come as they came to the first one.
        study.guide = {name: guide[name] for name in ("channel",) if name in guide}
        study.save(update_fields=["guide"])
    return study


OWN_PREFIX = "own-"


def template_keys(user: Any, token: Any = None) -> dict[str, StudyTemplate | OwnTemplate]:
    """Return the templates that the user may make studies of, by the key that programs use."""
    own = {f"{OWN_PREFIX}{template.pk}": template for template in own_templates_of(user, token)}
    return {**TEMPLATES_BY_SLUG, **own}


def new_draft_from(bundle: dict[str, Any] | None, template: str, by: Any) -> Study:
    """Make a new draft of a bundle, or of the template with this key. Raise BundleRefused or FieldsRefused."""
    if (bundle is None) == (not template):
        raise FieldsRefused({"template": "Send a bundle or the key of a template, and not both."})
    if bundle is not None:
        return create_draft_from_bundle(bundle, by)
    found = template_keys(by).get(template)
    if found is None:
        raise FieldsRefused({"template": f"There is no template “{template}”. The list of templates has their keys."})
    if isinstance(found, StudyTemplate):
        return create_draft_from_template(found, by)
    return create_draft_from_own_template(found, by, found.title)


def archive_own_template(template: OwnTemplate, by: Any) -> None:
    """Hide a template. The person who kept it may do so, and the owners of its study."""
    is_own = by is not None and template.by_id == by.pk
    check_permission_or_404(by, Action.CLONE if is_own else Action.ARCHIVE, template.study)
    with transaction.atomic():
        OwnTemplate.objects.filter(pk=template.pk).update(archived_at=Now())
        audit.record("archive template", study=template.study, by=by, template=template.pk)
