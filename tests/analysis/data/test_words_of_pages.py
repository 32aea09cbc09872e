"""Exports and the REST API say in which words an assignment's pages were shown: the language and the version of the catalogue."""

import json
from unittest.mock import patch

import pytest
from django.test import Client

from analysis.data.export_codebook import build_export_codebook_markdown
from analysis.data.flat_rows import Selection, read_assignment_rows
from annotators.models import Assignment
from studies.language.catalogues import shipped_text, version_of
from studies.services import lifecycle
from tests.builders import spa_draft, user
from tests.launching import launched
from tests.players import claimed
from tests.pseudo_language import LANGUAGE, give_pseudo_language, pseudo_text

from .exported import export, json_rows

pytestmark = pytest.mark.django_db


def words_of(study):
    return [
        (row["page_language"], row["words_version"])
        for row in json_rows(export("assignments", "jsonl", Selection(study)))
    ]


def test_an_assignment_names_the_words_of_its_pages():
    study = launched(give_pseudo_language(spa_draft()))
    claimed(study, "a")
    assert words_of(study) == [(LANGUAGE, version_of(pseudo_text()))]
    english = launched(spa_draft())
    claimed(english, "b")
    assert words_of(english) == [("en", version_of(shipped_text("en")))]
    codebook = build_export_codebook_markdown(study)
    assert "page_language" in codebook and "words_version" in codebook


def test_a_study_from_before_words_were_kept_names_none_and_no_row_takes_a_query(django_assert_num_queries):
    with patch.object(lifecycle.translations, "keep", lambda study: {}):
        study = launched(spa_draft())
    assert "translation" not in json.loads(study.designs.get().canonical)
    for person in "abc":
        claimed(study, person)
    assert words_of(study) == [(None, None)] * 3
    with django_assert_num_queries(3):  # the rows, their pages and their exclusions
        read_assignment_rows(study, Assignment.objects.filter(study=study))


def test_the_rest_api_names_them_too():
    owner = user("owner")
    study = launched(give_pseudo_language(spa_draft(owner=owner)), owner)
    claimed(study, "a")
    client = Client()
    client.force_login(owner)
    (row,) = client.get(f"/api/v1/studies/{study.code}/assignments/").json()["results"]
    assert (row["page_language"], row["words_version"]) == (LANGUAGE, version_of(pseudo_text()))
