"""Exa's search, with excerpts of the results.

https://exa.ai/docs/reference/search (2026-11-22): `POST /search`, the key in `x-api-key`,
`contents.highlights` for passages that answer the query, a two-letter country in `userLocation`.
All searches with up to 25 results have the same price.
"""

from typing import Final

from msgspec import Struct

from tollgate.core.server_tools import Source
from tollgate.tools.engines.codec import (
    EngineAccess,
    Search,
    SearchCodec,
    listed,
    post_json,
    read_engine_reply,
)
from tollgate.tools.ports.base import EngineRequest

_RESULTS_MAX: Final = 25
_DOMAINS_MAX: Final = 1_200


class _Result(Struct, frozen=True, kw_only=True):
    url: str
    title: str | None = None
    publishedDate: str | None = None  # noqa: N815 - the reply's own name
    text: str | None = None
    highlights: tuple[str, ...] | None = None


class _Reply(Struct, frozen=True, kw_only=True):
    results: tuple[_Result, ...]


def _encode(search: Search, access: EngineAccess) -> EngineRequest:
    """Return the request for a search."""
    country = search.location.country if search.location else None
    return post_json(
        f"{access.base_url}/search",
        {
            "query": search.query,
            "type": "auto",
            "numResults": min(search.results_max, _RESULTS_MAX),
            "includeDomains": listed(search.domains.allowed, _DOMAINS_MAX),
            "excludeDomains": listed(search.domains.blocked, _DOMAINS_MAX),
            "userLocation": country.upper() if country else None,
            "contents": {"highlights": True},
        },
        {} if access.key is None else {"x-api-key": access.key},
    )


def _decode(body: bytes) -> tuple[Source, ...]:
    """Return the results in a reply, best first."""
    return tuple(
        Source(
            url=result.url,
            title=result.title or "",
            text="\n".join(result.highlights or ()) or result.text or "",
            published=result.publishedDate,
        )
        for result in read_engine_reply(body, _Reply).results
    )


EXA: Final = SearchCodec(encode=_encode, decode=_decode, query_characters_max=2_000)
