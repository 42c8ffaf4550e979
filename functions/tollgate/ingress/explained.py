"""Parses a request that is explained and not served, of any kind of work."""

from tollgate.ingress.base import ParsedWork
from tollgate.ingress.chat_completions.parse import parse
from tollgate.ingress.json_body import decode_object


def parse_explained(body: bytes) -> ParsedWork:
    """Parse a request of chat completions, or one that has `input` or `documents` instead."""
    fields = decode_object(body)
    if "documents" in fields:
        from tollgate.ingress.rerank.parse import parse_rerank

        return parse_rerank(body)
    if "input" in fields:
        from tollgate.ingress.embeddings.parse import parse_embeddings

        return parse_embeddings(body)
    return parse(body)
