"""What tests of annotators' pages in a browser share."""

import pytest

from studies.models import Output, Prompt
from tests.browsing import DESKTOP, STORY
from tests.builders import launched, spa_draft

from .visit import Visit


@pytest.fixture
def study():
    draft = spa_draft(
        systems=("alpha", "beta", "gamma", "delta", "epsilon"),
        m=4,
        prompts=8,
        content_warning="Some stories speak of wolves.",
        institution="University of Tests",
        retention="Kept for ten years.",
    )
    for n, output in enumerate(Output.objects.filter(system__study=draft).order_by("pk")):
        Output.objects.filter(pk=output.pk).update(text=STORY[: 200 + 97 * (n % 5)] + "\n\nThe end.")
    Prompt.objects.filter(study=draft).update(
        text="You wake on a train that has stopped in the dark, and nobody knows why."
    )
    return launched(draft)


@pytest.fixture
def visit(browser, live_server, study):
    """Make a visit with the context's options; all contexts close in the end."""
    contexts = []

    def make(person="anna", **options):
        contexts.append(browser.new_context(**{"viewport": DESKTOP} | options))
        return Visit(contexts[-1], live_server.url, study, person)

    yield make
    for context in contexts:
        context.close()
