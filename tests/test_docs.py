"""The documentation: every name of the code stands in it, its samples run, its links lead somewhere, and it can be read by all."""

import ast
import re
import shlex
import sys
import tomllib
import types

import pytest
from django.core.management import CommandError, get_commands, load_command_class
from django.test import override_settings
from django.urls import get_resolver

from analysis.report.build import code_version
from heval_site.management import cli
from heval_site.views import docs
from studies.services.version import version
from tests import ROOT
from tests.accessibility import TAGS, violations
from tools.reference import addresses, commands, data_model, environment, pages

PAGES = docs.read_pages()
FENCE = re.compile(r"^```(\w+) *([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Files that the examples tell a reader to write, or that only a server or a user has.
NOT_OURS = {
    "codebook.md",  # of the REST interface
    "studies/protocols/best.py", "analysis/protocols/best.py", "templates/protocols/best.html", "tests/studies/test_best.py", "protocols/best.html",
    "annotators/channels/library.py", "tests/annotators/test_library.py",
}  # fmt: skip


def words_of(*names: str) -> str:
    return "\n".join(PAGES[name].text for name in names)


# What is named


def test_every_protocol_channel_rule_and_scale_has_a_heading_or_row():
    from annotators.recruitment import channels
    from studies import protocols
    from studies.models import rules
    from studies.protocols.base import scales

    for registry, name in ((protocols, "protocols"), (channels, "channels"), (rules, "exclusion-rules")):
        text = PAGES[f"reference/{name}"].text
        missing = [slug for slug in registry.REGISTRY if not re.search(rf"^## {slug}\b", text, re.MULTILINE)]
        assert not missing, f"reference/{name} does not name {missing}"
    assert all(f"| `{kind}` |" in PAGES["reference/scales"].text for kind in scales.KINDS)


def test_every_environment_variable_is_explained_and_no_other():
    in_code = set(environment.variables_in_code())
    explained = {name for variables in environment.VARIABLES.values() for name in variables}
    assert {"SECRET_KEY", "HEVAL_HOME", "WEB_WORKERS", "HEVAL_ANNOUNCE"} <= in_code
    assert in_code - explained == set(), "give them words in tools/reference/environment.toml"
    assert explained - in_code == set(), "nothing reads them any more"


def test_every_command_is_named():
    from heval_site.management.cli import COMMANDS

    text = PAGES["reference/commands"].text
    missing = [name for name in {*COMMANDS, *commands.own_commands()} if f"## heval {name}\n" not in text]
    assert not missing


COMMAND = re.compile(r"^(?:\$ )?(?:\w+=\S+ )*(?:heval|\S*python3? -m heval_site\.management\.cli) (.+)$")


def commands_in(text: str) -> list[tuple[bool, list[str]]]:
    """(whether it is a whole line to be typed, its words) of each command of heval that a text names."""
    fenced = (
        "\n".join(code for language, _, code in FENCE.findall(text) if language == "text")
        .replace("\\\n", " ")
        .split("\n")
    )
    inline = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL))
    lines = [(True, line) for line in fenced] + [(False, line) for line in inline]
    return [(is_line, shlex.split(found[1])) for is_line, line in lines if (found := COMMAND.match(line.strip()))]


def wrong_command(is_line: bool, words: list[str]) -> str:
    """What heval would say of a command's name or options; "" where it takes them."""
    name, *rest = words
    if name.startswith("--") or name == "COMMAND" or name == "secret":
        return ""
    name = cli.MODULES.get(name, name)
    if name not in (known := get_commands()):
        return f"there is no command {name}"
    parser = load_command_class(known[name], name).create_parser("heval", name)
    if not is_line:
        asked = {word.strip("[]…").partition("=")[0] for word in rest if word.strip("[]").startswith("--")}
        return " ".join(sorted(asked - set(parser._option_string_actions)))
    try:
        parser.parse_args(rest)
    except CommandError as refused:
        return str(refused)
    return ""


