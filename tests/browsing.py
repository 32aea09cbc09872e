"""What a person does in Chromium that takes more than one of Playwright's steps."""


def press(page, button):
    """Press a button and wait for the page that it leads to: after a bare click the old one is, now and then, still there."""
    with page.expect_navigation():
        button.click()


def appears(what, milliseconds: int) -> bool:
    """Whether it is there within so long."""
    from playwright.sync_api import TimeoutError

    try:
        what.wait_for(timeout=milliseconds)
    except TimeoutError:
        return False
    return True
