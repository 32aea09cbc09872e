"""The annotator's pages as they will be, for the researcher. They are the real ones; the transaction that made them is undone."""

import re
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from django.db import transaction
from django.db.models.functions import Now
from django.http import HttpResponse

from annotators.models import Assignment, Recruitment
from annotators.pages.record import standing_of
from annotators.pages.sequence import Step, media_names, page_words, way_of
from annotators.places.assign import annotator_of
from annotators.places.tries import POOL, make_test
from annotators.views import door, ends, pages, replies
from studies.models import TEST_NUMBERS, Arm, Study
from studies.protocols import REGISTRY
from studies.services.lifecycle import NotNow

SEED = 20_230_707  # the same orders each time a page is looked at
BEFORE, AFTER = ("landing",), ("done", "consent", "withdraw")
NAMES = {
    "landing": "Landing page",
    "start": "Instructions",
    "done": "The end",
    "consent": "Consent, to read again",
    "withdraw": "Withdrawal",
}
FEW = 3  # questions that a page's name tells


@dataclass(frozen=True, slots=True)
class Previewed:
    """One page as HTML, all pages in order, by key and by name, and the stored names of the images by their opaque ones."""

    html: str
    keys: tuple[str, ...]
    key: str
    media: dict[str, str]
    names: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def _undone():
    """A transaction of which nothing stays."""
    with transaction.atomic():
        point = transaction.savepoint()
        try:
            yield
        finally:
            transaction.savepoint_rollback(point)


def _assignment(study: Study, arm: Arm | None) -> Assignment:
    if study.state == Study.State.DRAFT:
        return make_test(study, arm, seed=SEED)
    batches = study.batches.filter(number__lt=TEST_NUMBERS)
    batch = (batches.filter(arm=arm) if arm else batches).order_by("number").first()
    if batch is None:
        raise NotNow("No batch is drawn for this arm: choose another arm.")
    return Assignment.objects.create(
        study=study,
        batch=batch,
        annotator=annotator_of(POOL, ""),
        origin=Assignment.Origin.TEST,
        seed=SEED,
        design=study.designs.order_by("version").last(),
        started_at=Now(),
    )


def preview(request, study: Study, key: str, arm: Arm | None = None) -> Previewed:
    """Render one page of the study. Raises NotNow where the design cannot be shown yet, KeyError for a page there is not."""
    with _undone():
        assignment = _assignment(study, arm)
        assignment = Assignment.objects.select_related("study", "recruitment").get(pk=assignment.pk)
        standing = standing_of(assignment)
        keys = (*BEFORE, *standing.steps, *AFTER)
        key = key or keys[0]
        makers: dict[str, Callable[[], HttpResponse]] = {
            "landing": lambda: _landing(request, study),
            "consent": lambda: ends.consent(request, assignment.code),
            "withdraw": lambda: ends.withdraw(request, assignment.code),
            "done": lambda: _done(request, assignment),
        }
        if key not in makers:
            step = standing.steps[key]
            makers[key] = lambda: pages.page_response(request, standing, step, None)
        response = makers[key]()
        names = NAMES | {each: _name(assignment, step) for each, step in standing.steps.items() if each not in NAMES}
        return Previewed(response.content.decode(), keys, key, media_names(assignment) | {"": assignment.code}, names)


def _name(assignment: Assignment, step: Step) -> str:
    """A page as whoever made the study knows it: the section by its place there, and what is asked by its names in the data."""
    page = step.page
    planned = way_of(assignment).laid[page.section.position - 1].planned
    section = f"{planned.position}. {re.split(r':| of | [(]', REGISTRY[planned.protocol].label)[0]}"
    _, _, rest = page.key.partition(".")
    name = f"{section}, {page_words(rest)}" if rest else section
    keys = [question.key for question in page.questions]
    return f"{name}: {', '.join(keys)}" if 0 < len(keys) <= FEW else name


def _landing(request, study: Study) -> HttpResponse:
    recruitment = study.recruitments.order_by("pk").first() or Recruitment(
        study=study, channel="open_link", pool="open_link"
    )
    return door.landing(request, recruitment, replies.public_wording(study))


def _done(request, assignment: Assignment) -> HttpResponse:
    Assignment.objects.filter(pk=assignment.pk).update(submitted_at=Now())
    return ends.done(request, assignment.code)


_ADDRESS = r'(?P<attribute>href|action|formaction)="/p/{code}/(?P<rest>[^"]*)"'
_IMAGE = r"/p/{code}/m/(?P<name>[0-9A-Za-z_-]+)"


def inert(
    page: Previewed, address: Callable[[str], str], image: Callable[[str], str], bar: str, head: str, token: str
) -> str:
    """The page's HTML with its links among the previewed pages, its images by the researcher's address, and a bar on top.

    Annotators' forms need no token against forged requests, for they carry no cookie; the admin's do.
    """
    code = re.escape(page.media[""])
    html = re.sub(_IMAGE.format(code=code), lambda found: image(page.media.get(found["name"], "")), page.html)
    place = page.keys.index(page.key)
    following = page.keys[place + 1] if place + 1 < len(page.keys) else page.key

    def linked(found: re.Match) -> str:
        key = found["rest"].split("?")[0].strip("/")
        target = key if found["attribute"] == "href" and key in page.keys else following
        if found["attribute"] == "href" and key not in page.keys:
            target = page.key
        return f'{found["attribute"]}="{address(target)}"'

    html = re.sub(_ADDRESS.format(code=code), linked, html)
    # A form without an address sends to its own page: the landing's.
    html = re.sub(
        r"<form([^>]*)>", lambda f: f[0] if "action=" in f[1] else f'<form{f[1]} action="{address(following)}">', html
    )
    token = f'<input type="hidden" name="csrfmiddlewaretoken" value="{token}">'
    # Not for a form that leads back to a panel.
    html = re.sub(r'<form(?=[^>]* method="post")[^>]* action="/(?!/)[^>]*>', lambda found: found[0] + token, html)
    # The page's script would save drafts and count seconds of an assignment that is not there.
    html = re.sub(r"<script[^>]*></script>", "", html).replace(page.media[""], "preview")
    html = html.replace("</head>", f"{head}</head>", 1)
    return re.sub(r"(<body[^>]*>)", lambda found: found[1] + bar, html, count=1)
