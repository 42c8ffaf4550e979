"""A block of many pieces costs what its bytes cost, and not their square."""

import pytest

from tollgate.core.content import Provenance
from tollgate.providers.codecs.anthropic.blocks import Blocks
from tollgate.providers.codecs.anthropic.wire import (
    BlockDelta,
    CompactionDelta,
    ContentBlock,
    OtherBlock,
    SignatureDelta,
    ThinkingBlock,
)

PIECES = 100


class Counted(str):
    """Text that counts the characters that additions copy."""

    copied = 0

    def __add__(self, other: str) -> "Counted":
        return Counted(super().__add__(other))._count()

    def __radd__(self, other: str) -> "Counted":
        return Counted(str(other) + str(self))._count()

    def _count(self) -> "Counted":
        Counted.copied += len(self)
        return self


@pytest.mark.parametrize(
    ("block", "delta"),
    [
        (
            ThinkingBlock(type="thinking", thinking="", signature=""),
            SignatureDelta.model_construct(type="signature_delta", signature=Counted("s")),
        ),
        (
            OtherBlock(type="compaction"),
            CompactionDelta.model_construct(type="compaction_delta", content=Counted("s")),
        ),
    ],
    ids=["signature", "compaction"],
)
def test_pieces_are_joined_once(block: ContentBlock, delta: BlockDelta) -> None:
    blocks = Blocks("claude")
    list(blocks.start(0, block))
    Counted.copied = 0
    for _ in range(PIECES):
        list(blocks.more(0, delta))
    [ended] = blocks.parts.close(0)
    assert isinstance(ended.provenance, Provenance)
    assert "s" * PIECES in (ended.provenance.signature or ended.provenance.data or "")
    assert Counted.copied <= PIECES
