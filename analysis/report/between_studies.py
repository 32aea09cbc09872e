"""Two or more closed studies, or links of them, beside each other: what they share, how far they differ, and how well they agree.

A part is a study, or the people of one of its links. The answers are those behind the headlines (``headline_answers``).
"""

import difflib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import Max, QuerySet
from django.http import Http404

from analysis.data.blinding import check_outcomes_visible
from analysis.data.flat_rows import annotator_pseudonym
from analysis.data.snapshot import database_snapshot
from analysis.models import StudiesComparison
from analysis.protocols import REGISTRY, HeadlineAnswers, headline_name
from analysis.protocols.blocks.layouts import build_figure, figure_row, relabel_interval_columns
from analysis.protocols.kinds.answers import readable_scale
from annotators.counting import simulated_words
from annotators.models import Recruitment
from annotators.pay.statement import typical_time_and_pay
from studies.access import Action, check_permission_or_404, filter_allowed
from studies.design.subjects import in_parentheses, join_words
from studies.models import Job, Output, Prompt, Section, Study, audit
from studies.protocols import REGISTRY as PROTOCOLS
from studies.services import jobs
from studies.services.lifecycle import ActionRefused, FieldsRefused

from .between_tables import MEANINGS, build_tables, difference_sentences
from .build import analysis_contexts, validate_parameters, version_and_source_hash
from .plots import STYLES, render_figure_svg_and_pdf
from .report_data import ReportData, read_report_data

if TYPE_CHECKING:
    from analysis.stats.results import Estimate

KIND = "compare_studies"
SCHEMA = "heval.between_studies/1"
MOST_PARTS = 6
# Settings of a section that are a part of its scale.
SCALE_SETTINGS = ("allows_tie", "tie", "allows_ties", "set_size", "categories", "severities")


@dataclass(frozen=True, slots=True)
class Part:
    """A study, or the people of one of its links. ``code``: how requests name it. ``name``: for readers, unique in a comparison."""

    study: Study
    link: Recruitment | None
    name: str

    @property
    def code(self) -> str:
        return f"{self.study.code}:{self.link.key}" if self.link else str(self.study.code)


@dataclass(slots=True)
class PartAnswers:
    """What a part says about each comparison, under a key that parts share. ``effort``: the row of the table of effort."""

    effort: dict[str, Any]
    answers: dict[tuple[Any, ...], tuple[str, HeadlineAnswers]] = field(default_factory=dict)


# What can be compared, and what is refused.


def offered_parts(study: Study, by) -> list[Part]:
    """Return what the user may compare with a study: closed studies, the study first, each followed by its links if it has several."""
    closed = filter_allowed(by, Study.objects.filter(state=Study.State.CLOSED), Action.ANALYSE)
    closed = closed.prefetch_related("recruitments")
    found = []
    for one in sorted(closed, key=lambda one: (one.pk != study.pk, one.title, one.pk)):
        links = list(one.recruitments.all())
        found.append(Part(one, None, one.title))
        found += [Part(one, link, f"{one.title}, {link}") for link in links if len(links) > 1]
    return found


def find_parts(study: Study, codes: Sequence[str], by, token=None) -> list[Part]:
    """Return the named parts, one of which is of ``study``.

    Raise Http404 or PermissionDenied if the user may not analyse a study or its outcomes are hidden, and FieldsRefused.
    """
    if not 2 <= len(codes) <= MOST_PARTS or len(set(codes)) < len(codes):
        raise FieldsRefused({"studies": f"Name from 2 to {MOST_PARTS} studies or links, each once."})
    named = [(code.partition(":")[0], code.partition(":")[2]) for code in codes]
    for code, _ in named:
        if not re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", code):
            raise FieldsRefused({"studies": f"{code[:60]!r} is not the code of a study."})
    rows = Study.objects.filter(code__in=[code for code, _ in named]).prefetch_related(
        "recruitments", "sections__questions"
    )
    by_code = {str(row.code): row for row in rows}
    found = []
    for code, key in named:
        one = by_code.get(code)
        check_permission_or_404(by, Action.ANALYSE, one or 0, token)
        if one is None:
            raise Http404("This study does not exist.")
        check_outcomes_visible(one, ["live"])
        if one.state != Study.State.CLOSED:
            text = f"“{one.title}” is not closed. Close it, so that its numbers no longer change."
            raise FieldsRefused({"studies": text})
        link = next((link for link in one.recruitments.all() if link.key == key), None)
        if key and link is None:
            text = f"“{one.title}” has no link {key[:60]!r}. Use the key of one of its links."
            raise FieldsRefused({"studies": text})
        found.append(Part(one, link, f"{one.title}, {link}" if link else one.title))
    if study.pk not in {part.study.pk for part in found}:
        raise FieldsRefused({"studies": f"Name “{study.title}” or one of its links, too: the result is kept with it."})
    if len({part.study.pk for part in found if part.link is None} & {part.study.pk for part in found if part.link}):
        raise FieldsRefused(
            {"studies": "A study and one of its links share their people. Name the study or links of it."}
        )
    names = [part.name for part in found]
    return [
        replace(part, name=f"{part.name} ({str(part.study.code)[:8]})") if names.count(part.name) > 1 else part
        for part in found
    ]


