"""A temporary stack with one route whose stream ends with error trailers, and a client for it."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

_FOLDER: Final = Path(__file__).parent
_TIMEOUT_S: Final = 60.0
# The time limit is ten minutes, although the creation takes about one minute.
_POLLING: Final = {"Delay": 5, "MaxAttempts": 120}
_SIZE: Final = re.compile(rb"([0-9a-fA-F]+)[^\r\n]*\r\n")


class StreamEnd(Enum):
    """The end of a chunked body, as seen by a client."""

    TRAILERS = "it ended, and the trailers arrived with it"
    CLEAN = "it ended like a complete answer, without trailers"
    BROKEN = "the connection broke off"
    ABSENT = "there was no stream"


@asynccontextmanager
async def trailers_stack(formation: Any, name: str) -> AsyncIterator[str]:
    """Create the stack, yield its URL, and always delete the stack."""
    try:
        formation.create_stack(
            StackName=name,
            TemplateBody=(_FOLDER / "trailers.yaml").read_text(),
            Parameters=[
                {
                    "ParameterKey": "Code",
                    "ParameterValue": (_FOLDER / "trailers_function.py").read_text(),
                }
            ],
            Capabilities=["CAPABILITY_IAM"],
            OnFailure="DELETE",
        )
        formation.get_waiter("stack_create_complete").wait(StackName=name, WaiterConfig=_POLLING)
        (stack,) = formation.describe_stacks(StackName=name)["Stacks"]
        (output,) = stack["Outputs"]
        yield str(output["OutputValue"])
    finally:
        formation.delete_stack(StackName=name)
        formation.get_waiter("stack_delete_complete").wait(StackName=name, WaiterConfig=_POLLING)


async def read_stream_end(url: str) -> StreamEnd:
    """Send GET over HTTP/1.1 and return how the body ended; raise OSError without an answer.

    The function reads raw bytes, because HTTP clients skip trailers.
    """
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    async with asyncio.timeout(_TIMEOUT_S):
        reader, writer = await asyncio.open_connection(
            parts.hostname, parts.port or (443 if secure else 80), ssl=secure or None
        )
        try:
            lines = (f"GET {parts.path or '/'} HTTP/1.1", f"Host: {parts.netloc}")
            writer.write("\r\n".join((*lines, "Connection: close", "", "")).encode())
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            if b" 200 " not in head.partition(b"\r\n")[0] or b"chunked" not in head:
                return StreamEnd.ABSENT
            return await _read_chunks(reader)
        except (asyncio.IncompleteReadError, ConnectionError):
            return StreamEnd.BROKEN
        finally:
            writer.close()


async def _read_chunks(reader: asyncio.StreamReader) -> StreamEnd:
    while found := _SIZE.fullmatch(await reader.readuntil(b"\r\n")):
        size = int(found[1], 16)
        if size == 0:
            return StreamEnd.CLEAN if await reader.readline() == b"\r\n" else StreamEnd.TRAILERS
        await reader.readexactly(size + 2)
    return StreamEnd.BROKEN
