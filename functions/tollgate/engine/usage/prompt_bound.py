"""The maximum number of tokens that a provider can have read for a prompt, derived from the bytes
sent.
"""

from typing import Final

from tollgate.core.records.generation import RoutingTrace
from tollgate.core.request import GenerationRequest
from tollgate.routing.planning.plan import Attempt
from tollgate.routing.planning.prompt_size import BYTES_PER_TOKEN_MIN, BYTES_PER_TOKEN_TYPICAL

# Providers add their template, and instructions for tools or reasoning: at most a few thousand
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
    """Return the largest believable number of tokens in a prompt.

    `largest_tokens` is the upper bound for which money is held: one token for two bytes, and the
    largest size of each medium. Twice that number is one token per byte. `growth_tokens` is the
    likely size of what was added since the first round. If the provider adds text that it has
    found, or reads files, which may be compressed, the bound is the model's context.
    """
    context = attempt.context_tokens
    if _adds_found_text(attempt, work) or "pdf" in trace.modalities or "video" in trace.modalities:
        return context
    results = trace.rounds.result_tokens if trace.rounds else 0
    sent = BYTES_PER_TOKEN_MIN * largest_tokens + BYTES_PER_TOKEN_TYPICAL * growth_tokens + results
    return min(context, sent + _ADDED_TOKENS_MAX)


def _adds_found_text(attempt: Attempt, work: GenerationRequest) -> bool:
    """Return whether the provider may add text to the prompt: through searches, through its own
    tools, or because of an unknown field.
    """
    if work.native is not None and (work.native.tools or work.native.unknown_names):
        return True
    if attempt.target.native_search is not None:
        return any(tool.by_provider for tool in work.server_tools)
    # A provider that charges for searches, but whose format has no search tool, decides on searches
    # by itself.
    return attempt.prices.base.web_search is not None
