"""Reads stored turns before a generation, and stores the response after it."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, Protocol, TypeVar

from msgspec.structs import replace
from pydantic_core import to_json

from tollgate.core.clock import Deadline
from tollgate.core.errors import ErrorCode, GatewayError, LedgerError, RequestError
from tollgate.core.events import ChosenGroup
from tollgate.core.json_value import JsonObject
from tollgate.core.ownership import OwnerScope
from tollgate.core.principal import Principal
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.response import Fold
from tollgate.engine.gateway import Call, Gateway
from tollgate.engine.generate import SETTLE_BUDGET_S
from tollgate.engine.replies.content_log import ContentLog
from tollgate.engine.replies.sink import EventSink
from tollgate.engine.side_thread import LARGE_BYTES, SideThread
from tollgate.ingress.base import Ingress, ParsedCall, Seal, ServedBy
from tollgate.ingress.responses.stored import (
    PREVIOUS,
    StoredResponse,
    StoredTurns,
    encode_stored,
    numbered,
    references_of,
    response_generation,
)
from tollgate.ingress.validation import decode_object
from tollgate.stores.ports.base import Hold
from tollgate.web.generation.recorded_reads import RecordedReads
from tollgate.web.http.reply import REPLY_BYTES_MAX, size_in_reply

_log: Final = logging.getLogger(__name__)

# Maximum size of a response with its input. Longer conversations are answered but not stored.
RESPONSE_BYTES_MAX: Final = 8 * 1024 * 1024
# The latest response of a conversation contains all items, so one read is usually enough.
_READS_MAX: Final = 8
_READ_BYTES_MAX: Final = 2 * RESPONSE_BYTES_MAX
# Maximum time that the end of a reply waits for the store.
_STORE_BUDGET_S: Final = 4.0
# Time left to send the last bytes before the platform ends the invocation.
_LAST_BYTES_S: Final = 1.0

_Result = TypeVar("_Result")


class ParseRead(Protocol):
    """Parses a decoded request together with its stored turns and the workspace's seal."""

    def __call__(
        self, body: JsonObject, /, *, size_bytes: int, turns: StoredTurns | None, seal: Seal | None
    ) -> ParsedCall: ...


async def parse_with_turns(
    responses: ContentLog | None,
    body: bytes,
    parse: ParseRead,
    *,
    principal: Principal,
    reach: OwnerScope,
    reads: RecordedReads | None = None,
    admit: Callable[[], Awaitable[None]],
    read_seal: Callable[[], Awaitable[Seal | None]],
    compacts: bool,
    side: SideThread,
) -> ParsedCall:
    """Parse a request together with the stored turns that it refers to.

    `responses` is None for a key that stores no responses. `read_seal` is called if `compacts` is
    set or a stored turn contains a compaction item. `admit` is awaited before stored turns or the
    seal are read; `reads` records the stored turns of others. Raises the error of `admit`, and
    RequestError with the invalid field.
    """
    days = principal.response_days or 0
    reader = _Reader(
        responses, principal.workspace_id, reach, days, reads=reads, admit=admit, side=side
    )
    request = await reader.compute(len(body), partial(decode_object, body))
    turns = None if responses is None else await reader.read(request)
    seal: Seal | None = None
    if compacts or (turns is not None and turns.has_compactions):
        await admit()
        seal = await read_seal()
    parsing = partial(parse, request, size_bytes=len(body), turns=turns, seal=seal)
    return await reader.compute(len(body) + reader.read_bytes, parsing)


class _Reader:
    """Reads the stored responses that one request refers to."""

    def __init__(
        self,
        responses: ContentLog | None,
        workspace_id: str,
        reach: OwnerScope,
        days: int,
        *,
        reads: RecordedReads | None,
        admit: Callable[[], Awaitable[None]],
        side: SideThread,
    ) -> None:
        self._responses = responses
        self._workspace_id = workspace_id
        self._reach = reach
        self._days = days
        self._reads = reads
        self._admit = admit
        self._side = side
        self.read_bytes = 0

    async def compute(self, size_bytes: int, work: Callable[[], _Result]) -> _Result:
        """Return the result of work on this many bytes, computed outside the event loop if they are
        many.
        """
        is_large = size_bytes > LARGE_BYTES
        return await self._side.run(self._workspace_id, work, is_large=is_large)

    async def read(self, request: JsonObject) -> StoredTurns:
        """Return the turns that a request refers to; the request has not been validated yet."""
        earlier: tuple[JsonObject, ...] = ()
        previous = request.get(PREVIOUS)
        if isinstance(previous, str):
            generation_id = response_generation(previous)
            stored = await self._get(generation_id) if generation_id else None
            if stored is None:
                raise _unknown_previous(previous if generation_id else "")
            earlier = stored.conversation
        wanted = dict(references_of(request.get("input")))
        if not wanted:
            return StoredTurns(earlier=earlier)
        known = {str(item["id"]): item for item in earlier if "id" in item}
        named = {generation for generation in wanted.values() if generation}
        # Ids are ordered by time: newer responses are read first, because they contain the most
        # items.
        for generation in sorted(named, reverse=True)[:_READS_MAX]:
            found_all = all(id_ in known for id_, of in wanted.items() if of is not None)
            if found_all or self.read_bytes > _READ_BYTES_MAX:
                break
            stored = await self._get(generation)
            if stored is not None:
                found = {str(item["id"]): item for item in stored.conversation if "id" in item}
                known = found | known
        return StoredTurns(earlier=earlier, referenced=known)

    async def _get(self, generation_id: str) -> StoredResponse | None:
        if self._responses is None:
            return None
        await self._admit()
        stored = await self._responses.get(self._workspace_id, generation_id, days=self._days)
        if stored is None:
            return None
        self.read_bytes += len(stored)
        try:
            response = await self.compute(len(stored), partial(StoredResponse.from_bytes, stored))
        except ValueError as corrupt:
            _log.error("the stored response resp_%s is corrupt: %s", generation_id, corrupt)
            return None
        if not response.is_reached(self._reach):
            return None
        if self._reads is not None:
            await self._reads.note("response", f"resp_{generation_id}", response.owner)
        return response


