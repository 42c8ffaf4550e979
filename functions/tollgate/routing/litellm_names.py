"""The prefixes that LiteLLM puts before model names, by provider.

As in litellm 1.109.1, `model_prices_and_context_window_backup.json` (seen 2026-11-27).
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from tollgate.providers.ports.formats import BEDROCK_TRANSPORTS

# LiteLLM's names for a provider, keyed by host; the first one is also the prefix of the host's
# models.
_BY_HOST: Final[Mapping[str, tuple[str, ...]]] = {
    "ai-gateway.vercel.sh": ("vercel_ai_gateway",),
    "aiplatform.googleapis.com": ("vertex_ai",),
    "api.anthropic.com": ("anthropic",),
    "api.cerebras.ai": ("cerebras",),
    "api.cohere.ai": ("cohere", "cohere_chat"),
    "api.cohere.com": ("cohere", "cohere_chat"),
    "api.deepinfra.com": ("deepinfra",),
    "api.deepseek.com": ("deepseek",),
    "api.fireworks.ai": ("fireworks_ai", "fireworks_ai-embedding-models"),
    "api.friendli.ai": ("friendliai",),
    "api.gmi-serving.com": ("gmi",),
    "api.groq.com": ("groq",),
    "api.hyperbolic.xyz": ("hyperbolic",),
    "api.inference.crusoecloud.com": ("crusoe",),
    "api.inference.wandb.ai": ("wandb",),
    "api.jina.ai": ("jina_ai",),
    "api.meta.ai": ("meta",),
    "api.minimax.io": ("minimax",),
    "api.mistral.ai": ("mistral",),
    "api.moonshot.ai": ("moonshot",),
    "api.novita.ai": ("novita",),
    "api.openai.com": ("openai",),
    "api.perplexity.ai": ("perplexity",),
    "api.sambanova.ai": ("sambanova",),
    "api.scaleway.ai": ("scaleway",),
    "api.studio.nebius.com": ("nebius",),
    "api.together.xyz": ("together_ai",),
    "api.tokenfactory.nebius.com": ("nebius",),
    "api.voyageai.com": ("voyage",),
    "api.x.ai": ("xai",),
    "api.z.ai": ("zai",),
    "dashscope-intl.aliyuncs.com": ("dashscope",),
    "generativelanguage.googleapis.com": ("gemini",),
    "inference.api.nscale.com": ("nscale",),
    "inference.baseten.co": ("baseten",),
    "integrate.api.nvidia.com": ("nvidia_nim",),
    "oai.endpoints.kepler.ai.cloud.ovh.net": ("ovhcloud",),
}
_BEDROCK: Final = ("bedrock", "bedrock_converse")
# LiteLLM's names for a provider whose host contains a region, keyed by the host's first label.
_BY_SERVICE: Final[Mapping[str, tuple[str, ...]]] = {
    "bedrock-mantle": ("bedrock_mantle",),
    "bedrock-runtime": _BEDROCK,
}
# Prefixes of clouds and resellers with many models, most of which are not in any row here.
RESELLERS: Final = frozenset(
    {
        "aiand",
        "aihubmix",
        "aiml",
        "amazon-nova",
        "azure",
        "azure_ai",
        "bedrock",
        "bedrock_converse",
        "bedrock_mantle",
        "bigmodel",
        "chatgpt",
        "clf_ai_gateway",
        "cloudflare",
        "cohere_chat",
        "coralbricks",
        "darkbloom",
        "databricks",
        "fal_ai",
        "friendliai",
        "github_copilot",
        "gradient_ai",
        "heroku",
        "hostinger_router",
        "inferenceapis",
        "kyma",
        "lambda_ai",
        "libertai",
        "llamagate",
        "meta_llama",
        "nscale",
        "nvidia_nim",
        "oci",
        "openai_like",
        "opencode_go",
        "openinfer",
        "openrouter",
        "perplexity",
        "pinstripes",
        "prism",
        "qwen_ai_platform",
        "qwencloud",
        "refuseless",
        "replicate",
        "sagemaker",
        "sail",
        "scx-ai",
        "snowflake",
        "stability",
        "streamlake",
        "tencent",
        "tensormesh",
        "vercel_ai_gateway",
        "vertex_ai",
        "watsonx",
        "zerogpu",
    }
)
# Every prefix that LiteLLM puts before a model name.
PREFIXES: Final = RESELLERS.union(*_BY_HOST.values())


def litellm_names(base_url: str | None, transport: str) -> tuple[str, ...]:
    """Return LiteLLM's names for a provider; empty if LiteLLM does not know the provider."""
    if transport in BEDROCK_TRANSPORTS:
        return _BEDROCK
    host = urlsplit(base_url or "").hostname or ""
    return _BY_HOST.get(host) or _BY_SERVICE.get(host.partition(".")[0], ())
