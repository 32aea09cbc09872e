"""All generated pages by their names in the documentation."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from heval_site.management import client
from heval_site.views.docs import DOCS_FOLDER

from .acts import acts_json
from .addresses import urls_page
from .client import client_page
from .commands import commands_page
from .data_model import analysis_data_model_page, annotators_data_model_page, studies_data_model_page
from .environment import environment_page
from .languages import languages_page
from .operations import operations_page
from .papers import PAPERS, paper_page
from .permissions import permissions_page
from .registries import channels_page, criteria_page, protocols_page, rules_page, scales_page
from .states import states_page
from .statistics import statistics_page

PAGES: dict[str, Callable[[], str]] = {
    "reference/environment": environment_page,
    "reference/commands": commands_page,
    "reference/python-client": client_page,
    "reference/protocols": protocols_page,
    "reference/channels": channels_page,
    "reference/exclusion-rules": rules_page,
    "reference/scales": scales_page,
    "reference/criteria": criteria_page,
    "reference/languages": languages_page,
    "reference/data-model": studies_data_model_page,
    "reference/data-model-annotators": annotators_data_model_page,
    "reference/data-model-analysis": analysis_data_model_page,
    "reference/urls": urls_page,
    "reference/states": states_page,
    "reference/permissions": permissions_page,
    "reference/operations": operations_page,
    "reference/statistics": statistics_page,
    **{f"reference/paper-{paper}": partial(paper_page, paper) for paper in PAPERS},
}


FILES: dict[Path, Callable[[], str]] = {
    Path(client.__file__).with_name("acts.json"): acts_json,
    **{DOCS_FOLDER / f"{name}.md": make for name, make in PAGES.items()},
}


def write_outdated_pages() -> list[str]:
    """Write every file that is out of date, and return their names."""
    changed = []
    for path, make in FILES.items():
        text = make()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            changed.append(path.stem)
    return changed
