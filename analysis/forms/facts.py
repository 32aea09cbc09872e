"""The facts that forms about a study ask for, each once: from its design, its final report, or an answer that a person wrote.

Numbers about people are those of the final report, in the report's own words. Before there is one, they are open or planned.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from django.db.models import Count

from analysis.data.flat_rows import COUNTED_ORIGINS
from analysis.models import AnalysisRun, ReportAnswer
from analysis.protocols.kinds.answers import readable_scale
from analysis.report.answer import material_sentences, sections_with_items, task_sentence
from analysis.report.planned import preregistration_sentences
from analysis.report.texts import render_table
from annotators.models import Recruitment
from annotators.recruitment.channels import REGISTRY as CHANNELS
from annotators.recruitment.channels.thresholds import threshold_lines
from annotators.recruitment.sample import sample_demographics_table, sample_lines
from studies.design.comparisons import planned_claim_sentences
from studies.design.criteria import CRITERIA
from studies.design.subjects import words_of_section
from studies.models import Item, Output, Question, Section, Study
from studies.protocols import REGISTRY
from studies.protocols.base.fields import SCALE_KINDS, ScaleSpec
from studies.services.version import version

from .questions import ASKED_ABOUT_CRITERIA, QUESTIONS, PersonQuestion

PERSON, SOFTWARE = "an answer on this page", "heval"
NOT_ASKED = "N/A"
AGREEMENT_TABLES = ("reliability", "choice_agreement")
# A person may choose options of a form by their numbers, and add words after a colon.
_OPTIONS = re.compile(r"\s*(\d+(?:\s*,\s*\d+)*)\s*(?::(.*))?", re.DOTALL)
# How HEDS numbers the look of a scale.
SCALE_LOOKS = {"likert": 1, "choice": 1, "output": 1, "multiple": 2, "acknowledgement": 2}


@dataclass(frozen=True, slots=True)
class Fact:
    """What a form prints. It is open if ``text`` and ``options`` are empty. ``options``: the numbers of the chosen ones."""

    text: str
    source: str
    options: tuple[int, ...] = ()

    @property
    def is_open(self) -> bool:
        return not (self.text or self.options)


@dataclass(frozen=True, slots=True)
class Facts:
    """All facts by key. Those of a criterion have the key ``key:criterion``. ``questions``: what only a person can answer."""

    by_key: Mapping[str, Fact]
    criteria: tuple[str, ...]
    questions: tuple[PersonQuestion, ...]
    answers: Mapping[str, str]
    run: AnalysisRun | None


def final_report(study: Study) -> AnalysisRun | None:
    """Return the newest analysis of people's answers since the study was closed, or None."""
    if study.state != Study.State.CLOSED:
        return None
    runs = study.analyses.filter(at__gte=study.closed_at).defer("result").order_by("-number")
    of_people = (run for run in runs if set(run.parameters.get("origins", ())) <= set(COUNTED_ORIGINS))
    return next(of_people, None)


def collect_facts(study: Study) -> Facts:
    run = final_report(study)
    design = study.designs.defer("canonical").order_by("version").last()
    source = f"design, version {design.version} (SHA-256 {design.sha256[:12]})" if design else "design of the draft"
    sections = sections_with_items(study)
    said = _design_texts(study, sections) | _recruitment_texts(study)
    facts = {
        key: replace(value, source=value.source or source) if isinstance(value, Fact) else Fact(value, source)
        for key, value in said.items()
    } | _report_facts(study, run, source)
    criteria = _criteria(sections)
    for name, (section, question) in criteria.items():
        for key, fact in _criterion_facts(section, question).items():
            facts[f"{key}:{name}"] = replace(fact, source=source)
        for key in ("effects", "agreement", "agreement_method", "own_agreement", "own_agreement_method"):
            facts[f"{key}:{name}"] = facts[key]
    asked = [
        *(question for question in QUESTIONS if facts.get(question.key, Fact("", "")).is_open),
        *(
            replace(question, key=f"{question.key}:{name}", label=f"{question.label} ({name})")
            for question in ASKED_ABOUT_CRITERIA
            for name in criteria
            if facts.get(f"{question.key}:{name}", Fact("", "")).is_open
        ),
    ]
    answers = dict(ReportAnswer.objects.filter(study=study).values_list("key", "text"))
    for one in asked:
        facts[one.key] = _person_fact(answers.get(one.key, ""), len(one.options))
    return Facts(facts, tuple(criteria), tuple(asked), answers, run)


def _person_fact(text: str, n_options: int) -> Fact:
    """Return an answer. One to a question with options begins with their numbers.

    >>> _person_fact("2, 3: stories", 4)
    Fact(text='stories', source='an answer on this page', options=(2, 3))
    """
    if n_options and (found := _OPTIONS.fullmatch(text)):
        chosen = tuple(dict.fromkeys(int(number) for number in found[1].split(",")))
        if all(1 <= number <= n_options for number in chosen):
            return Fact((found[2] or "").strip(), PERSON, chosen)
    return Fact(text, PERSON)


