"""OpenAI's embeddings as a client format."""

from collections.abc import Mapping
from decimal import Decimal

from tollgate.ingress.base import NO_HEADERS, ParsedWork, ServedBy
from tollgate.ingress.shared.whole_replies import WholeReplies
from tollgate.ingress.work.embeddings.parse import parse_embeddings
from tollgate.ingress.work.embeddings.render import EmbeddingsRenderer


class Embeddings(WholeReplies):
    """The format of POST /v1/embeddings."""

    def parse(self, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ParsedWork:
        """Parse a request; raise RequestError with the field at fault. No header is read."""
        return parse_embeddings(body)

    def renderer(
        self, call: ParsedWork, served: ServedBy, *, credits_per_usd: Decimal
    ) -> EmbeddingsRenderer:
        """Return a new renderer for one reply; its headers have what it cost."""
        return EmbeddingsRenderer(call, served)
