"""Ready-made study templates: the experiments of the four papers, each a bundle without stimuli, and what is known of it.

The files are bundles like any other and are read by the one reader; a draft made of one gets a seed of its own. Wording that a paper
prints is quoted in questions and scales; instructions are ours.
"""

from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from studies.imports.bundle import parse_bundle, read_bundle
from studies.models import Study, new_seed

SPA = "Ethayarajh and Jurafsky 2022, The Authenticity Gap in Human Evaluation"
GOLD = "Clark et al. 2021, All That's ‘Human’ Is Not Gold"
DYNAMIC = "Thorleiksdóttir et al. 2022, Dynamic Human Evaluation for Relative Model Comparisons"
GENIE = "Khashabi et al. 2022, Genie: Toward Reproducible and Standardized Human Evaluations for Text Generation"


@dataclass(frozen=True, slots=True)
class StudyTemplate:
    """One experiment. ``follows``: what of it is as the paper prints it; ``departs``: what is not, and why; ``brings``: what a
    researcher must add."""

    slug: str
    title: str
    paper: str
    place: str
    as_in_paper: tuple[str, ...]
    deviations: tuple[str, ...]
    required_inputs: tuple[str, ...]

    @property
    def text(self) -> str:
        return files("studies.imports.study_templates").joinpath(f"{self.slug}.json").read_text(encoding="utf-8")


AGREEMENT = (
    "Genie maps strongly disagree … strongly agree to 0, .25, .5, .75, 1; points 1 to 5 are reported on 0 to 1 alike."
)
TWO_AT_ONCE = (
    "One task of the paper is one output. Here a page shows the outputs of two systems for one prompt, under letters in random order, "
    "and a batch has ten prompts."
)
NO_STATEMENT = "The paper shows its wording in a figure only; the statement is ours."

