"""SONA's service: grant credit from server to server, so that it does not depend on a person's last click."""

from typing import Any
from urllib.parse import urlencode
from xml.parsers import expat

from annotators.recruitment.panels import PanelService, RequestRefused, ResultUnclear
from annotators.recruitment.panels.http_client import PanelHttpClient

PATH = "/services/SonaAPI.svc/WebstudyCredit"
GRANTED_STATUS = "G"


def grant_credit(
    site: str, experiment_id: str, credit_token: str, survey_code: str, *, origin: str = ""
) -> dict[str, Any]:
    """Grant the credit of one sign-up.

    ``origin``: a stand-in on this machine.
    Only a ``Result`` whose ``credit_status`` is G means granted. Errors come with HTTP 200 too. Raises RequestRefused with
    SONA's message, ResultUnclear if the answer is unclear, PanelBusy if nothing was sent.
    """
    wire = PanelHttpClient(origin or f"https://{site}", (".sona-systems.com",), secret=credit_token)
    query = {"experiment_id": experiment_id, "credit_token": credit_token, "survey_code": survey_code}
    # SONA accepts only GET for this, although it changes something.
    texts = parse_xml_texts(wire.send_order("GET", f"{PATH}?{urlencode(query)}", accepts="application/xml"))
    if (
        "Result" in texts
        and texts.get("credit_status", "").strip() == GRANTED_STATUS
        and not texts.get("Errors", "").strip()
    ):
        return {"credit_status": GRANTED_STATUS}
    if message := " ".join(texts.get("Errors", "").split()):
        raise RequestRefused(message.replace(credit_token, "…")[:500])
    if status := texts.get("credit_status", "").strip():
        raise RequestRefused(f"SONA shows the credit as “{status[:20]}”, not as granted. Look at the sign-up at SONA.")
    raise ResultUnclear("SONA's answer contains neither a result nor an error. Look at the sign-up at SONA.")


def parse_xml_texts(raw: bytes) -> dict[str, str]:
    """Return the text below each element of an answer, by name without namespace. Nil elements are left out."""
    texts: dict[str, str] = {}
    open_elements: list[str] = []

    def begin(tag, attributes):
        is_nil = any(name.rpartition(" ")[2] == "nil" and value in ("true", "1") for name, value in attributes.items())
        open_elements.append("" if is_nil else tag.rpartition(" ")[2])
        if open_elements[-1]:
            texts.setdefault(open_elements[-1], "")

    def words(text):
        for name in {name for name in open_elements if name}:
            texts[name] += text

    def refuse(*declared):
        raise ResultUnclear("SONA's answer declares a document type, which it should not. Look at the sign-up at SONA.")

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler, parser.CharacterDataHandler = begin, words
    parser.EndElementHandler = lambda tag: open_elements.pop()
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(raw, True)
    except expat.ExpatError:
        raise ResultUnclear("SONA's answer is not XML. Look at the sign-up at SONA.") from None
    return texts


class SonaService(PanelService):
    """Approve by granting credit. SONA has no list, so all known states come from SONA's answers to orders."""

    operations = frozenset({"approve"})

    def __init__(self, site: str, experiment_id: str, credit_token: str, origin: str = ""):
        self.site, self.experiment_id, self.origin = site, experiment_id, origin
        self._credit_token = credit_token

    def submissions(self, task):
        raise RequestRefused("SONA does not show its sign-ups to other programs. Read them at SONA.")

    def submission(self, submission):
        return None

    def approve(self, values, token):
        return grant_credit(self.site, self.experiment_id, self._credit_token, values["submission"], origin=self.origin)

    def find_order_result(self, order):
        """Credit is a state of the sign-up, not a sum, so granting it twice changes nothing."""
        return None if order.operation in self.operations else super().find_order_result(order)
