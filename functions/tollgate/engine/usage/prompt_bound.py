"""The most tokens that a provider can have read for a prompt, by the bytes that were sent to it."""

from typing import Final

from tollgate.core.records.generation import RoutingTrace
from tollgate.core.request import GenerationRequest
from tollgate.routing.planning.plan import Attempt
from tollgate.routing.planning.prompt_size import BYTES_PER_TOKEN_MIN, BYTES_PER_TOKEN_TYPICAL

# A provider adds its template and the instructions for tools or reasoning, at most a few thousand
# tokens.
_ADDED_TOKENS_MAX: Final = 4_096


def prompt_tokens_max(
    attempt: Attempt,
    work: GenerationRequest,
    trace: RoutingTrace,
    *,
    largest_tokens: int,
    growth_tokens: int,
) -> int:
    """Return the most tokens of a prompt that are believed.

    `largest_tokens` is the upper bound for which money is held: a token for two bytes, and the
    largest size of each medium. Twice that is a token for each byte. `growth_tokens` is the likely
    size of what was added since the first round. If the provider adds text that it has found, or
    reads files, which may be compressed, the bound is the model's context.
    """
    context = attempt.context_tokens
    if _adds_found_text(attempt, work) or "pdf" in trace.modalities or "video" in trace.modalities:
        return context
    results = trace.rounds.result_tokens if trace.rounds else 0
    sent = BYTES_PER_TOKEN_MIN * largest_tokens + BYTES_PER_TOKEN_TYPICAL * growth_tokens + results
    return min(context, sent + _ADDED_TOKENS_MAX)


def _adds_found_text(attempt: Attempt, work: GenerationRequest) -> bool:
    """Return whether the provider may search, run tools of its own, or add text for a field that
    the gateway does not know.
    """
    if work.native is not None and (work.native.tools or work.native.unknown_names):
        return True
    if attempt.target.native_search is not None:
        return any(tool.by_provider for tool in work.server_tools)
    # A provider that charges for searches without a search of its format decides by itself.
    return attempt.prices.base.web_search is not None