def test_every_command_line_is_one_that_heval_takes():
    texts = {name: page.text for name, page in PAGES.items()}
    texts |= {
        name: (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")
    }
    found = [(name, is_line, words) for name, text in texts.items() for is_line, words in commands_in(text)]
    assert len([1 for _, is_line, _ in found if is_line]) > 10 and len(found) > 40
    assert not [(name, words, wrong) for name, is_line, words in found if (wrong := wrong_command(is_line, words))]


@pytest.mark.parametrize(
    "text",
    [
        "```text\nheval exprot 1\n```",
        "```text\nheval export 1 --outptu x\n```",
        "```text\nheval pay --dry-run\n```",
        "run `heval import X --replaces`",
    ],
)
def test_the_search_for_commands_finds_a_wrong_one(text):
    ((is_line, words),) = commands_in(text)
    assert wrong_command(is_line, words)


# Words with stress in how-to pages that name nothing on a page of ours: what is stressed, and what others' pages say.
STRESSED = {
    "not coded", "how it stops", "help", "budget is exhausted", "superuser", "staff status", "the one person of that country",
    "they came by a panel or an invitation", "they came by an open link", "a draft is frozen by its first answers", "mid-rank", "explanation",
    "exclusion group", "a contact and a consent text", "partial completes", "external question",
    "repeats", "it is never sent an answer", "download csv", "variant", "currency", "url parameters",
    "questions with a known answer were not answered as expected",
}  # fmt: skip
EMPHASIS = re.compile(r"\*\*(?=\S)(.+?)\*\*|(?<!\*)\*(?=[^\s*])([^*]+?)\*(?!\*)", re.DOTALL)


def as_read(words: str) -> str:
    for typed, plain in (("’", "'"), ("“", '"'), ("”", '"'), ("&amp;", "&")):
        words = words.replace(typed, plain)
    return re.sub(r"\s+", " ", words).strip(" .:…,;→").casefold()


@pytest.fixture(scope="module")
def said() -> set[str]:
    """Every piece of words that a template or a string of the code holds; no bare names of columns."""
    found: set[str] = set()
    for path in (ROOT / "templates").rglob("*.html"):
        found |= {
            as_read(piece) for piece in re.split(r"<[^>]*>|\{%.*?%\}|\{\{.*?\}\}|\n", path.read_text(encoding="utf-8"))
        }
    for path in (ROOT / "static").glob("*.js"):
        found |= {as_read(piece) for piece in re.findall(r'"([^"\n]+)"', path.read_text(encoding="utf-8"))}
    for path in (path for name in ("studies", "annotators", "analysis") for path in (ROOT / name).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            is_label = isinstance(node, ast.keyword) and node.arg in ("label", "verbose_name")
            node = node.value if is_label else node
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and (is_label or not re.fullmatch(r"[a-z_0-9.]*", node.value))
            ):
                found.add(as_read(node.value))
    return found - {""}


def stressed_in(text: str) -> set[str]:
    """Words with stress. Numbers, code and … stand for anything: what is between them is found by itself."""
    text = re.sub(r"`[^`\n]*`", "…", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL))
    return {
        as_read(piece)
        for bold, slanted in EMPHASIS.findall(text)
        for piece in re.split(r"…|\d+(?: of)?", bold or slanted)
    } - {""}


def unsaid(text: str, said: set[str]) -> list[str]:
    """Words with stress that begin nothing which the site says."""
    return sorted(
        piece
        for piece in stressed_in(text) - STRESSED
        if not any(one == piece or (one.startswith(piece) and not one[len(piece)].isalnum()) for one in said)
    )


@pytest.mark.parametrize(
    "name", [name for name in PAGES if name.startswith("how-to/") and not name.startswith("how-to/write-")]
)
def test_buttons_and_fields_are_called_as_they_are_on_the_pages(name, said):
    """How-to pages give stress to what is pressed and filled in. A button that is renamed here is renamed there."""
    assert not unsaid(PAGES[name].text, said), (
        "call it as the page does, or add it to STRESSED where it names nothing of ours"
    )


