"""OpenAI's moderations as a client format."""

from collections.abc import Mapping
from decimal import Decimal

from tollgate.ingress.base import NO_HEADERS, ParsedWork, ServedBy
from tollgate.ingress.shared.whole_replies import WholeReplies
from tollgate.ingress.work.moderations.parse import parse_moderation
from tollgate.ingress.work.moderations.render import ModerationRenderer


class Moderations(WholeReplies):
    """The format of POST /v1/moderations."""

    def parse(self, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ParsedWork:
        """Parse a request; raise RequestError with the field at fault. No header is read."""
        return parse_moderation(body)

    def renderer(
        self, call: ParsedWork, served: ServedBy, *, credits_per_usd: Decimal
    ) -> ModerationRenderer:
        """Return a new renderer for one reply; its headers have what it cost."""
        return ModerationRenderer(call, served)
