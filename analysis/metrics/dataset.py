"""A folder that ``datasets.load_dataset`` reads: tables, a card, Croissant metadata, and scripts that print the headline."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings

from analysis.data.exports import JSONL, TABLES, ExportDigest, Table, encode_lines, is_pyarrow_installed, write_parquet
from analysis.data.flat_rows import Column, Selection, stimulus_text
from analysis.report.archive import recipe, zip_blocks
from annotators.counting import Use, select
from annotators.models import Assignment
from annotators.recruitment.sample import sample_demographics_table, sample_lines
from studies.models import Output, Prompt, Study

from .result_tables import find_score_problem, judged_by_score, result_origins

# The tables of a dataset, those that a study has. Rows of marks are a file beside them.
DATASET_TABLES = ("headline", "scores", "responses", "items", "prompts", "outputs", "preferences", "preference_ties")
SCRIPTS = ("headline.py", "headline.R", "headline.sql")
_TYPES = {"text": "string", "integer": "int64", "number": "float64", "boolean": "bool", "time": "string"}
_CROISSANT_TYPES = {
    "text": "sc:Text", "integer": "sc:Integer", "number": "sc:Float", "boolean": "sc:Boolean", "time": "sc:Text"
}  # fmt: skip
_NAMES = (
    "citeAs", "column", "equivalentProperty", "extract", "field", "fileProperty", "fileObject", "fileSet", "format", "includes",
    "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet", "references", "regex", "repeated", "replace",
    "samplingRate", "separator", "source", "subField", "transform",
)  # fmt: skip
_CONTEXT: dict[str, Any] = {
    "@language": "en", "@vocab": "https://schema.org/", "sc": "https://schema.org/", "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/", "dct": "http://purl.org/dc/terms/",
    **{name: f"cr:{name}" for name in _NAMES},
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
}  # fmt: skip

PROMPT_COLUMNS = (
    Column("prompt", "text", "The key of the prompt."),
    Column("text", "text", "The text of the prompt, or its hash."),
    Column("source", "text", "The source document of the prompt, or its hash."),
    Column("domain", "text", "The domain of the prompt."),
    Column("group", "text", "The group of the prompt. Empty if it is alone."),
    Column("language", "text", "The language of the prompt, if it is not that of the study."),
)
OUTPUT_COLUMNS = (
    Column("prompt", "text", "The key of the prompt."),
    Column("system", "text", "The system."),
    Column("sample", "integer", "Number of the output among the system's outputs for the prompt, from 0."),
    Column("text", "text", "The output, or its hash. Empty if it is an image."),
)


def prompt_rows(selection: Selection) -> Iterator[tuple[Any, ...]]:
    study = selection.study
    rows = Prompt.objects.filter(study=study).order_by("key")
    for key, text, source, *rest in rows.values_list("key", "text", "source", "domain", "group", "language"):
        yield (key, stimulus_text(study, text), stimulus_text(study, source), *rest)


def output_rows(selection: Selection) -> Iterator[tuple[Any, ...]]:
    study = selection.study
    rows = Output.objects.filter(system__study=study).order_by("prompt__key", "system__name", "sample")
    for *key, text in rows.values_list("prompt__key", "system__name", "sample", "text").iterator(500):
        yield (*key, stimulus_text(study, text))


def script(name: str, table_file: str = "headline.csv") -> bytes:
    """Return a script that comes with heval. Those of the headline read a file of the table ``headline``."""
    text = (settings.DATA / "templates" / "scripts" / name).read_bytes()
    return text.replace(b"headline.csv", table_file.encode())


def dataset_blocks(table: str, selection: Selection, *, tally: ExportDigest) -> Iterator[bytes]:
    """Yield the folder as a zip. Its tables are Parquet files if the optional package is installed, and JSON lines otherwise."""
    study, extension = selection.study, "parquet" if is_pyarrow_installed() else "jsonl"
    names = [name for name in DATASET_TABLES if not TABLES[name].find_problem(study)]

    def members() -> Iterator[tuple[str, Iterator[bytes]]]:
        for name in names:
            yield f"data/{name}.{extension}", _table_blocks(name, selection, extension, tally)
        if not TABLES["mqm"].find_problem(study):
            yield "mqm.tsv", TABLES["mqm"].maker("tsv")("mqm", selection, tally=tally)
        for name in SCRIPTS:
            yield f"scripts/{name}", iter([script(name, f"data/headline.{extension}")])

    yield from zip_blocks(
        members(),
        lambda hashes: {
            "croissant.json": _croissant(study, names, extension, hashes),
            "README.md": _card(selection, names, extension).encode(),
        },
    )


def _table_blocks(name: str, selection: Selection, extension: str, tally: ExportDigest) -> Iterator[bytes]:
    if extension == "jsonl":
        yield from tally.digest_lines(encode_lines(name, JSONL, selection))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table"
        tally.rows += write_parquet(name, selection, path)
        with path.open("rb") as file:
            while block := file.read(1 << 16):
                yield block


def _croissant(study: Study, names: list[str], extension: str, hashes: list[tuple[str, str, int]]) -> bytes:
    """Return Croissant metadata: each file with its hash, and each table with its columns."""
    sha256s = {name: (digest, size) for name, digest, size in hashes}
    encoding = {"parquet": "application/x-parquet", "jsonl": "application/jsonlines"}[extension]
    files, records = [], []
    for name in names:
        digest, size = sha256s[f"data/{name}.{extension}"]
        files.append(
            {
                "@type": "cr:FileObject", "@id": f"{name}-file", "name": f"{name}.{extension}", "sha256": digest,
                "contentUrl": f"data/{name}.{extension}", "contentSize": f"{size} B", "encodingFormat": encoding,
            }
        )  # fmt: skip
        fields = [
            {
                "@type": "cr:Field", "@id": f"{name}/{column.name}", "name": column.name, "description": column.meaning,
                "dataType": _CROISSANT_TYPES[column.type],
                "source": {"fileObject": {"@id": f"{name}-file"}, "extract": {"column": column.name}},
            }
            for column in TABLES[name].columns_of(study)
        ]  # fmt: skip
        about = TABLES[name].about
        records.append({"@type": "cr:RecordSet", "@id": name, "name": name, "description": about, "field": fields})
    described = {
        "@context": _CONTEXT, "@type": "sc:Dataset", "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": f"heval-{str(study.code)[:8]}", "description": study.public_title or study.title,
        "license": study.licence or "The owners of the study have named no licence.",
        "url": f"{settings.SITE_URL}/", "version": "1.0.0",
        "datePublished": (study.closed_at or study.created_at).date().isoformat(),
        "distribution": files, "recordSet": records,
    }  # fmt: skip
    return (json.dumps(described, ensure_ascii=False, indent=1) + "\n").encode()


def _card(selection: Selection, names: list[str], extension: str) -> str:
    study = selection.study
    configs = [{"config_name": name, "data_files": f"data/{name}.{extension}"} for name in names]
    features = [
        {
            "config_name": name,
            "features": [
                {"name": column.name, "dtype": _TYPES[column.type]} for column in TABLES[name].columns_of(study)
            ],
        }
        for name in names
    ]
    head = {
        "license": study.licence.lower() or "unknown",
        "language": [study.language.partition("-")[0]],
        "configs": configs,
    }
    if extension == "jsonl":
        head["dataset_info"] = features
    people = select(Use.RESULTS, Assignment.objects.filter(study=study), selection.origins)
    sharing = people.filter(shares_preferences=True).values("annotator").distinct().count()
    lines = [
        "---",
        *(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in head.items()),
        "---",
        "",
        f"# {' '.join((study.public_title or study.title).split())}",
        "",
        f"Study {study.code}, made with heval.",
        "",
        "## Licence",
        "",
        study.licence or "The owners of the study have named no licence. Ask them before you use the data.",
        "",
        *recipe(study),
        "## Consent",
        "",
        "Annotators agreed to this text:" if study.consent.strip() else "Annotators were shown no consent text.",
        "",
        *(f"> {line}" for line in study.consent.strip().splitlines()),
        "",
        *_consent_to_share(study, sharing),
        "Nobody can recall a file that was given away. If an annotator withdraws, files that are made later have none of their rows: use the newest.",
        "",
        "## Sample",
        "",
        f"{people.values('annotator').distinct().count()} annotators submitted {people.count()} batches. Origin: {', '.join(selection.origins)}.",
        "",
        *_sample(study),
        "## Agreement",
        "",
        "Krippendorff's alpha of the scores of outputs that several annotators judged, without excluded annotators.",
        "",
        "| score | alpha | outputs |",
        "| --- | --- | --- |",
        *_agreement(selection),
        "",
        "## Columns",
        "",
    ]
    for name in names:
        lines += [f"### {name}", "", TABLES[name].about, "", "| column | type | meaning |", "| --- | --- | --- |"]
        columns = TABLES[name].columns_of(study)
        lines += [f"| {column.name} | {column.type} | {column.meaning.replace('|', '/')} |" for column in columns]
        lines.append("")
    return "\n".join(lines) + "\n"


def _consent_to_share(study: Study, sharing: int) -> list[str]:
    if not study.asks_to_share_preferences:
        return ["They were not asked whether others may train models with their preferences.", ""]
    return [
        f"{sharing} of them agreed, in an answer of its own, that others may train models with their preferences. The tables of preferences have "
        "only theirs. Do not make training data of the other tables.",
        "",
    ]


def _sample(study: Study) -> Iterator[str]:
    yield from (f"- {line}" for line in sample_lines(sample_demographics_table(study)))
    yield ""


def _agreement(selection: Selection) -> Iterator[str]:
    import numpy as np

    from analysis.protocols.kinds.answers import join_columns
    from analysis.protocols.kinds.scores import agreement_alpha, judged_by_several

    for name, rows in judged_by_score(selection):
        rows = rows.assign(output=join_columns(rows, "prompt", "system", "sample"))
        shared = judged_by_several(rows, "output")
        if len(shared):
            options: dict[str, Any] = {
                "level_of_measurement": "interval",
                "resamples": 99,
                "rng": np.random.default_rng(0),
            }
            alpha = agreement_alpha(shared["output"], shared["value"], **options).estimate
            yield f"| {name} | {'undefined' if alpha is None else f'{alpha:.3f}'} | {shared['output'].nunique()} |"


def register_dataset() -> None:
    """Add the folder and its tables of texts to the exports."""
    texts: dict[str, Any] = {"is_about_people": False}
    TABLES["prompts"] = Table(PROMPT_COLUMNS, prompt_rows, "One row per prompt. Sorted by key.", **texts)
    TABLES["outputs"] = Table(
        OUTPUT_COLUMNS, output_rows, "One row per output. Sorted by prompt, system and sample.", **texts
    )
    TABLES["dataset"] = Table(
        (),
        lambda selection: (),
        "A folder with these tables, a card and Croissant metadata, for load_dataset of the library datasets.",
        has_outcomes=True,
        shows_draw=True,
        origins=result_origins,
        find_problem=find_score_problem,
        formats=("zip",),
        makers={"zip": dataset_blocks},
    )
