"""A reader of the documentation, who runs its blocks in a folder of their own, against a site of this process."""

import json
import os
import socket
import subprocess
import sys
import traceback
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path

import pytest
from django.core.management import CommandError, get_commands, load_command_class

from heval_site.management import cli, client

EXAMPLE = "https://eval.example.org"
# What the shell finds as `heval`: this process runs the command, because a program of its own would not see the database of the test.
PROGRAM = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as line:
    line.connect({address!r})
    given = "" if "-" not in sys.argv else sys.stdin.read()
    with line.makefile("rw") as both:
        both.write(json.dumps([sys.argv[1:], given, os.environ.get("HEVAL_TOKEN", "")]) + "\\n")
        both.flush()
        code, out, err = json.loads(both.readline())
sys.stdout.write(out)
sys.stderr.write(err)
sys.exit(code)
"""
# What the shell finds as `duckdb`: the package of Python has no program.
DUCKDB = """#!{python}
import sys, duckdb
print(*duckdb.execute(sys.stdin.read()).fetchall(), sep="\\n")
"""


class Reader:
    """``shell`` and ``python`` run a block as it is printed, with the address of the site in place of the example's."""

    def __init__(self, folder: Path, site: str, token: str, monkeypatch: pytest.MonkeyPatch):
        self.folder, self.site, self.monkeypatch = folder, site, monkeypatch
        monkeypatch.chdir(folder)
        monkeypatch.setenv("HEVAL_TOKEN", token)
        monkeypatch.setitem(sys.modules, "heval_client", client)
        programs = folder / ".programs"
        programs.mkdir()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(programs / "socket"))
        self.listener.listen()
        self.listener.settimeout(0.02)
        for name, text in (("heval", PROGRAM), ("duckdb", DUCKDB)):
            (programs / name).write_text(text.format(python=sys.executable, address=str(programs / "socket")))
            (programs / name).chmod(0o755)
        self.path = f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"

    def here(self, text: str) -> str:
        return text.replace(EXAMPLE, self.site)

    def python(self, code: str) -> None:
        exec(compile(self.here(code), "a block", "exec"), {"__name__": "__main__"})

    def shell(self, code: str, **variables: str) -> tuple[int, str]:
        """Return the exit code of the block, and what it prints."""
        with (self.folder / ".programs" / "printed").open("w+") as printed:
            shell = subprocess.Popen(
                ["bash", "-euo", "pipefail", "-c", self.here(code)],
                env=os.environ | {"PATH": self.path} | variables,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.STDOUT,
            )
            while shell.poll() is None:
                try:
                    line, _ = self.listener.accept()
                except TimeoutError:
                    continue
                line.settimeout(None)
                with line, line.makefile("rw") as both:
                    both.write(json.dumps(self._command(*json.loads(both.readline()))) + "\n")
            printed.seek(0)
            return shell.returncode, printed.read()

    def _command(self, arguments: list[str], given: str, token: str) -> tuple[int, str, str]:
        """Run a command of heval as ``heval`` does, and return its exit code and what it prints."""
        name, *rest = arguments
        name = cli.COMMAND_MODULES.get(name, name)
        command = load_command_class(get_commands()[name], name)
        out, err = TextIOWrapper(BytesIO(), write_through=True), StringIO()
        with self.monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", TextIOWrapper(BytesIO(given.encode())))
            patch.setattr(sys, "stdout", out)
            patch.setenv("HEVAL_TOKEN", token)
            code = 0
            try:
                options = vars(command.create_parser("heval", name).parse_args(rest))
                command.execute(
                    *options.pop("args", ()), **options | {"stdout": out, "stderr": err, "skip_checks": True}
                )
            except CommandError as error:
                code = error.returncode
                err.write(f"heval: {error}\n")
            except SystemExit as end:
                code = end.code or 0
            except Exception:
                code = 1
                err.write(traceback.format_exc())
        return code, out.buffer.getvalue().decode(), err.getvalue()