def refuse_other_questions(parts: Sequence[Part]) -> None:
    """Raise ActionRefused if a question of one part has other words or another scale in another part, or none is shared."""
    questions = {part.code: _questions(part.study) for part in parts}
    for one, other in combinations(parts, 2):
        first, second = questions[one.code], questions[other.code]
        shared = [key for key in first if key in second]
        if not shared:
            raise ActionRefused(
                f"“{one.name}” and “{other.name}” ask no question in common: {_listed(first)}, and {_listed(second)}. "
                "Compare studies that ask the same question by the same protocol."
            )
        for key in shared:
            if problem := _difference_of_questions(key, first[key], second[key]):
                raise ActionRefused(
                    f"{problem} in “{one.name}” and in “{other.name}”. Compare studies that ask the same question on the same scale."
                )


# (protocol, number of the section among those of its protocol, criterion) > questions in their order, each (text, help, scale).
Wordings = dict[tuple[str, int, str], list[tuple[str, str, str]]]


def _questions(study: Study) -> Wordings:
    """Return the words and scales of the questions whose answers have a headline."""
    found: Wordings = {}
    for number, section in _numbered_sections(study.sections.all()):
        settings = PROTOCOLS[section.protocol].cleaned_settings(section)
        shared = {name: settings[name] for name in SCALE_SETTINGS if name in settings}
        for question in section.questions.all():
            if (read := readable_scale(question)) and read.answer_column != "text":
                scale = json.dumps(asdict(read) | shared, sort_keys=True, ensure_ascii=False, default=str)
                wording = (" ".join(question.text.split()), " ".join(question.help.split()), scale)
                known = found.setdefault((section.protocol, number, question.criterion), [])
                known.extend([wording] if wording not in known else [])
    return found


def _numbered_sections(sections: Iterable[Section]) -> Iterable[tuple[int, Section]]:
    """Yield the live sections with a headline, each with its number among those of its protocol."""
    numbers: dict[str, int] = {}
    for section in sorted(sections, key=lambda section: section.position):
        if section.purpose == Section.Purpose.LIVE and headline_name(section.protocol):
            numbers[section.protocol] = numbers.get(section.protocol, 0) + 1
            yield numbers[section.protocol], section


def _listed(questions: Wordings) -> str:
    names = [join_words(_protocol_name(protocol), criterion) for protocol, _, criterion in questions]
    return "; ".join(names) or "no question that can be compared"


def _difference_of_questions(
    key: tuple[str, int, str], first: list[tuple[str, str, str]], second: list[tuple[str, str, str]]
) -> str:
    """Return what differs in words, or ''."""
    about = f" about {key[2]}" if key[2] else ""
    if len(first) != len(second):
        return f"There are different numbers of questions{about} ({len(first)} and {len(second)})"
    for (text, explained, scale), (other_text, other_explained, other_scale) in zip(first, second, strict=True):
        if text != other_text:
            return f"The question “{text}”{about} has other words ({_different_words(text, other_text)})"
        if explained != other_explained:
            words = _different_words(explained, other_explained)
            return f"The explanation of the question “{text}”{about} has other words ({words})"
        if scale != other_scale:
            mine, theirs = json.loads(scale), json.loads(other_scale)
            names = sorted(name for name in mine | theirs if mine.get(name) != theirs.get(name))
            values = ", ".join(f"{name}: {_value(mine.get(name))} and {_value(theirs.get(name))}" for name in names)
            return f"The question “{text}”{about} has another scale ({values})"
    return ""


