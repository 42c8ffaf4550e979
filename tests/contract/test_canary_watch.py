"""A candidate with terms is withdrawn by the sweeper, once, and never becomes live.

Keeps C57.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from msgspec.structs import replace

from tests.meddler import first, meddled
from tests.stores import DynamoStores, an_entry, record_of
from tollgate.core.errors import LedgerError
from tollgate.core.ids import IdSource
from tollgate.core.records.audit import SWEEPER, AuditFilter
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.routing.canary import FigureRead, Look, Terms
from tollgate.core.routing.publication import (
    Publication,
    Signature,
    publish_canary,
    publish_to_all,
)
from tollgate.stores.aws.tables import CANARY_LOOK_KEY
from tollgate.stores.ports.base import Hold
from tollgate.stores.routing.canary_watch import CanaryWatch
from tollgate.stores.rules.webhook_events import event_type

LIVE, CANDIDATE, NEXT = "a" * 64, "b" * 64, "c" * 64
TERMS = Terms(worse_percent={"errors": 1}, false_alarms_percent=5)
FIRST_LOOK_S = 601


@dataclass
class Scene:
    """A gateway with a canary at half of its 24 keys."""

    stores: DynamoStores
    canary: Publication

    def watch(self, stores: DynamoStores | None = None) -> CanaryWatch:
        at = stores or self.stores
        ids = IdSource(at.clock)
        return CanaryWatch(at.publications, at.workspaces, at.generations, ids=ids, clock=at.clock)

    async def serve(self, *, candidate_fails: bool) -> None:
        """Store three requests of each key, from two minutes after the publication."""
        self.stores.clock.now = self.canary.moved_s + 120
        ids = IdSource(self.stores.clock)
        await asyncio.gather(
            *(
                self.stores.generations.put_if_absent(
                    self._record(ids.new_id(), f"key-{key}", candidate_fails)
                )
                for key in range(24)
                for _ in range(3)
            )
        )
        self.stores.clock.now = self.canary.moved_s + FIRST_LOOK_S

    def _record(self, id_: str, key_id: str, candidate_fails: bool) -> GenerationRecord:
        hold = Hold(
            id=id_, workspace_id="acme", key_id=key_id, shard=0, wallet_nano_usd=0, key_nano_usd=0
        )
        sha = self.canary.sha_for(key_id)
        failed = candidate_fails and sha == CANDIDATE
        return replace(record_of(hold, 100, "error" if failed else "ok"), catalog_sha=sha)

    async def published(self) -> Publication:
        """Return the pointer as the store has it now."""
        latest = (await self.stores.publications.history())[0]
        await self.stores.clock.sleep(5)
        assert await self.stores.publications.publication() == latest
        return latest


@pytest.fixture
async def scene(dynamo: DynamoStores) -> Scene:
    await dynamo.workspaces.ensure("acme", by=SWEEPER)
    signed = Signature(by="somebody", at_s=int(dynamo.clock.now), commit="c0ffee")
    live = publish_to_all(None, LIVE, signed)
    await dynamo.publications.move(live, an_entry())
    canary = publish_canary(live, CANDIDATE, 50, signed, terms=TERMS)
    await dynamo.publications.move(canary, an_entry())
    return Scene(dynamo, canary)


async def test_c57_a_candidate_that_breaks_a_term_is_taken_back_and_says_so(scene: Scene) -> None:
    await scene.serve(candidate_fails=True)
    look = await scene.watch().run()
    assert look is not None
    assert (look.state, look.broken) == ("broken", "errors")
    now = await scene.published()
    assert (now.live, now.candidate, now.percent, now.terms) == (LIVE, None, 0, None)
    assert (now.revision, now.by) == (3, "sweeper")
    assert now.withdrawn == "errors 100.00 % against 0.00 %; allowed: 1 points more"
    page = await scene.stores.audit_log.page(
        None,
        AuditFilter(since_s=scene.canary.moved_s, until_s=scene.canary.moved_s + 3_600),
        limit=1,
    )
    [entry] = page.found
    assert (entry.action, entry.target, entry.actor) == ("catalog.withdraw", CANDIDATE, SWEEPER)
    assert entry.before["candidate"] == CANDIDATE
    assert entry.before["terms.worse_percent.errors"] == "1.0"
    assert entry.after["withdrawn"] == now.withdrawn
    assert event_type(entry) == "catalog.withdrawn"
    assert await scene.watch().run() is None


async def test_c57_a_candidate_that_keeps_its_terms_stays_and_never_becomes_live(
    scene: Scene,
) -> None:
    await scene.serve(candidate_fails=False)
    look = await scene.watch().run()
    assert look is not None
    assert (look.state, look.number) == ("kept", 1)
    assert await scene.watch().run() is None  # the first look was done
    scene.stores.clock.now = scene.canary.moved_s + 30 * 86_400
    look = await scene.watch().run()
    assert look is not None
    assert look.number == 19
    assert await scene.watch().run() is None
    assert await scene.published() == scene.canary


async def test_c57_there_is_no_look_without_terms_or_before_the_first_is_due(scene: Scene) -> None:
    await scene.serve(candidate_fails=True)
    scene.stores.clock.now = scene.canary.moved_s + 599
    assert await scene.watch().run() is None
    signed = Signature(by="somebody", at_s=int(scene.stores.clock.now))
    await scene.stores.publications.move(
        publish_canary(scene.canary, CANDIDATE, 50, signed), an_entry()
    )
    scene.stores.clock.now += 86_400
    assert await scene.watch().run() is None


async def test_c57_a_candidate_without_traffic_is_neither_judged_nor_moved(scene: Scene) -> None:
    scene.stores.clock.now = scene.canary.moved_s + FIRST_LOOK_S
    look = await scene.watch().run()
    assert look is not None
    assert (look.state, look.requests) == ("no_traffic", 0)
    assert await scene.published() == scene.canary


async def test_c57_of_two_sweepers_at_once_one_takes_the_candidate_back(scene: Scene) -> None:
    await scene.serve(candidate_fails=True)
    looks = await asyncio.gather(*(scene.watch().run() for _ in range(4)))
    assert sum(look is not None for look in looks) == 1
    assert [each.revision for each in await scene.stores.publications.history()] == [3, 2, 1]


async def test_c57_a_candidate_replaced_in_mid_test_is_left_alone(scene: Scene) -> None:
    await scene.serve(candidate_fails=True)
    _, slow = meddled(scene.stores)
    assert await slow.publications.publication() == scene.canary  # as a sweeper that is late
    signed = Signature(by="somebody", at_s=int(scene.stores.clock.now))
    replaced = publish_canary(scene.canary, NEXT, 10, signed, terms=TERMS)
    await scene.stores.publications.move(replaced, an_entry())
    look = await scene.watch(slow).run()
    assert look is not None
    assert look.broken == "errors"
    assert await scene.published() == replaced
    assert await scene.watch().run() is None
    scene.stores.clock.now = replaced.moved_s + FIRST_LOOK_S
    look = await scene.watch().run()
    assert look is not None
    assert (look.revision, look.number, look.state) == (3, 1, "no_traffic")
    assert await scene.published() == replaced


async def test_c57_a_look_at_a_later_candidate_says_nothing_of_an_earlier_one(scene: Scene) -> None:
    await scene.serve(candidate_fails=True)
    _, late = meddled(scene.stores)
    assert await late.publications.publication() == scene.canary
    signed = Signature(by="somebody", at_s=int(scene.stores.clock.now))
    other = Terms(worse_percent={"cost": 1}, false_alarms_percent=5)
    replaced = publish_canary(scene.canary, NEXT, 10, signed, terms=other)
    await scene.stores.publications.move(replaced, an_entry())
    look = Look(
        revision=replaced.revision,
        number=1,
        at_s=signed.at_s,
        state="broken",
        requests=1,
        live_requests=1,
        keys=1,
        live_keys=1,
        figures={"cost": FigureRead(live=1, candidate=2)},
        broken="cost",
    )
    assert await scene.stores.publications.keep_look(look)
    await scene.watch(late).run()
    assert await scene.published() == replaced


async def test_c57_a_store_that_fails_in_the_middle_leaves_the_pointer_whole(
    scene: Scene,
) -> None:
    await scene.serve(candidate_fails=True)
    for fault, matches, moved in (
        ("refuse", is_look, False),
        ("refuse", is_move, False),
        ("lose", is_move, True),
    ):
        meddler, behind = meddled(scene.stores)
        meddler.meddle = first(fault, matches)
        with pytest.raises(LedgerError):
            await scene.watch(behind).run()
        history = await scene.stores.publications.history()
        assert len(history) == (3 if moved else 2)
        assert (history[0].candidate is None) is moved
        await scene.stores.clock.sleep(5)
    assert await scene.watch().run() is None
    assert len(await scene.stores.publications.history()) == 3


async def test_c57_the_next_sweep_carries_out_what_a_killed_one_decided(scene: Scene) -> None:
    await scene.serve(candidate_fails=True)
    meddler, behind = meddled(scene.stores)
    meddler.meddle = first("refuse", is_move)
    with pytest.raises(LedgerError):
        await scene.watch(behind).run()
    assert (await scene.stores.publications.look()) is not None
    look = await scene.watch().run()
    assert look is not None
    assert (await scene.published()).candidate is None


def is_look(payload: Mapping[str, object]) -> bool:
    item = payload.get("Item")
    return isinstance(item, dict) and item.items() >= CANARY_LOOK_KEY.items()


def is_move(payload: Mapping[str, object]) -> bool:
    return "TransactItems" in payload