def _design_texts(study: Study, sections: list[Section]) -> dict[str, Any]:
    declared = list(study.exclusion_rules.all())
    rules = [f"{rule.get_rule_display()} ({rule.get_role_display()}{_settings(rule.settings)})" for rule in declared]
    checks = [
        *([2] if rules or study.items.filter(kind=Item.Kind.TEST).exists() else []),
        *([4] if any(rule.role == "primary" for rule in declared) else []),
    ]
    practice = study.items.filter(kind=Item.Kind.PRACTICE).count()
    counts = _outputs_by_system(study)
    plan = study.size_plan
    planned = plan.result["plan"]["planned"] if plan else {}
    launched = (
        f"Collection began on {study.launched_at:%Y-%m-%d}." if study.launched_at else "No data were collected yet."
    )
    tasks = " ".join(task_sentence(section) for section in sections)
    return {
        "identity": f"{study.title} (heval study {study.code})",
        "title": study.title,
        "purpose": study.purpose,
        "collected": f"{launched} This text was made when the study was in the state {study.state}.",
        "material": " ".join(material_sentences(study)),
        "tasks": tasks,
        "shown": f"{tasks} {'Instructions: ' if study.instructions else ''}{study.instructions}".strip(),
        "instructions": "\n\n".join(
            dict.fromkeys(filter(None, [study.instructions, *(arm.instructions for arm in study.arms.all())]))
        ),
        "hypotheses": "\n\n".join([*_comparisons(study, sections), *planned_claim_sentences(study)]),
        "conditions": _conditions(study),
        "aggregation": _estimands(sections),
        "effects": " ".join(_tests(study)),
        "exclusion_rules": "; ".join(rules) + "." if rules else "No exclusion rule is declared.",
        "quality_methods": Fact("", "", tuple(checks) or (7,)),
        "size": " ".join(_size(study)),
        "stopping": " ".join(_stopping(study, sections)),
        "power_method": " ".join(preregistration_sentences(plan, study.currency))
        if plan
        else "N/A: no size was planned.",
        "power": f"{planned['power']:.2f}" if plan else NOT_ASKED,
        "power_script": f"The plan is simulated by heval {version()}, seed {plan.seed}." if plan else NOT_ASKED,
        "randomisation": f"Prompts in each batch: {study.get_coverage_display()}. Order of sections: {study.get_section_order_display()}.",
        "blinding": "Pages of annotators show no name of a system. Researchers see no outcomes until the study is closed"
        + (f", but they were shown on {study.unblinded_at:%Y-%m-%d}." if study.unblinded_at else "."),
        "training": "; ".join([*_training(study), *([f"{practice} practice items"] if practice else [])]) or "None.",
        "outputs_per_system": str(counts[0]) if len(set(counts)) == 1 else ", ".join(map(str, counts)),
        "input_languages": _languages(study.prompts.order_by().values_list("language", flat=True).distinct()),
        "output_languages": _languages(
            Output.objects.filter(system__study=study).order_by().values_list("language", flat=True).distinct()
        ),
        "collection": Fact(f"Web pages of heval {version()}.", SOFTWARE),
        "freedom": Fact(
            f"People work at their own pace. A place is released after {study.idle_lease_seconds // 60} minutes without an answer.",
            "",
            (5,),
        ),
        "can_ask": Fact("", "", (1, 2) if study.contact else (1,)),
        "consent": study.consent,
        "ethics": f"{study.institution}, approval {study.approval_number}" if study.approval_number else "",
        "retention": " ".join(
            filter(
                None,
                [
                    study.retention,
                    f"Panel ids are erased {study.erase_after_days} days after closing, or earlier by payment.",
                ],
            )
        ),
        "withdrawal": "Withdrawal deletes ratings too."
        if study.withdrawal_blanks_ratings
        else "After a withdrawal, ratings stay without any identity.",
        "licence": study.licence,
        "stimuli_source": study.stimuli_source or "The archive has all prompts and outputs.",
        "own_agreement": NOT_ASKED,
        "own_agreement_method": NOT_ASKED,
        "criteria": "; ".join(_criteria(sections)) or NOT_ASKED,
    }


def _settings(settings: Mapping[str, Any]) -> str:
    return "".join(f"; {name}: {value}" for name, value in settings.items())


def _outputs_by_system(study: Study) -> list[int]:
    counted = Output.objects.filter(system__study=study).order_by().values_list("system").annotate(n=Count("pk"))
    return [n for _, n in counted] or [0]


