"""The client format of POST /v1/responses/compact, which compacts a conversation.

The request has the Responses format and is parsed with a trigger at the end of `input`. The reply
contains the kept messages before the compaction item, and is never streamed.
https://platform.openai.com/docs/api-reference/responses/compact (2026-11-27)
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from msgspec.structs import replace
from pydantic_core import to_json
from typing_extensions import override

from tollgate.core.events import Finish
from tollgate.core.json_value import JsonValue
from tollgate.core.records.generation import GenerationRecord
from tollgate.ingress.base import NO_HEADERS, ParsedCall, Seal, ServedBy
from tollgate.ingress.responses import Responses
from tollgate.ingress.responses.parse import parse_response_object
from tollgate.ingress.responses.render import ResponseRenderer
from tollgate.ingress.responses.stored import PREVIOUS, StoredTurns, numbered
from tollgate.ingress.validation import decode_object

# The reply is whole and sent at once.
_WITHOUT_EFFECT: Final = ("background", "stream")
_TRIGGER: Final[dict[str, JsonValue]] = {"type": "compaction_trigger"}


def parse_compact_object(
    body: Mapping[str, JsonValue],
    headers: Mapping[str, str],
    *,
    size_bytes: int,
    turns: StoredTurns | None = None,
    seal: Seal | None = None,
) -> ParsedCall:
    """Parse a decoded request like `parse_response_object`.

    `input` may be absent if the request continues a stored response.
    """
    input_ = body.get("input")
    if isinstance(input_, str):
        input_ = [{"role": "user", "content": input_}]
    elif input_ is None and body.get(PREVIOUS) is not None:
        input_ = []
    if isinstance(input_, list):
        last = input_[-1] if input_ else None
        body = {**body, "input": input_ if last == _TRIGGER else [*input_, _TRIGGER]}
    call = parse_response_object(
        {**body, **dict.fromkeys(_WITHOUT_EFFECT)},
        headers,
        size_bytes=size_bytes,
        turns=turns,
        seal=seal,
    )
    ignored = (*call.ignored, *(name for name in _WITHOUT_EFFECT if body.get(name)))
    return replace(call, stored_input=None, ignored=ignored)


def parse_compact_request(body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ParsedCall:
    """Refuse a request whose workspace's key was not read, as any compaction needs that key."""
    return parse_compact_object(decode_object(body), headers, size_bytes=len(body))


class CompactedResponses(Responses):
    """The format of POST /v1/responses/compact."""

    parse = staticmethod(parse_compact_request)

    @override
    def renderer(
        self, call: ParsedCall, served: ServedBy, *, credits_per_usd: Decimal
    ) -> "CompactionRenderer":
        return CompactionRenderer(call, served, credits_per_usd=credits_per_usd)


class CompactionRenderer(ResponseRenderer):
    """Renders a compacted conversation."""

    def __init__(self, call: ParsedCall, served: ServedBy, *, credits_per_usd: Decimal) -> None:
        super().__init__(call, served, credits_per_usd=credits_per_usd)
        self._kept = call.compacts.kept if call.compacts else ()

    @override
    def _response(self, finish: Finish, output: list[bytes], record: GenerationRecord) -> bytes:
        kept = [item for item in self._kept if item.get("role") == "user"]
        reply: dict[str, JsonValue] = {
            "id": f"resp_{self._served.generation_id}",
            "object": "response.compaction",
            "created_at": self._served.created_s,
            "model": self._served.model,
        }
        first = [to_json({**item, "status": "completed"}) for item in numbered(kept, record.id)]
        return b'%b,"output":[%b],%b}' % (
            to_json(reply)[:-1],
            b",".join([*first, *output]),
            self._accounts.render(record),
        )
