"""Every name of the code is in the reference."""

import ast
import re

from tests import ROOT
from tests.docs.pages import PAGES
from tools.reference import addresses, data_model, environment, pages
from tools.reference.markdown import APPS


def test_every_protocol_channel_rule_and_scale_has_a_heading_or_row():
    from annotators.recruitment import channels
    from studies import protocols
    from studies.models import design
    from studies.protocols.base import fields

    for registry, name in ((protocols, "protocols"), (channels, "channels"), (design, "exclusion-rules")):
        text = PAGES[f"reference/{name}"].text
        missing = [slug for slug in registry.REGISTRY if not re.search(rf"^## {slug}\b", text, re.MULTILINE)]
        assert not missing, f"reference/{name} does not name {missing}"
    assert all(f"| `{kind}` |" in PAGES["reference/scales"].text for kind in fields.SCALE_KINDS)


def test_every_environment_variable_is_explained_and_no_other():
    in_code = set(environment.environment_variable_defaults())
    explained = {name for variables in environment.VARIABLE_DESCRIPTIONS.values() for name in variables}
    assert {"SECRET_KEY", "HEVAL_HOME", "WEB_WORKERS", "HEVAL_ANNOUNCE"} <= in_code
    assert in_code - explained == set(), "give them words in tools/reference/environment.toml"
    assert explained - in_code == set(), "nothing reads them any more"


def test_every_rest_path_is_named():
    text = PAGES["reference/urls"].text
    paths = [path for path, *_ in addresses.list_project_urls() if path.startswith("api/")]
    assert paths
    assert not [path for path in paths if f"`/{path}`" not in text]
    rest = PAGES.get("reference/rest")
    if rest is not None:
        resources = {
            path.split("/")[4] for path in paths if path.startswith("api/v1/studies/<code>/") and path.count("/") > 4
        }
        assert not [name for name in resources - {""} if name not in rest.text]


def test_every_reason_of_an_exclusion_is_named():
    from annotators.places.exclusions import EXCLUSION_REASONS

    assert not [reason for reason in EXCLUSION_REASONS if f"`{reason}`" not in PAGES["reference/rest"].text]


def test_every_address_has_words():
    silent = [
        path
        for path, name, words in addresses.list_project_urls()
        if not words and not path.startswith(("admin/", "api/"))
    ]
    assert not silent, "give them words in tools/reference/addresses.toml, or a docstring"


def test_every_table_and_constraint_is_in_the_data_model():
    from django.apps import apps

    text = "".join(page.text for name, page in PAGES.items() if name.startswith("reference/data-model"))
    for app in APPS:
        for model in apps.get_app_config(app).get_models():
            assert f"### {model.__name__}\n" in text
            for constraint in model._meta.constraints:
                assert constraint.name.replace("_", " ") in text


def test_every_explained_column_is_there_and_is_explained_once():
    from django.apps import apps

    models = {model.__name__: model for app in APPS for model in apps.get_app_config(app).get_models()}
    for table, columns in data_model.COLUMN_DESCRIPTIONS.items():
        for column in columns if table != "any" else ():
            assert table in models, f"there is no table {table}: take its words out of tools/reference/columns.toml"
            assert not models[table]._meta.get_field(column).help_text, f"{table}.{column} has help text already"


def test_the_report_page_names_every_key_of_a_report():
    from analysis.stats.results import Effect, Estimate, HypothesisTest, Interval

    text = PAGES["reference/report-json"].text
    estimate = Estimate(
        analysis="a",
        estimand="e",
        unit="annotator",
        n=2,
        interval=Interval(0.95, 0, 1, "t"),
        test=HypothesisTest(name="t", null=0, statistic=1, pvalue=1),
        effect=Effect(name="d", value=1.0),
    ).as_dict()
    keys = {*estimate, *estimate["interval"], *estimate["test"], *estimate["effect"]}
    assert not [key for key in keys if f"`{key}`" not in text]
    source = ast.parse((ROOT / "analysis" / "report" / "build.py").read_text(encoding="utf-8"))
    (build,) = [node for node in source.body if isinstance(node, ast.FunctionDef) and node.name == "build_report"]
    stored = {
        key.value
        for node in ast.walk(build)
        if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Dict) and ast.unparse(node.target) == "result"
        for key in node.value.keys
        if isinstance(key, ast.Constant)
    }
    stored |= {
        node.targets[0].slice.value
        for node in ast.walk(build)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Subscript)
        and ast.unparse(node.targets[0].value) == "result"
    }
    assert {"conclusions", "blocks", "flow"} <= stored
    assert not [key for key in stored if f"`{key}`" not in text]


def test_the_report_page_names_exactly_the_keys_of_a_block():
    from analysis.protocols.blocks import Block

    part = PAGES["reference/report-json"].text.partition("## A block")[2].partition("\n## ")[0]
    named = {
        key
        for line in part.splitlines()
        if line.startswith("| `")
        for key in re.findall(r"`(\w+)`", line.split("|")[1])
    }
    assert named == Block("spa.pairs", "Pairs", "recommended").as_dict().keys()


def test_the_generated_pages_are_fresh():
    stale = [
        path.name
        for path, make in pages.FILES.items()
        if not path.exists() or path.read_text(encoding="utf-8") != make()
    ]
    assert not stale, "run: python -m tools.reference"


def test_the_glossary_has_every_word_of_the_house():
    text = PAGES["reference/glossary"].text
    words = (
        "annotator", "arm", "assignment", "batch", "condition", "contrast", "exclusion", "exposure", "family", "item", "label", "m", "output",
        "place", "prompt", "protocol", "recruitment", "rejection", "response", "section", "system", "withdrawal", "x and y",
        "attention check", "checklist", "design", "dry run", "entry page", "error annotation", "estimated pay per hour", "headline", "ledger", "link",
        "obstacle", "pairwise choice", "payment", "pilot", "report", "status", "target", "test run", "webhook",
    )  # fmt: skip
    assert not [word for word in words if f"**{word}**" not in text]