def _value(value: Any) -> str:
    return "nothing" if value is None else json.dumps(value, ensure_ascii=False)[:80]


def _different_words(text: str, other: str) -> str:
    """Return the words that differ.

    >>> _different_words("Which is the better story?", "Which is the nicer story?")
    '“better” and “nicer”'
    """
    words, others = text.split(), other.split()
    changes = difflib.SequenceMatcher(None, words, others, autojunk=False).get_opcodes()
    return "; ".join(
        f"“{' '.join(words[a:b])}” and “{' '.join(others[c:d])}”" for tag, a, b, c, d in changes if tag != "equal"
    )


# Request and run a comparison.


def validated_parameters(study: Study, sent: Mapping[str, Any], by, token=None) -> tuple[list[Part], dict[str, Any]]:
    """Return the parts and the checked parameters. Raise like ``find_parts`` and ``refuse_other_questions``."""
    if unknown := sorted(set(sent) - {"studies", "comparisons", "level", "origins"}):
        raise FieldsRefused({unknown[0]: "there is no such parameter. Use studies, comparisons, level, origins."})
    for name in ("studies", "comparisons"):
        values = sent.get(name, [])
        if not isinstance(values, list | tuple) or not all(isinstance(value, str) for value in values):
            raise FieldsRefused({name: "must be a list of texts."})
    parts = find_parts(study, list(sent.get("studies", [])), by, token)
    chosen = list(sent.get("comparisons", []))
    if chosen and len(chosen) != len(parts):
        raise FieldsRefused(
            {"comparisons": f"Name one comparison for each of the {len(parts)} studies or links, or none."}
        )
    options = {name: sent[name] for name in ("level", "origins") if name in sent}
    level = validate_parameters(options)["level"]
    refuse_other_questions(parts)
    parameters = {"studies": [part.code for part in parts], "comparisons": chosen, "level": level}
    return parts, parameters | ({"origins": list(sent["origins"])} if "origins" in sent else {})


def request_comparison(study: Study, by, sent: Mapping[str, Any], request_token: str | None = None, token=None) -> Job:
    """Submit the job that compares studies. Idempotent per ``request_token``."""
    _, parameters = validated_parameters(study, sent, by, token)
    return jobs.submit(KIND, study=study, by=by, request_token=request_token, parameters=parameters)


def visible_comparisons(study: Study, user, token=None) -> QuerySet[StudiesComparison]:
    """Return the stored comparisons of a study all of whose studies the user may see."""
    rows = study.studies_comparisons.select_related("by")
    seen = {str(code) for code in filter_allowed(user, Study.objects.all(), token=token).values_list("code", flat=True)}
    named = {
        pk: {code.partition(":")[0] for code in sent["studies"]} for pk, sent in rows.values_list("pk", "parameters")
    }
    return rows.filter(pk__in=[pk for pk, codes in named.items() if codes <= seen])


def run_comparison(
    study: Study,
    sent: Mapping[str, Any],
    *,
    by,
    job_code: str = "",
    progress: Callable[..., Any] = lambda done, total, doing="": None,
) -> StudiesComparison:
    """Compare studies and store the result under the study's next number. ``job_code``: as in ``runs.run_analysis``."""
    from analysis.stats.seeds import canonical_json
    from studies.design.serialization import sha256_of

    if job_code and (stored := study.studies_comparisons.filter(parameters__job=job_code).first()):
        return stored
    parts, parameters = validated_parameters(study, sent, by)
    result = build_comparison(parts, parameters, progress)
    svg, pdf = render_figure_svg_and_pdf(result["figures"][0])
    progress(len(parts) + 1, len(parts) + 1, "Storing")
    with transaction.atomic():
        Study.objects.select_for_update(no_key=True, of=("self",)).get(pk=study.pk)
        rows = study.studies_comparisons
        row = rows.create(
            number=(rows.aggregate(n=Max("number"))["n"] or 0) + 1,
            parameters=parameters | ({"job": job_code} if job_code else {}),
            result=result,
            result_sha256=sha256_of(canonical_json(result)),
            figure_svg=svg,
            figure_pdf=pdf,
            by=by,
        )
        audit.record("compare studies", study=study, by=by, number=row.number, result_sha256=row.result_sha256)
    return row


