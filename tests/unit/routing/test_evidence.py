"""Each price of the routing.yaml that ships is that of its publishers, or says why not: C65.

What they state is kept in infra/catalog/evidence.json, so that no network is needed.
"""

import re
from collections import Counter

from tests.cells import cells
from tests.unit.routing.test_routing_yaml import FILE, ROOT
from tollgate.cli.catalog.evidence import read_evidence, write_evidence
from tollgate.cli.catalog.verdicts import Verdict, judge_file
from tollgate.routing.file.load import load

PATH = ROOT / "infra" / "catalog" / "evidence.json"
EVIDENCE = read_evidence(PATH)
VERDICTS = list(judge_file(load(FILE), EVIDENCE))
# Endpoints whose price one publisher alone states, by provider.
LONE = Counter(
    {
        "anthropic": 1,
        "bedrock": 6,
        # Grok, Gemma and gpt-oss at Bedrock, which genai-prices lacks.
        "bedrock-chat": 2,
        "bedrock-mantle": 3,
        "bedrock-mantle-v1": 2,
        "bedrock-oregon": 3,
        "cohere-native": 9,
        "crusoe": 2,
        "dashscope": 9,
        "deepinfra": 53,
        "fireworks": 3,
        "friendli": 1,
        "gmi": 4,
        "groq": 2,
        "huggingface": 1,
        "hyperbolic": 2,
        "jina": 1,
        "nebius": 17,
        "novita": 10,
        # The map of litellm has prices of decisions under names that it has for no other kind.
        "openai": 2,
        "openrouter": 1,
        "ovhcloud": 6,
        "sambanova": 1,
        "scaleway": 7,
        "together": 6,
        "vercel": 1,
        "voyage": 4,
        "wandb": 8,
        "xai": 2,
        "zai": 1,
    }
)
# Providers of these that no other publisher has.
NOBODY_ELSE_PUBLISHES = {
    "crusoe",
    "dashscope",
    "deepinfra",
    "friendli",
    "gmi",
    "huggingface",
    "jina",
    "openrouter",
    "scaleway",
    "vercel",
    "wandb",
}
# Endpoints whose price some publisher disputes; their `source` says who and how.
DISPUTED = Counter(
    {
        "anthropic": 1,
        "bedrock": 1,
        # genai-prices has no second price for large prompts, which AWS's cards of GPT have.
        "bedrock-mantle": 2,
        "deepseek": 2,
        "fireworks": 1,
        "hyperbolic": 1,
        "mistral": 1,
        "nebius": 1,
        "novita": 1,
        # The tokens of sound of three transcribers, for which litellm has the rate of text.
        "openai": 3,
    }
)
# What a host calls its faster service of the same weights.
SAME_WEIGHTS = {
    ("deepinfra", "google/gemma-4-31B-it-turbo"),
    ("together", "Qwen/Qwen2.5-7B-Instruct-Turbo"),
}


@cells("verdict", VERDICTS, ids=lambda it: f"{it.place}/{it.endpoint.upstream}")
def test_c65_a_price_is_agreed_or_its_source_says_why_not(verdict: Verdict) -> None:
    assert not verdict.undecided
    assert verdict.price is None
    stated = verdict.endpoint.price.source
    # Those that agree stand first, those that differ behind them with what they have.
    assert stated == verdict.source
    first, *others = stated.split("; ")
    is_alone = len(verdict.agreeing) == 1 and verdict.endpoint.price.source.endswith(" alone")
    assert is_alone == (
        len(EVIDENCE.of(verdict.endpoint)) == 1 and not others and " and " not in first
    )
    page, *publishers = first.removesuffix(" alone").split(" and ")
    if page in verdict.agreeing:
        publishers.insert(0, page)
    else:
        assert re.search(r"^https://|\.com/|router", page), "names the page it was taken from"
    assert publishers == [*verdict.agreeing]
    assert [other.partition(" has ")[0] for other in others] == [*verdict.differing]


def test_the_evidence_is_of_each_endpoint_and_written_in_one_way() -> None:
    endpoints = {f"{it.endpoint.provider} {it.endpoint.upstream}" for it in VERDICTS}
    assert set(EVIDENCE.endpoints) == endpoints
    assert PATH.read_text(encoding="utf-8") == write_evidence(EVIDENCE)
    assert set(EVIDENCE.publishers) == {"Hugging Face router", "genai-prices", "litellm"}


def test_c65_prices_that_one_publisher_states_are_counted_and_grow_no_more() -> None:
    """A number may fall. Where it has to rise, the reason belongs into the commit."""
    lone = [it.endpoint for it in VERDICTS if len(it.agreeing) == 1 and not it.differing]
    nobody_else = {
        it.provider for it in lone if len(EVIDENCE.may_state(it)) == 1 and it.provider in LONE
    }
    assert nobody_else == NOBODY_ELSE_PUBLISHES
    assert Counter(it.provider for it in lone) <= LONE
    disputed = Counter(it.endpoint.provider for it in VERDICTS if it.differing)
    assert disputed <= DISPUTED


# The first words of a name tell models apart that have the same weights in their name.
VARIANTS = {"air", "code", "coder", "flash", "highspeed", "lite", "max", "mini", "nano", "plus"} | {
    *("pro", "thinking", "turbo", "vision", "vl")
}


@cells("verdict", VERDICTS, ids=lambda it: f"{it.place}/{it.endpoint.upstream}")
def test_an_endpoint_serves_the_variant_that_its_model_is_named_by(verdict: Verdict) -> None:
    named, served = (
        set(re.findall(r"[a-z]+", name.lower())) & VARIANTS
        for name in (verdict.model, verdict.endpoint.upstream)
    )
    place = (verdict.endpoint.provider, verdict.endpoint.upstream)
    assert named == served or place in SAME_WEIGHTS


def test_every_last_day_that_a_publisher_states_is_in_the_file() -> None:
    assert [it.place for it in VERDICTS if it.retires is not None] == []
