"""A PO file brings another language to a draft: what it needs to be, what the checklist says of it, and where it goes with the study."""

import pytest

from studies.design.serialization import serialize_design
from studies.design.translations import translation_problems, words_file, words_of
from studies.imports.bundle import BundleRefused
from studies.imports.bundle_files import create_draft_from_bundle, serialize_bundle
from studies.language.catalogues import (
    canonical_text,
    file_to_translate,
    header_field,
    message_count,
    missing_messages,
    po_text,
    read_catalogue,
    shipped_languages,
    shipped_text,
)
from studies.models import Study, Translation
from studies.services.copying import clone_study
from studies.services.lifecycle import ActionRefused, FileRefused
from studies.services.translation_files import MAX_FILE_BYTES, remove_file, use_file
from tests.builders import launched, spa_draft, user
from tests.pseudo_language import LANGUAGE, pseudo_file, pseudo_text

pytestmark = pytest.mark.django_db
HEADER = 'msgid ""\nmsgstr ""\n"Language: {language}\\n"\n"Plural-Forms: {plural}\\n"\n\n'
TWO = "nplurals=2; plural=(n != 1);"


def po(*entries: str, language: str = LANGUAGE, plural: str = TWO) -> bytes:
    return (HEADER.format(language=language, plural=plural) + "\n\n".join(entries) + "\n").encode()


@pytest.fixture
def owner():
    return user("owner")


@pytest.fixture
def draft(owner):
    study = spa_draft(owner=owner, language=LANGUAGE)
    return study


@pytest.fixture
def brought(draft, owner):
    return use_file(draft, pseudo_file().encode(), owner)


def names(study: Study) -> list[tuple[str, bool]]:
    return [(problem.name, problem.is_blocking) for problem in translation_problems(study)]


def test_a_file_gives_a_draft_its_words(draft, owner):
    assert names(draft) == [("words_in_english", False)] and words_of(draft).language == "en"
    study = use_file(draft, pseudo_file().encode(), owner)
    row = study.translation
    assert (row.language, row.text, row.by) == (LANGUAGE, pseudo_text(), owner)
    assert names(study) == [] and study.version == draft.version + 1
    words = words_of(study)
    assert (words.origin, words.language, words.version, words.untranslated) == ("file", LANGUAGE, row.version, 0)
    assert words.messages == message_count() and words.translated_by == "owner" and not words.is_kept
    again = use_file(study, pseudo_file().encode(), owner)
    assert again.version == study.version and Translation.objects.count() == 1
    gone = remove_file(study, owner)
    assert gone.translation is None and gone.version == study.version + 1 and Translation.objects.count() == 1


def test_a_launched_study_keeps_its_words(brought, owner):
    launched(brought)
    brought.refresh_from_db()
    assert brought.translation.by == owner and words_of(brought).is_kept
    for change in (lambda: use_file(brought, pseudo_file().encode(), owner), lambda: remove_file(brought, owner)):
        with pytest.raises(ActionRefused, match="part of what was shown"):
            change()


