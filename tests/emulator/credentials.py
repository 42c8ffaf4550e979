"""Where a function with SnapStart, or a container, asks who it is.

"Container credential provider", AWS SDKs and Tools Reference Guide; the reply has the form of
"Task IAM role" in the Amazon ECS developer guide (both read on 2026-11-21).
"""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import Final, Self

from aiohttp import web
from typing_extensions import override

from tests.loopback import LocalServer

_PATH: Final = "/credentials"


class CredentialsServer(LocalServer):
    """Gives the identity `ASIACHAT…n` to the n-th caller, good for `lasts_s`.

    The identity is that of the streaming function, which alone starts from a snapshot. Callers
    without the token are refused; `broken` answers everybody with a 500.
    """

    def __init__(self, *, lasts_s: float = 6 * 3600) -> None:
        super().__init__()
        self.token = "synthetic-authorization"
        self.lasts_s = lasts_s
        self.broken = False
        self.given = 0

    @override
    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self.url += _PATH
        return self

    @override
    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if (request.method, request.path) != ("GET", _PATH):
            return web.Response(status=404)
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
