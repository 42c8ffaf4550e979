"""The faults to simulate, each named by a suffix of the upstream model.

`:429`, `:529` and `:timeout` fail every request. `:500-once` fails the first request with each
body. `:drop-after-N` ends a stream after N pieces.
"""

import asyncio
import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

import pydantic_core

from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.providers.ports.base import UpstreamRefused

RETRY_AFTER_S: Final = 1
_REFUSALS: Final = {"429": (429, "rate_limit_error"), "529": (529, "overloaded_error")}
_FAULTS_AT_ONCE: Final = frozenset({"", *_REFUSALS, "500-once", "timeout"})
_BODIES_MAX: Final = 1024
"""The maximum number of failed bodies that `Faults` remembers; the oldest is forgotten first."""
_DROP: Final = re.compile(r"drop-after-(\d{1,6})")


class Faults:
    """Fails requests with the fault in the suffix of their model."""

    def __init__(self) -> None:
        self._failed_once: OrderedDict[str, None] = OrderedDict()

    async def fail_at_once(self, fault: str, digest: str) -> None:
        """Raise the refusal that `fault` names; for a timeout, never return.

        `digest` identifies the body of the request, because `500-once` fails each body only once.
        """
        if fault in _REFUSALS:
            raise simulated_refusal(*_REFUSALS[fault])
        if fault == "timeout":
            await asyncio.get_running_loop().create_future()
        if fault == "500-once":
            if digest not in self._failed_once:
                self._failed_once[digest] = None
                if len(self._failed_once) > _BODIES_MAX:
                    self._failed_once.popitem(last=False)
                raise simulated_refusal(500, "server_error")
            del self._failed_once[digest]


def is_fault(suffix: str, *, streams: bool) -> bool:
    """Return whether a model may have the suffix; only a stream can be dropped."""
    return suffix in _FAULTS_AT_ONCE or (streams and _DROP.fullmatch(suffix) is not None)


def pieces_before_drop(fault: str) -> int | None:
    """Return the number of pieces before a stream is dropped; None if it is not dropped."""
    dropped = _DROP.fullmatch(fault)
    return int(dropped[1]) if dropped else None


def break_off(chunks: Iterator[bytes], number: int) -> Iterator[bytes]:
    """Yield `number` chunks, and then raise UpstreamError as for a broken connection."""
    yield from islice(chunks, number)
    raise UpstreamError(
        ErrorCode.PROVIDER_UNAVAILABLE, "The simulator breaks off, as its model's name says."
    )


def simulated_refusal(status: int, error_type: str) -> UpstreamRefused:
    """Return a refusal whose body is an error in OpenAI's format."""
    headers: Mapping[str, str] = {"retry-after": str(RETRY_AFTER_S)} if status in (429, 529) else {}
    error = {"message": "The simulator fails as requested.", "type": error_type, "code": None}
    return UpstreamRefused(status, headers, pydantic_core.to_json({"error": error}))
