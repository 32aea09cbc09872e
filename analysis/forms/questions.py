"""Forms that researchers fill in about a study, and the questions in them that only a person can answer.

Labels are heval's own words. Numbers, and the ids of HEDS in ``heds.json``, are those of the official forms.
"""

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class PersonQuestion:
    """A question. ``options``: those of the official form, in its order; an answer begins with their numbers."""

    key: str
    label: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Item:
    """A question of a form, with the facts that answer it. ``is_about_criteria``: it has an answer for each criterion."""

    number: str
    label: str
    keys: tuple[str, ...]
    is_about_criteria: bool = False


@dataclass(frozen=True, slots=True)
class Form:
    slug: str
    title: str
    items: tuple[Item, ...]


YES_NO = ("yes", "no", "does not apply (say why)")
CONTENT = (
    "data", "deep linguistic structure", "shallow linguistic structure", "part of a sentence", "sentence", "several sentences",
    "document", "dialogue", "other text", "speech", "visual", "several modes",
)  # fmt: skip
QUESTIONS = (
    PersonQuestion("paper_link", "Where is the paper?", ("published: address", "unpublished report: address", "this is the preregistration: address", "no paper")),
    PersonQuestion("paper_section", "Which section of the paper describes the human evaluation?"),
    PersonQuestion("resources_link", "Where are data and code?", ("address", "not shared")),
    PersonQuestion("preregistration", "Is the study preregistered?", ("yes: address", "no")),
    PersonQuestion("interface_link", "Where can others see what annotators saw?"),
    PersonQuestion("filler_name", "Your name"),
    PersonQuestion("filler_affiliation", "Your affiliation"),
    PersonQuestion("filler_email", "Your email"),
    PersonQuestion("author_name", "Name of the contact author"),
    PersonQuestion("author_affiliation", "Affiliation of the contact author"),
    PersonQuestion("author_email", "Email of the contact author"),
    PersonQuestion("motivation", "Why was the study made, and who paid for it?"),
    PersonQuestion("input_types", "What do the systems read?", (*CONTENT, "control feature", "nothing (say why)", "other (say which)")),
    PersonQuestion("output_types", "What do the systems write?", (*CONTENT, "nothing (say why)", "other (say which)")),
    PersonQuestion(
        "system_tasks",
        "What is the task of the systems?",
        (
            "content selection", "content ordering", "aggregation", "referring expressions", "lexicalisation", "deep generation", "surface realisation",
            "generation with controlled features", "data to text", "dialogue turns", "question generation", "question answering", "paraphrasing",
            "compression", "translation", "summarisation", "end-to-end generation", "description of images or video", "post-editing", "other (say which)",
        ),
    ),
    PersonQuestion("input_languages", "Languages that the systems read, as codes such as en, de"),
    PersonQuestion("output_languages", "Languages that the systems write, as codes such as en, de"),
    PersonQuestion(
        "output_selection",
        "How were the prompts and outputs selected?",
        ("at random", "at random in strata", "automatically, not at random", "by hand", "by hand, for balance or variety", "otherwise (say how)"),
    ),
    PersonQuestion("recruitment", "How are annotators recruited?"),
    PersonQuestion("sample", "Who are the annotators (languages, age, education)?"),
    PersonQuestion("expertise", "Are annotators experts?", YES_NO),
    PersonQuestion("known_to_authors", "Do the authors know annotators?", YES_NO),
    PersonQuestion("are_authors", "Are authors among the annotators?", YES_NO),
    PersonQuestion("pay_is_adequate", "Why is the pay adequate where annotators live?"),
    PersonQuestion(
        "place",
        "Where do people answer?",
        (
            "at a place of their choice", "in a lab, same conditions", "in a lab, other conditions", "in real life, same conditions",
            "in real life, other conditions", "in simulated real life, same conditions", "in simulated real life, other conditions", "elsewhere (say where)",
        ),
    ),
    PersonQuestion("place_varies", "How do these conditions differ between annotators?"),
    PersonQuestion("risks", "Which risks do annotators have, and were they named?"),
    PersonQuestion("ethics", "Which ethics board approved the study, or why was none asked?"),
    PersonQuestion("personal_data", "Are personal data collected or evaluated (GDPR)?", ("no", "yes (say which)")),
    PersonQuestion("special_data", "Are special categories of data collected or evaluated (GDPR)?", ("no", "yes (say which)")),
    PersonQuestion("impact_assessment", "Was an impact assessment made?"),
    PersonQuestion("licence", "Under which licence may others use the data?"),
    PersonQuestion("uses", "What may the data be used for, and what not?"),
    PersonQuestion("maintenance", "Who keeps the data, and how are errors corrected?"),
)  # fmt: skip
ASKED_ABOUT_CRITERIA = (
    PersonQuestion("quality_type", "Type of quality", ("correctness", "goodness", "feature")),
    PersonQuestion("output_aspect", "Aspect of the output", ("form", "content", "both")),
    PersonQuestion("frame", "Judged by itself or against something", ("by itself", "against the input", "against something else")),
    PersonQuestion("is_subjective", "Objective or subjective", ("objective", "subjective")),
)  # fmt: skip

