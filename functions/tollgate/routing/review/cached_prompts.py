"""Estimates how many prompt tokens providers would have cached under two revisions.

A prompt is assumed to be cached for five minutes at the endpoint that served the conversation's
last turn, and nowhere else. Prompts that different conversations share do not count, because
records do not show them.
"""

from collections.abc import Iterable
from operator import attrgetter
from typing import Final

from msgspec import Struct

from tollgate.routing.cache_sections import CACHEABLE_TOKENS_MIN
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.review.traffic import RecordedRequest
from tollgate.routing.review.verdicts import WouldServe

# Anthropic keeps a prompt for 5 minutes after its last use, OpenAI for 5 to 10 minutes (their pages
# on prompt caching, 2026-11-28).
_KEPT_S: Final = 300


class ReplayedTurn(Struct, frozen=True, kw_only=True):
    """A request of a conversation, with the endpoint that would serve it under each revision."""

    created_s: int
    conversation: str
    prompt_tokens: int
    endpoints: tuple[str, str]
    tokens_min: tuple[int, int]
    """The size of the smallest prompt that is cached, under each revision."""


class CachedPrompts(Struct, frozen=True, kw_only=True):
    """The prompt tokens of conversations that are cached under each revision."""

    prompt_tokens: int = 0
    before: int = 0
    after: int = 0

    @property
    def gain(self) -> int:
        """The change in cached tokens."""
        return self.after - self.before


def turn_of(
    request: RecordedRequest, before: WouldServe, after: WouldServe, *, base: Catalog, head: Catalog
) -> ReplayedTurn:
    """Return a request as a turn of its conversation.

    A conversation is known by its session id, or by its opening if that is long enough to be
    cached. Any other request counts as a conversation with one turn.
    """
    trace = request.trace

    def smallest(model: str) -> int:
        # The smallest size depends on the providers, not on the revision, so either may state it.
        sections = (catalog.models.get(model) for catalog in (head, base))
        stated = [section.cacheable for section in sections if section and section.cacheable]
        return stated[0].tokens_min if stated else CACHEABLE_TOKENS_MIN

    return ReplayedTurn(
        created_s=request.created_s,
        conversation=trace.conversation_hash or trace.draw_key_hash,
        prompt_tokens=request.tokens.input_tokens or trace.estimated_input_tokens,
        endpoints=(before.endpoint, after.endpoint),
        tokens_min=(smallest(before.model), smallest(after.model)),
    )


def estimate_cached(turns: Iterable[ReplayedTurn]) -> CachedPrompts:
    """Return the cached tokens of all turns after the first of their conversation."""
    last: dict[str, ReplayedTurn] = {}
    prompt_tokens, cached = 0, [0, 0]
    for turn in sorted(turns, key=attrgetter("created_s")):
        earlier = last.get(turn.conversation)
        last[turn.conversation] = turn
        if earlier is None:
            continue
        prompt_tokens += turn.prompt_tokens
        if turn.created_s > earlier.created_s + _KEPT_S:
            continue
        shared = min(turn.prompt_tokens, earlier.prompt_tokens)
        for revision in (0, 1):
            stays = turn.endpoints[revision] == earlier.endpoints[revision]
            if stays and shared >= turn.tokens_min[revision]:
                cached[revision] += shared
    return CachedPrompts(prompt_tokens=prompt_tokens, before=cached[0], after=cached[1])
