"""Ranking of documents as a client format, in Cohere's and Jina's fields."""

from collections.abc import Mapping
from decimal import Decimal

from tollgate.ingress.base import NO_HEADERS, ParsedWork, ServedBy
from tollgate.ingress.shared.whole_replies import WholeReplies
from tollgate.ingress.work.rerank.parse import parse_rerank
from tollgate.ingress.work.rerank.render import RerankRenderer


class Rerank(WholeReplies):
    """The format of POST /v1/rerank."""

    def parse(self, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ParsedWork:
        """Parse a request; raise RequestError with the field at fault. No header is read."""
        return parse_rerank(body)

    def renderer(
        self, call: ParsedWork, served: ServedBy, *, credits_per_usd: Decimal
    ) -> RerankRenderer:
        """Return a new renderer for one reply; its headers have what it cost."""
        return RerankRenderer(call, served)
