"""The endpoints of the shipped file whose providers run lines in their own batches.

Keeps C83.
"""

from tests.cells import cells
from tests.unit.routing.test_shipped_kinds import CATALOG, CHAINS

# The endpoints of providers whose batches do not run all models, with the percentages of the
# prices of tokens and of cached tokens.
SOME = {
    "bedrock/us.amazon.nova-2-lite-v1:0": (50, None),
    "bedrock/us.amazon.nova-lite-v1:0": (50, None),
    "bedrock/us.amazon.nova-micro-v1:0": (50, None),
    "bedrock/us.amazon.nova-pro-v1:0": (50, None),
    "bedrock/us.anthropic.claude-haiku-4-5-20251001-v1:0": (50, None),
    "bedrock/us.anthropic.claude-opus-5": (50, None),
    "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0": (50, None),
    "bedrock/us.meta.llama3-3-70b-instruct-v1:0": (50, None),
    "dashscope/qwen3.7-plus": (50, 100),
    "groq/llama-3.1-8b-instant": (50, 100),
    "groq/llama-3.3-70b-versatile": (50, 100),
    "groq/openai/gpt-oss-120b": (50, 100),
    "groq/openai/gpt-oss-20b": (50, 100),
    "xai/grok-4.3": (80, None),
}
ALL = ("anthropic", "google", "mistral", "openai", "openai-responses")
BATCHED = {
    attempt.target.endpoint_id: attempt.batch
    for slug in CATALOG.models
    if (chain := CHAINS.get(slug)) is not None
    for attempt in (offer.attempt for offer in chain.offers[slug])
    if attempt.batch is not None
}


def test_c83_batches_run_the_models_for_which_the_provider_states_a_price() -> None:
    found = {
        name: (terms.percent, terms.cached_percent)
        for name, terms in BATCHED.items()
        if not name.startswith(tuple(f"{slug}/" for slug in ALL))
    }
    assert found == SOME


@cells("slug", ALL)
def test_c83_batches_run_chat_of_all_models_at_half_the_price(slug: str) -> None:
    terms = [terms for name, terms in BATCHED.items() if name.startswith(f"{slug}/")]
    assert {each.percent for each in terms} == {50}


def test_c81_c83_batches_run_vectors_but_no_pictures_or_sound() -> None:
    kinds = {
        CATALOG.models[slug].kind
        for slug in CATALOG.models
        for endpoint in CATALOG.models[slug].endpoints
        if f"{endpoint.provider}/{endpoint.upstream}" in BATCHED
    }
    assert kinds == {"chat", "embedding", "moderation"}
    assert "google/gemini-embedding-001" in BATCHED
