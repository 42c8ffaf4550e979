"""The only table of search engines: the codec of each name of `engine` in routing.yaml."""

from collections.abc import Mapping
from typing import Final

from tollgate.routing.tool_sections import SearchEngine
from tollgate.tools.engines.brave import BRAVE
from tollgate.tools.engines.codec import SearchCodec
from tollgate.tools.engines.exa import EXA
from tollgate.tools.engines.firecrawl import FIRECRAWL
from tollgate.tools.engines.searxng import SEARXNG
from tollgate.tools.engines.tavily import TAVILY

ENGINES: Final[Mapping[SearchEngine, SearchCodec]] = {
    "brave": BRAVE,
    "exa": EXA,
    "firecrawl": FIRECRAWL,
    "searxng": SEARXNG,
    "tavily": TAVILY,
}
