"""Instances follow what is published, and nothing that is published takes them down.

Keeps C54, C66.
"""

import asyncio
from dataclasses import dataclass, field
from hashlib import sha256

import pytest
from msgspec.structs import replace

from tests.asgi import request
from tests.gateways import House, RecordedJournal, house, request_body
from tests.scripted import Scripted, Silence, answers
from tests.unit.routing.catalogs import endpoint, model, routing
from tests.virtual_time import LoopClock
from tollgate.core.records.generation import total_nano_usd
from tollgate.core.routing.publication import Publication, Signature, publish_canary, publish_to_all
from tollgate.engine.gateway import Gateway
from tollgate.engine.routing.catalog_follower import CatalogFollower
from tollgate.routing.file.compile import canonical_json
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.planner import Planner
from tollgate.routing.price import bill
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

FOLLOWED_WITHIN_S = 30.0


def compiled(dollars_out: str) -> bytes:
    """A catalog that differs from others in what its models cost."""
    models = {"acme/small": model(endpoint("near", "small", dollars_out=dollars_out))}
    return canonical_json(routing(models=models, aliases={}, routes={}))


BUNDLED, NEXT, AFTER = (compiled(price) for price in ("1", "2", "3"))


def sha(content: bytes) -> str:
    return sha256(content).hexdigest()


@dataclass
class Place:
    """Where catalogs are published; what is in `broken` cannot be had, and `away` nothing can."""

    clock: LoopClock
    catalogs: dict[str, bytes] = field(default_factory=dict)
    now: Publication | None = None
    load_takes_s: float = 0.1
    broken: set[str] = field(default_factory=set)
    away: bool = False
    loads: list[str] = field(default_factory=list)
    journal: RecordedJournal = field(default_factory=lambda: RecordedJournal([]))

    def publish(self, content: bytes, *, percent: int = 0, ago_s: float = 0) -> str:
        self.catalogs[sha(content)] = content
        signed = Signature(by="somebody", at_s=int(self.clock.now_s() - ago_s))
        if percent and self.now is not None:
            self.now = publish_canary(self.now, sha(content), percent, signed)
        else:
            self.now = publish_to_all(self.now, sha(content), signed)
        return sha(content)

    async def publication(self) -> Publication | None:
        if self.away:
            raise ConnectionError("DynamoDB is away")
        return self.now

    async def catalog(self, name: str) -> bytes:
        self.loads.append(name)
        await asyncio.sleep(self.load_takes_s)
        if name in self.broken:
            raise ConnectionError("S3 is away")
        return self.catalogs[name]


async def following(place: Place) -> CatalogFollower[str]:
    bundled = Catalog.from_json(BUNDLED)
    return CatalogFollower(
        place,
        bundled,
        lambda catalog: catalog.sha,
        as_candidate=lambda name: name,
        clock=place.clock,
        journal=place.journal,
    )


async def test_c54_until_something_is_published_the_bundled_catalog_serves() -> None:
    assert await (await following(Place(LoopClock()))).for_key("key") == sha(BUNDLED)


async def test_c54_a_new_catalog_is_loaded_beside_the_request_that_finds_it() -> None:
    place = Place(LoopClock())
    follower = await following(place)
    new = place.publish(NEXT)
    began_s = place.clock.monotonic_s()
    assert await follower.for_key("key") == sha(BUNDLED)
    assert place.clock.monotonic_s() == began_s
    await follower.finish_loading()
    assert await follower.for_key("key") == new
    assert place.loads == [new]


@pytest.mark.parametrize("ago_s", [FOLLOWED_WITHIN_S - 5, 3_600])
async def test_c54_an_instance_that_wakes_late_serves_what_is_live(ago_s: float) -> None:
    place = Place(LoopClock())
    new = place.publish(NEXT, ago_s=ago_s)
    assert await (await following(place)).for_key("key") == new


async def test_c54_requests_that_wait_share_one_load() -> None:
    place = Place(LoopClock())
    new = place.publish(NEXT, ago_s=60)
    follower = await following(place)
    served = await asyncio.gather(*(follower.for_key(f"key-{number}") for number in range(50)))
    assert set(served) == {new}
    assert place.loads == [new]


async def test_c54_a_canary_serves_its_keys_and_no_other() -> None:
    place = Place(LoopClock())
    live = place.publish(NEXT, ago_s=60)
    candidate = place.publish(AFTER, percent=30, ago_s=60)
    follower = await following(place)
    assert place.now is not None
    for key in map(str, range(50)):
        assert await follower.for_key(key) == place.now.sha_for(key)
    assert {await follower.for_key(str(key)) for key in range(50)} == {live, candidate}
    assert await follower.for_key(None) == live


