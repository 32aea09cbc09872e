"""Reports of the stored site are whole in their PDFs: one for each protocol among them."""

import json
import shutil
import sqlite3

import pytest

from tests.analysis.report.printed import missing

from .conftest import heval

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("title", ["every protocol", "amended human or machine", "marks apart", "one person"])
def test_the_pdf_of_a_stored_study_has_its_report(upgraded, tmp_path, title):
    home, path = tmp_path / "home", tmp_path / "report.pdf"
    shutil.copytree(upgraded, home)
    heval("study", "report", title, "--resamples", "99", home=home)
    heval("study", "export", title, "report.pdf", "--output", str(path), home=home)
    with sqlite3.connect(home / "heval.sqlite3") as database:
        ((result,),) = database.execute("SELECT result FROM analysis_analysisrun ORDER BY id DESC LIMIT 1")
    assert missing(json.loads(result), path.read_bytes()) == []