def test_the_search_for_what_no_page_says_finds_it(said):
    assert unsaid("Set *Opens at*, press **Make\na link** and **Make a lin**; *Retention* is kept.", said) == [
        "make a lin",
        "opens at",
        "retention",
    ]
    assert STRESSED & {word for name in PAGES for word in stressed_in(PAGES[name].text)} == STRESSED


def test_every_rest_path_is_named():
    text = PAGES["reference/urls"].text
    paths = [path for path, *_ in addresses.addresses() if path.startswith("api/")]
    assert paths
    assert not [path for path in paths if f"`/{path}`" not in text]
    rest = PAGES.get("reference/rest")
    if rest is not None:
        resources = {
            path.split("/")[4] for path in paths if path.startswith("api/v1/studies/<code>/") and path.count("/") > 4
        }
        assert not [name for name in resources - {""} if name not in rest.text]


def test_every_reason_of_an_exclusion_is_named():
    from annotators.places.exclude import REASONS

    assert not [reason for reason in REASONS if f"`{reason}`" not in PAGES["reference/rest"].text]


def test_every_address_has_words():
    silent = [
        path for path, name, words in addresses.addresses() if not words and not path.startswith(("admin/", "api/"))
    ]
    assert not silent, "give them words in tools/reference/addresses.toml, or a docstring"


def test_every_table_and_constraint_is_in_the_data_model():
    from django.apps import apps

    text = PAGES["reference/data-model"].text
    for app in data_model.APPS:
        for model in apps.get_app_config(app).get_models():
            assert f"### {model.__name__}\n" in text
            for constraint in model._meta.constraints:
                assert constraint.name.replace("_", " ") in text


def test_every_explained_column_is_there_and_is_explained_once():
    from django.apps import apps

    models = {model.__name__: model for app in data_model.APPS for model in apps.get_app_config(app).get_models()}
    for table, columns in data_model.COLUMNS.items():
        for column in columns if table != "any" else ():
            assert table in models, f"there is no table {table}: take its words out of tools/reference/columns.toml"
            assert not models[table]._meta.get_field(column).help_text, f"{table}.{column} has help text already"


def test_the_report_page_names_every_key_of_a_report():
    from analysis.stats.results import Effect, Estimate, HypothesisTest, Interval

    text = PAGES["reference/report-json"].text
    estimate = Estimate(
        analysis="a", estimand="e", unit="annotator", n=2, interval=Interval(0.95, 0, 1, "t"), test=HypothesisTest(name="t", null=0, statistic=1, pvalue=1),
        effect=Effect(name="d", value=1.0),
    ).as_dict()  # fmt: skip
    keys = {*estimate, *estimate["interval"], *estimate["test"], *estimate["effect"]}
    assert not [key for key in keys if f"`{key}`" not in text]
    source = ast.parse((ROOT / "analysis" / "report" / "build.py").read_text(encoding="utf-8"))
    (build,) = [node for node in source.body if isinstance(node, ast.FunctionDef) and node.name == "build_report"]
    stored = {
        key.value for node in ast.walk(build) if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Dict)
        and ast.unparse(node.target) == "result" for key in node.value.keys if isinstance(key, ast.Constant)
    }  # fmt: skip
    stored |= {
        node.targets[0].slice.value for node in ast.walk(build) if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript)
        and ast.unparse(node.targets[0].value) == "result"
    }  # fmt: skip
    assert {"conclusions", "blocks", "flow"} <= stored
    assert not [key for key in stored if f"`{key}`" not in text]


def test_the_generated_pages_are_fresh():
    stale = [name for name, make in pages.PAGES.items() if name not in PAGES or PAGES[name].text != make()]
    assert not stale, "run: python -m tools.reference"


def test_the_glossary_has_every_word_of_the_house():
    text = PAGES["reference/glossary"].text
    words = (
        "annotator", "arm", "assignment", "batch", "condition", "contrast", "exclusion", "exposure", "family", "item", "label", "m", "output",
        "place", "prompt", "protocol", "recruitment", "rejection", "response", "section", "system", "withdrawal", "x and y",
    )  # fmt: skip
    assert not [word for word in words if f"**{word}**" not in text]


# What is run


