"""The two halves of an engine's format, without I/O: a request is made, a reply is read."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

import msgspec
from msgspec import Struct, field

from tollgate.core.addresses import DomainRules
from tollgate.core.content import InlineMedia
from tollgate.core.json_value import JsonValue
from tollgate.core.server_tools import Source, UserLocation
from tollgate.tools.ports.base import EngineRequest, RunFailure

_JSON: Final[Mapping[str, str]] = {
    "accept": "application/json",
    "content-type": "application/json",
}
_Reply = TypeVar("_Reply")


class Search(Struct, frozen=True, kw_only=True):
    """A search as a model asked for it, within its limits."""

    query: str
    results_max: int
    domains: DomainRules
    location: UserLocation | None = None


class EngineAccess(Struct, frozen=True, kw_only=True):
    """The address of an engine, without a slash at its end, and the operator's key for it."""

    base_url: str
    key: str | None


class SearchCodec(Struct, frozen=True, kw_only=True):
    """The format of one engine."""

    encode: Callable[[Search, EngineAccess], EngineRequest]
    decode: Callable[[bytes], tuple[Source, ...]]
    query_characters_max: int


class Scan(Struct, frozen=True, kw_only=True):
    """A document, and the pages whose text is recognized, counted from 1.

    `pictures` are of these pages, for an engine that reads pictures.
    """

    model: str
    document: InlineMedia
    pages: tuple[int, ...]
    pictures: Mapping[int, InlineMedia] = field(default_factory=dict)


class RecognitionCodec(Struct, frozen=True, kw_only=True):
    """The format of one engine that recognizes text.

    An engine that takes one page in a request has a request and a reply for each, in order.
    """

    encode: Callable[[Scan, EngineAccess], Sequence[EngineRequest]]
    decode: Callable[[Sequence[bytes], Scan], Mapping[int, str]]


def bearer(key: str | None) -> Mapping[str, str]:
    """Return the header of a key that is sent as a bearer token; none without a key."""
    return {} if key is None else {"authorization": f"Bearer {key}"}


def post_json(url: str, body: Mapping[str, JsonValue], headers: Mapping[str, str]) -> EngineRequest:
    """Return a POST of a body whose absent values are left out."""
    stated = {name: value for name, value in body.items() if value is not None}
    return EngineRequest(
        method="POST", url=url, headers={**_JSON, **headers}, body=msgspec.json.encode(stated)
    )


def read_engine_reply(body: bytes, type_: type[_Reply]) -> _Reply:
    """Return a reply as its type; RunFailure for another shape."""
    try:
        return msgspec.json.decode(body, type=type_)
    except (msgspec.DecodeError, RecursionError) as unreadable:
        raise RunFailure("unavailable", "the engine's reply could not be read") from unreadable


def listed(domains: tuple[str, ...], most: int) -> list[JsonValue] | None:
    """Return domains as a field has them, None for none.

    A longer list than the engine takes is left out: results are filtered in any case.
    """
    return list(domains) if 0 < len(domains) <= most else None
