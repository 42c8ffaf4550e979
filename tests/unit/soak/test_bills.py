"""The bills of a soak beside what its callers were told: each seeded wrong is found."""

import dataclasses
from collections import Counter
from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from tests.soak.accounts import SoakKey
from tests.soak.books import check_bills, check_item
from tests.soak.callers import Asked, Ending, Told
from tests.unit.ingress.samples import RECORD
from tollgate.aws.attributes import Item, number, string
from tollgate.core.records.generation import GenerationRecord

KEY = SoakKey(name="plain", workspace_id="rich", secret="s", share=1)
ASKED = Asked(number=1, format_name="messages", key=KEY, body=b"", streamed=True)
WORDS = 7
# Nine tokens of a prompt, and a word for each token of the answer.
DUE = 9 * 1_000 + WORDS * 2_000


def told(ending: Ending, generation_id: str = "g-1", **more: bool) -> Told:
    words = WORDS if ending == "delivered" else 0
    return Told(
        asked=ASKED,
        server=0,
        sent_s=0.0,
        ending=ending,
        generation_id=generation_id,
        words=words,
        **more,
    )


def record(cost: int, generation_id: str = "g-1", outcome: str = "ok") -> GenerationRecord:
    return replace(RECORD, id=generation_id, cost_nano_usd=cost, outcome=outcome)


def wrong(them: Iterable[Told], *records: GenerationRecord) -> list[str]:
    return check_bills(list(them), {it.id: it for it in records}, Counter())


@pytest.mark.parametrize(
    ("them", "records"),
    [
        ([told("delivered")], [record(DUE)]),
        ([told("delivered"), told("delivered", replayed=True)], [record(DUE)]),
        ([told("delivered", replayed=True), told("delivered")], [record(DUE)]),
        ([told("refused")], []),
        ([told("refused")], [record(0, outcome="error")]),
        # These may be billed: the caller was told so, or has read a part.
        ([told("unknown")], [record(DUE)]),
        ([told("left")], [record(DUE, outcome="cancelled")]),
        # One that saw no id may be the one that is billed.
        ([told("broken", "")], [record(DUE)]),
    ],
)
def test_what_is_right_passes(them: list[Told], records: list[GenerationRecord]) -> None:
    assert wrong(them, *records) == []


@pytest.mark.parametrize(
    ("them", "records"),
    [
        # A record that was not written, one of another cost, one that says something else.
        ([told("delivered")], []),
        ([told("delivered")], [record(DUE + 1)]),
        ([told("delivered")], [record(0, outcome="lost")]),
        # An answer that was billed twice, under two ids, and one id for two answers.
        ([told("delivered")], [record(DUE), record(DUE, "g-2")]),
        ([told("delivered"), told("delivered")], [record(DUE)]),
        # A replay of nothing, and of another answer.
        ([told("delivered", replayed=True)], []),
        ([told("delivered", replayed=True)], [record(DUE + 2_000)]),
        # A refusal that is billed.
        ([told("refused")], [record(DUE)]),
        # Nobody was there.
        ([told("away", "")], [record(DUE)]),
        ([told("unreadable")], [record(DUE)]),
    ],
)
def test_what_is_wrong_is_found(them: list[Told], records: list[GenerationRecord]) -> None:
    assert len(wrong(them, *records)) >= 1


def test_a_request_that_is_generated_again_under_its_idempotency_key_is_found() -> None:
    again = replace_asked(told("delivered"), "k-1"), replace_asked(told("delivered", "g-2"), "k-1")
    records = {it.id: it for it in (record(DUE), record(DUE, "g-2"))}
    both = frozenset(records)
    assert check_bills(again, records, Counter(), calm=both) == ["k-1 was generated 2 times"]
    # A fault may have kept the first answer from being stored.
    assert check_bills(again, records, Counter(), calm=frozenset({"g-2"})) == []


def replace_asked(it: Told, idempotency_key: str) -> Told:
    it.asked = dataclasses.replace(it.asked, idempotency_key=idempotency_key)
    return it


def shard(**changes: int) -> Item:
    values = {"av": 70, "sp": 30, "gr": 100} | changes
    return {
        "pk": string("W#rich#0"),
        "h": {"M": {}},
        **{name: number(value) for name, value in values.items()},
    }


def state(**changes: int) -> Item:
    values = {"lm": 1_000, "us": 30, "b_202611": 970} | changes
    return {
        "pk": string("K#key"),
        "ws": string("rich"),
        "h": {"M": {}},
        **{name: number(value) for name, value in values.items()},
    }


def test_items_of_the_ledger_add_up_or_are_named() -> None:
    assert check_item(shard()) == check_item(state()) == []
    assert check_item(state(b_202612=990, us=40)) == []
    assert check_item(shard(sp=29)) == ["I1: W#rich#0 adds up to 99"]
    assert check_item(state(us=29)) == ["I6: K#key counts 30 in its months, spent 29"]
