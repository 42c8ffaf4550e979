"""Codecs of engines, which encode requests and decode replies, and the access to engines."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

import msgspec
from msgspec import Struct, field

from tollgate.core.addresses import DomainRules
from tollgate.core.content import InlineMedia
from tollgate.core.json_value import JsonValue
from tollgate.core.server_tools import Source, UserLocation
from tollgate.routing.scalars import KeySection
from tollgate.stores.ports.base import SecretStore
from tollgate.tools.ports.base import EngineRequest, RunFailure

_JSON: Final[Mapping[str, str]] = {
    "accept": "application/json",
    "content-type": "application/json",
}
_Reply = TypeVar("_Reply")


class Search(Struct, frozen=True, kw_only=True):
    """A search that a model requests, within the tool's limits."""

    query: str
    results_max: int
    domains: DomainRules
    location: UserLocation | None = None


class EngineAccess(Struct, frozen=True, kw_only=True):
    """The address of an engine, without a trailing slash, and the operator's key for the engine."""

    base_url: str
    key: str | None


class SearchCodec(Struct, frozen=True, kw_only=True):
    """The codec of a search engine."""

    encode: Callable[[Search, EngineAccess], EngineRequest]
    decode: Callable[[bytes], tuple[Source, ...]]
    query_characters_max: int


class Scan(Struct, frozen=True, kw_only=True):
    """A document whose pages (counted from 1) need OCR, and images of these pages."""

    model: str
    document: InlineMedia
    pages: tuple[int, ...]
    pictures: Mapping[int, InlineMedia] = field(default_factory=dict)


class RecognitionCodec(Struct, frozen=True, kw_only=True):
    """The codec of an OCR engine.

    `encode` returns one request for each page if the engine reads one page at a time, and `decode`
    takes the replies in the same order.
    """

    encode: Callable[[Scan, EngineAccess], Sequence[EngineRequest]]
    decode: Callable[[Sequence[bytes], Scan], Mapping[int, str]]


async def find_access(address: str, key: KeySection | None, secrets: SecretStore) -> EngineAccess:
    """Return the access to an engine; raise RunFailure if its key is missing or invalid."""
    if key is None:
        return EngineAccess(base_url=address, key=None)
    secret = ((await secrets.read(key.reference)) or "").strip()
    if not secret or not (secret.isascii() and secret.isprintable()):
        raise RunFailure("unavailable", "the engine's key is missing or invalid")
    return EngineAccess(base_url=address, key=secret)


def bearer(key: str | None) -> Mapping[str, str]:
    """Return the header with a bearer token; no header without a key."""
    return {} if key is None else {"authorization": f"Bearer {key}"}


def post_json(url: str, body: Mapping[str, JsonValue], headers: Mapping[str, str]) -> EngineRequest:
    """Return a POST request with a JSON body, which omits values that are None."""
    content = {name: value for name, value in body.items() if value is not None}
    return EngineRequest(
        method="POST", url=url, headers={**_JSON, **headers}, body=msgspec.json.encode(content)
    )


def read_engine_reply(body: bytes, type_: type[_Reply]) -> _Reply:
    """Return a decoded reply; raise RunFailure if the reply is not of this type."""
    try:
        return msgspec.json.decode(body, type=type_)
    except (msgspec.DecodeError, RecursionError) as unreadable:
        raise RunFailure("unavailable", "the engine's reply could not be read") from unreadable


def listed(domains: tuple[str, ...], domains_max: int) -> list[JsonValue] | None:
    """Return the domains to put into a request; None if there are none, or too many for the engine.

    The results are filtered by domain in any case.
    """
    return list(domains) if 0 < len(domains) <= domains_max else None
