"""The web_search tool, which calls an engine and limits the results in size and by domain."""

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.addresses import DomainRules, host_of
from tollgate.core.content import Text
from tollgate.core.server_tools import URL_LINE, RunResult, Source, UserLocation
from tollgate.routing.tool_sections import SearchEngine, WebSearchSection
from tollgate.stores.ports.base import SecretStore
from tollgate.tools.engines.brave import BRAVE
from tollgate.tools.engines.codec import Search, SearchCodec, find_access
from tollgate.tools.engines.exa import EXA
from tollgate.tools.engines.firecrawl import FIRECRAWL
from tollgate.tools.engines.searxng import SEARXNG
from tollgate.tools.engines.tavily import TAVILY
from tollgate.tools.kinds import EXCERPT_BYTES_MAX, TITLE_BYTES_MAX, URL_BYTES_MAX, cut
from tollgate.tools.ports.base import EngineCalls, RunFailure

# Maximum size of a reply, enough for twenty results of several thousand characters.
_REPLY_BYTES_MAX: Final = 2_000_000
_DATE_BYTES_MAX: Final = 40
# The only table of search engines: the codec of each `engine` in routing.yaml.
ENGINES: Final[Mapping[SearchEngine, SearchCodec]] = {
    "brave": BRAVE,
    "exa": EXA,
    "firecrawl": FIRECRAWL,
    "searxng": SEARXNG,
    "tavily": TAVILY,
}


class WebSearch(Struct, frozen=True, kw_only=True):
    """Searches with the engine that routing.yaml names."""

    engine: SearchEngine
    section: WebSearchSection
    calls: EngineCalls
    secrets: SecretStore

    async def run(
        self,
        arguments: Mapping[str, object],
        *,
        results_max: int,
        domains: DomainRules,
        location: UserLocation | None,
        timeout_s: float,
    ) -> RunResult:
        """Return the results; raise RunFailure if the search fails."""
        codec = ENGINES[self.engine]
        query = _query(arguments, codec.query_characters_max)
        if domains.admits_none:
            return _result(())
        search = Search(query=query, results_max=results_max, domains=domains, location=location)
        access = await find_access(self.section.address or "", self.section.key, self.secrets)
        body = await self.calls.exchange(
            self.engine,
            codec.encode(search, access),
            bytes_max=_REPLY_BYTES_MAX,
            timeout_s=timeout_s,
        )
        # Results are filtered here too, because some engines do not support all domain rules.
        admitted = [source for source in codec.decode(body) if _is_admitted(source, domains)]
        by_url = {source.url: source for source in reversed(admitted)}
        best_first = [source for source in admitted if by_url[source.url] is source]
        return _result(tuple(map(_within_limits, best_first[:results_max])))


def _query(arguments: Mapping[str, object], characters_max: int) -> str:
    query = arguments.get("query")
    if not isinstance(query, str) or not query.strip():
        raise RunFailure("invalid_input", "`query` must be a string that is not empty")
    if len(query) > characters_max:
        raise RunFailure("query_too_long", f"`query` has more than {characters_max} characters")
    return " ".join(query.split())


def _is_admitted(source: Source, domains: DomainRules) -> bool:
    host = host_of(source.url) if len(source.url.encode()) <= URL_BYTES_MAX else None
    return host is not None and domains.admits(host)


def _within_limits(source: Source) -> Source:
    published = source.published
    return replace(
        source,
        title=cut(" ".join(source.title.split()), TITLE_BYTES_MAX),
        text=cut(source.text.strip(), EXCERPT_BYTES_MAX),
        published=cut(published, _DATE_BYTES_MAX) if published else None,
    )


def _result(sources: tuple[Source, ...]) -> RunResult:
    if not sources:
        return RunResult(content=(Text(text="The search has no results."),))
    text = "\n\n".join(_entries(sources))
    return RunResult(content=(Text(text=text),), sources=sources)


def _entries(sources: tuple[Source, ...]) -> Iterator[str]:
    for number, source in enumerate(sources, start=1):
        date = f"\nDate: {source.published}" if source.published else ""
        yield f"[{number}] {source.title}\n{URL_LINE}{source.url}{date}\n{source.text}"
