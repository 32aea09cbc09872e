"""The client whose methods wait for their results. ``asynchronous`` has the same methods for asyncio."""

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from . import boards, operations
from .calls import Steps, T, WrongUse, ask
from .http import Connection, checked_token
from .operations import JOB_SECONDS, POLL_SECONDS, WAIT_SECONDS
from .results import Checklist, Link, Plan, Problem, Verdict
from .tables import Outputs, Table, read_json_file


def created(
    title: str, outputs: Outputs | None, ask_card: str, criterion: str, choices: dict[str, Any], **parts: Any
) -> Steps[str]:
    """Return the steps of ``create``. ``choices``: what goes to the question and to the texts for annotators."""
    if isinstance(facts := choices.get("facts"), str | Path):
        choices["facts"] = read_json_file(facts)
    question = {name: choices.pop(name) for name in ("m", "baseline", "more") if choices.get(name) is not None}
    texts = {name: choices.pop(name) for name in ("facts", "public_title", "purpose", "consent") if choices.get(name)}
    question |= {"criterion": criterion} if criterion else {}
    fields = {name: value for name, value in choices.items() if value is not None}
    return operations.create(title, outputs, ask_card, question=question, texts=texts, fields=fields, **parts)


class Site:
    """A heval site. ``token``: by default that of HEVAL_TOKEN. ``on_wait`` gets what is waited for, as a text."""

    def __init__(
        self,
        address: str,
        token: str | None = None,
        *,
        on_wait: Callable[[str], object] | None = None,
        connection: Connection | None = None,
    ):
        self.connection = connection or Connection(address, checked_token(token), on_wait=on_wait)

    def run(self, steps: Steps[T]) -> T:
        """Do an operation of ``operations``, or calls of your own."""
        return self.connection.run(steps)

    def get(self, path: str, **parameters: Any) -> Any:
        """Return the JSON of an address below ``/api/v1/``."""
        return self.run(ask("GET", path, parameters=parameters))

    def create(
        self,
        title: str = "",
        outputs: Outputs | None = None,
        *,
        ask: str = "",
        criterion: str = "",
        people: int | None = None,
        minutes: int | None = None,
        reward: str | None = None,
        facts: Mapping[str, Any] | str | Path | None = None,
        template: str = "",
        bundle: Mapping[str, Any] | None = None,
        columns: Iterable[str] = (),
        **choices: Any,
    ) -> "Study":
        """Make a draft.

        ``outputs``: a table, or one for each system by its name; a table is a file, rows or a data frame. ``ask``: a card such as
        ``two_choice``. ``people``: how many must answer, in about ``minutes``, for a ``reward``. ``facts``: what the texts for
        annotators say about you, or a JSON file with it. ``columns``: what columns with unusual names are. ``choices``: ``m`` (pages for each person),
        ``baseline``, ``more``, ``public_title``, ``purpose``, ``consent``, or another field of a study.
        """
        choices |= {"minutes": minutes, "reward": reward, "facts": facts}
        parts = {"people": people, "template": template, "bundle": bundle, "columns": columns}
        return Study(self, self.run(created(title, outputs, ask, criterion, choices, **parts)))

    def study(self, name: str) -> "Study":
        """Return the study with this title, code, or beginning of a code."""
        return Study(self, self.run(operations.find_study(name)))

    def studies(self) -> list[dict[str, Any]]:
        """Return the studies that the token may read."""
        return self.run(operations.rows_of("studies/"))

    def board(self, name: str) -> "Board":
        """Return the board with this last part of its address."""
        return Board(self, name)