def blocks_of(page: docs.Page) -> list[tuple[str, str, str]]:
    """(language, what is said behind it, code) of each fenced block."""
    return FENCE.findall(page.text)


RUN = [
    name
    for name, page in PAGES.items()
    if any("run" in said.split() or "file=" in said for _, said, _ in blocks_of(page))
]


@pytest.fixture
def registries():
    """What the examples register goes again."""
    from analysis import protocols as analyses
    from annotators.recruitment import channels
    from studies import protocols
    from studies.models import rules

    kept = [
        (registry, dict(registry))
        for registry in (protocols.REGISTRY, analyses.REGISTRY, channels.REGISTRY, rules.REGISTRY)
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


# What is linked


@pytest.fixture(scope="module")
def anchors() -> dict[str, set[str]]:
    """The places of each page that can be linked to."""
    return {name: set(re.findall(r'id="([^"]+)"', docs.html_of(page))) for name, page in PAGES.items()}


@pytest.mark.parametrize("name", PAGES)
def test_links_between_pages_resolve(name, anchors):
    page = PAGES[name]
    for link, anchor in docs.LINK.findall(page.text):
        wanted = docs.target(name, link)
        assert wanted in PAGES, f"{name} links to {link}"
        assert not anchor or anchor[1:] in anchors[wanted], f"{name} links to {link}{anchor}"
    own = re.findall(r"\]\((#[\w-]+)\)", page.text)
    assert not [anchor for anchor in own if anchor[1:] not in anchors[name]]


def test_the_index_leads_to_every_page():
    assert set(PAGES) - {"index"} == set(docs.links_of(PAGES["index"])) - {"index"}


FILE = re.compile(
    r"`((?:studies|annotators|analysis|heval_site|templates|static|tests|\.ci)/[\w./<>-]+|[\w-]+\.(?:md|toml|yaml|lock)|Makefile|Dockerfile)`"
)


@pytest.mark.parametrize("name", PAGES)
def test_no_page_mentions_a_file_that_is_not_there(name):
    for path in FILE.findall(PAGES[name].text):
        if path in NOT_OURS or "<" in path:
            continue
        where = [ROOT / path, docs.FOLDER / path, ROOT / "templates" / path]
        assert any(one.exists() for one in where), f"{name} mentions {path}"


@pytest.mark.parametrize("name", PAGES)
def test_every_page_begins_with_its_title_and_is_short_enough_to_be_rendered(name):
    text = PAGES[name].text
    assert text.startswith("# ")
    assert len(text) < 50_000, "longer texts are shown as typed"
    assert not re.search(r"/home/|/work/|/root/|TODO|lorem", text)


# README and change log


def targets() -> set[str]:
    return set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def test_make_targets_that_are_named_exist():
    texts = {"README.md": (ROOT / "README.md").read_text(encoding="utf-8")} | {
        name: page.text for name, page in PAGES.items()
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
    told = {"parquet": ["analysis/data/parquet.py", "templates/docs/reference/rest.md"]}
    for extra, paths in told.items():
        (package,) = extras[extra]
        assert not [
            path for path in paths if f"pip install '{package}'" not in (ROOT / path).read_text(encoding="utf-8")
        ]
    everywhere = [page.text for page in PAGES.values()] + [
        (ROOT / path).read_text(encoding="utf-8") for paths in told.values() for path in paths
    ]
    assert not [text for text in everywhere if "heval[" in text]


def test_the_version_that_people_are_asked_to_name_is_the_one_that_reports_print(capsys):
    """No package is installed in a checkout or in the image; once their reports were made by version 0."""
    named = re.search(r"heval, version ([0-9.]+[0-9])\.", (ROOT / "README.md").read_text(encoding="utf-8"))[1]
    cli.main(["--version"])
    assert capsys.readouterr().out.strip() == named
    assert code_version().partition("+src.")[0] == named


def test_the_change_log_has_an_entry_for_this_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "## [Unreleased]" in text and version() in text


# What is served


@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_served_without_a_login(name, client):
    response = client.get(docs.address(name))
    html = response.content.decode()
    assert response.status_code == 200
    assert f"<title>{PAGES[name].title if name != 'index' else 'heval documentation'}" in html
    assert not response.cookies
    assert ".md" not in re.findall(r'href="([^"]*)"', html)
    assert html.count("<h1") == 1
    for code in FENCE.findall(PAGES[name].text):
        assert code[2].strip()


def test_serving_asks_the_database_nothing(client, django_assert_num_queries, db):
    with django_assert_num_queries(0):
        assert client.get("/docs/").status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "nothing/",
        "_page/",
        "../settings/",
        "%2e%2e/%2e%2e/heval_site/settings.py/",
        "how-to//deploy/",
        "tutorial/first-study.md/",
        "%00/",
    ],
)
def test_what_is_no_page_is_404(path, client):
    assert client.get(f"/docs/{path}").status_code == 404


