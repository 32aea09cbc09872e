"""Whether what was typed is stored, or shown again by the page that comes back."""

from html.parser import HTMLParser

from annotators.models import Assignment, PageVisit, Response
from annotators.pages.form_data import CONTROL_NAMES, SKIP_SUFFIX
from annotators.pages.presentation import responses_as_form_data
from annotators.pages.record import full_page_state
from annotators.pages.sequence import restore_shown_page

WORDS = "What I wrote, with “quotes”, <b>marks</b> & a line\nbelow."


class Shown(HTMLParser):
    """What a person can read or correct on a page: filled fields, listed answers, and the reason."""

    def __init__(self, html: str):
        super().__init__()
        self.fields: set[tuple[str, str]] = set()
        self.listed: list[str] = []
        self.reasons: list[str] = []
        self.again: set[tuple[str, str]] = set()
        self._into: list[str] | None = None
        self._name = self._select = self._tag = ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        a = dict(attrs)
        name, value = a.get("name") or "", a.get("value") or ""
        if "disabled" in a:
            name = ""  # what is stored, and not what was sent
        if tag == "input" and a.get("type") == "hidden":
            (self.fields if name.endswith(".words") else self.again).add((name, value))
        elif tag == "input" and (a.get("type") not in ("radio", "checkbox") or "checked" in a):
            self.fields.add((name, value))
        elif tag == "select":
            self._select = name
        elif tag == "option" and "selected" in a:
            self.fields.add((self._select, value))
        elif tag in ("textarea", "dd", "li", "p", "h1", "h2"):
            self._into, self._tag, self._name = [], tag, name
            self._is_reason = a.get("id") == "refused" or "wrong" in (a.get("class") or "")

    def handle_data(self, data):
        if self._into is not None:
            self._into.append(data)

    def handle_endtag(self, tag):
        if self._into is None or tag != self._tag:
            return
        words = "".join(self._into)
        if tag == "textarea":
            self.fields.add((self._name, words.removeprefix("\n")))
        elif tag in ("dd", "li"):
            self.listed.append(plain(words))
        elif self._is_reason and words.strip():
            self.reasons.append(plain(words))
        self._into = None


def plain(words: str) -> str:
    return " ".join(words.replace("\x00", "").split())


def typed_in(data: dict) -> set[tuple[str, str]]:
    """What a person typed or chose."""
    pairs = (
        (name, value) for name, values in data.items() for value in (values if isinstance(values, list) else [values])
    )
    return {
        (name, value) for name, value in pairs if name not in CONTROL_NAMES and isinstance(value, str) and value.strip()
    }


def labels_in(asks) -> dict[tuple[str, str], str]:
    """The words beside each thing that may be chosen, by the name and the value of its input."""
    found = {}
    for slot, ask in asks.items():
        for options in ("options", "points"):
            for option in getattr(ask.field, options, ()):
                found[slot, option.key] = option.label
        if option := getattr(ask.field, "option", None):
            found[slot, "1"] = option.label or "Yes"
        if getattr(ask.field, "tie", ""):
            found[slot, "tie"] = ask.field.tie
        for name, words in ask.skip_reasons:
            found[slot + SKIP_SUFFIX, name] = words
        if book := getattr(ask.field, "codebook", None):
            found |= {(f"{slot}.category", one.key): one.label for one in book.category_options}
            found |= {(f"{slot}.severity", one.key): one.label for one in book.severity_options}
            found[f"{slot}.where", "0"] = "in no sentence"
    return found


def asks_of(assignment: Assignment, key: str):
    standing = full_page_state(assignment)
    step, visit = standing.steps.get(key), standing.visits.get(key)
    if step is None:
        return {}, None
    page = restore_shown_page(step.page, visit.shown) if visit else step.page
    return step.protocol.page_fields(page), page


def is_stored(assignment: Assignment, key: str, typed: set) -> bool:
    """Whether all of it is in the database, as a draft or as answers."""
    visit = PageVisit.objects.filter(assignment=assignment, key=key).first()
    if visit is None:
        return False
    kept = visit.draft or {}
    if all(plain(value) in map(plain, kept.get(name, ())) for name, value in typed):
        return True
    asks, page = asks_of(assignment, key)
    texts = responses_as_form_data(asks, page, Response.objects.filter(assignment=assignment, slot__in=list(asks)))
    return visit.recorded_at is not None and all(plain(texts.get(name, "")) == plain(value) for name, value in typed)


def not_shown(response, asks, typed: set) -> set:
    """What of it the page that came back does not show."""
    shown, labels = Shown(response.content.decode()), labels_in(asks)
    fields = {(name, plain(value)) for name, value in shown.fields}

    def is_there(name, value):
        words = plain(value)
        label = plain(labels.get((name, value), words))
        return (name, words) in fields or bool({words, label, f"{words} ({label})"} & set(shown.listed))

    assert response.status_code < 400 or shown.reasons, response.content.decode()
    return {one for one in typed if not is_there(*one)}


def assert_kept(response, assignment: Assignment, key: str, data: dict, where) -> str:
    """Stored, or shown with the reason. Says which."""
    typed = typed_in(data)
    fresh = Assignment.objects.get(pk=assignment.pk)
    # A saved draft is answered with the line of the place, which is no page.
    is_saved = response.status_code == 200 and b"<html" not in response.content
    if response.status_code == 302 or is_saved:
        assert not typed or is_stored(fresh, key, typed), (where, response.status_code, typed)
        return "stored"
    assert response.status_code in (404, 409, 422, 500, 503), (where, response.status_code)
    asks, _ = asks_of(fresh, key) if fresh.batch_id else ({}, None)
    lacking = not_shown(response, asks, typed)
    assert not lacking, (where, response.status_code, lacking, response.content.decode())
    return "shown"


# Where no page can be drawn


def raw_missing(response, data: dict) -> set:
    """What a page that knows no questions does not list."""
    listed = set(Shown(response.content.decode()).listed)
    return {value for _, value in typed_in(data) if plain(value) not in listed}
