"""Parses a request to judge texts."""

from tollgate.core.moderation import ModerationRequest
from tollgate.ingress.base import ParsedWork
from tollgate.ingress.moderations.wire.moderation_request import ModerationBody
from tollgate.ingress.shared.ignored_fields import printable_names
from tollgate.ingress.shared.preferences import parse_preferences, unknown_fields
from tollgate.ingress.validation import validate_body


def parse_moderation(body: bytes) -> ParsedWork:
    """Parse a request; raise RequestError with the field at fault."""
    asked = validate_body(ModerationBody, body)
    stated = [asked.input] if isinstance(asked.input, str) else asked.input
    request = ModerationRequest(
        model=asked.model,
        texts=tuple(each if isinstance(each, str) else each.text for each in stated),
        user=asked.user,
        metadata=asked.metadata or {},
        preferences=parse_preferences(asked),
    )
    return ParsedWork(request=request, ignored=printable_names(unknown_fields(asked)))
