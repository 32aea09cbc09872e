"""Clients that others generate from the description: for Python and for TypeScript they are built, and read and write over REST."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pyarrow.parquet
import pytest

from analysis.api.schema import describe_api
from analysis.api.tokens import create_token
from analysis.data.exports import request_export
from studies.models import Study
from studies.services import jobs
from tests.conftest import skip_or_fail
from tests.in_process import through_django

from .rest import closed_study

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
# What the generator calls a file, it would otherwise leave out.
FILES = dict.fromkeys(("application/zip", "application/pdf", "application/x-ndjson"), "application/octet-stream")
PACKAGES = ("openapi-typescript@7.13.0", "openapi-fetch@0.17.0", "typescript@5.9.3", "@types/node@20.19.25")
PROGRAM = """
import createClient from "openapi-fetch";
import type { paths } from "./api.js";

const { SITE, TOKEN, JOB } = process.env as Record<string, string>;
const client = createClient<paths>({ baseUrl: SITE, headers: { Authorization: `Token ${TOKEN}` } });
const { data: page, error } = await client.GET("/api/v1/studies/");
if (error) throw new Error(error.detail);
const study = page.results[0]!;
const title: string = study.title;
const target: number | null = study.target_n;
const made = await client.POST("/api/v1/studies/", { body: { title: "Of TypeScript" } });
if (made.error) throw new Error(made.error.detail);
const file = await client.GET("/api/v1/studies/{code}/jobs/{job}/file/", {
  params: { path: { code: study.code, job: JOB! } }, parseAs: "arrayBuffer",
});
if (file.error) throw new Error(file.error.detail);
const start = Buffer.from(file.data).subarray(0, 4).toString();
const gone = await client.GET("/api/v1/studies/{code}/", { params: { path: { code: JOB! } } });
console.log(JSON.stringify({ title, target, made: made.data.title, start, status: gone.error!.status }));
"""


def run(*command, folder, **environment):
    paths = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": paths, **environment},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture
def described(tmp_path):
    (tmp_path / "schema.json").write_text(json.dumps(describe_api()))
    return tmp_path


def test_a_client_for_python_reads_and_writes(described, owner, settings, monkeypatch):
    settings.MEDIA_ROOT = described
    config = {"package_name_override": "heval_rest", "content_type_overrides": FILES}
    (described / "config.json").write_text(json.dumps(config))
    generate = (sys.executable, "-m", "openapi_python_client", "generate", "--path", "schema.json")
    said = run(*generate, "--config", "config.json", "--output-path", "made", "--fail-on-warning", folder=described)
    assert "WARNING" not in said
    run(sys.executable, "-m", "compileall", "-q", "made/heval_rest", folder=described)
    monkeypatch.syspath_prepend(described / "made")
    from heval_rest import AuthenticatedClient  # type: ignore[import-not-found]  # generated above
    from heval_rest.api.exports import studies_exports_create, studies_jobs_file_retrieve
    from heval_rest.api.studies import list_study, studies_create, studies_retrieve
    from heval_rest.models import ExportRequestRequest, ExportRequestRequestTable, NewStudyRequest

    study = closed_study(owner, 2)
    client = AuthenticatedClient(
        base_url="http://localhost",
        token=create_token(owner, "test", scope="write")[1],
        prefix="Token",
        httpx_args={"transport": httpx.MockTransport(through_django)},
    )
    (found,) = list_study.sync(client=client).results
    assert (found.code, found.target_n) == (study.code, study.target_n)
    assert studies_create.sync(client=client, body=NewStudyRequest(title="Of Python")).title == "Of Python"
    wanted = ExportRequestRequest(table=ExportRequestRequestTable.ASSIGNMENTS)
    job = studies_exports_create.sync(study.code, client=client, body=wanted)
    jobs.run_waiting_jobs()
    file = studies_jobs_file_retrieve.sync(study.code, job.code, client=client)
    assert pyarrow.parquet.read_table(file.payload).num_rows == 2
    assert studies_retrieve.sync(job.code, client=client).status == 404


@pytest.mark.django_db(transaction=True)
def test_a_client_for_typescript_is_strict_and_reads_and_writes(described, owner, settings, live_server):
    settings.MEDIA_ROOT = described
    study = closed_study(owner, 2)
    job = request_export(study, by=owner, table="assignments", format="parquet", origins=("live",))
    for _ in range(100):  # after the commit, another thread may have begun it
        jobs.run_waiting_jobs()
        job.refresh_from_db()
        if job.ended_at:
            break
        time.sleep(0.1)
    assert job.state == "done", vars(job)
    (described / "package.json").write_text('{"type": "module", "private": true}')
    try:
        run("npm", "install", "--silent", "--no-audit", "--no-fund", *PACKAGES, folder=described)
    except (FileNotFoundError, AssertionError, subprocess.TimeoutExpired) as missing:
        skip_or_fail(f"npm cannot install the generator of TypeScript: {str(missing)[-300:]}")
    run("npx", "openapi-typescript", "schema.json", "-o", "api.ts", folder=described)
    (described / "program.ts").write_text(PROGRAM)
    options = ("--strict", "--noUncheckedIndexedAccess", "--module", "nodenext", "--target", "es2022", "--skipLibCheck")
    run("npx", "tsc", *options, "program.ts", folder=described)
    token = create_token(owner, "test", scope="write")[1]
    said = json.loads(run("node", "program.js", folder=described, SITE=live_server.url, TOKEN=token, JOB=str(job.code)))
    expected = {"title": study.title, "target": study.target_n, "made": "Of TypeScript", "start": "PAR1", "status": 404}
    assert said == expected
    assert Study.objects.filter(title="Of TypeScript").exists()
