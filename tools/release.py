"""Build the wheels of a release, heval's and that of its client, and check them in a new virtual environment.

    python -m tools.release [--tag v0.1.0] [--out dist]

The wheels and ``notes.md``, the part of CHANGELOG.md about this version, are written to the output folder. The command fails if the tag, the
package, CITATION.cff, compose.yaml and the changelog do not name the same version, or if the installed wheel does not prepare a site.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class ReleaseNotReady(Exception):
    """The release cannot be made. The message says what to change."""


def package_version(root: Path) -> str:
    return tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]


def versions_in_other_files(root: Path) -> dict[str, str]:
    """Return the version that each other file names."""
    patterns = {
        "CITATION.cff": r"^version: (\S+)$",
        "compose.yaml": r"^\s+image: heval:(\S+)$",
        "README.md": r"heval, version (\d+\.\d+\.\d+)",
        "tools/heval_client/pyproject.toml": r'^version = "(\S+)"$',
    }
    matches = {file: re.search(pattern, (root / file).read_text(), re.MULTILINE) for file, pattern in patterns.items()}
    return {file: match[1].rstrip(".") if match else "no version" for file, match in matches.items()}


def release_notes(changelog: str, version: str) -> str:
    """Return the changelog entries of one version, without the heading. Raises ReleaseNotReady."""
    match = re.search(rf"^## \[{re.escape(version)}\].*?\n(.*?)(?=^## \[|\Z)", changelog, re.MULTILINE | re.DOTALL)
    if match is None or not match[1].strip():
        raise ReleaseNotReady(f"CHANGELOG.md has no heading ## [{version}] with entries below it. Add one.")
    return match[1].strip() + "\n"


def require_matching_versions(root: Path, tag: str = "") -> str:
    """Return the version on which all files and the tag agree. Raises ReleaseNotReady."""
    version = package_version(root)
    for file, other in versions_in_other_files(root).items():
        if other != version:
            raise ReleaseNotReady(f"{file} names version {other}, pyproject.toml names {version}. Change one of them.")
    if tag and tag != f"v{version}":
        raise ReleaseNotReady(f"The tag is {tag}, the version is {version}. Tag the release v{version}.")
    release_notes((root / "CHANGELOG.md").read_text(), version)
    return version


def build_wheels(root: Path, folder: Path) -> tuple[Path, Path]:
    """Return the new wheels of heval and of its client."""
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.whl"):
        old.unlink()
    command: list[str | Path] = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder]
    for source in (root, root / "tools" / "heval_client"):
        subprocess.run([*command, source], check=True)
    (wheel,) = folder.glob("heval-*.whl")
    (client,) = folder.glob("heval_client-*.whl")
    return wheel, client


def check_wheels_install(root: Path, wheels: tuple[Path, Path], version: str) -> None:
    """Install the wheels with the locked dependencies in a new environment, and prepare a site. Raises ReleaseNotReady."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        venv.create(folder / "venv", with_pip=True)
        programs = folder / "venv" / "bin"
        pip: list[str | Path] = [
            programs / "python",
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
        ]
        subprocess.run([*pip, "--require-hashes", "-r", root / "requirements.lock"], check=True)
        subprocess.run([*pip, *wheels], check=True)
        subprocess.run([programs / "python", "-c", "import heval_client"], cwd=folder, check=True)
        environment = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "TMPDIR")}
        environment["HEVAL_HOME"] = str(folder / "home")
        printed = ""
        for arguments in (["--version"], ["check"], ["prepare"]):
            run = subprocess.run(
                [programs / "heval", *arguments], cwd=folder, env=environment, capture_output=True, text=True
            )
            if run.returncode:
                raise ReleaseNotReady(
                    f"heval {' '.join(arguments)} failed in a new environment:\n{run.stdout}{run.stderr}"
                )
            printed += run.stdout
        if version not in printed:
            raise ReleaseNotReady(f"heval --version of the installed wheel does not print {version}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tag", default="", help="tag of the release: v and the version, such as v1.2.3")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="output folder of the wheel and the notes")
    options = parser.parse_args()
    try:
        version = require_matching_versions(ROOT, options.tag)
        wheels = build_wheels(ROOT, options.out)
        check_wheels_install(ROOT, wheels, version)
    except ReleaseNotReady as problem:
        sys.exit(str(problem))
    (options.out / "notes.md").write_text(release_notes((ROOT / "CHANGELOG.md").read_text(), version))
    names = " and ".join(wheel.name for wheel in wheels)
    print(f"{names} were built and installed in a new environment, which can prepare a site.")


if __name__ == "__main__":
    main()