# Read the answers of each part.


def read_part(part: Part, parameters: Mapping[str, Any]) -> PartAnswers:
    """Read the answers of a part. Labels of people and prompts are equal in two parts if the person, or the prompt, is the same."""
    options = {name: parameters[name] for name in ("origins",) if name in parameters}
    with database_snapshot():
        validated = validate_parameters(options, part.study)
        data = read_report_data(part.study, validated["origins"])
        if part.link:
            people = set(part.link.assignments.values_list("pk", flat=True))
            data = _of_assignments(data, people)
        contexts = analysis_contexts(data, validated, "0", [])
        found = {context.protocol: REGISTRY[context.protocol].headline_answers(context) for context in contexts}
        person = {
            annotator_pseudonym(part.study, code): str(code)
            for code in part.study.assignments.values_list("annotator__code", flat=True)
        }
        prompt = _prompt_labels(part.study)
        time, pay = typical_time_and_pay(part.study, part.link)
    n_kept = len(data.kept)
    read = PartAnswers(
        {
            "study": part.name,
            "people": data.assignments.loc[data.assignments["is_submitted"], "annotator"].nunique(),
            "kept": n_kept,
            "answers": int(data.live_answers()["is_kept"].sum()),
            "minutes": float(time.median) if time else None,
            "pay": float(pay.median) if pay else None,
            "currency": part.study.currency if pay else "",
            "data_sha256": data.data_sha256,
            "origins": list(validated["origins"]),
        }
    )
    sections = {section.position: (number, section) for number, section in _numbered_sections(data.sections)}
    for protocol, headlines in found.items():
        for one in headlines if headline_name(protocol) else ():
            compared = one.comparison
            number, section = sections[compared.section]
            asked = [question for question in section.questions.all() if question.criterion == compared.criterion]
            place = next((place for place, question in enumerate(asked) if question.key == compared.question), -1)
            key = (protocol, number, compared.criterion, place, *sorted((compared.x, compared.y)))
            read.answers.setdefault(key, (protocol, _relabelled(one, person, prompt)))
    return read


def _relabelled(one: HeadlineAnswers, person: Mapping[str, str], prompt: Callable[[Any], str]) -> HeadlineAnswers:
    from pandas import Categorical

    return replace(
        one,
        annotators=Categorical([person.get(label, label) for label in one.annotators.tolist()]),
        prompts=Categorical([prompt(label) for label in one.prompts.tolist()]),
        by_domain={domain: _relabelled(own, person, prompt) for domain, own in one.by_domain.items()},
    )


def _of_assignments(data: ReportData, assignments: set[int]) -> ReportData:
    kept = {
        name: frame[frame["assignment"].isin(assignments)]
        for name in ("responses", "assignments")
        for frame in [getattr(data, name)]
    }
    claims = data.claims and replace(
        data.claims, rows=data.claims.rows[data.claims.rows["assignment"].isin(assignments)]
    )
    return replace(data, **kept, claims=claims)


def _prompt_labels(study: Study) -> Callable[[Any], str]:
    """Return the function from the label of a second sample to one that is equal in studies with the same key and the same text."""
    texts: dict[str, list[str]] = {}
    groups: dict[str, list[list[str]]] = {}
    keys: dict[Any, str] = {}
    for pk, key, group, *text in (
        Prompt.objects.filter(study=study).order_by("key").values_list("pk", "key", "group", "text", "source", "media")
    ):
        texts[key], keys[pk] = [key, *text], key
        groups.setdefault(group, []).append(texts[key])
    outputs = {
        f"{prompt}\x1f{system}\x1f{sample}": text
        for prompt, system, sample, *text in Output.objects.filter(system__study=study).values_list(
            "prompt__key", "system__name", "sample", "text", "media"
        )
    }

    def label_of(label: Any) -> str:
        key = keys.get(label, label)
        if key in texts:
            return json.dumps(texts[key])
        group = str(key).removeprefix("\x1f")
        same = groups.get(group, [texts.get(str(key).partition("\x1f")[0]), outputs.get(key)])
        return json.dumps([group, same])

    return label_of


# Compare, and say it in tables, a figure and sentences.