FIRST = 'msgid "A <b>word</b>"\nmsgstr "{}"'


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"no catalogue", "not a PO file"),
        (po(plural="nplurals=1000000000000; plural=0;") + b'msgid "1"\nmsgid_plural "2"\nmsgstr[0] ""', "above 9"),
        (b'msgid ""\nmsgstr "POT-Creation-Date: 2026\\n -11-30 23:32+0000"', "not a PO file"),
        ("ä".encode("latin-1"), "not UTF-8"),
        (b" " * (MAX_FILE_BYTES + 1), "more than 1,048,576 bytes"),
        (po(), "none of the messages"),
        (po('msgid "unknown"\nmsgstr "?"'), "none of the messages"),
        (po(language="German"), "“German”. Write a tag such as el"),
        (po(language="de_AT"), "in the language de-AT, and the study in el"),
        (
            po(FIRST.format("Wort")),
            "Line 6: “A <b>word</b>”: the placeholders and tags must be </b>, <b>, and are none",
        ),
        (po(plural="nplurals=2; plural=n%(n-7);"), "“Plural-Forms”: this header is wrong"),
        (po(plural="nplurals=2; plural=n;"), "“Plural-Forms”: this header is wrong"),
        (po(plural="nplurals=2; plural=open;"), "“Plural-Forms”: this header is wrong"),
        (po(plural=f"nplurals=2; plural={'(' * 5000}n{')' * 5000};"), "“Plural-Forms”: this header is wrong"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_a_reason(draft, owner, data, said):
    with pytest.raises(FileRefused) as refused:
        use_file(draft, data, owner)
    assert said in str(refused.value)
    draft.refresh_from_db()
    assert draft.translation is None and not Translation.objects.exists()


def test_of_many_faults_the_first_twenty_are_listed(draft, owner):
    faults = [f'msgid "%(a)s {number}"\nmsgstr "?"' for number in range(30)]
    with pytest.raises(FileRefused) as refused:
        use_file(draft, po(*faults), owner)
    assert len(refused.value.problems.first) == 20 and refused.value.problems.count == 30


def test_an_english_study_takes_no_file(owner):
    study = spa_draft(owner=owner)
    assert names(study) == []
    with pytest.raises(FileRefused, match="study is in English"):
        use_file(study, pseudo_file().encode(), owner)


def test_the_file_has_the_header_of_its_language_and_the_words_that_there_are(draft, owner):
    empty = words_file(draft)
    assert header_field(empty, "Language") == LANGUAGE
    assert len(missing_messages(read_catalogue(empty))) == message_count()
    assert len(read_catalogue(file_to_translate("ar", "")).plural_expr) > 50
    translated = use_file(draft, pseudo_file().encode(), owner)
    assert canonical_text(read_catalogue(words_file(translated)), LANGUAGE) == translated.translation.text
    assert use_file(translated, words_file(translated).encode(), owner).translation == translated.translation


@pytest.mark.parametrize("language", shipped_languages())
def test_the_words_of_heval_are_downloaded_whole_and_can_be_brought_with_a_change(language, owner):
    study = spa_draft(owner=owner, language=language)
    words, file = words_of(study), words_file(study)
    assert (words.language, words.origin, words.untranslated) == (language, "heval", 0)
    assert words.translated_by and words.read_by and names(study) == []
    unchanged = use_file(study, file.encode(), owner)
    assert unchanged.translation.text == shipped_text(language)
    # They are heval's, also in other studies that are launched with the same row.
    assert words_of(unchanged).origin == "heval" and clone_study(unchanged, owner).translation is None
    assert "translation" not in serialize_bundle(unchanged)
    message, text = next(
        (one.id, one.string)
        for one in read_catalogue(file)
        if one.id and isinstance(one.string, str) and "%" not in one.string
    )
    catalogue = read_catalogue(file)
    catalogue[message].string = f"{text}!"
    changed = use_file(study, po_text(catalogue).encode(), owner)
    assert words_of(changed).origin == "file" and names(changed) == []
    assert clone_study(changed, owner).translation == changed.translation


def test_a_rule_of_plurals_is_that_of_the_file():
    """Babel has two forms for Greek, and three for Brazilian Portuguese, where most files have two."""
    entry = 'msgid "One page"\nmsgid_plural "%(n)s pages"\nmsgstr[0] "a"\nmsgstr[1] "b %(n)s"'
    for language, plural in (("el", "nplurals=2; plural=(n>3);"), ("pt-BR", "nplurals=2; plural=(n > 1);")):
        words = canonical_text(read_catalogue(po(entry, language=language, plural=plural).decode()), language)
        assert f"Plural-Forms: {plural.replace('plural=(', 'plural=(')}" in words
        assert canonical_text(read_catalogue(words), language) == words


def test_what_a_file_lacks_and_a_changed_language_are_on_the_checklist(brought, owner):
    entries = pseudo_file().split("\n\n")
    study = use_file(brought, "\n\n".join([entries[0], entries[1]]).encode(), owner)
    assert names(study) == [("words_are_missing", False)]
    assert words_of(study).untranslated == message_count() - 1
    study.language = "de"
    assert names(study) == [("", True)]


def test_stored_words_that_a_stricter_release_refuses_block_the_launch(draft):
    text = po('msgid "Page %(n)s"\nmsgstr "%(m)s"').decode()
    draft.translation = Translation.objects.create(language=LANGUAGE, version="0" * 64, text=text)
    (problem,) = translation_problems(draft)
    assert problem.is_blocking and "must be %(n)s, and are %(m)s" in problem.text


def test_a_clone_and_a_bundle_have_the_words_that_were_brought(brought, owner):
    assert clone_study(brought, owner).translation == brought.translation
    bundle = serialize_bundle(brought)
    other = user("elsewhere")
    again = create_draft_from_bundle(bundle, other)
    assert serialize_design(again) == serialize_design(brought) and again.translation == brought.translation
    bundle["translation"]["text"] += '\nmsgid "A word"\nmsgstr "<script>"\n'
    with pytest.raises(BundleRefused, match="translation.text: .*“A word”: the placeholders"):
        create_draft_from_bundle(bundle, other)


def test_a_clone_and_a_bundle_have_no_words_that_came_with_the_program(owner):
    study = spa_draft(owner=owner)
    launched(study)
    study.refresh_from_db()
    assert study.translation and study.translation.by is None
    assert clone_study(study, owner).translation is None and "translation" not in serialize_bundle(study)
