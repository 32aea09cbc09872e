"""The walk by Tab finds what is wrong with a page, and nothing on one that is right."""

import pytest

from tests.keyboard import unreached

pytestmark = pytest.mark.browser
RIGHT = (
    "<a href='#one'>One</a> <form id=f><label><input type=radio name=r> a</label> <label><input type=radio name=r> b</label>"
    "<input type=date><input type=hidden name=h><select><option>x</select><button>Send</button><button disabled>Not yet</button></form>"
    "<details><summary>More</summary><a href='#two'>Two</a></details>"
)


@pytest.mark.parametrize(
    ("added", "said"),
    [
        ("", []),
        ("<span role=button>Press</span>", ["no key reaches <span role"]),
        ("<button tabindex=-1 role=button>Press</button>", ["no key reaches <button tab"]),
        ("<button style='outline: none'>Press</button>", ["nobody sees the focus on <button style"]),
        ("<div style='position: fixed; inset: 0'></div>", ["something lies over"] * 6),
        (
            "<input onkeydown='event.preventDefault()'><a href='#three'>Three</a>",
            ["no key reaches <a href", "Tab does not lead"],
        ),
    ],
)
def test_what_a_keyboard_does_not_reach_is_named(chromium_page, added, said):
    chromium_page.set_content(f"<main>{RIGHT}{added}</main>")
    found = unreached(chromium_page)
    assert len(found) == len(said) and all(one.startswith(words) for one, words in zip(found, said, strict=True)), found
