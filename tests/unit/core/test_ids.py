"""Ids sort as time does.

Keeps C66, C67.
"""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.clocks import FixedClock
from tests.stores import HandClock
from tollgate.core.ids import (
    ALPHABET,
    ID_LENGTH,
    IdSource,
    created_s,
    encode_id,
    is_id,
    without_prefix,
)

raw_ids = st.binary(min_size=11, max_size=11)


@given(one=raw_ids, other=raw_ids)
def test_ids_sort_as_their_bytes_do(one: bytes, other: bytes) -> None:
    assert (encode_id(one) < encode_id(other)) == (one < other)


@given(raw=raw_ids)
def test_an_id_has_fifteen_characters_and_knows_its_second(raw: bytes) -> None:
    id_ = encode_id(raw)
    assert len(id_) == ID_LENGTH
    assert is_id(id_)
    assert created_s(id_) == int.from_bytes(raw[:4], "big")


def test_the_alphabet_is_in_ascii_order() -> None:
    assert list(ALPHABET) == sorted(set(ALPHABET))
    assert len(ALPHABET) == 64


def test_a_later_second_makes_a_later_id() -> None:
    earlier = IdSource(FixedClock(1_790_000_000.9), entropy=lambda size: b"\xff" * size).new_id()
    later = IdSource(FixedClock(1_790_000_001.0), entropy=bytes).new_id()
    assert earlier < later
    assert created_s(earlier) == 1_790_000_000


def test_c67_ids_of_one_second_sort_in_the_order_in_which_they_were_made() -> None:
    clock = HandClock(1_790_000_000.25)
    ids = IdSource(clock)
    made = [ids.new_id() for _ in range(200)]
    clock.now += 0.001
    made += [ids.new_id(), IdSource(clock).new_id()]
    assert made[:-1] == sorted(made[:-1])
    # Another process knows the time alone.
    assert made[-1] > made[-3]
    assert {created_s(id_) for id_ in made} == {1_790_000_000}


def test_a_clock_that_was_set_back_makes_ids_of_its_own_time() -> None:
    clock = HandClock(1_790_000_000.5)
    ids = IdSource(clock)
    ids.new_id()
    clock.now -= 3_600
    assert created_s(ids.new_id()) == 1_790_000_000 - 3_600


@pytest.mark.parametrize("text", ["", "short", "x" * 14, "x" * 16, "x" * 14 + "!", "é" * 15])
def test_what_is_not_an_id_is_known(text: str) -> None:
    assert not is_id(text)
    with pytest.raises(ValueError, match="not an id"):
        created_s(text)


@pytest.mark.parametrize("text", ["gen-abc", "resp_abc", "msg_abc", "abc"])
def test_c66_an_id_is_found_behind_its_prefix(text: str) -> None:
    assert without_prefix(text) == "abc"


def test_a_uuid7_is_the_vector_of_rfc_9562() -> None:
    """RFC 9562, A.6: 2022-02-22T19:22:22.000Z, rand_a 0xCC3, rand_b 0x18C4DC0C0C07398F."""
    entropy = bytes.fromhex("0cc318c4dc0c0c07398f")
    ids = IdSource(FixedClock(1_645_557_742.0), entropy=lambda size: entropy[:size])
    assert ids.new_uuid7() == "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"


@given(entropy=st.binary(min_size=10, max_size=10))
def test_a_uuid7_has_its_version_and_variant_whatever_the_entropy(entropy: bytes) -> None:
    made = uuid.UUID(IdSource(FixedClock(), entropy=lambda size: entropy).new_uuid7())
    assert made.version == 7
    assert made.variant == uuid.RFC_4122


def test_uuid7s_sort_by_the_millisecond() -> None:
    earlier = IdSource(FixedClock(1_790_000_000.001), entropy=lambda size: b"\xff" * size)
    later = IdSource(FixedClock(1_790_000_000.003), entropy=bytes)
    assert earlier.new_uuid7() < later.new_uuid7()
