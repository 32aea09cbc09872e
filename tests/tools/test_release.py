"""A release names one version everywhere, and its notes are the changelog's."""

import shutil

import pytest

from tests import ROOT
from tools.release import ReleaseNotReady, release_notes, require_matching_versions

CLIENT = "tools/heval_client/pyproject.toml"
FILES = ("pyproject.toml", "CITATION.cff", "compose.yaml", "README.md", "CHANGELOG.md", CLIENT)


@pytest.fixture
def checkout(tmp_path):
    (tmp_path / CLIENT).parent.mkdir(parents=True)
    for file in FILES:
        shutil.copy(ROOT / file, tmp_path / file)
    return tmp_path


def test_all_files_name_one_version():
    version = require_matching_versions(ROOT)
    assert require_matching_versions(ROOT, f"v{version}") == version


@pytest.mark.parametrize("file", ["pyproject.toml", "CITATION.cff", "compose.yaml", "README.md", CLIENT])
def test_another_version_in_one_file_stops_the_release(file, checkout):
    version = require_matching_versions(checkout)
    path = checkout / file
    path.write_text(path.read_text().replace(version, "9.8.7"))
    with pytest.raises(ReleaseNotReady, match=r"9\.8\.7"):
        require_matching_versions(checkout)


def test_another_tag_stops_the_release():
    with pytest.raises(ReleaseNotReady, match=r"Tag the release v"):
        require_matching_versions(ROOT, "v9.8.7")


def test_the_notes_are_the_part_about_this_version():
    changelog = "# Changelog\n\n## [Unreleased]\n\n## [1.1.0]\n\n### Added\n\n- new\n\n## [1.0.0]\n\n- old\n"
    assert release_notes(changelog, "1.1.0") == "### Added\n\n- new\n"
    assert release_notes(changelog, "1.0.0") == "- old\n"
    for version in ("2.0.0", "1.0"):
        with pytest.raises(ReleaseNotReady, match="CHANGELOG"):
            release_notes(changelog, version)
    with pytest.raises(ReleaseNotReady, match="CHANGELOG"):
        release_notes("## [1.0.0]\n\n## [0.9.0]\n\n- x\n", "1.0.0")
