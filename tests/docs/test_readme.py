"""README, change log and package say the same."""

import re
import tomllib

from analysis.report.build import version_and_source_hash
from heval_site.management import cli
from studies.services.version import version
from tests import ROOT
from tests.docs.pages import DECISIONS, PAGES


def targets() -> set[str]:
    return set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def test_make_targets_that_are_named_exist():
    texts = {"README.md": (ROOT / "README.md").read_text(encoding="utf-8")} | {
        name: page.text for name, page in (PAGES | DECISIONS).items()
    }
    for name, text in texts.items():
        named = set(re.findall(r"`make ([\w-]+)", text)) | set(re.findall(r"^make ([\w-]+)", text, re.MULTILINE))
        assert named <= targets(), f"{name}: {named - targets()}"
    assert {"demo", "test"} <= targets()


def test_the_readme_has_two_commands_and_shows_pictures_that_are_there():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.search(r"^make demo$", text, re.MULTILINE) and re.search(r"^make test$", text, re.MULTILINE)
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
    assert 4 <= len(pictures) <= 6
    for picture in pictures:
        path = ROOT / picture
        assert path.exists() and path.stat().st_size <= 120 * 1024, picture
    for link in re.findall(r"(?<!!)\[[^\]]+\]\(([^)#]+)\)", text):
        assert link.startswith("https://") or (ROOT / link).exists(), link


def test_what_is_optional_is_installed_by_its_own_name():
    """heval is on no index: “pip install heval[parquet]” found nothing, or what somebody else puts there under that name."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    documented = {
        "mcp": ["heval_site/management/client/mcp.py", "templates/docs/how-to/for-coding-agents.md"],
        "parquet": ["analysis/data/exports.py", "templates/docs/reference/rest.md"],
        "pdf": ["analysis/report/pdf.py", "templates/docs/reference/rest.md", "README.md"],
    }
    for extra, paths in documented.items():
        (package,) = extras[extra]
        assert not [
            path for path in paths if f"pip install '{package}'" not in (ROOT / path).read_text(encoding="utf-8")
        ]
    everywhere = [page.text for page in PAGES.values()] + [
        (ROOT / path).read_text(encoding="utf-8") for paths in documented.values() for path in paths
    ]
    assert not [text for text in everywhere if "heval[" in text]


def test_the_version_that_people_are_asked_to_name_is_the_one_that_reports_print(capsys):
    """No package is installed in a checkout or in the image; once their reports were made by version 0."""
    named = re.search(r"heval, version ([0-9.]+[0-9])\.", (ROOT / "README.md").read_text(encoding="utf-8"))[1]
    cli.main(["--version"])
    assert capsys.readouterr().out.strip() == named
    assert version_and_source_hash().partition("+src.")[0] == named


def test_the_change_log_has_an_entry_for_this_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "## [Unreleased]" in text and version() in text
