"""Wires the function that reads documents."""

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from tollgate.core.clock import SystemClock
from tollgate.core.documents.reading import DocumentFault, ReadFault, ReadingReply, ReadingRequest
from tollgate.reading.limited import perform_in_time
from tollgate.settings import Settings
from tollgate.wiring.aws import wire_objects

# Time limit for loading up to 64 MiB from a bucket in the same region.
_READ_TIMEOUT_S = 20.0


async def perform_invoked(event: Mapping[str, object], settings: Settings) -> object:
    """Return the reply to an invocation, as values for JSON."""
    request = msgspec.convert(event, ReadingRequest)
    reply: ReadingReply
    if request.key is None:
        reply = perform_in_time(request)
    else:
        content = await _load(request.key, settings)
        if content is None:
            reply = ReadFault(fault=DocumentFault.MALFORMED)
        else:
            reply = perform_in_time(replace(request, content=content))
    return msgspec.to_builtins(reply)


async def _load(key: str, settings: Settings) -> bytes | None:
    objects = wire_objects(settings, SystemClock())
    if objects is None:
        return None
    try:
        return await objects.get(key, timeout_s=_READ_TIMEOUT_S)
    finally:
        await objects.close()
