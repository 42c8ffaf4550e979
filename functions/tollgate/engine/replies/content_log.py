"""Stores requests and answers for a limited number of days, for keys that opt in."""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, Protocol

from msgspec import to_builtins
from pydantic_core import to_json

from tollgate.core import transcripts
from tollgate.core.content import Part
from tollgate.core.errors import GatewayError
from tollgate.core.events import ChosenGroup, Output, Partial
from tollgate.core.json_value import JsonValue
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.request import GenerationRequest
from tollgate.core.response import Fold
from tollgate.core.transcripts import ChatTranscript
from tollgate.core.work.base import Work
from tollgate.engine.replies.sink import EventSink
from tollgate.engine.side_thread import LARGE_BYTES, SideThread
from tollgate.ingress.base import ServedBy
from tollgate.stores.ports.base import Hold

_log: Final = logging.getLogger(__name__)


class ContentLog(Protocol):
    """A store of requests and answers as JSON; each entry has its own retention in days."""

    async def keep(
        self, workspace_id: str, generation_id: str, content: bytes, *, days: int
    ) -> None:
        """Store the content of a generation; raise LedgerError(service_unavailable) on failure."""

    async def get(
        self, workspace_id: str, generation_id: str, *, days: int | None = None
    ) -> bytes | None:
        """Return the content of a generation; None if it was not stored or has expired.

        `days` is the most likely retention of the entry and is tried first.
        """


class ContentSink:
    """A sink that forwards a generation and stores its content, however the generation ends.

    Until then, the content is also the current transcript, which spans may show.

    `body` is the caller's request body, a JSON object that has been parsed before. If the content
    cannot be stored, only a warning is logged, because the answer is already paid for.
    """

    def __init__(
        self,
        sink: EventSink,
        contents: ContentLog,
        *,
        side: SideThread,
        body: bytes,
        work: Work,
        days: int,
    ) -> None:
        self._sink = sink
        self._contents = contents
        self._side = side
        self._body = body
        self._work = work
        self._folds = [Fold() for _ in range(work.answers)]
        self._days = days

    @asynccontextmanager
    async def open(self, hold: Hold) -> AsyncIterator[None]:
        if isinstance(self._work, GenerationRequest):
            transcripts.share_transcript(ChatTranscript(request=self._work, answers=self._folds))
        async with self._sink.open(hold):
            try:
                yield
            finally:
                transcripts.withdraw_transcript()
                # The content is stored before the last byte is sent, because the platform may
                # freeze the process right after it.
                await self._keep(hold)

    async def begin(self, served: ServedBy) -> None:
        await self._sink.begin(served)

    async def send(self, events: Sequence[ChosenGroup]) -> None:
        for choice, event in events:
            # Results of other kinds of work may be large and would have to be held in memory, so
            # they are not stored.
            if not isinstance(event, Output | Partial):
                self._folds[choice].accept(event)
        await self._sink.send(events)

    async def finish(self, record: GenerationRecord) -> None:
        await self._sink.finish(record)

    async def fail(self, error: GatewayError, record: GenerationRecord) -> None:
        await self._sink.fail(error, record)

    async def _keep(self, hold: Hold) -> None:
        is_large = len(self._body) + sum(fold.size for fold in self._folds) > LARGE_BYTES
        encode = partial(self._encode, f"gen-{hold.id}")
        content = await self._side.run(hold.workspace_id, encode, is_large=is_large)
        try:
            await self._contents.keep(hold.workspace_id, hold.id, content, days=self._days)
        except GatewayError as failure:
            _log.warning("content of generation %s could not be stored: %s", hold.id, failure)

    def _encode(self, id_: str) -> bytes:
        choices = b",".join(map(_encode_parts, self._folds))
        # Decoding and encoding the request again would take up to a second.
        pieces = (b'{"id":', to_json(id_), b',"request":', self._body, b',"choices":[', choices)
        return b"".join((*pieces, b"]}"))


def _encode_parts(fold: Fold) -> bytes:
    """Return the parts of an answer as a JSON array, encoded one by one (decision 231)."""
    return b"[" + b",".join([to_json(_shown(part)) for part in fold.parts]) + b"]"


def _shown(part: Part) -> dict[str, JsonValue]:
    """Return the fields of a part without `native`, which only parts of requests use."""
    fields: dict[str, JsonValue] = to_builtins(part)
    fields.pop("native", None)
    return fields