def _languages(found: Iterable[str]) -> str:
    return ", ".join(sorted(filter(None, found)))


def _comparisons(study: Study, sections: list[Section]) -> list[str]:
    lines = []
    for one in study.read_contrasts():
        x, y = (one.x, one.y) if one.x_id else (one.get_x_condition_display(), one.get_y_condition_display())
        section = next(
            (section for section in sections if section.pk == one.section_id), sections[0] if sections else None
        )
        estimand = one.estimand or (REGISTRY[section.protocol].default_estimand(section) if section else "")
        parts = [
            one.get_hypothesis_display(),
            f"expected: {one.get_expected_display()}",
            "" if one.margin is None else f"margin {one.margin:g}",
            f"level {one.level:g}",
            f"{one.role}, family {one.family or one.role}",
            f"estimated: {estimand}" if estimand else "",
            one.population and f"about: {one.get_population_display()}",
        ]
        pair = f"x is {x}, y is {y}" if x else "All live sections"
        lines.append(f"{pair}{f', on {one.criterion}' if one.criterion else ''}: {'; '.join(filter(None, parts))}.")
    return lines or ["No comparison is planned."]


def _conditions(study: Study) -> str:
    systems = ", ".join(study.systems.order_by("name").values_list("name", flat=True))
    arms = [f"{arm.name} (training: {arm.get_condition_display()})" for arm in study.arms.all()]
    between = f" People are assigned to one of {len(arms)} arms: {', '.join(arms)}." if len(arms) > 1 else ""
    return f"Systems: {systems or 'none yet'}.{between}"


def _training(study: Study) -> list[str]:
    arms = [f"{arm.get_condition_display()} in arm {arm.name}" for arm in study.arms.all() if arm.condition != "none"]
    tests = study.sections.filter(pass_mark__isnull=False).values_list("pass_mark", flat=True)
    return [*arms, *(f"a test before the work, with the pass mark {mark}" for mark in tests)]


def _estimands(sections: list[Section]) -> str:
    described = []
    for section in sections:
        first = next(iter(REGISTRY[section.protocol].estimands(section).items()), None)
        if first:
            described.append(f"{words_of_section(section).name}: {first[1]} ({first[0]}).")
    return " ".join(described) or "No quantity is estimated."


def _tests(study: Study) -> list[str]:
    families = [
        f"The family {family.name} is adjusted by {family.get_adjustment_display()}{f', and tested after {family.after}' if family.after else ''}."
        for family in study.comparison_families.all()
    ]
    undeclared = "Comparisons of one family, or else of one role, are adjusted together."
    return [*(families or [undeclared]), f"Estimates, intervals and tests are those of heval {version()}."]


def _size(study: Study) -> list[str]:
    target = (
        f"The target is {study.target_n} {study.get_target_kind_display()}"
        if study.target_n
        else "No target is declared"
    )
    most = f", with at most {study.cap} places." if study.cap else "."
    planned = (
        preregistration_sentences(study.size_plan, study.currency)
        if study.size_plan
        else ["No power analysis was made."]
    )
    return [target + most, *planned]


def _stopping(study: Study, sections: list[Section]) -> list[str]:
    rules = [
        f"{words_of_section(section).name} has a stopping rule: {_settings(REGISTRY[section.protocol].cleaned_settings(section)).removeprefix('; ')}."
        for section in sections
        if REGISTRY[section.protocol].has_stopping_rule(section)
    ]
    return rules or ["No stopping rule: the study ends at its target, or when a researcher closes it."]


def _recruitment_texts(study: Study) -> dict[str, Any]:
    links = list(Recruitment.objects.filter(study=study).order_by("pk"))
    channels = list(dict.fromkeys(link.get_channel_display() for link in links))
    wanted = dict.fromkeys(
        f"Wanted by {link.get_channel_display()}: {'; '.join(f'{label}: {words}' for label, words in lines)}."
        for link in links
        if (lines := threshold_lines(link.settings))
    )
    rewards = {
        (study.reward if link.reward is None else link.reward, link.currency or study.currency) for link in links
    }
    rewards = rewards or {(study.reward, study.currency)}
    paid = [f"{reward} {currency}" for reward, currency in sorted(rewards, key=str) if reward]
    minutes = f" for about {study.minutes} minutes" if study.minutes else ""
    wage = f" The declared pay is {study.wage_per_hour} {study.currency} per hour." if study.wage_per_hour else ""
    pay = (
        f"One batch pays {' or '.join(paid)}{minutes}.{wage}" if paid else "Annotators are not paid through the study."
    )
    option = 1 if paid else 2 if any(CHANNELS[link.channel].credits_on_completion for link in links) else 3
    return {
        "recruitment": " ".join([*([f"By {', '.join(channels)}."] if channels else []), *wanted]),
        "payment": Fact(pay, "", (option,)),
        "sample": "\n\n".join(sample_lines(sample_demographics_table(study))),
    }