class Board:
    """A board of a site."""

    def __init__(self, site: Site, name: str):
        self.site, self.name = site, quote(name, safe="")

    def submit(
        self, outputs: Table, name: str, *, request_key: str = "", timeout: float = WAIT_SECONDS, **fields: Any
    ) -> dict[str, Any]:
        """Submit the outputs of the system ``name``. ``fields``: ``description``, ``url``, ``is_anonymous``, ``columns``, ``team``."""
        return self.site.run(boards.submit(self.name, outputs, {"name": name, **fields}, request_key, timeout))

    def submission(self, name: str) -> dict[str, Any]:
        """Return the submission with this name or number."""
        return self.site.run(boards.find_submission(self.name, name))

    def wait(self, number: int, timeout: float = WAIT_SECONDS, poll: float = POLL_SECONDS) -> dict[str, Any]:
        """Wait until the submission has a score. Raise TimedOut after ``timeout`` seconds."""
        return self.site.run(boards.wait_for_score(self.name, number, timeout, poll))

    def compare(self, number: int, baseline: int) -> dict[str, Any]:
        """Return the difference from the score of another submission, with its interval."""
        return self.site.run(boards.compare(self.name, number, baseline))


class Study:
    """One study of a site."""

    def __init__(self, site: Site, code: str):
        self.site, self.code = site, code

    def __repr__(self) -> str:
        return f"<Study {self.code}>"

    def check(self) -> Checklist:
        """Return what the draft lacks, and warnings."""
        return self.site.run(operations.check(self.code))

    def plan(self, is_quick: bool = False, timeout: float = JOB_SECONDS, **values: Any) -> Plan:
        """Return what a study of this size can find. ``values``: such as ``people``, where they differ from the draft's."""
        return self.site.run(operations.plan(self.code, values, is_quick, timeout))

    def rehearse(self, key: str = "", timeout: float = JOB_SECONDS, **sent: int) -> dict[str, Any]:
        """Rehearse a link with robots. ``sent``: ``people``, ``seed``."""
        return self.site.run(operations.rehearse(self.code, key, timeout, **sent))

    def preview(self) -> dict[str, str]:
        """Return the addresses where members look at the ``pages``, and read a ``report`` with invented answers."""
        return self.site.get(f"studies/{self.code}/preview/")

    def invented_report(self, timeout: float = JOB_SECONDS, **sent: bool) -> dict[str, Any]:
        """Let robots answer a copy of the draft, and return their report. ``sent``: ``are_systems_equal``."""
        return self.site.run(operations.invented_report(self.code, timeout, **sent))

    def amend(self, reason: str, **changes: Mapping[str, Any]) -> dict[str, Any]:
        """Change words, pay or minutes after the launch. ``changes``: ``study``, ``arms``, ``questions``."""
        return self.act("amend", reason=reason, **changes)

    def translation(self) -> dict[str, Any]:
        """Return which words the study's pages have around its texts: their language, and how many are translated."""
        return self.site.get(f"studies/{self.code}/translation/")

    def translation_file(self) -> bytes:
        """Return these words as a PO file, to translate it."""
        return self.site.run(operations.translation_file(self.code))

    def use_translation(self, file: str | Path | bytes) -> dict[str, Any]:
        """Give the draft the words of a translated PO file, by its path or content."""
        return self.site.run(operations.use_translation(self.code, file))

    def remove_translation(self) -> dict[str, Any]:
        """Remove the file of words from the draft. Its pages have the words of heval then."""
        return self.site.run(ask("DELETE", f"studies/{self.code}/translation/"))

    def settle(self, key: str, is_dry_run: bool = False) -> dict[str, Any]:
        """Record what is due by a link, or only count it. It orders and pays nothing."""
        return self.site.run(operations.settle(self.code, key, is_dry_run))

    def pay(self) -> dict[str, Any]:
        """Return pay by hour, the cost of each link, and all ``payments``."""
        return self.site.run(operations.pay(self.code))

    def launch(self, acknowledged: Iterable[Problem | str] = (), timeout: float = JOB_SECONDS) -> dict[str, Any]:
        """Launch the draft. ``acknowledged``: the warnings that you accept, or their keys."""
        return self.site.run(operations.launch(self.code, acknowledged, timeout))

    def link(self, channel: str = "open_link", **fields: Any) -> Link:
        """Make a link by which people come. ``fields``: such as ``wanted``, ``reward``, ``settings``, ``early_ends``."""
        return self.site.run(operations.link(self.code, channel, **fields))

    def links(self) -> list[Link]:
        """Return the links of the study."""
        return self.site.run(operations.links(self.code))

    def act(self, name: str, **values: Any) -> dict[str, Any]:
        """Do any act of a study by its name, such as ``archive``."""
        return self.site.run(operations.act(self.code, name, values))

    def pause(self) -> dict[str, Any]:
        """Let nobody new start until the study is resumed."""
        return self.act("pause")

    def resume(self) -> dict[str, Any]:
        """Let people start again."""
        return self.act("resume")

    def places(self, places: int) -> dict[str, Any]:
        """Open so many more places."""
        return self.act("places", places=places)

    def outcomes(self, reason: str) -> dict[str, Any]:
        """Show outcomes from now on. The log keeps the reason, and reports say it."""
        return self.act("outcomes", reason=reason)

    def close(self, reason: str = "") -> dict[str, Any]:
        """Let nobody new start. Who has started may finish within the grace period, so the study is closed later."""
        return self.act("close", reason=reason)

    def clone(self, title: str, texts: str = "with") -> "Study":
        """Make a new draft of the same design. ``texts``: “with” or “without” the prompts and outputs."""
        return Study(self.site, self.act("clone", title=title, texts=texts)["code"])

    def delete(self) -> dict[str, Any]:
        """Delete the draft."""
        return self.act("delete")

    def log(self) -> list[dict[str, Any]]:
        """Return who did what to the study, and when."""
        return self.site.run(operations.rows_of(f"studies/{self.code}/log/"))

    def status(self) -> dict[str, Any]:
        """Return the state and the counts of the study."""
        return self.site.run(operations.status(self.code))

    def wait(self, until: str = "closed", timeout: float = WAIT_SECONDS, poll: float = POLL_SECONDS) -> dict[str, Any]:
        """Wait until the study is ``closed``, or has its people (``target``). Raise TimedOut after ``timeout`` seconds."""
        return self.site.run(operations.wait(self.code, until, timeout, poll))

    def analyse(self, timeout: float = JOB_SECONDS, **parameters: Any) -> dict[str, Any]:
        """Start an analysis with these parameters, wait for it, and return it."""
        return self.site.run(operations.analyse(self.code, timeout, **parameters))

    def compare(self, others: Iterable[str], timeout: float = JOB_SECONDS, **parameters: Any) -> dict[str, Any]:
        """Compare the study with others that ask the same question. ``parameters``: ``link``, ``comparisons``, ``origins``, ``level``."""
        return self.site.run(operations.compare(self.code, others, timeout, **parameters))

    def verdicts(self) -> list[Verdict]:
        """Return what the newest analysis decides about each planned comparison."""
        return self.site.run(operations.verdicts(self.code))

    def claim(self, words: str) -> Verdict:
        """Return what the newest analysis decides about a claim such as “new beats old”. Raise Refused if the design has none like it."""
        return self.site.run(operations.claim(self.code, words))

    def judge(self) -> dict[str, Any]:
        """Return whether the judge of the study is good enough."""
        return self.site.get(f"studies/{self.code}/judge/")

    def answers(self, **parameters: Any) -> list[dict[str, Any]]:
        """Return one dict for each judgement, with the columns of the exports."""
        return self.site.run(operations.answers(self.code, **parameters))

    def frame(self, **parameters: Any) -> Any:
        """Return the answers as a data frame of pandas."""
        return as_frame(self.export("responses.csv", raw="1", **parameters))

    def export(self, name: str, path: str | Path | None = None, **parameters: Any) -> bytes:
        """Return the file of an export, such as ``responses.csv`` or ``archive.zip``, or write it to ``path``: whole or not at all."""
        if path is None:
            return self.site.run(operations.export(self.code, name, **parameters))
        with whole_file(path) as part:
            return self.site.run(operations.export(self.code, name, part, **parameters))


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Give a file that gets the name ``path`` when nothing has failed."""
    part = Path(path).with_name(f".{Path(path).name}.part")
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def as_frame(content: bytes) -> Any:
    try:
        import pandas
    except ModuleNotFoundError:
        raise WrongUse("pandas is not installed. Install it, or use answers().") from None
    return pandas.read_csv(io.BytesIO(content), keep_default_na=False, na_values=[""])
