"""What annotators' pages say and hold, read as HTML. How they look and work is seen in test_pages_browser."""

import os
import re
from html.parser import HTMLParser

import pytest
from django.template import engines
from django.template.loader import render_to_string
from jinja2 import meta

from annotators.models import Assignment, PageVisit, Response
from annotators.pages import drawing
from annotators.pages.show import ShownField, ShownOutput
from annotators.recruitment.channels import Return
from studies.models import Output, Prompt
from studies.protocols.base.fields import Choice, ExposureChoice, Field, Option, Scale, Text, Tick, WholeNumber
from tests import ROOT
from tests.builders import COMMENT, add_spa, add_survey, draft_study, launched, panel, recruitment, spa_draft, spa_study
from tests.players import claimed, submitted

TEMPLATES = sorted([*ROOT.glob("templates/annotate/**/*.html"), *ROOT.glob("templates/protocols/**/*.html")])


class Elements(HTMLParser):
    """Start tags with their attributes, and all the words."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.words = [], ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words += data

    def named(self, name):
        return [attrs for _, attrs in self.tags if attrs.get("name") == name]

    def of(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


def seen(response) -> Elements:
    return Elements(response.content.decode())


def at(assignment: Assignment, key: str = "") -> str:
    return f"/p/{assignment.code}/{key}/" if key else f"/p/{assignment.code}/"


def shown(field, **more) -> ShownField:
    return ShownField(
        **{"slot": "s1.q1", "field": field, "text": "How good?", "help": "", "label": "", "position": 1} | more
    )


def drawn(field: ShownField) -> Elements:
    return Elements(render_to_string("annotate/_fields.html", {"fields": (field,)}))


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


def test_style_and_script_are_small():
    sizes = {path.name: path.stat().st_size for path in ROOT.glob("static/*") if path.suffix in (".css", ".js")}
    assert sizes["annotate.js"] < 8 * 1024 and sizes["answers.js"] < 8 * 1024 and sizes["place.js"] < 4 * 1024
    assert sizes["heval.css"] + sizes["annotate.js"] < 30 * 1024


# Fields


def test_a_number_is_typed_as_text_and_has_no_value_of_its_own():
    page = drawn(shown(WholeNumber(True, 0, 100, unit="%", has_range=True)))
    (field,) = page.named("s1.q1")
    assert (field["type"], field["inputmode"], field["value"]) == ("text", "numeric", "")
    assert (field["data-min"], field["data-max"]) == ("0", "100")
    assert "data-has-range" in field
    # The slider comes with the script; without it there is none that could pretend a position.
    assert not [attrs for attrs in page.of("input") if attrs.get("type") == "range"]


def test_a_scale_is_native_radios_with_the_question_as_legend_and_none_is_chosen():
    points = tuple(Option(str(n), {1: "worst", 5: "best"}.get(n, "")) for n in range(1, 6))
    page = drawn(shown(Scale(True, points=points)))
    assert [attrs["value"] for attrs in page.named("s1.q1")] == ["1", "2", "3", "4", "5"]
    assert not [attrs for attrs in page.named("s1.q1") if "checked" in attrs]
    assert page.of("legend") and page.of("fieldset")[0]["role"] == "radiogroup"
    assert "worst" in page.words and "best" in page.words


@pytest.mark.parametrize(
    ("field", "value", "chosen"),
    [
        (Scale(True, points=(Option("1", ""), Option("2", ""))), "2", ["2"]),
        (Choice(True, options=(Option("yes", "Yes"), Option("no", "No"))), "no", ["no"]),
        (ExposureChoice(True, exposures=(("A", 4), ("B", 9))), "B", ["B"]),
        (Tick(True, option=Option("1", "I agree")), "1", ["1"]),
    ],
    ids=lambda value: getattr(value, "kind", None),
)
def test_an_answer_is_shown_as_given_and_locked_when_recorded(field, value, chosen):
    open_page = drawn(shown(field, value=value))
    assert [attrs["value"] for attrs in open_page.named("s1.q1") if "checked" in attrs] == chosen
    assert not [attrs for attrs in open_page.named("s1.q1") if "disabled" in attrs]
    locked = drawn(shown(field, value=value, is_locked=True))
    assert all("disabled" in attrs for attrs in locked.named("s1.q1"))
    assert [attrs["value"] for attrs in locked.named("s1.q1") if "checked" in attrs] == chosen


def test_the_exposure_behind_a_label_is_not_on_the_page():
    html = render_to_string(
        "annotate/_fields.html", {"fields": (shown(ExposureChoice(True, exposures=(("A", 481), ("B", 977)))),)}
    )
    assert "481" not in html and "977" not in html


def test_words_are_kept_with_their_markup_shown_as_text():
    html = render_to_string(
        "annotate/_fields.html", {"fields": (shown(Text(True, maximum_length=300), value="\n</textarea><b>me"),)}
    )
    # HTML swallows one line break after the tag: the one of the template, not the annotator's.
    assert ">\n\n&lt;/textarea&gt;&lt;b&gt;me</textarea>" in html
    assert 'maxlength="300"' in html


def test_a_refused_field_says_so_where_it_stands_and_to_a_screen_reader():
    for field in (WholeNumber(), Text()):
        (attrs,) = drawn(shown(field, error="Please answer.")).named("s1.q1")
        assert attrs["aria-invalid"] == "true"
        assert "s1-q1-e" in attrs["aria-describedby"].split()
    page = drawn(shown(Scale(True, points=(Option("1", ""), Option("2", ""))), error="Please answer."))
    assert page.of("fieldset")[0]["aria-invalid"] == "true"
    assert page.of("fieldset")[0]["aria-describedby"] == "s1-q1-e"
    assert [attrs for attrs in page.of("p") if attrs.get("id") == "s1-q1-e"]


def test_reasons_not_to_answer_are_offered_and_radios_can_be_taken_back():
    points = (Option("1", ""), Option("2", ""))
    page = drawn(
        shown(Scale(True, points=points), skip_reasons=(("unreadable", "It is unreadable"),), skip_value="unreadable")
    )
    assert page.named("s1.q1.skip")
    assert [attrs["value"] for attrs in page.of("option") if "selected" in attrs] == ["unreadable"]
    assert [attrs["value"] for attrs in page.named("s1.q1")] == ["1", "2", ""]
    optional = drawn(shown(Scale(False, points=points)))
    assert [attrs["value"] for attrs in optional.named("s1.q1")] == ["1", "2", ""]
    assert [attrs["value"] for attrs in drawn(shown(Scale(True, points=points))).named("s1.q1")] == ["1", "2"]


def test_the_boxes_of_one_question_stand_under_one_legend():
    boxes = tuple(
        shown(Tick(False, option=Option(key, key)), slot=f"s1.q1.o{n}", value="1" if n == 2 else "")
        for n, key in enumerate("ab", 1)
    )
    page = Elements(render_to_string("annotate/_fields.html", {"fields": boxes}))
    assert len(page.of("legend")) == 1
    assert ["checked" in page.named(f"s1.q1.o{n}")[0] for n in (1, 2)] == [False, True]


SCALE = Scale(True, points=(Option("1", "worst"), Option("2", "best")))
BLANK = {
    "scale": SCALE,
    "optional scale": Scale(False, points=SCALE.points),
    "choice": Choice(True, options=(Option("yes", "Yes"), Option("no", "No"))),
    "number": WholeNumber(True, 0, 100, low="never", unit="%", has_range=True),
    "tick": Tick(True, option=Option("1", "I agree")),
    "long text": Text(False, maximum_length=300),
    "short text": Text(True, is_long=False),
}


@pytest.mark.parametrize("nth", ["", "2 of 3"])
@pytest.mark.parametrize("more", [{}, {"help": "<p>Look <b>twice</b>.</p>"}, {"skip_reasons": (("odd", "It is odd"),)}])
@pytest.mark.parametrize("field", BLANK.values(), ids=BLANK)
def test_a_blank_field_is_drawn_as_one_with_an_answer_is(field, more, nth, monkeypatch):
    kept = [shown(field, slot=f"s1.q1.i{n}.{letter}", **more) for n, letter in ((1, "A"), (1, "B"), (23, "A"))]
    assert all(one.is_blank for one in kept)
    quick = [render_to_string("annotate/_fields.html", {"fields": (one,), "nth": nth}) for one in kept]
    monkeypatch.setattr(ShownField, "is_blank", False)
    assert quick == [render_to_string("annotate/_fields.html", {"fields": (one,), "nth": nth}) for one in kept]
    assert len(set(quick)) == 3 and all(one.slot in html for one, html in zip(kept, quick, strict=True))


@pytest.mark.parametrize(
    "typed", [{"value": "1"}, {"error": "Please choose."}, {"skip_value": "odd"}, {"values": {"a": ""}}]
)
def test_what_somebody_typed_makes_a_field_their_own(typed):
    assert not shown(SCALE, **typed).is_blank


def test_a_field_that_is_drawn_for_all_pages_reads_nothing_of_one():
    loaded = engines["jinja2"].env
    fields = set(Field.__subclasses__()) | {kind for one in Field.__subclasses__() for kind in one.__subclasses__()}
    alone = [kind for kind in fields if not (kind.is_of_page or kind.inputs)]
    assert len(alone) >= 5 and ExposureChoice not in alone
    for kind in alone:
        source = loaded.loader.get_source(loaded, kind().template)[0]
        assert meta.find_undeclared_variables(loaded.parse(source)) <= {"field", "nth"}, kind


# Outputs


def exposure(output: ShownOutput) -> str:
    return render_to_string("annotate/_exposure.html", {"output": output, "name": "Text A"})


def test_plain_text_keeps_its_lines_and_shows_its_markup():
    html = exposure(ShownOutput("plain", text="One\n\n  two <script>alert(1)</script> & three", language="ar"))
    assert ">One\n\n  two &lt;script&gt;alert(1)&lt;/script&gt; &amp; three</div>" in html
    assert 'dir="auto"' in html and 'lang="ar"' in html
    assert "white-space: pre-wrap" in re.search(r"\.words {[^}]*}", (ROOT / "static/heval.css").read_text()).group()


def test_an_empty_output_says_that_nothing_was_written():
    assert "Nothing was given here." in exposure(ShownOutput("empty"))


def test_an_image_is_described_and_leads_to_itself():
    page = Elements(exposure(ShownOutput("image", media="/p/c/m/x", alt="")))
    assert page.of("img")[0] == {"src": "/p/c/m/x", "alt": "Text A"}
    assert page.of("a")[0]["href"] == "/p/c/m/x"
    assert Elements(exposure(ShownOutput("image", media="/p/c/m/x", alt="A ball"))).of("img")[0]["alt"] == "A ball"


def test_outputs_are_shown_in_one_place_alone():
    users = [path.name for path in TEMPLATES if re.search(r"output\.(text|html|media|turns)", path.read_text())]
    assert users == ["_exposure.html"]


# Pages


@pytest.mark.django_db
def test_the_landing_page_says_what_a_person_must_know_before_they_start(client):
    study = spa_study(
        institution="University of Tests",
        approval_number="IRB 12",
        retention="Kept for ten years.",
        content_warning="Wolves.",
    )
    page = seen(client.get(f"/e/{recruitment(study).key}/"))
    for words in (
        "Reading short stories", "You read a few short stories", "about 12 minutes", "2.50 USD", "12.50 USD an hour", "University of Tests",
        "IRB 12", "Kept for ten years.", "research@example.org", "Wolves.", "You take part of your own free will.",
    ):  # fmt: skip
        assert words in page.words
    assert page.named("agree") and page.named("decline") and page.named("start")
    assert "checked" not in page.named("agree")[0]
    assert not Assignment.objects.exists()


@pytest.mark.django_db
def test_a_study_without_pay_says_so_and_one_without_consent_text_has_no_box(client):
    study = spa_study(reward="0", consent="")
    page = seen(client.get(f"/e/{recruitment(study).key}/"))
    assert "it is voluntary" in page.words and "an hour" not in page.words
    assert page.named("start") and not page.named("agree") and not page.named("decline")


@pytest.mark.django_db
def test_whoever_does_not_tick_the_box_is_told_and_the_panels_words_in_the_address_are_kept(client):
    address = f"/e/{panel(spa_study()).key}/?who=p%261&session=s"
    page = seen(client.get(address))
    assert page.of("form")[0]["action"] == "?who=p%261&session=s"
    refused = client.post(address, {"start": "1"})
    assert refused.status_code == 422
    page = seen(refused)
    # On top, and once more at the box: it may be screens below.
    assert page.words.count("Please tick the box") == 2
    assert page.named("agree")[0]["aria-describedby"] in {attrs.get("id") for _, attrs in page.tags}
    assert not Assignment.objects.exists()


@pytest.mark.django_db
def test_a_preview_and_a_broken_link_cannot_start(client):
    study = spa_study()
    preview = seen(client.get(f"/e/{recruitment(study, 'prolific').key}/", {"PROLIFIC_PID": "{{%PROLIFIC_PID%}}"}))
    assert "This is a preview" in preview.words and not preview.of("form")
    broken = seen(client.get(f"/e/{panel(study).key}/"))
    assert "The link is not complete" in broken.words and not broken.of("form")


@pytest.mark.django_db
def test_a_returning_person_continues(client):
    address = f"/e/{panel(spa_study()).key}/?who=anna"
    client.post(address, {"start": "1", "agree": "1"})
    page = seen(client.get(address))
    assert "Welcome back" in page.words and "Continue" in page.words
    assert not page.named("agree") and not page.named("decline")


@pytest.mark.django_db
def test_every_page_shows_where_one_is_how_much_is_left_and_who_can_help(client):
    assignment = claimed(spa_study(), is_consented=True)
    for key in ("s1", "start", "s2.read"):
        page = seen(client.get(at(assignment, key)))
        assert re.search(r"\d of 6, about \d+ minutes? left", page.words)
        assert page.of("progress")[0]["max"] == "6"
        links = [attrs.get("href") for attrs in page.of("a")]
        assert f"{at(assignment)}question/?page={key}" in links and f"{at(assignment)}withdraw/" in links
        assert f"{at(assignment)}consent/" in links
        assert "research@example.org" in page.words
        assert "Your place is kept for" in page.words
        client.post(at(assignment, key), {"go": "1", "s1.q1": "yes"} if key == "s1" else {"go": "1"})


@pytest.mark.django_db
def test_more_time_keeps_what_is_typed_and_gives_it(client):
    assignment = claimed(spa_study())
    client.get(at(assignment, "s1"))
    button = next(attrs for attrs in seen(client.get(at(assignment, "s1"))).of("button") if attrs.get("formaction"))
    assert "formnovalidate" in button and button["form"] == "answers"
    before = Assignment.objects.get().reserved_until
    client.post(button["formaction"], {"s1.q1": "yes"})
    assert Assignment.objects.get().reserved_until > before
    assert PageVisit.objects.get(key="s1").draft == {"s1.q1": ["yes"]}
    assert "checked" in seen(client.get(at(assignment, "s1"))).named("s1.q1")[0]


@pytest.mark.django_db
def test_what_is_missing_is_listed_on_top_with_links_and_the_rest_is_kept(client):
    assignment = submitted(spa_study(), until="s2.ask")
    fields = [
        attrs["name"] for attrs in seen(client.get(at(assignment, "s2.ask"))).of("input") if "data-has-range" in attrs
    ]
    answers = dict.fromkeys(fields, "40") | {fields[0]: "", fields[1]: "140", "go": "1"}
    refused = client.post(at(assignment, "s2.ask"), answers)
    assert refused.status_code == 422
    page = seen(refused)
    assert "2 answers are missing or not right" in page.words
    links = [attrs["href"] for attrs in page.of("a") if attrs.get("href", "").startswith("#s2")]
    assert links == ["#" + name.replace(".", "-") for name in fields[:2]]
    assert {link[1:] for link in links} <= {attrs.get("id") for _, attrs in page.tags}
    assert [page.named(name)[0]["value"] for name in fields] == ["", "140", "40", "40"]
    assert [page.named(name)[0].get("aria-invalid") for name in fields] == ["true", "true", None, None]


@pytest.mark.django_db
def test_the_chances_are_asked_one_by_one_and_nothing_is_filled_in_for_anybody(client):
    assignment = submitted(spa_study(), until="s2.ask")
    response = client.get(at(assignment, "s2.ask"))
    page = seen(response)
    assert page.words.count("what is the chance that writer") == 4
    assert all(attrs["value"] == "" for attrs in page.of("input") if "data-has-range" in attrs)
    assert response.content.decode().count("you are certain that the first named is the better one") == 1
    # The texts are at hand, one fold a prompt.
    assert len(page.of("details")) == 4 and "The tale number" in page.words
    assert "cannot be changed once they are sent" in page.words


@pytest.mark.django_db
def test_a_recorded_page_is_looked_at_and_a_different_resend_is_refused_with_what_is_stored(client):
    assignment = claimed(spa_study())
    client.get(at(assignment, "s1"))
    client.post(at(assignment, "s1"), {"s1.q1": "yes", "go": "1"})
    recorded = seen(client.get(at(assignment, "s1")))
    assert "are stored and cannot be changed" in recorded.words
    assert all("disabled" in attrs for attrs in recorded.named("s1.q1")) and not recorded.named("go")
    assert f"{at(assignment)}start/" in [attrs.get("href") for attrs in recorded.of("a")]
    again = client.post(at(assignment, "s1"), {"s1.q1": "no", "go": "1"})
    assert again.status_code == 409
    page = seen(again)
    assert "Other answers are stored" in page.words
    assert [attrs["value"] for attrs in page.named("s1.q1") if "checked" in attrs] == ["yes"]
    assert Response.objects.get(assignment=assignment).choice == "yes"


@pytest.mark.django_db
def test_the_layout_is_a_button_that_keeps_the_draft(client):
    assignment = submitted(spa_study(), until="s3.p1")
    page = seen(client.get(at(assignment, "s3.p1")))
    (button,) = page.named("layout")
    assert button["value"] == "one" and "formnovalidate" in button
    slot = next(attrs["name"] for attrs in page.of("input") if attrs.get("type") == "radio")
    client.post(at(assignment, "s3.p1"), {slot: "4", "layout": "one"})
    page = seen(client.get(at(assignment, "s3.p1")))
    assert "items one" in [attrs.get("class") for attrs in page.of("div")]
    assert [attrs["value"] for attrs in page.named(slot) if "checked" in attrs] == ["4"]
    assert page.named("layout")[0]["value"] == "side"


@pytest.mark.django_db
def test_one_at_a_time_each_prompt_leads_to_the_next_by_fragments(client):
    assignment = submitted(spa_study(), until="s2.read")
    page = seen(client.get(at(assignment, "s2.read")))
    links = [attrs["href"] for attrs in page.of("a") if attrs.get("href", "").startswith("#i")]
    ids = {attrs.get("id") for _, attrs in page.tags}
    assert {link[1:] for link in links} <= ids
    assert [link for link in links if "-" not in link] == ["#i2", "#i1", "#i3", "#i2", "#i4", "#i3"]
    assert [link for link in links if link.startswith("#i1-")] == ["#i1-A", "#i1-B", "#i1-C"]


@pytest.mark.django_db
def test_an_item_page_is_light_without_its_stimuli(client):
    study = spa_draft(systems=("alpha", "beta", "gamma", "delta", "epsilon"), m=5)
    for output in Output.objects.filter(system__study=study):
        Output.objects.filter(pk=output.pk).update(text="x")
    Prompt.objects.filter(study=study).update(text="y")
    assignment = submitted(launched(study), until="s2.read")
    for key in ("s2.read", "s2.ask", "s3.p1"):
        response = client.get(at(assignment, key))
        assert len(response.content) < 14 * 1024, key
        page = seen(response)
        own = [
            attrs.get("href") or attrs.get("src")
            for tag, attrs in page.tags
            if tag == "script" or attrs.get("rel") == "stylesheet"
        ]
        asks = ["/static/answers.js"] if key != "s2.read" else []
        assert own == ["/static/heval.css", "/static/annotate.js", *asks]
        # Without an icon of its own a browser asks for /favicon.ico, which is not there.
        assert [attrs["href"] for attrs in page.of("link") if attrs["rel"] == "icon"] == ["/static/icon.svg"]
        answers = {attrs["name"]: "50" for attrs in page.of("input") if "data-has-range" in attrs}
        answered = client.post(at(assignment, key), answers | {"go": "1"})
        assert answered.status_code == (422 if key == "s3.p1" else 302)
    # The same question is asked of every text: the list of what is missing says of which.
    listed = re.findall(r"Story ([A-Z]): ", seen(answered).words)
    assert listed == sorted(set(listed)) and len(listed) > 1


@pytest.mark.django_db
def test_what_researchers_and_systems_wrote_is_never_run(client):
    hostile = "<img src=x onerror=alert(1)>\"'</script>"
    words = dict.fromkeys(("public_title", "contact", "content_warning", "purpose", "instructions", "consent"), hostile)
    study = draft_study(**words)
    add_survey(study, position=1, questions=[COMMENT | {"text": hostile, "help": hostile}])
    add_spa(study, position=2)
    Output.objects.filter(system__study=study).update(text=hostile)
    Prompt.objects.filter(study=study).update(text=hostile)
    assignment = claimed(launched(study))
    pages = [client.get(f"/e/{recruitment(study).key}/")]
    for key in ("start", "s1", "s2.read"):
        pages.append(client.get(at(assignment, key)))
        client.post(at(assignment, key), {"go": "1"})
    pages += [client.get(at(assignment) + "consent/"), client.get(at(assignment) + "withdraw/")]
    for response in pages:
        assert response.status_code == 200
        assert not [attrs for _, attrs in seen(response).tags if "onerror" in attrs]
        assert "onerror=alert(1)" in seen(response).words


# The end


def ended(outcome, **more):
    context = {
        "study": {"public_title": "Reading", "contact": "", "retention": "", "language": "en", "withdrawal_blanks_ratings": False, "consent": ""},
        "outcome": outcome, "receipt": "AAAAA-BBBBB", "way_back": Return(code="AAAAA-BBBBB"), "debriefing": "", "is_late": False,
        "may_withdraw": False, "assignment_path": "/p/c/", "submitted_at": None, "more": None,
    }  # fmt: skip
    return Elements(render_to_string("annotate/done.html", context | more))


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        ("complete", "All your answers are stored."),
        ("withdrawn", "You have left the study"),
        ("screened_out", "You did nothing wrong."),
        ("failed_checks", "If you think that this is a mistake"),
        ("full", "No place was free"),
        ("closed", "It was closed before you had sent any answers"),
    ],
)
def test_each_end_has_honest_words_and_can_be_reopened(outcome, words):
    page = ended(outcome)
    assert words in page.words
    assert "You can reopen this page at any time." in page.words
    assert "AAAAA-BBBBB" in page.words


def test_the_way_back_is_a_link_or_a_form_and_the_code_can_be_copied():
    page = ended("complete")
    assert [attrs for attrs in page.of("button") if attrs.get("data-copies") == "code"]
    assert "hidden" in page.of("button")[0]  # it needs the script, which shows it
    link = ended("complete", way_back=Return(url="https://panel.example.org/done?cc=C1"))
    assert "https://panel.example.org/done?cc=C1" in [attrs.get("href") for attrs in link.of("a")]
    assert "AAAAA-BBBBB" in link.words
    posted = ended("complete", way_back=Return(url="https://panel.example.org/x", fields={"a": '1"'}))
    assert posted.of("form")[0] == {"method": "post", "action": "https://panel.example.org/x"}
    assert posted.named("a")[0]["value"] == '1"'


def test_late_answers_are_told_truthfully_with_the_code():
    page = ended("complete", is_late=True)
    assert "somebody else had been given the place" in page.words and "marked as late" in page.words
    assert "AAAAA-BBBBB" in page.words
    assert "late" not in ended("complete").words


@pytest.mark.django_db
def test_leaving_says_first_what_becomes_of_everything(client):
    assignment = claimed(spa_study(withdrawal_blanks_ratings=True))
    page = seen(client.get(at(assignment) + "withdraw/"))
    assert "and all your ratings" in page.words and "You have not finished" in page.words
    assert Assignment.objects.get().withdrawn_at is None
    client.post(at(assignment) + "withdraw/", {"leave": "1"})
    done = seen(client.get(at(assignment) + "done/"))
    assert "Your ratings are deleted too" in done.words and "Leave the study" not in done.words


@pytest.mark.django_db
def test_a_question_that_could_not_be_sent_is_not_lost(client):
    assignment = claimed(spa_study())
    address = at(assignment) + "question/?page=s1"
    refused = client.post(address, {"kind": "report", "text": "w" * 2001})
    assert refused.status_code == 422
    assert "w" * 2001 in seen(refused).words
    assert [attrs["value"] for attrs in seen(refused).named("kind") if "checked" in attrs] == ["report"]
    sent = client.post(address, {"kind": "report", "text": "Text B is cut off."})
    assert "Sent" in seen(sent).words
    assert assignment.inquiries.get().page_key == "s1"


@pytest.mark.django_db
def test_what_was_agreed_to_can_be_read_again(client):
    address = f"/e/{panel(spa_study()).key}/?who=anna"
    client.post(address, {"start": "1", "agree": "1"})
    page = seen(client.get(at(Assignment.objects.get()) + "consent/"))
    assert "You agreed on" in page.words and "to version 1" in page.words
    assert "You take part of your own free will." in page.words


def test_what_is_included_by_name_stands_in_the_template_and_is_looked_at_again_when_it_changes(tmp_path):
    for name, text in {
        "page": '<p>{% include "annotate/_inner.html" %}</p>\n',
        "_inner": '{% include "annotate/_word.html" %}!\n',
    }.items():
        (tmp_path / "annotate").mkdir(exist_ok=True)
        (tmp_path / f"annotate/{name}.html").write_text(text)
    word = tmp_path / "annotate/_word.html"
    word.write_text("{{ word }}\n")
    made = drawing.environment(drawing.FileSystemLoader([tmp_path]), auto_reload=True)
    source, _, is_current = made.loader.get_source(made, "annotate/page.html")
    assert source == "<p>{{ word }}!</p>\n" and is_current()
    assert made.get_template("annotate/page.html").render(word="a < b") == "<p>a &lt; b!</p>"
    assert {name for _, name in made.cache} == {"annotate/page.html"}, "what is included was asked for while drawing"
    os.utime(word, (1, 1))
    assert not is_current()


def test_questions_that_begin_alike_can_be_told_apart_in_a_list():
    def brief(text):
        return ShownField(slot="s", field=WholeNumber(0, 100), text=text, help="", label="", position=1).brief

    words = "Based on what you have read, what is the chance that writer {} is a better writer than writer {}?"
    told = [brief(words.format(x, y)) for x, y in ("AB", "BA", "AC")]
    assert told[0] == "Based on what you … A is a better writer than writer B?"
    assert len(set(told)) == 3 and brief("How good is it?") == "How good is it?"
    # Writing without spaces between words is cut all the same.
    unspaced = brief("問" * 60 + "題" * 60)
    assert unspaced.startswith("問") and unspaced.endswith("題") and len(unspaced) < 70