def _report_facts(study: Study, run: AnalysisRun | None, design: str) -> dict[str, Fact]:
    """Return what the report says. Without a report, the number of people is the planned one, and the rest is open."""
    if run is None:
        open_keys = ("methods", "results", "agreement", "agreement_method", "flow")
        planned = {"people": Fact(str(study.target_n or NOT_ASKED), f"{design}, as planned")}
        return dict.fromkeys(open_keys, Fact("", "the final report, which does not exist yet")) | planned
    # What a report of an earlier version lacks is open.
    stored, source = run.result, f"analysis {run.number}"
    n, flow = stored.get("n", {}), stored.get("flow", {})
    conclusions = [
        f"{one['claim']} {one['apa'] or one['text']} (planned, {one['role']})" for one in stored.get("conclusions", ())
    ]
    tables = [one for one in stored.get("tables", ()) if one["name"].rstrip("0123456789_") in AGREEMENT_TABLES]
    said = {
        "people": str(n.get("kept", "")),
        "flow": f"{flow['arrived']} arrived, {flow['submitted']} submitted, {n['kept']} kept by the rules that do not use outcomes."
        if flow and n
        else "",
        "methods": stored.get("answer", {}).get("methods", "") or " ".join(stored.get("methods", ())),
        "results": "\n\n".join(conclusions) or stored.get("no_conclusion", "") or "No comparison was planned.",
        "agreement": "\n\n".join(render_table(one, "txt").strip() for one in tables) or NOT_ASKED,
        "agreement_method": "; ".join(f"{one['title']}: {one['note']}" for one in tables)
        or "N/A: the report has no measure of agreement.",
    }
    return {key: Fact(text, source) for key, text in said.items()}


def _criteria(sections: list[Section]) -> dict[str, tuple[Section, Question]]:
    """Return each criterion of each section, by a name that a form can show: the official HEDS form reads names as HTML."""
    found: dict[str, tuple[Section, Question]] = {}
    for section in sections:
        seen = set()
        for question in section.questions.all():
            scale = readable_scale(question)
            if scale is None or scale.answer_column == "text" or (question.criterion in seen):
                continue
            seen.add(question.criterion)
            name = (
                re.sub(r"[<>&\"|:]+", " ", question.criterion or words_of_section(section).name)[:80].strip()
                or question.key
            )
            found[name if name not in found else f"{name} ({words_of_section(section).name})"] = (section, question)
    return found


def _criterion_facts(section: Section, question: Question) -> dict[str, Fact]:
    scale = cast(ScaleSpec, readable_scale(question))  # of a question that ``_criteria`` chose
    standard = next((one for one in CRITERIA if question.criterion in (one.label, one.key)), None)
    protocol = REGISTRY[section.protocol]
    values = _scale_values(scale)
    size = scale.maximum - scale.minimum + 1 if scale.kind == "percent" else len(values)
    facts = {
        "criterion_name": Fact(question.criterion or NOT_ASKED, ""),
        "standard_name": Fact(f"{standard.code} {standard.standard_name}" if standard else NOT_ASKED, ""),
        "definition": Fact(question.help or NOT_ASKED, ""),
        "question": Fact(question.text, ""),
        "scale_size": Fact(str(size) if size > 1 else NOT_ASKED, ""),
        "scale_values": Fact(", ".join(values) or NOT_ASKED, ""),
        "scale_look": Fact(
            "" if scale.kind in SCALE_LOOKS else SCALE_KINDS[scale.kind][0], "", (SCALE_LOOKS.get(scale.kind, 5),)
        ),
        "task": Fact(NOT_ASKED if values else task_sentence(section), ""),
        "aggregation": Fact(_estimands([section]), ""),
        "is_relative": Fact("", "", (1 if protocol.asks_about_single_outputs else 2,)),
        "is_extrinsic": Fact("", "", (1,)),
        "response": Fact("", "", (protocol.heds_response,)),
    }
    if standard and (code := re.match(r"Q([OITE])([CGF])-([fcw])", standard.code)):
        facts |= {
            "frame": Fact("", "", ({"O": 1, "I": 2}.get(code[1], 3),)),
            "quality_type": Fact("", "", ("CGF".index(code[2]) + 1,)),
            "output_aspect": Fact("", "", ("fcw".index(code[3]) + 1,)),
        }
    return facts


def _scale_values(scale: Any) -> list[str]:
    if scale.kind == "likert":
        return [f"{point.key} ({point.label})" if point.label else point.key for point in scale.points]
    if scale.kind in ("choice", "multiple"):
        return [option.label for option in scale.options]
    return [f"{scale.minimum} to {scale.maximum}"] if scale.kind in ("percent", "continuous", "number") else []
