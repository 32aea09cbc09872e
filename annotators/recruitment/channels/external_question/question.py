"""The question as XML: the study's address, or a link to the study with a field for the code."""

from html import escape
from urllib.parse import urlsplit
from xml.etree import ElementTree

SCHEMAS = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/"
EXTERNAL = f"{SCHEMAS}2006-07-14/ExternalQuestion.xsd"
HTML = f"{SCHEMAS}2011-11-11/HTMLQuestion.xsd"
MOST_BYTES = 65_535
# The worker's browser renders this on the panel's host, so only a script can read the panel's parameters. Without a
# script only the code is sent, and the person types nothing else.
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


def external_question_xml(url: str) -> str:
    """Return an ExternalQuestion that frames ``url`` in the whole window.

    The panel adds its parameters to the address.
    Raises ValueError if the address is not https or the question is longer than the service accepts.
    """
    return _build_xml("ExternalQuestion", EXTERNAL, {"ExternalURL": _require_https(url), "FrameHeight": "0"})


def survey_link_xml(url: str, submit_url: str) -> str:
    """Return an HTMLQuestion with a link to ``url`` and a field for the code, for a study that opens beside the task."""
    page = " ".join(SURVEY_LINK_HTML.format(url=escape(_require_https(url)), submit=escape(submit_url)).split())
    return _build_xml("HTMLQuestion", HTML, {"HTMLContent": page, "FrameHeight": "0"})


def _require_https(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname:
        raise ValueError(f"A panel frames only https addresses, not {url!r}.")
    return url


def _build_xml(name: str, namespace: str, elements: dict[str, str]) -> str:
    root = ElementTree.Element(name, xmlns=namespace)
    for tag, text in elements.items():
        ElementTree.SubElement(root, tag).text = text
    # On one line, because the field it is copied from has one line.
    xml = '<?xml version="1.0" encoding="UTF-8"?>' + ElementTree.tostring(root, encoding="unicode")
    if len(xml.encode()) > MOST_BYTES:
        raise ValueError(f"The question is longer than the {MOST_BYTES:,} bytes that the service accepts.")
    return xml