def test_pages_are_only_looked_at(client):
    assert client.post("/docs/").status_code == 405
    assert client.head("/docs/").status_code == 200


@override_settings(DEBUG=True)
def test_a_changed_file_is_seen_while_debugging(monkeypatch, tmp_path, client):
    (tmp_path / "index.md").write_text("# Here\n\nOne.\n", encoding="utf-8")
    monkeypatch.setattr(docs, "read_pages", lambda: dict(docs_pages(tmp_path)))
    assert "One." in client.get("/docs/").content.decode()
    (tmp_path / "index.md").write_text("# Here\n\nTwo.\n", encoding="utf-8")
    assert "Two." in client.get("/docs/").content.decode()


read_pages = docs.read_pages


def docs_pages(folder):
    return read_pages(folder)


def test_links_headings_and_wide_parts_are_made_usable(tmp_path):
    (tmp_path / "index.md").write_text("# A\n\n[b](how-to/b.md#some-part)\n", encoding="utf-8")
    (tmp_path / "how-to").mkdir()
    (tmp_path / "how-to" / "b.md").write_text(
        "# B\n\n## Some part\n\n| a |\n|---|\n| b |\n\n## Some part\n\n<b>raw</b>\n", encoding="utf-8"
    )
    with (tmp_path / "how-to" / "b.md").open("a") as file:
        file.write('\n![Dots & "lines"](../../../static/docs/report.png)\n\n![elsewhere](https://example.org/x.png)\n')
    pages = read_pages(tmp_path)
    assert list(pages) == ["index", "how-to/b"]
    assert 'href="/docs/how-to/b/#some-part"' in docs.html_of(pages["index"])
    html = docs.html_of(pages["how-to/b"])
    assert 'id="some-part"' in html and 'id="some-part-2"' in html
    assert 'class="scrolled" role="region" tabindex="0"' in html
    assert "&lt;b&gt;" in html
    assert 'src="/static/docs/report.png" alt="Dots &amp; &quot;lines&quot;"' in html and html.count("<img") == 1


def test_documentation_is_reached_by_names_alone():
    names = {pattern.name for pattern in get_resolver("heval_site.views.docs_urls").url_patterns}
    assert names == {"docs", "docs-page"}


# What is seen


@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
def test_no_page_has_an_accessibility_violation_or_scrolls_sideways(browser, live_server):
    colourful = {"index", "reference/environment", "how-to/write-a-protocol"}
    wrong = []
    context = browser.new_context(viewport={"width": 375, "height": 740})
    page = context.new_page()
    for name in PAGES:
        page.set_viewport_size({"width": 375, "height": 740})
        page.emulate_media(color_scheme="light")
        page.goto(live_server.url + docs.address(name))
        if (over := page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")) > 0:
            wrong.append(f"{name} is {over} px too wide")
        # Colours are the costly part, and three pages have them all.
        but = "" if name in colourful else "color-contrast"
        wrong += [f"{name} {found}" for found in violations(page, *TAGS, "best-practice", but=but)]
        if name in colourful:
            page.set_viewport_size({"width": 1280, "height": 800})
            page.emulate_media(color_scheme="dark")
            wrong += [f"{name} in the dark {found}" for found in violations(page, rule="color-contrast")]
    context.close()
    assert not wrong
