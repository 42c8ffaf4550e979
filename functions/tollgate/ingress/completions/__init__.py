"""The client format of OpenAI's legacy completions API."""

from collections.abc import Mapping
from decimal import Decimal
from typing import ClassVar

from tollgate.ingress.base import NO_HEADERS, ParsedCall, ServedBy
from tollgate.ingress.completions.parse import parse_completion
from tollgate.ingress.completions.render import CompletionRenderer
from tollgate.ingress.errors import FieldNames
from tollgate.ingress.shared.openai_format import OpenAIFormat


class Completions(OpenAIFormat):
    """The format of POST /v1/completions; a missing episode id is created."""

    field_names: ClassVar[FieldNames] = {"messages": "prompt"}

    def parse(self, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ParsedCall:
        return parse_completion(body)

    def renderer(
        self, call: ParsedCall, served: ServedBy, *, credits_per_usd: Decimal
    ) -> CompletionRenderer:
        return CompletionRenderer(
            call,
            served,
            episode_id=call.episode_id or self._ids.new_uuid7(),
            credits_per_usd=credits_per_usd,
        )
