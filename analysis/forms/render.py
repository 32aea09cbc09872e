"""Forms about a study as text, Markdown, LaTeX and JSON."""

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import groupby
from typing import Any

from django.conf import settings

from analysis.protocols.blocks.layouts import Table
from analysis.report.plots import escape_latex
from analysis.report.texts import escape_markdown, render_table
from studies.models import Study
from studies.services.version import version

from .deviations import deviations_table
from .facts import Fact, Facts, collect_facts
from .heds import heds_json
from .questions import FORMS_BY_SLUG, OPTIONS_OF_DESIGNS, QUESTIONS_BY_KEY, Form, Item

MEDIA_TYPES = {
    "txt": "text/plain",
    "md": "text/markdown",
    "tex": "text/x-tex",
    "json": "application/json",
    "bib": "application/x-bibtex",
}


def fact_words(key: str, fact: Fact) -> str:
    """Return a fact in words: the options that it chooses, then its text. An open one names the question that a person is asked."""
    key = key.partition(":")[0]
    question = QUESTIONS_BY_KEY.get(key)
    if fact.is_open:
        return f"(open: {question.label})" if question else "(open)"
    names = OPTIONS_OF_DESIGNS.get(key) or (question.options if question else ())
    chosen = [names[number - 1] if number <= len(names) else f"option {number}" for number in fact.options]
    return ": ".join(filter(None, [", ".join(chosen), fact.text]))


def item_facts(item: Item, facts: Facts) -> list[tuple[str, str, Fact]]:
    """Return what answers an item: the criterion that it is about or '', its key, and the fact."""
    names = facts.criteria if item.is_about_criteria else ("",)
    keyed = [(name, f"{key}:{name}" if name else key) for key in item.keys for name in names]
    return [(name, key, facts.by_key[key]) for name, key in keyed]


def facts_with_deviations(study: Study) -> tuple[Facts, Table]:
    facts, table = collect_facts(study), deviations_table(study)
    text = render_table(table, "txt") if table["rows"] else table["note"]
    by_key = {**facts.by_key, "deviations": Fact(text.strip(), "log of the study")}
    return replace(facts, by_key=by_key), table


def render_form(study: Study, slug: str, file_format: str) -> str | None:
    """Return a form or the BibTeX entries as a file, or None if it has no such format."""
    if slug == "citation":
        return bibtex(study) if file_format == "bib" else None
    form = FORMS_BY_SLUG.get(slug)
    if form is None or file_format not in MEDIA_TYPES or file_format == "bib":
        return None
    facts, table = facts_with_deviations(study)
    if file_format == "json":
        shown = heds_json(facts) if slug == "heds" else _json(form, facts, table)
        return json.dumps(shown, ensure_ascii=False, allow_nan=False, indent=1) + "\n"
    return _text(study, form, facts, file_format)


def _json(form: Form, facts: Facts, deviations: Table) -> dict[str, Any]:
    items = [
        {
            "number": item.number,
            "label": item.label,
            "answers": [
                {"key": key, "text": None if fact.is_open else fact_words(key, fact), "source": fact.source}
                for _, key, fact in item_facts(item, facts)
            ],
        }
        for item in form.items
    ]
    return {"form": form.title, "items": items, "deviations": deviations["rows"]}


def _text(study: Study, form: Form, facts: Facts, file_format: str) -> str:
    escape: Callable[[str], str] = {"md": escape_markdown, "tex": escape_latex}.get(file_format, str)
    heading, part, source = {
        "md": ("# {}", "## {}", "*Source: {}.*"),
        "tex": (r"\section*{{{}}}", r"\paragraph{{{}}}", r"\emph{{Source: {}.}}"),
    }.get(file_format, ("{}", "{}", "Source: {}."))
    blocks = [heading.format(escape(f"{form.title}: {' '.join(study.title.split())}"))]
    for item in form.items:
        blocks.append(part.format(escape(f"{item.number} {item.label}".strip())))
        for origin, answers in groupby(item_facts(item, facts), lambda answer: answer[2].source):
            for about, key, fact in answers:
                text = f"{about}: {fact_words(key, fact)}" if about else fact_words(key, fact)
                blocks += [escape(" ".join(line.split())) for line in text.splitlines() if line.strip()]
            blocks.append(source.format(escape(origin)))
    return "\n\n".join(blocks) + "\n"


def bibtex(study: Study) -> str:
    """Return entries for the study's data and for heval."""
    year = (study.closed_at or study.launched_at or study.created_at).year
    institution = f"  author = {{{{{escape_latex(study.institution)}}}}},\n" if study.institution else ""
    return (
        f"@misc{{heval-{str(study.code)[:8]},\n{institution}"
        f"  title = {{{{{escape_latex(study.title)}}}}},\n  year = {{{year}}},\n"
        f"  note = {{Study {study.code} in heval {version()}, {escape_latex(settings.SITE_URL)}}},\n}}\n\n"
        f"@software{{heval,\n  author = {{{{The heval contributors}}}},\n"
        f"  title = {{{{heval}}: software for human evaluation of systems that generate text or images}},\n  version = {{{version()}}},\n}}\n"
    )
