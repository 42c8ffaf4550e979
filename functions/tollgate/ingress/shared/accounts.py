"""Renders usage, price and routing of a reply, as OpenAI's formats and ours show them."""

from decimal import Decimal
from typing import Final

from pydantic import JsonValue
from pydantic_core import to_json

from tollgate.core.errors import GatewayError
from tollgate.core.generation import GenerationRecord
from tollgate.core.money import credits_text, usd_text
from tollgate.core.usage import Usage
from tollgate.ingress.base import Routed, ServedBy
from tollgate.ingress.errors import openai_error, tollgate_metadata

DONE: Final = b"data: [DONE]\n\n"


def render_accounts(
    record: GenerationRecord,
    served: ServedBy,
    *,
    credits_per_usd: Decimal,
    tells_routing: bool,
    usage: dict[str, JsonValue] | None = None,
) -> bytes:
    """Render usage, and the facts that a whole reply has in its headers, without outer braces.

    `usage` is the format's own object; without it, it is that of chat completions.
    """
    accounts: dict[str, JsonValue] = {
        "model_used": record.model,
        "provider_used": record.provider,
    }
    if served.fallback_from is not None:
        accounts["fallback_from"] = served.fallback_from
        accounts["fallback_depth"] = served.fallback_depth
    if record.adapted:
        accounts["adapted"] = list(record.adapted)
    if tells_routing:
        accounts["tollgate_metadata"] = tollgate_metadata(Routed.of(record))
    # Amounts are written digit by digit: a float cannot hold every nano-dollar.
    cost = record.cost_nano_usd
    return b'"usage":%b,"cost":%b},"credits_used":%b,%b' % (
        to_json(usage or _usage(record.usage))[:-1],
        usd_text(cost).encode(),
        credits_text(cost, credits_per_usd).encode(),
        to_json(accounts)[1:-1],
    )


def render_failure(head: bytes, error: GatewayError, request_id: str, accounts: bytes) -> bytes:
    """Render the frames that end a broken stream, after the `head` that its frames begin with.

    They have no `choices`: beside them, some clients show the fragment as a complete answer (C33).
    """
    broken = to_json(openai_error(error, request_id))
    return b'%b,"error":%b,%b}\n\n%b' % (head, broken, accounts, DONE)


def _usage(usage: Usage) -> dict[str, JsonValue]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens or 0,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {
            "cached_tokens": usage.cache_read_input_tokens or 0,
            "cache_write_tokens": usage.cache_write_input_tokens,
            "audio_tokens": usage.audio_input_tokens or 0,
        },
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning_tokens or 0,
            "audio_tokens": usage.audio_output_tokens or 0,
        },
    }