def _unknown_previous(id_: str) -> RequestError:
    """Return the refusal with OpenAI's code; clients that get this code send the whole conversation
    again.
    """
    named = f"Previous response with id '{id_}'" if id_ else "Previous response"
    return RequestError(
        ErrorCode.PREVIOUS_RESPONSE_NOT_FOUND,
        f"{named} not found: this workspace has no such stored response. Send the whole "
        "conversation in `input`.",
        param=PREVIOUS,
    )


class StoringSink:
    """Passes a generation on, and stores its response once it is complete.

    A response that cannot be stored is still sent and billed, but marked `store: false`.
    """

    def __init__(
        self,
        sink: EventSink,
        *,
        responses: ContentLog,
        call: Call,
        input_: Sequence[JsonObject],
        gateway: Gateway,
        ingress: Ingress,
        days: int,
    ) -> None:
        self._sink = sink
        self._responses = responses
        self._gateway = gateway
        self._ingress = ingress
        self._call = call
        self._input = input_
        self._days = days
        self._fold = Fold()
        self._served: ServedBy | None = None

    @asynccontextmanager
    async def open(self, hold: Hold) -> AsyncIterator[None]:
        async with self._sink.open(hold):
            yield

    async def begin(self, served: ServedBy) -> None:
        self._served = served
        await self._sink.begin(served)

    async def send(self, events: Sequence[ChosenGroup]) -> None:
        for _, event in events:
            self._fold.accept(event)
        await self._sink.send(events)

    async def finish(self, record: GenerationRecord) -> None:
        # The response is stored before the last bytes are sent, because afterwards the client may
        # read the response and the platform may freeze the process.
        try:
            await self._keep(record)
        except (GatewayError, TimeoutError) as failure:
            _log.warning("response %s could not be stored: %s", record.id, failure)
            record = replace(record, adapted=(*record.adapted, "store"))
        await self._sink.finish(record)

    async def fail(self, error: GatewayError, record: GenerationRecord) -> None:
        await self._sink.fail(error, record)

    async def _keep(self, record: GenerationRecord) -> None:
        call = self._call
        if self._served is None:
            raise RuntimeError("finish() before begin()")
        renderer = self._ingress.renderer(
            call.parsed, self._served, credits_per_usd=self._gateway.credits_per_usd
        )
        response = self._fold.response()

        owner = call.principal.owner

        def encode() -> bytes:
            items = numbered(self._input, record.id)
            return encode_readable(renderer.whole([response], record), items, owner=owner)

        workspace_id = call.principal.workspace_id
        is_large = call.is_large or self._fold.size > LARGE_BYTES
        content = await self._gateway.side.run(workspace_id, encode, is_large=is_large)
        # Settlement has a budget after the deadline, and may have used all of it.
        end_s = call.deadline.at_s + SETTLE_BUDGET_S - _LAST_BYTES_S
        left_s = Deadline(call.deadline.clock, end_s).remaining_s()
        async with asyncio.timeout(min(_STORE_BUDGET_S, left_s)):
            await self._responses.keep(workspace_id, record.id, content, days=self._days)


def encode_readable(response: bytes, items: Sequence[JsonObject], *, owner: str | None) -> bytes:
    """Encode a response and its items; raise LedgerError if they could not be read or shown again.

    The items of a response become items of the next input.
    """
    content = encode_stored(response, items, owner=owner)
    if len(content) > RESPONSE_BYTES_MAX:
        raise LedgerError(
            ErrorCode.PAYLOAD_TOO_LARGE, f"it has more than {RESPONSE_BYTES_MAX:,} bytes"
        )
    # Numbers like `1e999` are read as infinity, which JSON cannot express. The check decodes the
    # content, because a string may also contain the word.
    if b"Infinity" in content:
        try:
            StoredResponse.from_bytes(content)
        except ValueError as unreadable:
            raise LedgerError(
                ErrorCode.INVALID_REQUEST, "it has an infinite number"
            ) from unreadable
    # Escaping in a reply at most doubles the size.
    if len(content) > REPLY_BYTES_MAX // 2:
        shown = (response, *map(to_json, items))
        if max(map(size_in_reply, shown)) > REPLY_BYTES_MAX:
            raise LedgerError(ErrorCode.PAYLOAD_TOO_LARGE, "it would not fit into a reply")
    return content
