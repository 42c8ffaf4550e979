"""The live catalog and its history, as keys of tenants and of the operator see them.

Keeps C54, C57.
"""

from msgspec.structs import replace

from tests.memory.publications import MemoryPublications
from tests.unit.web.test_api_app import api
from tollgate.core.routing.publication import (
    Signature,
    publish_canary,
    publish_to_all,
    withdraw_canary,
)

FIRST = publish_to_all(None, "a" * 64, Signature(by="ada", at_s=1_790_000_000, commit="c0ffee"))
CANARY = publish_canary(FIRST, "b" * 64, 5, Signature(by="bob", at_s=1_790_000_100))


async def test_c54_the_operator_sees_who_published_which_catalog_for_what_share() -> None:
    call = await api()
    call.changes["publications"] = MemoryPublications(FIRST, CANARY)
    shown = (await call("GET", "/v1/catalog", key=call.management)).json["data"]
    assert shown["sha"] == call.home.catalog.sha
    assert shown["models"] == len(call.home.catalog.models)
    latest, first = shown["history"]
    assert (latest["live"], latest["candidate"], latest["percent"]) == ("a" * 64, "b" * 64, 5)
    assert (latest["revision"], latest["published_by"], latest["commit"]) == (2, "bob", None)
    assert (first["published_by"], first["commit"]) == ("ada", "c0ffee")
    assert first["published_at"] == "2026-09-21T14:13:20Z"


async def test_c57_the_operator_alone_sees_why_a_candidate_was_taken_back() -> None:
    call = await api()
    back = withdraw_canary(CANARY, "errors 9.00 % against 1.00 %", Signature(by="sweeper", at_s=1))
    call.changes["publications"] = MemoryPublications(FIRST, CANARY, back)
    shown = (await call("GET", "/v1/catalog", key=call.management)).json["data"]["history"]
    assert shown[0]["withdrawn"] == "errors 9.00 % against 1.00 %"
    assert (shown[0]["candidate"], shown[1]["withdrawn"]) == (None, None)
    others = (await call("GET", "/v1/catalog", key=call.stranger)).json["data"]["history"]
    assert [each["withdrawn"] for each in others] == [None] * 3


async def test_another_workspace_sees_the_catalogs_without_their_authors() -> None:
    call = await api()
    call.changes["publications"] = MemoryPublications(replace(FIRST, commit="c0ffee"))
    reply = await call("GET", "/v1/catalog", key=call.stranger)
    [first] = reply.json["data"]["history"]
    assert (first["live"], first["published_by"], first["commit"]) == ("a" * 64, None, None)
