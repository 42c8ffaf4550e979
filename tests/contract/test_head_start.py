"""A provider gets not a byte before every side of a hold is confirmed, whichever confirms last.

Keeps C62.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest
from typing_extensions import override

from tests.asgi import request
from tests.gateways import app_over_stores, house, request_body
from tests.meddler import is_hold
from tests.scripted import answers
from tests.stores import TESTER, DynamoStores, disable, dynamo_stores, funded_key
from tests.unit.engine.test_head_start import Watched
from tollgate.aws.attributes import Item
from tollgate.aws.aws_json import ATTEMPTS_MAX, AwsCaller, AwsReply
from tollgate.core.principal import Principal
from tollgate.providers.ports.base import ReadyRequest, Timeouts, WireRequest
from tollgate.stores.aws.tables import key_state_key, level_state_key, wallet_key
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.rules.level_settings import LevelSettings, MemberSettings

ANA = "ana@example.com"
LIMITS = {"requests_per_minute": 60_000, "burst": 1_000}


@dataclass
class Withholding:
    """A client whose reply to one hold is late; `sent` are the items that holds were sent to."""

    client: AwsCaller
    is_late: Callable[[Mapping[str, object]], bool]
    sent: set[str] = field(default_factory=set)
    came: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)

    async def call(
        self, operation: str, payload: Mapping[str, object], *, attempts_max: int = ATTEMPTS_MAX
    ) -> AwsReply:
        if "h.#h = :a" in str(payload.get("UpdateExpression")):
            self.sent.add(str(payload["Key"]))
        try:
            return await self.client.call(operation, payload, attempts_max=attempts_max)
        finally:
            if self.is_late(payload):
                self.came.set()
                await self.released.wait()


class Last(Watched):
    """Notes how many holds had been sent when a request was made ready."""

    def __init__(self, client: Withholding) -> None:
        super().__init__(answers("Hello"))
        self.sent_before: list[int] = []
        self._client = client

    @override
    async def make_ready(self, request: WireRequest, timeouts: Timeouts) -> ReadyRequest:
        self.sent_before.append(len(self._client.sent))
        return await super().make_ready(request, timeouts)


def side(name: str, key_id: str) -> Item:
    """The item that one side of a hold is written to."""
    match name:
        case "wallet":
            return wallet_key("acme", 0)
        case "key":
            return key_state_key(key_id)
        case _:
            return level_state_key(name, "acme", ANA if name == "member" else "search")


async def funded_member(stores: DynamoStores) -> tuple[str, Principal]:
    """A key under a member and a team that have limits, so that a hold has four sides."""
    await stores.teams.create("acme", "search", LevelSettings(**LIMITS), by=TESTER)
    settings = MemberSettings(team_id="search", **LIMITS)
    await stores.members.create("acme", ANA, settings, by=TESTER)
    new = NewKey(workspace_id="acme", label="test", member_id=ANA)
    return await funded_key(stores, 10**12, new)


@pytest.mark.parametrize("refused", [False, True])
@pytest.mark.parametrize("late", ["wallet", "key", "member", "team"])
async def test_c62_nothing_is_sent_before_the_last_side_confirms(
    dynamo: DynamoStores, late: str, refused: bool
) -> None:
    secret, principal = await funded_member(dynamo)
    client = Withholding(dynamo.client, is_hold(side(late, principal.key_id)))
    stores = dynamo_stores(client, dynamo.tables, dynamo.clock)
    await stores.keys.authenticate(secret)
    if refused:
        # This process does not know of it yet.
        await disable(dynamo, principal.key_id)
    near = Last(client)
    app = app_over_stores(await house(near=near), stores)
    asking = asyncio.create_task(
        request(
            app,
            "POST",
            "/v1/chat/completions",
            headers={"authorization": f"Bearer {secret}"},
            body=request_body("acme/small"),
        )
    )
    await client.came.wait()
    for _ in range(20):
        await asyncio.sleep(0)
    # Behind all four writes, which it delays by nothing.
    assert near.sent_before == [4]
    assert (len(near.ready), near.requests) == (1, [])
    client.released.set()
    answer = await asking
    assert answer.status == (401 if refused else 200)
    assert len(near.requests) == (0 if refused else 1)
    assert near.open_count == 0