def build_comparison(
    parts: Sequence[Part], parameters: Mapping[str, Any], progress: Callable[..., Any]
) -> dict[str, Any]:
    """Return the comparison of all parts as plain JSON. Raise ActionRefused if they share no comparison with answers."""
    from analysis.stats.results import json_safe

    read = []
    for number, part in enumerate(parts):
        progress(number, len(parts) + 1, f"Reading “{part.name[:60]}”")
        read.append(read_part(part, parameters))
    progress(len(parts), len(parts) + 1, "Comparing")
    found, left_out = _shared(parts, read, parameters["comparisons"])
    compared = _named_apart(_adjusted([_compare(found_in_parts, parameters["level"]) for found_in_parts in found]))
    names = [part.name for part in parts]
    tables = [
        relabel_interval_columns(table, parameters["level"])
        for table in build_tables(names, [one.effort for one in read], compared)
        if table["rows"]
    ]
    figure = build_figure(
        "studies",
        "Estimates of each study",
        (
            figure_row(mean, one["name"] if len(parts) <= len(STYLES) else f"{one['name']}, {name}", name)
            for one in compared
            for name, mean in zip(names, one["found"].means, strict=True)
        ),
        description="Each symbol is the estimate of one study.",
        axis="Share, chance or mean difference for the first system",
    )
    mark = simulated_words({origin for one in read for origin in one.effort["origins"]})
    if mark:
        # Tables and figures leave the page as files.
        for made in (*tables, figure):
            made["title"] = f"{made['title']} ({mark})"
    return json_safe(
        {
            "schema": SCHEMA,
            "simulated": mark,
            "code_version": version_and_source_hash(),
            "parameters": dict(parameters),
            "studies": [{"code": part.code, **one.effort} for part, one in zip(parts, read, strict=True)],
            "comparisons": [
                {name: one[name] for name in ("name", "protocol", "meaning", "within")} | one["found"].as_dict()
                for one in compared
            ],
            "left_out": left_out,
            "sentences": [sentence for one in compared for sentence in difference_sentences(names, one)],
            "tables": tables,
            "figures": [figure],
        }
    )


Found = list[tuple[str, HeadlineAnswers]]


def _shared(
    parts: Sequence[Part], read: Sequence[PartAnswers], chosen: Sequence[str]
) -> tuple[list[Found], list[dict[str, str]]]:
    """Return what each part says about each shared comparison, and the comparisons that are left out."""
    with_values = [{key: one for key, one in own.answers.items() if len(one[1].values)} for own in read]
    known = [_by_name(own.values()) for own in with_values]
    if chosen:
        for part, name, own in zip(parts, chosen, known, strict=True):
            if name not in own:
                raise ActionRefused(
                    f"“{part.name}” has no answers about “{name[:100]}”. Name one of {_listed_names(own)}."
                )
        found = [own[name] for name, own in zip(chosen, known, strict=True)]
        if len({(protocol, one.comparison.criterion) for protocol, one in found}) > 1:
            raise ActionRefused(
                "The named comparisons are of different protocols or criteria. Name comparisons on one scale."
            )
        return _with_shared_domains([found]), []
    keys = [key for key in with_values[0] if all(key in own for own in with_values)]
    if not keys:
        has = "; ".join(f"“{part.name}” has {_listed_names(own)}" for part, own in zip(parts, known, strict=True))
        raise ActionRefused(
            f"The studies have no comparison with answers in common: {has}. Name the comparison of each study to compare different systems."
        )
    shared = [[_turned(own[key], with_values[0][key][1]) for own in with_values] for key in keys]
    left_out = [
        {
            "study": part.name,
            "comparison": one.comparison.label,
            "reason": "It has no answers." if key not in own else "Not every study has it.",
        }
        for part, own, answers in zip(parts, with_values, read, strict=True)
        for key, (_, one) in answers.answers.items()
        if key not in keys
    ]
    return _with_shared_domains(shared), left_out


def _with_shared_domains(shared: Sequence[Found]) -> list[Found]:
    """Return the comparisons, each followed by itself in every domain in which all parts have answers."""
    found = []
    for row in shared:
        found.append(row)
        for domain in row[0][1].by_domain:
            of_domain = [(protocol, one.by_domain[domain]) for protocol, one in row if domain in one.by_domain]
            if len(of_domain) == len(row) and all(len(one.values) for _, one in of_domain):
                found.append(of_domain)
    return found


