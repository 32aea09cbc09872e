"""For coding agents: /llms.txt, and the same as a skill. Both are a page of the documentation with lists that are made from the code."""

import re
from functools import cache

from django.conf import settings
from django.http import HttpResponse
from django.views.decorators.http import require_safe

from analysis.api.urls import urlpatterns

from . import docs

PAGE = "how-to/for-coding-agents"
NEWLINE = "\n"
LEFT_OUT = {
    "run",
    "rehearse",
    "invented_report",
    "judge",
    "log",
    "clone",
    "board",
    "act",
    "amend",
    "settle",
    "pay",
    "launch",
    "pause",
    "resume",
    "places",
    "outcomes",
    "close",
    "analyse",
    "compare",
    "translation",
    "translation_file",
    "use_translation",
    "remove_translation",
}
METHOD = re.compile(r"^- (`\w+\(.*?\)`):", re.MULTILINE)
SKILL_HEADER = """---
name: heval
description: Prepare a study in which people compare or rate outputs of systems on a heval site, hand it to a person who launches it, and read its verdict.
---

"""
# What a study needs from its texts to its verdict, by the names of the addresses.
RESOURCES = (
    "studies",
    "study",
    "imports",
    "import",
    "cards",
    "question",
    "texts",
    "plan-numbers",
    "checklist",
    "links",
    "progress",
    "job",
    "verdict",
    "export-responses.jsonl",
)


@cache
def text_for_agents(site: str) -> str:
    """Return the page with the addresses of this site, the methods of the client and the addresses of REST."""
    page = docs.read_pages()[PAGE]
    text = docs.LINK.sub(lambda link: f"]({site}{docs.page_url(_target(link[1]))}{link[2] or ''})", page.text)
    text = text.replace("https://eval.example.org", site).rstrip()
    return f"{text}\n\n## Methods of the client\n\n{_methods()}\n\n## Addresses of REST\n\nBelow `{site}/api/v1/`:\n\n{_resources()}\n"


def _target(link: str) -> str:
    return docs.resolve_link_to_page_name(PAGE, link)


def _methods() -> str:
    """Return the methods by their class, without what the page of the client says of each."""
    classes = docs.read_pages()["reference/python-client"].text.split("\n## ")[1:]
    # What a token for drafts may not do is left out, and what an agent seldom needs.
    lines = [
        f"- `{text.partition(NEWLINE)[0]}`: {', '.join(one for one in METHOD.findall(text) if one.partition('(')[0].strip('`') not in LEFT_OUT)}"
        for text in classes
    ]
    return "\n".join([*lines, "", "`help(heval_client.Study)` explains them."])


def _resources() -> str:
    lines = []
    for pattern in urlpatterns:
        if (pattern.name or "").removeprefix("api-") in RESOURCES:
            address = re.sub(r"<\w+:(\w+)>", r"<\1>", str(pattern.pattern))
            lines += [
                f"- {method} `{address}`: {says}" for method, says in pattern.callback.view_class.summaries.items()
            ]
    return "\n".join(lines)


def _plain(text: str, kind: str) -> HttpResponse:
    return HttpResponse(
        text, content_type=f"text/{kind}; charset=utf-8", headers={"Cache-Control": "public, max-age=300"}
    )


@require_safe
def llms_text(request) -> HttpResponse:
    """Say in one page, as plain text, how a program or a coding agent runs a study here, and what a person decides."""
    return _plain(text_for_agents(settings.SITE_URL), "plain")


@require_safe
def skill(request) -> HttpResponse:
    """The same page as a skill for coding agents, with the header that they expect."""
    return _plain(SKILL_HEADER + text_for_agents(settings.SITE_URL), "markdown")
