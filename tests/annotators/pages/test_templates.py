"""The templates of annotators' pages: what is in them, and how outputs are shown."""

import os
import re

import pytest
from django.template.loader import render_to_string

from annotators.pages import jinja
from annotators.pages.presentation import ShownField, ShownOutput
from studies.protocols.base.fields import WholeNumberField
from tests import ROOT
from tests.annotators.pages.elements import TEMPLATES, Elements

# The files themselves


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_nothing_is_inline_and_nothing_comes_from_elsewhere(template):
    text = template.read_text()
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:|<script(?![^>]*\ssrc=)", text)
    assert not re.search(r"(?:src|href)=\"(?:https?:)?//", text)


def test_no_name_invites_a_blocker():
    blocked = {
        "ad",
        "ads",
        "adv",
        "advert",
        "banner",
        "track",
        "tracker",
        "tracking",
        "analytics",
        "sponsor",
        "promo",
        "popup",
    }
    names = {path.stem for path in (*TEMPLATES, *ROOT.glob("static/*"))}
    for path in TEMPLATES:
        for value in re.findall(r"(?:class|id|name)=\"([^\"]*)\"", path.read_text()):
            names |= set(re.sub(r"{[{%].*?[%}]}", " ", value).split())
    names |= set(re.findall(r"[.#]([a-z][\w-]*)", (ROOT / "static/heval.css").read_text()))
    assert len(names) > 60
    assert not {name for name in names if blocked & set(re.split(r"[^a-z]+", name.lower()))}


# Outputs


def exposure(output: ShownOutput) -> str:
    return render_to_string("annotate/_exposure.html", {"output": output, "name": "Text A"})


def test_plain_text_keeps_its_lines_and_shows_its_markup():
    html = exposure(ShownOutput("plain", text="One\n\n  two <script>alert(1)</script> & three", language="ar"))
    assert ">One\n\n  two &lt;script&gt;alert(1)&lt;/script&gt; &amp; three</div>" in html
    assert 'dir="rtl"' in html and 'lang="ar"' in html
    assert 'dir="auto"' in exposure(ShownOutput("plain", text="One"))
    code = exposure(ShownOutput("code", text="if x:\n    return"))
    assert (
        'class="words coding" tabindex="0" role="group" aria-label="Text A" dir="ltr">if x:\n    return</div>' in code
    )
    assert "white-space: pre-wrap" in re.search(r"\.words {[^}]*}", (ROOT / "static/heval.css").read_text()).group()


def test_an_empty_output_says_that_nothing_was_written():
    assert "There is nothing here." in exposure(ShownOutput("empty"))


def test_an_image_is_described_and_leads_to_itself():
    page = Elements(exposure(ShownOutput("image", media="/p/c/m/x", alt="")))
    assert page.of("img")[0] == {"src": "/p/c/m/x", "alt": "Text A"}
    assert page.of("a")[0]["href"] == "/p/c/m/x"
    assert Elements(exposure(ShownOutput("image", media="/p/c/m/x", alt="A ball"))).of("img")[0]["alt"] == "A ball"


def test_outputs_are_shown_in_one_place_alone():
    users = [path.name for path in TEMPLATES if re.search(r"output\.(text|html|media|turns)", path.read_text())]
    assert users == ["_exposure.html"]


def test_what_is_included_by_name_is_in_the_template_and_is_read_again_when_it_changes(tmp_path):
    for name, text in {
        "page": '<p>{% include "annotate/_inner.html" %}</p>\n',
        "_inner": '{% include "annotate/_word.html" %}!\n',
    }.items():
        (tmp_path / "annotate").mkdir(exist_ok=True)
        (tmp_path / f"annotate/{name}.html").write_text(text)
    word = tmp_path / "annotate/_word.html"
    word.write_text("{{ word }}\n")
    made = jinja.environment(jinja.FileSystemLoader([tmp_path]), auto_reload=True)
    source, _, is_current = made.loader.get_source(made, "annotate/page.html")
    assert source == "<p>{{ word }}!</p>\n" and is_current()
    assert made.get_template("annotate/page.html").render(word="a < b") == "<p>a &lt; b!</p>"
    assert {name for _, name in made.cache} == {"annotate/page.html"}, "what is included was asked for while drawing"
    os.utime(word, (1, 1))
    assert not is_current()


def test_questions_that_begin_alike_can_be_distinguished_in_a_list():
    def brief(text):
        return ShownField(slot="s", field=WholeNumberField(0, 100), text=text, help="", label="", position=1).brief_text

    words = "Based on what you have read, what is the chance that writer {} is a better writer than writer {}?"
    told = [brief(words.format(x, y)) for x, y in ("AB", "BA", "AC")]
    assert told[0] == "Based on what you … A is a better writer than writer B?"
    assert len(set(told)) == 3 and brief("How good is it?") == "How good is it?"
    # Writing without spaces between words is cut all the same.
    unspaced = brief("問" * 60 + "題" * 60)
    assert unspaced.startswith("問") and unspaced.endswith("題") and len(unspaced) < 70