async def test_c107_a_catalog_is_marked_while_it_is_a_candidate_and_not_once_it_is_live() -> None:
    place = Place(LoopClock())
    live = place.publish(NEXT, ago_s=60)
    candidate = place.publish(AFTER, percent=100, ago_s=60)
    follower = CatalogFollower(
        place,
        Catalog.from_json(BUNDLED),
        lambda catalog: catalog,
        as_candidate=Catalog.as_candidate,
        clock=place.clock,
        journal=place.journal,
    )

    async def served(key: str | None) -> tuple[str, bool]:
        catalog = await follower.for_key(key)
        return catalog.sha, catalog.is_candidate

    assert [await served(key) for key in ("key", None)] == [(candidate, True), (live, False)]
    place.publish(AFTER, ago_s=60)
    assert await served("key") == (candidate, False)
    assert place.loads == [candidate, live]


@pytest.mark.parametrize("damage", ["unreadable", "unreachable", "missing"])
async def test_c54_a_catalog_that_cannot_be_served_leaves_the_last_good_one(
    damage: str,
) -> None:
    place = Place(LoopClock())
    good = place.publish(NEXT, ago_s=60)
    follower = await following(place)
    assert await follower.for_key("key") == good

    bad = place.publish(b'{"version": 2}' if damage == "unreadable" else AFTER, ago_s=60)
    if damage == "unreachable":
        place.broken.add(bad)
    if damage == "missing":
        del place.catalogs[bad]
    assert await follower.for_key("key") == good
    assert await follower.for_key("key") == good
    [(what, _, serving)] = place.journal.kept
    assert bad in what
    assert serving == good
    assert place.loads == [good, bad]

    if damage == "unreadable":
        return
    place.broken.clear()
    place.catalogs[bad] = AFTER
    await asyncio.sleep(15)
    began_s = place.clock.monotonic_s()
    assert await follower.for_key("key") == good
    assert place.clock.monotonic_s() == began_s
    await follower.finish_loading()
    assert await follower.for_key("key") == bad


async def test_c54_a_canary_that_cannot_be_served_leaves_its_keys_with_what_is_live() -> None:
    place = Place(LoopClock())
    live = place.publish(NEXT, ago_s=60)
    place.broken.add(place.publish(AFTER, percent=99, ago_s=60))
    follower = await following(place)
    assert {await follower.for_key(str(key)) for key in range(20)} == {live}


async def test_c54_a_store_that_is_away_changes_nothing() -> None:
    place = Place(LoopClock())
    new = place.publish(NEXT, ago_s=60)
    follower = await following(place)
    assert await follower.for_key("key") == new
    place.away = True
    assert await follower.for_key("key") == new


async def test_c54_a_load_that_hangs_holds_a_request_up_no_longer_than_five_seconds() -> None:
    place = Place(LoopClock(), load_takes_s=1e6)
    place.publish(NEXT, ago_s=60)
    began_s = place.clock.monotonic_s()
    assert await (await following(place)).for_key("key") == sha(BUNDLED)
    assert place.clock.monotonic_s() - began_s == 5


async def test_c54_rolling_back_needs_no_load() -> None:
    place = Place(LoopClock())
    follower = await following(place)
    old = place.publish(BUNDLED, ago_s=60)
    place.publish(NEXT, ago_s=60)
    await follower.for_key("key")
    loads = list(place.loads)
    place.publish(BUNDLED)
    assert await follower.for_key("key") == old
    assert place.loads == loads


def gateway_of(home: House, catalog: Catalog) -> Gateway:
    return replace(home.gateway, planner=Planner(catalog))


async def test_c54_c66_under_load_every_request_is_priced_by_one_catalog_and_names_it() -> None:
    slow = Scripted([Silence(2), *answers("Hello")])
    home = await house(near=slow)
    place = Place(LoopClock())
    bundled = Catalog.from_json(BUNDLED)
    follower = CatalogFollower(
        place,
        bundled,
        lambda catalog: gateway_of(home, catalog),
        as_candidate=Gateway.as_candidate,
        clock=place.clock,
        journal=home.journal,
    )
    app = chat_app(home.front, follower, WebLimits())
    headers = {"authorization": f"Bearer {home.secret}"}

    async def ask(after_s: float) -> None:
        await asyncio.sleep(after_s)
        body = request_body("acme/small", stream=True)
        reply = await request(app, "POST", "/v1/chat/completions", headers=headers, body=body)
        assert reply.status == 200

    async def publish() -> None:
        for content in (NEXT, AFTER, NEXT, BUNDLED):
            await asyncio.sleep(7)
            place.publish(content)

    await asyncio.gather(publish(), *(ask(number * 0.5) for number in range(80)))
    records = home.journal.records
    assert len(records) == 80
    assert {record.catalog_sha for record in records} == {sha(BUNDLED), sha(NEXT), sha(AFTER)}
    for record in records:
        catalog = Catalog.from_json(
            {sha(each): each for each in (BUNDLED, NEXT, AFTER)}[record.catalog_sha]
        )
        price = catalog.models["acme/small"].endpoints[0].price.price
        assert record.cost_nano_usd == total_nano_usd(bill(record.usage, price)) > 0