# Options of HEDS that follow from the design, for files in words.
OPTIONS_OF_DESIGNS = {
    "payment": ("paid", "rewarded otherwise, such as by credits", "not paid"),
    "quality_methods": (
        "language",
        "automatic checks",
        "checks by people",
        "people are excluded",
        "answers are excluded",
        "other",
        "none",
    ),
    "freedom": (
        "at a set time",
        "limited time for each answer",
        "limited time in all",
        "in one sitting",
        "none of these",
    ),
    "can_ask": ("people can ask questions", "people read that they can ask", "feedback afterwards"),
    "is_relative": ("absolute", "relative"),
    "is_extrinsic": ("intrinsic", "extrinsic"),
    "scale_look": ("one of several options", "boxes to tick", "slider", "none", "other"),
    "response": (
        "agreement with a statement",
        "quality of one output",
        "quality beside others",
        "counts",
        "words",
        "marks in the text",
        "labels",
    ),
}
HEDS = json.loads(Path(__file__).with_name("heds.json").read_text(encoding="utf-8"))
CRITERION = (
    "criteria-criterion"  # the element of HEDS that names the criteria; those about one have this and a hyphen in front
)


def _items(lines: str) -> tuple[Item, ...]:
    """Return the items of lines such as ``1|Hypotheses|hypotheses stopping``."""
    parts = (line.strip().split("|") for line in lines.strip().splitlines())
    return tuple(Item(number, label, tuple(keys.split())) for number, label, keys in parts)


FORMS = (
    Form("osf", "OSF preregistration", _items("""
        1|Title|title
        2|Description|purpose
        3|Hypotheses|hypotheses
        4|Blinding|blinding
        5|Study design|conditions tasks
        6|Randomisation|randomisation
        7|Existing data|collected
        8|Data collection|recruitment payment collection
        9|Sample size and its rationale|size
        10|Stopping rule|stopping
        11|Manipulated variables|conditions material
        12|Measured variables|tasks
        13|Statistical models and inference|aggregation effects
        14|Exclusion of data|exclusion_rules
        15|Deviations since the design was frozen|deviations
    """)),
    Form("aspredicted", "AsPredicted", _items("""
        1|Data collected already|collected
        2|Hypotheses|hypotheses
        3|Dependent variables|tasks
        4|Conditions|conditions
        5|Analyses|aggregation effects
        6|Outliers and exclusions|exclusion_rules
        7|Sample size|size stopping
        8|Anything else|material randomisation
        9|Name|title
    """)),
    Form("heds", "HEDS 3.0", tuple(
        Item(number, label, (key,), path.startswith(f"{CRITERION}-")) for number, path, _, _, key, label in HEDS["questions"]
    )),
    Form("arr", "ARR responsible NLP checklist, part D", _items("""
        D1|Instructions to annotators|paper_section instructions risks
        D2|Recruitment and pay|recruitment payment pay_is_adequate
        D3|Consent|consent
        D4|Ethics review|ethics
        D5|Characteristics of annotators|sample flow
    """)),
    Form("neurips", "NeurIPS checklist, human evaluation", _items("""
        5|Open access to data and code|resources_link stimuli_source
        7|Statistical significance|results effects
        14|Crowdsourcing and research with people|paper_section instructions recruitment payment
        15|Risks and ethics review|risks ethics
    """)),
    Form("datasheet", "Datasheet of the data", _items("""
        1|Motivation|motivation
        2|Composition|material flow
        3|Annotators|sample
        4|What they were asked|shown
        5|Collection|recruitment payment collection consent
        6|Exclusions and processing|exclusion_rules deviations
        7|Methods|methods
        8|Results|results
        9|Agreement|agreement
        10|Personal data|personal_data special_data retention withdrawal
        11|Uses|uses
        12|Distribution|licence resources_link stimuli_source
        13|Maintenance|maintenance author_name author_email
    """)),
    Form("sample", "Table of the sample", _items("""
        1|Flow of participants|flow
        2|Sample|sample
    """)),
)  # fmt: skip
QUESTIONS_BY_KEY = {question.key: question for question in (*QUESTIONS, *ASKED_ABOUT_CRITERIA)}
FORMS_BY_SLUG = {form.slug: form for form in FORMS}
