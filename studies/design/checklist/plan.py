"""Check the plan of the analysis: its comparisons and its exclusion rules."""

from collections.abc import Iterator
from dataclasses import replace

from studies.design.margins import hypothesis_problem, too_wide_margin_problem
from studies.models import Study
from studies.models.rules import REGISTRY as RULES
from studies.models.rules import TEST_QUESTION_RULES
from studies.protocols import REGISTRY, Problem


def contrast_problems(study: Study, sections) -> Iterator[Problem]:
    contrasts = list(study.contrasts.select_related("x", "y", "section"))
    if not contrasts:
        yield Problem(
            "No comparison is planned, so all results will be exploratory.", "contrasts", False, "no_contrast"
        )
    if contrasts and not any(contrast.role == "primary" for contrast in contrasts):
        yield Problem("No planned comparison is primary.", "contrasts", False, "no_primary_contrast")
    live = [section for section in sections if section.purpose == "live" and section.protocol in REGISTRY]
    estimands = {key for section in live for key in REGISTRY[section.protocol].estimands(section)}
    for contrast in contrasts:
        if contrast.estimand and contrast.estimand not in estimands:
            yield Problem(f"No section estimates {contrast.estimand!r} (comparison {contrast}).", "contrasts")
        own_sections = [
            (section, list(section.questions.all())) for section in live if contrast.section_id in (None, section.pk)
        ]
        if too_wide := too_wide_margin_problem(contrast.margin, contrast.estimand, contrast.criterion, own_sections):
            yield replace(too_wide, text=f"{contrast}: {too_wide.text}")
        if contradiction := hypothesis_problem(
            contrast.hypothesis,
            margin=contrast.margin,
            has_systems=contrast.x_id is not None,
            expected=contrast.expected,
            estimand=contrast.estimand,
            criterion=contrast.criterion,
            sections=own_sections,
        ):
            yield replace(contradiction[1], text=f"{contrast}: {contradiction[1].text}")
        if contrast.expected == "~" and contrast.margin is None:
            yield Problem(
                f"{contrast} is expected to be equivalent but has no margin, so equivalence cannot be concluded. Enter a margin.",
                "contrasts",
                False,
                f"no_margin:{contrast.x}:{contrast.y}",
            )
    directed = [section for section in live if any(q.x_id for q in section.questions.all())]
    question_pairs = {frozenset((q.x_id, q.y_id)) for section in directed for q in section.questions.all() if q.x_id}
    for contrast in contrasts:
        if directed and contrast.x_id and frozenset((contrast.x_id, contrast.y_id)) not in question_pairs:
            yield Problem(
                f"No question asks about {contrast.x} and {contrast.y}.",
                "contrasts",
                len(live) == len(directed),
                f"not_asked:{contrast}",
            )


def barring_problems(study: Study) -> Iterator[Problem]:
    """Yield why flagged annotators cannot be kept from further batches as the study declares."""
    if not study.bars_flagged_annotators:
        return
    if not study.exclusion_rules.filter(rule__in=TEST_QUESTION_RULES).exists():
        yield Problem(
            "No rule says which annotators get no further batch. Declare a rule about test questions.",
            "exclusion_rules",
        )
    if not study.consent.strip():
        yield Problem(
            "Flagged annotators get no further batch, but no consent text says so. Enter a consent text.", "consent"
        )
    if study.batches_per_annotator == 1 and not study.exclusion_group:
        yield Problem(
            "Flagged annotators get no further batch, but every annotator gets only one.",
            "bars_flagged_annotators",
            False,
            "bars_nobody",
        )


def exclusion_rule_problems(study: Study, sections) -> Iterator[Problem]:
    """Yield problems of exclusion rules that name something that the study does not have, or that are not installed."""
    for row in study.exclusion_rules.all():
        rule = RULES.get(row.rule)
        if rule is None:
            yield Problem(
                f"The exclusion rule “{row.rule}” is not installed on this site. Delete it, or ask the operator to install it.",
                "exclusion_rules",
            )
            continue
        form = rule.bound_form(row.settings or {})
        if form is None:
            continue
        faults: list[str] = []
        if not form.is_valid():
            faults = [
                f"{form[name].label if name in form.fields else name}: {' '.join(errors)}"
                for name, errors in form.errors.items()
            ]
        elif rule.problems is not None:
            faults = list(rule.problems(sections, **form.cleaned_data))
        for fault in faults:
            yield Problem(
                f"Exclusion rule “{rule.name}”: {fault} Correct the rule's settings, or delete the rule.",
                "exclusion_rules",
            )
