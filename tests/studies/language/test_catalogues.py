"""Catalogues of the words of annotators' pages: complete, up to date, and refused if a translation would break a page."""

import pytest

from studies.design.wording import JOINING_SENTENCE
from studies.language import PageLanguage, active_language, gettext, gettext_lazy, in_language, ngettext
from studies.language.catalogues import (
    CatalogueRefused,
    canonical_text,
    find_message_problems,
    header_field,
    message_count,
    missing_messages,
    po_text,
    read_catalogue,
    shipped_file,
    shipped_language_for,
    shipped_languages,
    shipped_page_language,
    shipped_text,
    stored_page_language,
    version_of,
)
from tests.pseudo_language import in_pseudo, pseudo_file, pseudo_page_language
from tools.messages import updated_files
from tools.reference.languages import HEADERS, languages_page

HEADER = 'msgid ""\nmsgstr ""\n"Language: de\\n"\n"Plural-Forms: nplurals=2; plural=(n != 1);\\n"\n\n'


def catalogue(*pairs):
    entries = (
        f'msgid "{one[0]}"\nmsgid_plural "{one[1]}"\nmsgstr[0] "{text[0]}"\nmsgstr[1] "{text[1]}"\n\n'
        if isinstance(one, tuple)
        else f'msgid "{one}"\nmsgstr "{text}"\n\n'
        for one, text in pairs
    )
    return read_catalogue(HEADER + "".join(entries))


def test_catalogues_have_the_messages_of_the_pages():
    stale = [str(path.name) for path, text in updated_files().items() if path.read_text() != text]
    assert stale == [], "Run python -m tools.messages, and translate what is new."


@pytest.mark.parametrize("language", shipped_languages())
def test_a_shipped_catalogue_is_whole_and_breaks_no_page(language):
    text = read_catalogue(shipped_file(language).read_text())
    assert [str(problem) for problem in find_message_problems(text)] == []
    assert missing_messages(text) == []
    assert [message.id for message in text if message.fuzzy and message.id] == []


@pytest.mark.parametrize("language", shipped_languages())
def test_a_shipped_catalogue_says_who_translated_and_who_has_read_it(language):
    text = shipped_file(language).read_text()
    assert header_field(text, "Language") == language
    assert all(header_field(text, name) for name in HEADERS), f"Write {' and '.join(HEADERS)} into the header."


def test_headers_stay_when_messages_are_collected_again(tmp_path, monkeypatch):
    monkeypatch.setattr("studies.language.catalogues.LOCALE", tmp_path)
    path = shipped_file("el")
    path.parent.mkdir(parents=True)
    headers = '"X-Translated-By: a language model\\n"\n"X-Read-By: Ada Lovelace\\n"\n'
    path.write_text(po_text(read_catalogue(pseudo_file()), headers))
    text = updated_files()[path]
    assert [header_field(text, name) for name in HEADERS] == ["a language model", "Ada Lovelace"]
    page = languages_page()
    assert f"| Greek | `el` | {message_count()} | a language model | Ada Lovelace |" in page


@pytest.mark.parametrize(
    ("message", "text", "said"),
    [
        ("Page %(n)s of %(all)s", "Seite %(n)s", "%(all)s, %(n)s, and are %(n)s"),
        ("Page %(n)s", "Seite %(m)s", "%(n)s, and are %(m)s"),
        ("Page %(n)s", "Seite %(n)s %", "must be"),
        ("A <b>word</b>", "Ein Wort", "</b>, <b>, and are none"),
        ("A word", "Ein <script>Wort</script>", "must be none"),
        ("A word", 'Ein \\"Wort\\"', "not allowed"),
        ("A word", "Ein Wort & mehr", "not allowed"),
        (("One page", "%(n)s pages"), ("Eine Seite", ""), "plural forms is missing"),
        (("One page", "%(n)s pages"), ("Eine Seite", "Seiten %(m)s"), "%(n)s, and are %(m)s"),
    ],
)
def test_a_translation_that_would_break_a_page_is_found(message, text, said):
    (problem,) = find_message_problems(catalogue((message, text)))
    assert said in str(problem) and problem.line


def test_a_translation_that_is_right_has_no_problem():
    right = catalogue(
        ("Page %(n)s of <b>%(all)s</b>", "Von <b>%(all)s</b> Seiten die %(n)s."),
        (("One page", "%(n)s pages"), ("%(n)s Seite", "%(n)s Seiten")),
        ("Not translated", ""),
    )
    assert find_message_problems(right) == []


@pytest.mark.parametrize("text", ["no catalogue", "\x00"])
def test_what_is_no_catalogue_says_so(text):
    with pytest.raises(CatalogueRefused, match="not a PO file"):
        read_catalogue(text)


def test_equal_words_are_one_version_and_english_has_one_too():
    text = canonical_text(read_catalogue(pseudo_file()), "el")
    assert canonical_text(read_catalogue(text), "el") == text
    english = shipped_text("en")
    assert version_of(english) != version_of(text) and english.count("\nmsgid ") == text.count("\nmsgid ")
    assert missing_messages(read_catalogue(text)) == missing_messages(read_catalogue(english)) == []


def test_words_are_those_of_the_page_that_is_made():
    lazy = gettext_lazy(JOINING_SENTENCE)
    english = str(lazy)
    with in_language(pseudo_page_language()):
        assert gettext(JOINING_SENTENCE) == str(lazy) == in_pseudo(english)
        assert ngettext("not a message", "not messages", 2) == "not messages"
    assert active_language() == PageLanguage() and str(lazy) == english


def test_kept_words_are_used_and_later_ones_come_from_the_program(monkeypatch):
    kept = canonical_text(read_catalogue(pseudo_file()), "el")
    one = kept.split("\n\n")[1]
    old = kept.replace(one, "").replace("α", "ά")
    language = stored_page_language("el", "el", old)
    missing = one.split('msgid "')[1].split('"')[0]
    assert missing in missing_messages(read_catalogue(old))
    assert language.translations.gettext(missing) == missing


@pytest.mark.parametrize(
    ("tag", "language"),
    [("en", "en"), ("en-US", "en"), ("tlh", ""), ("zh-TW", ""), ("zh-Hant", ""), ("EN-gb", "en")],
)
def test_a_studys_language_has_the_words_of_its_base_language(tag, language):
    assert shipped_language_for(tag) == language
    assert shipped_page_language(tag).words == (language or "en") and shipped_page_language(tag).tag == tag
