"""The words of a study's pages over REST: facts, a file to translate, and a file that brings a language."""

import json

import pytest

from studies.language.catalogues import header_field, message_count
from tests.analysis.api.rest import api_of
from tests.builders import launched, spa_draft, user
from tests.pseudo_language import LANGUAGE, pseudo_file

pytestmark = pytest.mark.django_db


def test_a_file_is_brought_read_and_removed():
    owner = user("owner")
    study, api = spa_draft(owner=owner, language=LANGUAGE), api_of(owner)
    at, n = f"studies/{study.code}/translation/", message_count()
    english = api.get(at).json()
    assert (english["language"], english["origin"], english["is_kept"]) == ("en", "heval", False)
    file = api.get(f"{at}words.po")
    assert file.headers["Content-Type"] == "text/x-gettext-translation; charset=utf-8"
    assert header_field(file.body.decode(), "Language") == LANGUAGE
    brought = api.send("PUT", at, {"file": pseudo_file()})
    assert brought.status_code == 200 and brought.json() == api.get(at).json()
    assert brought.json() == {
        "study_language": LANGUAGE,
        "language": LANGUAGE,
        "origin": "file",
        "version": brought.json()["version"],
        "is_kept": False,
        "messages": n,
        "untranslated": 0,
        "translated_by": "owner",
        "read_by": "",
    }
    assert api.send("DELETE", at).json() == english
    api.send("PUT", at, {"file": pseudo_file()})
    launched(study)
    kept = api.get(at).json()
    assert kept["is_kept"] and kept["version"] == brought.json()["version"]
    refused = api.send("DELETE", at)
    assert refused.status_code == 409 and "part of what was shown" in refused.body.decode()


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ('msgid "A %(n)s"\nmsgstr "B"\n', "Line 1: “A %(n)s”: the placeholders and tags must be %(n)s, and are none."),
        ('msgid ""\nmsgstr "Language: de\\n"\n', "The file is in the language de, and the study in el."),
        ("msgid", "This is not a PO file"),
        (7, "text"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(file, said):
    owner = user("owner")
    study = spa_draft(owner=owner, language=LANGUAGE)
    answer = api_of(owner).send("PUT", f"studies/{study.code}/translation/", {"file": file})
    assert answer.status_code == 400 and said in json.loads(answer.body)["errors"][0]["message"]
