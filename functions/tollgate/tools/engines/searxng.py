"""SearXNG, a search engine that operators host.

https://docs.searxng.org/dev/search_api.html (2026-11-22): `GET /search` with `format=json`, which
the engine refuses with status 403 unless its settings allow that format. Requests cannot specify a
number of results, domains or a location. A key is for a proxy in front of the engine, and is sent
as a bearer token.
"""

from typing import Final
from urllib.parse import urlencode

from msgspec import Struct

from tollgate.core.server_tools import Source
from tollgate.tools.engines.codec import (
    EngineAccess,
    Search,
    SearchCodec,
    bearer,
    read_engine_reply,
)
from tollgate.tools.ports.base import EngineRequest


class _Result(Struct, frozen=True, kw_only=True):
    url: str
    title: str | None = None
    content: str | None = None
    publishedDate: str | None = None  # noqa: N815 - the reply's own name


class _Reply(Struct, frozen=True, kw_only=True):
    results: tuple[_Result, ...]


def _encode(search: Search, access: EngineAccess) -> EngineRequest:
    """Return the request for a search."""
    query = urlencode({"q": search.query, "format": "json"})
    return EngineRequest(
        method="GET",
        url=f"{access.base_url}/search?{query}",
        headers={"accept": "application/json", **bearer(access.key)},
    )


def _decode(body: bytes) -> tuple[Source, ...]:
    """Return the results in a reply, best first."""
    return tuple(
        Source(
            url=result.url,
            title=result.title or "",
            text=result.content or "",
            published=result.publishedDate,
        )
        for result in read_engine_reply(body, _Reply).results
    )


SEARXNG: Final = SearchCodec(encode=_encode, decode=_decode, query_characters_max=2_000)
