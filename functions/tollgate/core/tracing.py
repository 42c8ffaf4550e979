"""The trace that a request belongs to, in W3C Trace Context format (level 1, 2021-11-23).

Only `traceparent` is read and passed on, because it contains nothing but random ids. `tracestate`
and `baggage` may contain facts about the caller that a provider must not see.
"""

import re
from contextvars import ContextVar
from typing import Final

from msgspec import Struct

from tollgate.core.ids import IdSource

_TRACEPARENT: Final = re.compile(
    r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?"
)
_SAMPLED: Final = 1
# In an ASGI request, `scope["extensions"][PLATFORM_IDS_EXTENSION]` has the fields of `PlatformIds`.
PLATFORM_IDS_EXTENSION: Final = "tollgate.platform_ids"


class PlatformIds(Struct, frozen=True, kw_only=True):
    """A request's ids in the AWS logs; None on other platforms."""

    api_gateway_request_id: str | None = None
    """The id in API Gateway's access log, and in `x-amzn-requestid` of the reply."""
    lambda_request_id: str | None = None
    """The id in Lambda's own log lines about the invocation."""


class CollectorError(Exception):
    """Raised if a span collector did not accept an export."""


class Span(Struct, frozen=True, kw_only=True):
    """One step of a trace and its parent; ids are in lower-case hex."""

    trace_id: str
    span_id: str
    parent_span_id: str | None
    sampled: bool

    def traceparent(self) -> str:
        """Return the header that a request to another service carries."""
        return f"00-{self.trace_id}-{self.span_id}-{int(self.sampled):02x}"


# The span of the current request, which a task inherits from the task that creates it.
_CURRENT: Final[ContextVar[Span | None]] = ContextVar("tollgate.span", default=None)


def begin(traceparent: str | None, ids: IdSource) -> None:
    """Make this request a step of the caller's trace, if the caller sent one."""
    _CURRENT.set(None if traceparent is None else _below(traceparent, ids))


def current() -> Span | None:
    """Return this request's step of the caller's trace; None if there is no trace."""
    return _CURRENT.get()


def new_trace(ids: IdSource) -> Span:
    """Return the first step of a new trace."""
    return Span(
        trace_id=ids.random_bytes(16).hex(),
        span_id=ids.random_bytes(8).hex(),
        parent_span_id=None,
        sampled=True,
    )


def _below(traceparent: str, ids: IdSource) -> Span | None:
    found = _TRACEPARENT.fullmatch(traceparent)
    if found is None or (found[1] == "00" and found[5]):
        return None
    return Span(
        trace_id=found[2],
        span_id=ids.random_bytes(8).hex(),
        parent_span_id=found[3],
        sampled=bool(int(found[4], 16) & _SAMPLED),
    )
