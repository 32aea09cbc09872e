"""The question as XML: the address of the study, or a link to it with a field for the code."""

from html import escape
from urllib.parse import urlsplit
from xml.etree import ElementTree

SCHEMAS = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/"
EXTERNAL = f"{SCHEMAS}2006-07-14/ExternalQuestion.xsd"
HTML = f"{SCHEMAS}2011-11-11/HTMLQuestion.xsd"
MOST_BYTES = 65_535
# Drawn by the worker's browser on the panel's own host, so a script is the only way to its parameters: without one the code alone
# is sent, and the person types nothing else.
SURVEY_LINK_HTML = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Study</title></head><body>
<form method="post" action="{submit}">
<input type="hidden" name="assignmentId" id="assignment" value="">
<p><a id="study" href="{url}" target="_blank" rel="noopener">Open the study</a> (opens beside this page). Come back with the code that its
last page shows.</p>
<p><label for="receipt">Your code</label> <input id="receipt" name="receipt" required></p>
<p><button>Submit the task</button></p>
</form>
<script>
const sent = new URLSearchParams(location.search);
document.getElementById("assignment").value = sent.get("assignmentId") || "";
document.getElementById("study").search = location.search;
</script>
</body></html>
"""


def question_xml(url: str) -> str:
    """An ExternalQuestion that frames ``url`` in the whole window. The panel adds its own parameters to the address.

    Raises ValueError where the address is not https or the question is longer than the service takes.
    """
    return _build_xml("ExternalQuestion", EXTERNAL, {"ExternalURL": _require_https(url), "FrameHeight": "0"})


def survey_link_xml(url: str, submit_url: str) -> str:
    """An HTMLQuestion with a link to ``url`` and a field for the code, for a study that opens beside the task."""
    page = " ".join(SURVEY_LINK_HTML.format(url=escape(_require_https(url)), submit=escape(submit_url)).split())
    return _build_xml("HTMLQuestion", HTML, {"HTMLContent": page, "FrameHeight": "0"})


def _require_https(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname:
        raise ValueError(f"A panel frames https addresses alone, not {url!r}.")
    return url


def _build_xml(name: str, namespace: str, elements: dict[str, str]) -> str:
    root = ElementTree.Element(name, xmlns=namespace)
    for tag, text in elements.items():
        ElementTree.SubElement(root, tag).text = text
    # On one line: it is copied from a field that has no second one.
    words = '<?xml version="1.0" encoding="UTF-8"?>' + ElementTree.tostring(root, encoding="unicode")
    if len(words.encode()) > MOST_BYTES:
        raise ValueError(f"The question has more than the {MOST_BYTES:,} bytes that the service takes.")
    return words
