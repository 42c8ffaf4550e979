"""Parses a request that is explained and not served, of either kind of work."""

from tollgate.ingress.base import ParsedWork
from tollgate.ingress.chat_completions.parse import parse
from tollgate.ingress.json_body import decode_object


def parse_explained(body: bytes) -> ParsedWork:
    """Parse a request for embeddings, which alone has `input`, or else one of chat completions."""
    if "input" not in decode_object(body):
        return parse(body)
    from tollgate.ingress.embeddings.parse import parse_embeddings

    return parse_embeddings(body)
