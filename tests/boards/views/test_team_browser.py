"""A team submits in a browser: without a script, without a cookie, on a wide and on a narrow screen."""

import pytest

from boards.services import snapshots
from tests.boards import builders
from tests.browsing import look_at, press, shot


@pytest.mark.browser
def test_a_team_submits_in_a_browser(live_server, browser):
    board = builders.open_board()
    team, key = builders.team_of(board)
    builders.submit(board, team, "A first system with a long name that needs more than one line", is_anonymous=True)
    builders.play_round(board, {"human": 1.5, "A first system with a long name that needs more than one line": 0.0})
    snapshots.take_snapshot(board, board.owner)
    context = browser.new_context()
    page = context.new_page()
    wrong: list[str] = []
    page.goto(f"{live_server.url}/boards/{board.slug}/team/{key}/")
    look_at(page, "team", wrong)
    shot(page, "team")
    page.get_by_label("Name of the system").fill("second")
    page.get_by_label("Description").fill("It is better.")
    rows = builders.outputs_file(board, "x", p000=None, p001=" ", unknown="?")
    page.set_input_files("#file", {"name": "a.jsonl", "mimeType": "application/json", "buffer": rows})
    press(page, page.get_by_role("button", name="Submit"))
    assert page.get_by_label("Name of the system").input_value() == "second"
    look_at(page, "problems", wrong)
    shot(page, "team-problems")
    good = builders.outputs_file(board, "x")
    page.set_input_files("#file", {"name": "a.jsonl", "mimeType": "application/json", "buffer": good})
    press(page, page.get_by_role("button", name="Submit"))
    assert page.get_by_text("Waits for the next round").is_visible()
    press(page, page.get_by_role("link", name="Withdraw…").first)
    look_at(page, "withdraw", wrong)
    shot(page, "team-withdraw")
    press(page, page.get_by_role("button", name="Withdraw it"))
    assert page.get_by_text("Withdrawn on").is_visible()
    page.goto(f"{live_server.url}/boards/{board.slug}/team/{key}x/")
    look_at(page, "no key", wrong)
    shot(page, "team-no-key")
    assert context.cookies() == []
    context.close()
    assert not wrong, "\n".join(wrong)
