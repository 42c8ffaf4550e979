"""A gateway whose responses are stored, and its two apps."""

import json
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp

from tests.asgi import Exchange, request
from tests.gateways import Always, House, house
from tests.memory.responses import MemoryResponses
from tests.scripted import Scripted
from tests.stores import TESTER, HandClock
from tests.unit.web.test_api_app import Api
from tollgate.engine.replies.content_log import ContentLog
from tollgate.engine.replies.kept_answers import AnswerStore
from tollgate.stores.ports.administration import NewKey
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

PATH = "/v1/responses"


@dataclass
class Shop:
    """A gateway whose responses are stored as its keys say."""

    home: House
    log: ContentLog
    clock: HandClock
    secret: str
    api: Api
    answers: AnswerStore | None = None

    async def ask(
        self,
        input_: Any,
        *,
        secret: str | None = None,
        claim: str | None = None,
        path: str = PATH,
        **fields: Any,
    ) -> Exchange:
        headers = {"authorization": f"Bearer {secret or self.secret}"}
        if claim is not None:
            headers["idempotency-key"] = claim
        return await request(
            self.app,
            "POST",
            path,
            headers=headers,
            body=json.dumps({"model": "acme/small", "input": input_, **fields}).encode(),
        )

    @property
    def app(self) -> ASGIApp:
        return chat_app(
            self.home.front,
            Always(self.home.gateway),
            WebLimits(),
            answers=self.answers,
            responses=self.log,
        )

    async def call(self, method: str, path: str) -> Exchange:
        return await self.api(method, f"{PATH}/{path}", key=self.secret)

    async def key(self, label: str, **settings: Any) -> str:
        new = NewKey(workspace_id="acme", label=label, **settings)
        return (await self.home.stores.keys.create(new, by=TESTER)).secret

    @property
    def prompt(self) -> list[dict[str, Any]]:
        """The messages that the provider got last."""
        body: Any = self.home.near.requests[-1].body
        messages: list[dict[str, Any]] = body["messages"]
        return messages


async def open_shop(log: ContentLog, *, days: int | None = 7, near: Scripted | None = None) -> Shop:
    home = await house(near=near)
    clock = HandClock(0)
    responses = MemoryResponses(home.stores.books, log, clock)  # type: ignore[arg-type]
    api = Api(home, "", "", {"responses": responses})
    shop = Shop(home, log, clock, "", api)
    shop.secret = await shop.key("stores", response_days=days)
    return shop


def id_of(reply: Exchange) -> str:
    assert reply.status == 200, reply.body
    id_: str = reply.json["id"]
    return id_
