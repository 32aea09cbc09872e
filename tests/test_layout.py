"""The picture of the code in CONTRIBUTING is that of its imports, and the paths drawn there exist."""

import re

import grimp
import pytest

from tests import ROOT

APPS = ("heval_site", "boards", "analysis", "annotators", "studies")
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
# Django finds them by their names; they import the models of their time.
LEFT_OUT = {"migrations"}
MOST = 12
# Django and Celery find these modules by their names, so each app has them anyway.
OF_DJANGO = {"admin", "apps", "tasks"}


def picture(text: str) -> dict[str, list[set[str]]]:
    """App to its lines, each the packages that it names; apps from top to bottom."""
    drawn = re.search(r"```text\n(heval_site .*?)```", text, re.DOTALL)
    assert drawn, "CONTRIBUTING has no picture of the code"
    found: dict[str, list[set[str]]] = {}
    for line in drawn[1].splitlines():
        names = re.split(r"\s{2,}", line.strip())[0]
        if line.startswith(" "):
            found[list(found)[-1]].append(set(names.split(", ")))
        else:
            found[names] = []
    return found


PICTURE = picture(TEXT)


@pytest.fixture(scope="module")
def graph():
    return grimp.build_graph(*APPS)


def packages(app: str) -> set[str]:
    return {
        path.stem
        for path in (ROOT / app).iterdir()
        if (path / "__init__.py").exists() or (path.suffix == ".py" and path.stem != "__init__")
    }


def against(graph, app: str, lines: list[set[str]]) -> list[str]:
    """The imports of an app that the picture does not allow."""
    level = {name: number for number, line in enumerate(lines) for name in line}
    found = []
    for module in graph.modules:
        mine = module.split(".")
        if mine[0] != app or len(mine) < 2 or mine[1] not in level:
            continue
        for imported in graph.find_modules_directly_imported_by(module):
            other = imported.split(".")
            if other[0] != app or len(other) < 2 or other[1] == mine[1]:
                continue
            if other[1] in level and level[other[1]] <= level[mine[1]]:
                found.append(f"{module} imports {imported}")
    return found


@pytest.mark.parametrize("app", APPS)
def test_the_picture_names_every_package_once(app):
    named = [name for line in PICTURE[app] for name in line]
    assert sorted(named) == sorted(packages(app) - LEFT_OUT)
    assert len(packages(app) - LEFT_OUT - OF_DJANGO) <= MOST


@pytest.mark.parametrize("app", APPS)
def test_packages_import_what_the_picture_shows_below_them(app, graph):
    assert not against(graph, app, PICTURE[app])


def test_an_app_imports_no_app_above_it(graph):
    assert list(PICTURE) == list(APPS)
    found = [
        f"{module} imports {imported}"
        for module in graph.modules
        for imported in graph.find_modules_directly_imported_by(module)
        if APPS.index(imported.partition(".")[0]) < APPS.index(module.partition(".")[0])
        # The statistics import nothing of the application, so each app may use them.
        and not imported.startswith("analysis.stats.")
    ]
    assert not found


def test_a_picture_that_is_upside_down_is_found(graph):
    assert against(graph, "studies", PICTURE["studies"][::-1])


def paths(title: str) -> list[str]:
    part = TEXT.partition(f"### {title}")[2].partition("\n#")[0]
    steps = "\n".join(line for line in part.splitlines() if re.match(r"\d+\. ", line))
    return re.findall(r"`([\w/]+\.py)`", steps)


@pytest.mark.parametrize("title, n", [("The path of one answer", 5), ("The path of one report", 11)])
def test_the_path_leads_from_file_to_file(title, n, graph):
    """Each file of a path is there, and imports another one of it or is imported by it, directly or not."""
    files = paths(title)
    assert len(files) == n
    modules = [file.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for file in files]
    assert set(modules) <= graph.modules
    for module in modules:
        # A registry imports the modules of its folder by their names.
        names = {module, module.rpartition(".")[0]} if ".protocols." in module else {module}
        others = set(modules) - {module}
        assert any(
            graph.chain_exists(importer=one, imported=other) or graph.chain_exists(importer=other, imported=one)
            for one in names & graph.modules
            for other in others
        ), module