STUDY_TEMPLATES = (
    StudyTemplate(
        "two_choice_sentences",
        "Two choices between sentences",
        DYNAMIC,
        "sections 5.1 to 5.3",
        (
            "Two systems, one criterion: naturalness, with its definition in each task.",
            "500 pairs, ten annotators each: 5,000 labels at $0.02.",
            "Delta .001, for the paper's bound in the report; every strategy is replayed on the labels.",
        ),
        (
            "One task of the paper is one pair. Here a batch has 20 pairs and pays $0.40, for the 8 seconds a pair that the paper planned "
            "(people took 11 to 12 in the published data: think of $0.60).",
            "The question's words are ours: the paper shows them in a figure only.",
            "Sides are drawn for each annotator; in the paper a pair's sides were the same for all ten.",
            "To stop as soon as it is decided, choose the strategy “one worker” and the anytime-valid rule instead.",
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
            "Three domains by two machines: six cells, one an annotator, 130 annotators each.",
            "Five texts each on four points; “why” after the first point, “what would you change” after the others. Points and both questions "
            "are the paper's words (section 2.1).",
            "$1.25 an annotator. Work that reviewers refuse is left out: copied, not fitting, not following, vague.",
        ),
        (
            "The words that ask who wrote a text are ours: the paper shows them in a figure only.",
            "Two or three of the five texts are human, drawn without telling; the paper does not print its shares.",
            "Instructions are ours, and no duration is printed: ten minutes are our guess.",
            "Refused work counts as outcome-dependent here, so estimates without that rule stand beside.",
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
            "All conditions run at once, in permuted blocks; the paper had collected the untrained ones before.",
            "Instructions are ours. Minutes are our guess: 10, 10, 15 and 20.",
            "Planned comparisons of conditions are of sensitivity; the paper compares accuracy, which the report has too.",
        ),
        (
            "50 human and 50 machine texts for each domain",
            "three practice texts a domain and three pairs a domain, with explanations",
            "the name of your machine",
        ),
    ),
    StudyTemplate(
        "story_writers",
        "Story writers: system-level probabilistic assessment and Likert",
        SPA,
        "section 6.1 and appendix A",
        (
            "Five writers, five prompts each; the five comparisons in the paper's words, in its one direction.",
            "The first continuation of each writer on points from 1 to 5, afterwards, in the same batch.",
            "100 annotators, $5 for 20 minutes. Left out: who is no native speaker, who submitted more than once.",
            "Planned comparisons as the paper expects them: human and davinci alike, every other pair in order.",
        ),
        (
            "Letters are drawn for each annotator; in the paper A to E were the same writers for everybody.",
            "One direction of a pair alone cannot tell a better writer from one that is named first: the checklist says so. Add the reverse "
            "questions to have both.",
            "The filter tau is not declared: the paper did not use it here, and it needs both directions.",
            "The margin within which two writers count as alike (10 points) is ours.",
        ),
        (
            "prompts with a continuation of each of the five writers (the paper's batches had 5 prompts each, 601 in all)",
            "the names of your systems, where they are not these",
        ),
    ),
    StudyTemplate(
        "image_makers",
        "Image makers: more and more examples",
        SPA,
        "appendix B",
        (
            "One pair of systems under four pairs of letters: m is 1, 2, 4 and 8, so that eight systems seem to be shown.",
            "Both directions of each pair, eight questions in all. Prompts are drawn without replacement over all four.",
            "60 annotators, $3 for 10 minutes. Left out: no native speakers, several submissions, and by tau = 1.1.",
        ),
        (
            "Which of a pair stands first is drawn; in the paper the unscrambled one always had the first letter.",
            "The published page cut captions by two letters; captions are shown whole.",
            "The question's words are those of the story experiment with “system” for “writer”: the paper does not print these.",
            "Estimates without the filter stand beside: it looks at the answers.",
        ),
        (
            "at least 15 prompts with images of both systems (the paper had 4 a prompt and system: give them as samples)",
        ),
    ),
    StudyTemplate(
        "rated_answers",
        "Answers rated in five categories",
        GENIE,
        "sections 4, 6 and 7.1 (ARC-DA)",
        ("Five categories from strongly disagree to strongly agree.", "300 questions, one label each.", AGREEMENT),
        (
            TWO_AT_ONCE,
            NO_STATEMENT,
            "The paper pays more than $15 an hour; $2.50 for ten minutes is exactly that. No test questions are declared: without stimuli there is "
            "nothing to make them of.",
            "Wrong answers of annotators are not modelled while collecting; the report has the ratings' reliability.",
        ),
        ("300 questions as prompts, with an answer of each system", "the names of your systems"),
    ),
    StudyTemplate(
        "rated_explanations",
        "Explanations rated in five categories",
        GENIE,
        "sections 4, 6 and 7.2 (αNLG)",
        ("Five categories from strongly disagree to strongly agree.", "800 scenarios, one label each.", AGREEMENT),
        (
            TWO_AT_ONCE,
            NO_STATEMENT,
            "That αNLG is one of the tasks with 800 instances is our reading: the paper names sentence-level tasks.",
        ),
        ("800 scenarios as prompts, with an explanation of each system", "the names of your systems"),
    ),
    StudyTemplate(
        "rated_translations",
        "Translations rated in five categories",
        GENIE,
        "sections 4, 6 and 7.3 (WMT DE-EN)",
        (
            "Five categories against the reference translation, as in the paper; WMT itself uses a continuous scale.",
            "800 sentences, one label each.",
            AGREEMENT,
        ),
        (TWO_AT_ONCE, NO_STATEMENT),
        (
            "800 sentences as prompts, each with the reference translation as its source document, and a translation of each system",
            "the names of your systems",
        ),
    ),
)
TEMPLATES_BY_SLUG = {blueprint.slug: blueprint for blueprint in STUDY_TEMPLATES}


def load_template_bundle(template: StudyTemplate) -> dict[str, Any]:
    """The template as a bundle."""
    return parse_bundle(template.text)


def create_template_draft(template: StudyTemplate, owner: Any) -> Study:
    """A new draft of this experiment, with a seed of its own."""
    value = load_template_bundle(template)
    value["study"]["seed"] = new_seed()
    return read_bundle(value, owner)
