"""Where a function with SnapStart, or a container, asks who it is.

"Container credential provider", AWS SDKs and Tools Reference Guide; the reply has the form of
"Task IAM role" in the Amazon ECS developer guide (both read on 2026-11-21).
"""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from aiohttp import web


class CredentialsServer:
    """Gives the identity `ASIACHAT…n` to the n-th caller, good for `lasts_s`.

    The identity is that of the streaming function, which alone starts from a snapshot. Callers
    without the token are refused; `broken` answers everybody with a 500.
    """

    def __init__(self, *, lasts_s: float = 6 * 3600) -> None:
        self.token = "synthetic-authorization"
        self.url = ""
        self.lasts_s = lasts_s
        self.broken = False
        self.given = 0
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get("/credentials", self._give)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/credentials"
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _give(self, request: web.Request) -> web.Response:
        if request.headers.get("authorization") != self.token:
            return web.Response(status=401)
        if self.broken:
            return web.Response(status=500)
        self.given += 1
        ends = datetime.fromtimestamp(time.time() + self.lasts_s, tz=UTC)
        document = {
            "AccessKeyId": self.identity(self.given),
            "SecretAccessKey": "emulated-secret",
            "Token": "emulated-session",
            "Expiration": ends.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        return web.Response(text=json.dumps(document), content_type="application/json")

    def identity(self, number: int) -> str:
        """The access key id that the n-th caller got."""
        return f"ASIACHAT{number:08}"
