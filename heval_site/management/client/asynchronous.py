"""The client for asyncio: the methods of ``site``, to be awaited."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from . import boards, operations
from .calls import Steps, T, ask
from .http import AsyncConnection, checked_token
from .operations import JOB_SECONDS, POLL_SECONDS, WAIT_SECONDS
from .results import Checklist, Link, Plan, Problem, Verdict
from .site import as_frame, created, whole_file
from .tables import Outputs, Table


class AsyncSite:
    """A heval site, see ``Site``."""

    def __init__(
        self,
        address: str,
        token: str | None = None,
        *,
        on_wait: Callable[[str], object] | None = None,
        connection: AsyncConnection | None = None,
    ):
        self.connection = connection or AsyncConnection(address, checked_token(token), on_wait=on_wait)

    async def run(self, steps: Steps[T]) -> T:
        return await self.connection.run(steps)

    async def get(self, path: str, **parameters: Any) -> Any:
        return await self.run(ask("GET", path, parameters=parameters))

    async def create(
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
    ) -> "AsyncStudy":
        choices |= {"minutes": minutes, "reward": reward, "facts": facts}
        parts = {"people": people, "template": template, "bundle": bundle, "columns": columns}
        return AsyncStudy(self, await self.run(created(title, outputs, ask, criterion, choices, **parts)))

    async def study(self, name: str) -> "AsyncStudy":
        return AsyncStudy(self, await self.run(operations.find_study(name)))

    async def studies(self) -> list[dict[str, Any]]:
        return await self.run(operations.rows_of("studies/"))

    def board(self, name: str) -> "AsyncBoard":
        return AsyncBoard(self, name)


class AsyncBoard:
    """A board of a site, see ``Board``."""

    def __init__(self, site: AsyncSite, name: str):
        self.site, self.name = site, quote(name, safe="")

    async def submit(
        self, outputs: Table, name: str, *, request_key: str = "", timeout: float = WAIT_SECONDS, **fields: Any
    ) -> dict[str, Any]:
        return await self.site.run(boards.submit(self.name, outputs, {"name": name, **fields}, request_key, timeout))

    async def submission(self, name: str) -> dict[str, Any]:
        return await self.site.run(boards.find_submission(self.name, name))

    async def wait(self, number: int, timeout: float = WAIT_SECONDS, poll: float = POLL_SECONDS) -> dict[str, Any]:
        return await self.site.run(boards.wait_for_score(self.name, number, timeout, poll))

    async def compare(self, number: int, baseline: int) -> dict[str, Any]:
        return await self.site.run(boards.compare(self.name, number, baseline))


class AsyncStudy:
    """One study of a site, see ``Study``."""

    def __init__(self, site: AsyncSite, code: str):
        self.site, self.code = site, code

    async def check(self) -> Checklist:
        return await self.site.run(operations.check(self.code))

    async def plan(self, is_quick: bool = False, timeout: float = JOB_SECONDS, **values: Any) -> Plan:
        return await self.site.run(operations.plan(self.code, values, is_quick, timeout))

    async def rehearse(self, key: str = "", timeout: float = JOB_SECONDS, **sent: int) -> dict[str, Any]:
        return await self.site.run(operations.rehearse(self.code, key, timeout, **sent))

    async def preview(self) -> dict[str, str]:
        return await self.site.get(f"studies/{self.code}/preview/")

    async def invented_report(self, timeout: float = JOB_SECONDS, **sent: bool) -> dict[str, Any]:
        return await self.site.run(operations.invented_report(self.code, timeout, **sent))

    async def amend(self, reason: str, **changes: Mapping[str, Any]) -> dict[str, Any]:
        return await self.act("amend", reason=reason, **changes)

    async def translation(self) -> dict[str, Any]:
        return await self.site.get(f"studies/{self.code}/translation/")

    async def translation_file(self) -> bytes:
        return await self.site.run(operations.translation_file(self.code))

    async def use_translation(self, file: str | Path | bytes) -> dict[str, Any]:
        return await self.site.run(operations.use_translation(self.code, file))

    async def remove_translation(self) -> dict[str, Any]:
        return await self.site.run(ask("DELETE", f"studies/{self.code}/translation/"))

    async def settle(self, key: str, is_dry_run: bool = False) -> dict[str, Any]:
        return await self.site.run(operations.settle(self.code, key, is_dry_run))

    async def pay(self) -> dict[str, Any]:
        return await self.site.run(operations.pay(self.code))

    async def launch(self, acknowledged: Iterable[Problem | str] = (), timeout: float = JOB_SECONDS) -> dict[str, Any]:
        return await self.site.run(operations.launch(self.code, acknowledged, timeout))

    async def link(self, channel: str = "open_link", **fields: Any) -> Link:
        return await self.site.run(operations.link(self.code, channel, **fields))

    async def links(self) -> list[Link]:
        return await self.site.run(operations.links(self.code))

    async def act(self, name: str, **values: Any) -> dict[str, Any]:
        return await self.site.run(operations.act(self.code, name, values))

    async def pause(self) -> dict[str, Any]:
        return await self.act("pause")

    async def resume(self) -> dict[str, Any]:
        return await self.act("resume")

    async def places(self, places: int) -> dict[str, Any]:
        return await self.act("places", places=places)

    async def outcomes(self, reason: str) -> dict[str, Any]:
        return await self.act("outcomes", reason=reason)

    async def close(self, reason: str = "") -> dict[str, Any]:
        return await self.act("close", reason=reason)

    async def clone(self, title: str, texts: str = "with") -> "AsyncStudy":
        return AsyncStudy(self.site, (await self.act("clone", title=title, texts=texts))["code"])

    async def delete(self) -> dict[str, Any]:
        return await self.act("delete")

    async def log(self) -> list[dict[str, Any]]:
        return await self.site.run(operations.rows_of(f"studies/{self.code}/log/"))

    async def status(self) -> dict[str, Any]:
        return await self.site.run(operations.status(self.code))

    async def wait(
        self, until: str = "closed", timeout: float = WAIT_SECONDS, poll: float = POLL_SECONDS
    ) -> dict[str, Any]:
        return await self.site.run(operations.wait(self.code, until, timeout, poll))

    async def analyse(self, timeout: float = JOB_SECONDS, **parameters: Any) -> dict[str, Any]:
        return await self.site.run(operations.analyse(self.code, timeout, **parameters))

    async def compare(self, others: Iterable[str], timeout: float = JOB_SECONDS, **parameters: Any) -> dict[str, Any]:
        return await self.site.run(operations.compare(self.code, others, timeout, **parameters))

    async def verdicts(self) -> list[Verdict]:
        return await self.site.run(operations.verdicts(self.code))

    async def claim(self, words: str) -> Verdict:
        return await self.site.run(operations.claim(self.code, words))

    async def judge(self) -> dict[str, Any]:
        return await self.site.get(f"studies/{self.code}/judge/")

    async def answers(self, **parameters: Any) -> list[dict[str, Any]]:
        return await self.site.run(operations.answers(self.code, **parameters))

    async def frame(self, **parameters: Any) -> Any:
        return as_frame(await self.export("responses.csv", raw="1", **parameters))

    async def export(self, name: str, path: str | Path | None = None, **parameters: Any) -> bytes:
        if path is None:
            return await self.site.run(operations.export(self.code, name, **parameters))
        with whole_file(path) as part:
            return await self.site.run(operations.export(self.code, name, part, **parameters))
