"""A workspace behind the real API over memory stores, and commands' client of it."""

import asyncio
import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.unit.web.test_permissions import Tenants, tenants
from tollgate.cli.access.access_file import AccessFile, read_access
from tollgate.cli.gateway.http import Api, Query, Refused


class ServedApi(Api, frozen=True, kw_only=True):
    """A client whose requests the app answers in this process."""

    them: Tenants
    caller: str
    sent: list[tuple[str, str]]

    def get(self, path: str, query: Query | None = None) -> Any:
        named = "&".join(f"{name}={value}" for name, value in (query or {}).items() if value)
        return self._ask("GET", f"{path}?{named}", None)

    def post(self, path: str, body: Mapping[str, object], query: Query | None = None) -> Any:
        return self._ask("POST", path, body)

    def patch(self, path: str, body: Mapping[str, object]) -> Any:
        return self._ask("PATCH", path, body)

    def delete(self, path: str) -> Any:
        return self._ask("DELETE", path, None)

    def _ask(self, method: str, path: str, content: object) -> Any:
        if method != "GET":
            self.sent.append((method, path))
        headers = {} if self.commit is None else {"x-tollgate-commit": self.commit}
        key = self.them.secrets[self.caller]
        asked = self.them.call(method, f"/v1{path}", key=key, content=content, headers=headers)
        reply = asyncio.run(_answer(asked))
        if reply.status >= 400:
            raise Refused(reply.status, reply.error["message"])
        return json.loads(reply.body, parse_float=Decimal)


async def _answer(asked: Any) -> Any:
    return await asked


def served_api(caller: str = "acme management") -> ServedApi:
    """Return a client of the workspace `acme`, whose operator is another workspace."""
    them = asyncio.run(tenants())
    return ServedApi("http://localhost", "sk", them=them, caller=caller, sent=[])


class Vault:
    """Secrets by name."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.fails = False

    def has_secret(self, name: str) -> bool:
        return name in self.values

    def keep_secret(self, name: str, value: str) -> None:
        if self.fails:
            raise ConnectionError
        self.values[name] = value


def written(folder: Path, text: str) -> AccessFile:
    """Return the content of a file with this text."""
    path = folder / "access.yaml"
    path.write_text(text, encoding="utf-8")
    return read_access(path)
