"""Sends requests to the engines of tools, over the providers' connection pool."""

import asyncio
from typing import Final

from msgspec import Struct

from tollgate.core.buffer_budget import Buffered
from tollgate.core.errors import BufferFull, UpstreamError
from tollgate.http1.errors import HttpError, ReplyTooLong
from tollgate.providers.ports.base import UpstreamRefused
from tollgate.providers.transports.http_pool import HttpCall, HttpPool
from tollgate.tools.ports.base import EngineRequest, RunFailure, RunFault

_TOO_MANY: Final = 429


class PooledEngineCalls(Struct, frozen=True):
    """Implements `tools.ports.base.EngineCalls`; failures never quote the reply."""

    pool: HttpPool

    async def exchange(
        self, engine: str, request: EngineRequest, *, bytes_max: int, timeout_s: float
    ) -> bytes:
        """Return the body of a reply with status 200; raise RunFailure for any other outcome."""
        call = HttpCall(
            provider=engine,
            url=request.url,
            headers=request.headers,
            body=request.body,
            connect_s=timeout_s,
            method=request.method,
        )
        buffered = Buffered()
        try:
            async with asyncio.timeout(timeout_s), self.pool.send(call) as reply:
                if reply.headers.get("content-encoding", "identity").lower() != "identity":
                    raise _failure("replied in an encoding that was not requested")
                return await reply.read_all(bytes_max, buffered.take)
        except UpstreamRefused as refused:
            if refused.status == _TOO_MANY:
                raise _failure("received too many requests", "too_many_requests") from refused
            raise _failure(f"refused the request with HTTP {refused.status}") from refused
        except TimeoutError as late:
            raise _failure("did not answer in time") from late
        except (ReplyTooLong, BufferFull) as large:
            buffered.release()
            raise _failure("sent a reply that is too long") from large
        except (UpstreamError, HttpError) as failure:
            raise _failure("cannot be reached") from failure


def _failure(problem: str, fault: RunFault = "unavailable") -> RunFailure:
    return RunFailure(fault, f"the engine {problem}")
