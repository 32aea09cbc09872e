"""What tests of annotators' pages in a browser share."""

import pytest


@pytest.fixture
def visit(browser, live_server, study):
    """Make a visit with the context's options; all contexts close in the end."""
    from tests.browsing import DESKTOP

    from .test_pages_browser import Visit

    contexts = []

    def make(person="anna", **options):
        contexts.append(browser.new_context(**{"viewport": DESKTOP} | options))
        return Visit(contexts[-1], live_server.url, study, person)

    yield make
    for context in contexts:
        context.close()
