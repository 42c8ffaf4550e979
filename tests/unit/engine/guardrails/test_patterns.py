"""C56: every hostile text of the table is found, whole and in pieces, and nothing else.

Keeps C56.
"""

import asyncio
import random
from collections.abc import Sequence
from itertools import product
from typing import Final, get_args

import pytest

from tests.unit.engine.guardrails.hostile_texts import (
    DISGUISES,
    ENCODINGS,
    FRAMES,
    HARMLESS,
    PLAIN,
)
from tollgate.core.clock import SystemClock
from tollgate.engine.guardrails.judging import Judging
from tollgate.engine.guardrails.patterns import find
from tollgate.engine.guardrails.text_filters import PatternFilter
from tollgate.routing.guardrail_sections import Finding, GuardSection

EVERY: Final[tuple[Finding, ...]] = get_args(Finding)
TABLE: Final = [(kind, text) for kind, texts in PLAIN.items() for text in texts]


class _Records:
    """The part of a meter that judgements use."""

    def __init__(self) -> None:
        self.judgements: dict[tuple[str, str], object] = {}


def row(*, base64: bool = False, window: int = 128) -> GuardSection:
    return GuardSection.model_validate(
        {
            "patterns": {"finds": EVERY, "base64": base64},
            "action": "mask",
            "window": window,
        }
    )


async def filtered(pieces: Sequence[str], *, base64: bool = False) -> list[str]:
    """What a filter lets through after each piece, and at the end."""
    section = row(base64=base64)
    assert section.patterns is not None
    judging = Judging({"all": section}, {}, _Records(), SystemClock())  # type: ignore[arg-type]
    filter_ = PatternFilter(judging, "all", row=section, patterns=section.patterns, stage="output")
    shown = [await filter_.feed(piece) for piece in pieces]
    return [*shown, await filter_.feed("", is_last=True)]


@pytest.mark.parametrize("disguise", DISGUISES)
def test_c56_disguises_are_seen_through_in_every_frame(disguise: str) -> None:
    for (kind, text), frame in product(TABLE, FRAMES):
        if disguise == "arabic_digits" and kind == "secret":
            continue
        hidden = frame.format(DISGUISES[disguise](text))
        found = find(hidden, [kind])
        assert [match.finding for match in found] == [kind], hidden
        (match,) = found
        # The mask leaves nothing of it.
        rest = hidden[: match.begin] + hidden[match.end :]
        assert not set(rest) & set("0123456789@_"), (hidden, rest)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_c56_base64_is_looked_into_only_where_the_row_says(encoding: str) -> None:
    for kind, text in TABLE:
        hidden = ENCODINGS[encoding](text)
        assert [match.finding for match in find(hidden, [kind], base64=True)] == [kind], text
        assert find(hidden, ["card_number", "email"]) == []


@pytest.mark.parametrize("text", HARMLESS)
def test_harmless_texts_pass(text: str) -> None:
    assert find(text, EVERY, base64=True) == []


@pytest.mark.parametrize("disguise", DISGUISES)
def test_c56_no_piece_of_a_match_is_let_through_wherever_a_text_is_cut(disguise: str) -> None:
    chance = random.Random(disguise)
    before, after = "The quick brown fox. " * 9, " and then it jumps" * 9

    async def run() -> None:
        for kind, text in TABLE:
            hidden = DISGUISES[disguise](text)
            whole = f"{before}({hidden}){after}"
            (match,) = find(whole, [kind])[:1]
            expected = whole[: match.begin] + f"[{kind}]" + whole[match.end :]
            pieces, place = [], 0
            while place < len(whole):
                size = chance.randint(1, 60)
                pieces.append(whole[place : place + size])
                place += size
            shown = await filtered(pieces)
            assert "".join(shown) in (expected, *_by_every(whole)), pieces
            # Text goes on before the end.
            assert any(shown[:-1])

    asyncio.run(run())


def _by_every(whole: str) -> tuple[str, ...]:
    """The text as all patterns together mask it."""
    masked, place = "", 0
    for match in find(whole, EVERY):
        masked += whole[place : match.begin] + f"[{match.finding}]"
        place = match.end
    return (masked + whole[place:],)


async def test_c56_a_long_run_of_base64_is_held_whole_and_searched_rarely() -> None:
    run = ENCODINGS["base64"]("x" * 600 + " 4111111111111111 " + "y" * 600)
    shown = await filtered([*("a b " * 50), *run, *(" c d" * 50)], base64=True)
    assert "".join(shown) == "a b " * 50 + "[card_number]" + " c d" * 50


async def test_c56_a_match_is_masked_where_a_run_of_base64_begins_within_it() -> None:
    path = "/aZ0-_" * 12
    for kind, text in (("email", "bob@example.com"), ("card_number", "4111 1111 1111 1111")):
        for before in range(24, 60, 6):
            whole = "a " * before + text + path + " the end" * 40
            pieces = [whole[at : at + 7] for at in range(0, len(whole), 7)]
            shown = await filtered(pieces, base64=True)
            assert "".join(shown) == whole.replace(text, f"[{kind}]"), before


async def test_c56_what_is_not_there_is_let_through_unchanged() -> None:
    text = "Plain words, 12 of them, ünïcödé and 漢字. " * 40
    shown = await filtered([text[at : at + 7] for at in range(0, len(text), 7)], base64=True)
    assert "".join(shown) == text
    # Never more than the window, a quarter of it and one piece is held back.
    held = 0
    for place, piece in enumerate(shown[:-1]):
        held += len(text[7 * place : 7 * place + 7]) - len(piece)
        assert held <= 128 + 32 + 7
