"""A client that compacts its conversation, and what the gateway keeps for it."""

import json
from dataclasses import dataclass, field
from typing import Any

from tests.asgi import Exchange, request
from tests.gateways import Always, House, house
from tests.memory.seal_keys import MemorySealKeys
from tests.scripted import Scripted
from tests.stores import TESTER
from tollgate.core.clock import SystemClock
from tollgate.core.idempotency import Claim
from tollgate.core.ids import IdSource
from tollgate.stores.ports.administration import NewKey
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

RESPONSES = "/v1/responses"
COMPACT = "/v1/responses/compact"
RECORD = "Goal: a bridge. Done: the drawing."


class MemoryLog:
    """Stored responses in memory."""

    def __init__(self) -> None:
        self._contents: dict[tuple[str, str], bytes] = {}

    async def keep(self, workspace_id: str, id_: str, content: bytes, *, days: int) -> None:
        self._contents[workspace_id, id_] = content

    async def get(self, workspace_id: str, id_: str, *, days: int | None = None) -> bytes | None:
        return self._contents.get((workspace_id, id_))


class MemoryAnswers:
    """Stored answers in memory."""

    def __init__(self) -> None:
        self._answers: dict[str, bytes] = {}

    async def claim(self, claim: Claim) -> bytes | None:
        return self._answers.get(claim.key_hash)

    async def keep(self, claim: Claim, answer: bytes) -> None:
        self._answers[claim.key_hash] = answer

    async def release(self, claim: Claim) -> None:
        raise AssertionError("nothing fails here")


@dataclass
class Client:
    """A client of a gateway, with the key of one workspace."""

    home: House
    secret: str
    model: str = "other/tools"
    seals: MemorySealKeys = field(default_factory=lambda: MemorySealKeys(IdSource(SystemClock())))
    log: MemoryLog = field(default_factory=MemoryLog)
    answers: MemoryAnswers = field(default_factory=MemoryAnswers)

    async def ask(self, path: str, input_: Any, **fields: Any) -> Exchange:
        headers = {"authorization": f"Bearer {self.secret}"}
        headers |= {"idempotency-key": fields.pop("claim")} if "claim" in fields else {}
        app = chat_app(
            self.home.front,
            Always(self.home.gateway),
            WebLimits(),
            answers=self.answers,
            responses=self.log,
            seals=self.seals,
        )
        body = {"model": self.model, "input": input_, **fields}
        content = json.dumps({name: each for name, each in body.items() if each is not None})
        return await request(app, "POST", path, headers=headers, body=content.encode())

    @property
    def prompt(self) -> list[dict[str, Any]]:
        """The messages that the provider got last."""
        body: Any = (self.home.far.requests or self.home.near.requests)[-1].body
        messages: list[dict[str, Any]] = body["messages"]
        return messages


async def open_client(*script: Any, workspace: str = "acme", **settings: Any) -> Client:
    home = await house(far=Scripted(*script))
    key = NewKey(workspace_id=workspace, label="agent", **settings)
    return Client(home, (await home.stores.keys.create(key, by=TESTER)).secret)


def frames(reply: Exchange) -> list[dict[str, Any]]:
    assert reply.status == 200, reply.body
    return [json.loads(line[6:]) for line in reply.body.splitlines() if line.startswith(b"data: ")]
