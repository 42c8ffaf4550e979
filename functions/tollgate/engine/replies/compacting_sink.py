"""A sink that turns a compacted conversation into one sealed compaction item."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from msgspec.structs import replace

from tollgate.core.compaction import Compacted
from tollgate.core.content import Provenance, Reasoning, Text
from tollgate.core.errors import ErrorCode, GatewayError, UpstreamError
from tollgate.core.events import (
    ChosenGroup,
    Ended,
    PartEnd,
    PartStart,
    Started,
    UsageReported,
    ungroup,
)
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.response import Fold
from tollgate.engine.replies.sink import EventSink
from tollgate.ingress.base import RecordPacker, ServedBy
from tollgate.stores.ports.base import Hold

# Anthropic's reason for an answer that is a compaction.
_FINISH: Final = "compaction"


class CompactingSink:
    """Forwards a completed answer as one compaction item.

    An answer without text or an item counts as a failure, which the caller does not pay for.
    """

    def __init__(self, sink: EventSink, packer: RecordPacker) -> None:
        self._sink = sink
        self._packer = packer
        self._fold = Fold()
        self._generation_id = ""
        self._provider: str | None = None
        self.compacted = Compacted()
        """The result, once the answer has ended."""

    @asynccontextmanager
    async def open(self, hold: Hold) -> AsyncIterator[None]:
        self._generation_id = hold.id
        async with self._sink.open(hold):
            yield

    async def begin(self, served: ServedBy) -> None:
        self._provider = served.provider
        await self._sink.begin(served)

    async def send(self, events: Sequence[ChosenGroup]) -> None:
        forwarded: list[ChosenGroup] = []
        for choice, event in ungroup(events):
            self._fold.accept(event)
            match event:
                case Started() | UsageReported():
                    forwarded.append((choice, event))
                case Ended():
                    forwarded += ((choice, part_event) for part_event in self._item())
                    # The item is complete even if the output limit cut the record short.
                    ended = replace(event, finish="stop", raw_finish=_FINISH)
                    forwarded.append((choice, ended))
                case _:
                    pass
        await self._sink.send(forwarded)

    def _item(self) -> tuple[PartStart, PartEnd]:
        self.compacted = self._result()
        item = self._packer.pack(self.compacted, self._generation_id)
        return (
            PartStart(index=0, part=Reasoning(text="", provenance=item)),
            PartEnd(index=0, provenance=item),
        )

    def _result(self) -> Compacted:
        for part in self._fold.parts:
            match part:
                case Reasoning(provenance=Provenance(is_compaction=True, data=str(content))):
                    return Compacted(content=content, provider=self._provider)
                case _:
                    pass
        texts = (part.text for part in self._fold.parts if isinstance(part, Text))
        record = "".join(texts)
        if not record.strip():
            raise UpstreamError(
                ErrorCode.PROVIDER_UNAVAILABLE, "The model wrote no record of the conversation."
            )
        return Compacted(record=record)

    async def finish(self, record: GenerationRecord) -> None:
        await self._sink.finish(record)

    async def fail(self, error: GatewayError, record: GenerationRecord) -> None:
        await self._sink.fail(error, record)
