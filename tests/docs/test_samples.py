"""The samples of the documentation run."""

import sys
import types

import pytest

from heval_site.views import docs
from tests.docs.pages import FENCE, PAGES


def blocks_of(page: docs.Page) -> list[tuple[str, str, str]]:
    """(language, what is said behind it, code) of each fenced block."""
    return FENCE.findall(page.text)


RUN = [
    name
    for name, page in PAGES.items()
    if any(said == "run" or (said.startswith("file=") and "/" in said) for _, said, _ in blocks_of(page))
]


@pytest.fixture
def registries():
    """What the examples register goes again."""
    from analysis import protocols as analyses
    from annotators.recruitment import channels
    from studies import protocols
    from studies.models import design

    kept = [
        (registry, dict(registry))
        for registry in (protocols.REGISTRY, analyses.REGISTRY, channels.REGISTRY, design.REGISTRY)
    ]
    modules = set(sys.modules)
    yield
    for registry, before in kept:
        registry.clear()
        registry.update(before)
    for name in set(sys.modules) - modules:
        if name in ("studies.protocols.best", "analysis.protocols.best", "annotators.recruitment.channels.library"):
            del sys.modules[name]


def loaded(path: str, code: str) -> types.ModuleType:
    """The sample as the module that it would be at this path."""
    name = path.removesuffix(".py").replace("/", ".")
    module = types.ModuleType(name)
    module.__package__ = name.rpartition(".")[0]
    sys.modules[name] = module
    exec(compile(code, path, "exec"), module.__dict__)
    return module


@pytest.mark.django_db
@pytest.mark.parametrize("name", RUN)
def test_the_samples_of_a_page_run(name, registries, tmp_path, settings, client):
    settings.TEMPLATES = [one | {"DIRS": [tmp_path, *one["DIRS"]]} for one in settings.TEMPLATES]
    namespace: dict = {}
    n_tests = 0
    for language, said, code in blocks_of(PAGES[name]):
        path = said.removeprefix("file=") if said.startswith("file=") else ""
        if path.startswith("templates/"):
            target = tmp_path / path.removeprefix("templates/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(code, encoding="utf-8")
        elif path and language == "python":
            module = loaded(path, code)
            for test in [value for key, value in vars(module).items() if key.startswith("test_")]:
                n_tests += 1
                test(client) if test.__code__.co_argcount else test()
        elif "run" in said.split():
            n_tests += 1
            exec(compile(code, f"{name}.md", "exec"), namespace)
    assert n_tests


def test_samples_are_there():
    assert {"how-to/write-a-protocol", "how-to/write-a-channel", "how-to/write-an-exclusion-rule"} <= set(RUN)


@pytest.mark.django_db
def test_the_example_protocol_draws_its_page(registries, tmp_path, settings, client):
    from studies.models import Question, Section
    from tests.builders import draft_study, launched
    from tests.players import claimed

    page = PAGES["how-to/write-a-protocol"]
    code = {said.removeprefix("file="): code for _, said, code in blocks_of(page)}
    (tmp_path / "protocols").mkdir()
    (tmp_path / "protocols" / "best.html").write_text(code["templates/protocols/best.html"], encoding="utf-8")
    settings.TEMPLATES = [one | {"DIRS": [tmp_path, *one["DIRS"]]} for one in settings.TEMPLATES]
    loaded("studies/protocols/best.py", code["studies/protocols/best.py"])
    study = draft_study(instructions="")
    section = Section.objects.create(study=study, position=1, protocol="best", m=1)
    Question.objects.create(section=section, position=1, key="best", text="Which story is the best?")
    assignment = claimed(launched(study))
    html = client.get(f"/p/{assignment.code}/", follow=True).content.decode()
    assert "Which story is the best?" in html
    assert html.count('type="radio"') == 3