def _by_name(found: Iterable[tuple[str, HeadlineAnswers]]) -> dict[str, tuple[str, HeadlineAnswers]]:
    """Return the answers by the name of their comparison, with the protocol before it if several protocols have the name."""
    found = list(found)
    times = Counter(one.comparison.label for _, one in found)
    return {
        f"{_protocol_name(protocol)}: {label}" if times[label] > 1 else label: (protocol, one)
        for protocol, one in found
        for label in [one.comparison.label]
    }


def _named_apart(compared: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the comparisons with the protocol before a name that several protocols have."""
    times = Counter(one["name"] for one in compared)
    return [
        one | {"name": f"{_protocol_name(one['protocol'])}: {one['name']}"} if times[one["name"]] > 1 else one
        for one in compared
    ]


def _protocol_name(protocol: str) -> str:
    return PROTOCOLS[protocol].label.partition(":")[0].partition(" (")[0]


def _listed_names(known: Mapping[str, Any]) -> str:
    return ", ".join(f"“{name}”" for name in known) or "none"


def _turned(found: tuple[str, HeadlineAnswers], first: HeadlineAnswers) -> tuple[str, HeadlineAnswers]:
    """Return the answers with x and y as in the first part."""
    protocol, one = found
    if one.comparison.x == first.comparison.x:
        return found
    low, high = _headline(protocol, one).scale_ends
    turned = replace(one.comparison, x=first.comparison.x, y=first.comparison.y, subject=first.comparison.subject)
    return protocol, replace(one, comparison=turned, values=low + high - one.values)


def _headline(protocol: str, one: HeadlineAnswers):
    from analysis.stats.planning.inputs import StudySize

    return StudySize(protocol=headline_name(protocol), people=6, prompts=5, prompts_each=5, points=one.points)


def _compare(found: Found, level: float) -> dict[str, Any]:
    import numpy as np

    from analysis.stats.between_studies import compare_studies

    protocol, first = found[0]
    of_studies = [one for _, one in found]
    numbers = np.repeat(np.arange(len(found)), [len(one.values) for one in of_studies])
    people = np.concatenate([np.asarray(one.annotators) for one in of_studies])
    # A person has a weight in each study.
    _, codes, sizes = np.unique(np.array([numbers, people], dtype=str), axis=1, return_inverse=True, return_counts=True)
    headline = _headline(protocol, first)
    populations = {one.comparison.population for one in of_studies}
    compared = compare_studies(
        np.concatenate([one.values for one in of_studies]),
        numbers,
        people,
        np.concatenate([np.asarray(one.prompts) for one in of_studies]),
        weights=1 / sizes[codes] if REGISTRY[protocol].weighs_people_equally else None,
        bounds=headline.bounds,
        population=populations.pop() if len(populations) == 1 else "",
        level=level,
    )
    meaning, unit = MEANINGS["source" if headline.headline.outputs == 1 else headline.kind]
    names = list(dict.fromkeys(one.comparison.label for one in of_studies))
    x, y = (
        " or ".join(
            dict.fromkeys(getattr(one.comparison.subject, name) or getattr(one.comparison, name) for one in of_studies)
        )
        for name in "xy"
    )
    return {
        "name": " | ".join(names),
        "protocol": protocol,
        "meaning": meaning.format(x=x, y=y) + in_parentheses(first.comparison.subject.note),
        "unit": unit,
        "found": compared,
        "within": [one.agreement() for one in of_studies],
    }


def _adjusted(compared: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the comparisons with p-values that are adjusted by Holm's method: all differences, and all tests of equality."""
    from analysis.stats.multiplicity import holm

    def adjusted(estimates: "Sequence[Estimate]", family: str) -> "list[Estimate]":
        pvalues = holm([one.pvalue for one in estimates])
        return [
            replace(
                one, test=replace(one.test, pvalue_adjusted=p, adjust="holm", family=family, family_size=len(estimates))
            )
            if one.test
            else one
            for one, p in zip(estimates, pvalues, strict=True)
        ]

    differences = iter(adjusted([one for row in compared for one in row["found"].differences], "differences"))
    equality = adjusted([row["found"].equality for row in compared], "equality")
    found = []
    for row, equal in zip(compared, equality, strict=True):
        own = tuple(next(differences) for _ in row["found"].differences)
        found.append(row | {"found": replace(row["found"], differences=own, equality=equal)})
    return found
