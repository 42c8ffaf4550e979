"""Reader of the environment of bedrock-access-gateway, as lines of NAME=VALUE.

Variables and defaults: github.com/aws-samples/bedrock-access-gateway, src/api/setting.py at
commit 00b1a073; use of the default models: src/api/routers at 09d826bf (seen 2026-11-27).
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tollgate.cli.catalog.litellm_config import (
    Deployment,
    ImportNote,
    LitellmConfig,
    NotALitellmConfig,
    read_source,
)
from tollgate.cli.catalog.litellm_endpoints import Placement
from tollgate.cli.catalog.source_upstreams import SourceUpstream, list_left, offer_known

_SECTION: Final = "environment"
_REGION: Final = "AWS_REGION"
# The default models, with their aliases and the prefixes of the model names that they serve.
_DEFAULTS: Final[Mapping[str, tuple[str, str, str]]] = {
    "DEFAULT_MODEL": ("default", "gpt-", "anthropic.claude-3-sonnet-20240229-v1:0"),
    "DEFAULT_EMBEDDING_MODEL": (
        "default-embedding",
        "text-embedding-",
        "cohere.embed-multilingual-v3",
    ),
}
_KEYS: Final = "`tollgate keys create` makes a key for each caller"
_ADVICE: Final[Mapping[str, str]] = {
    "API_KEY": _KEYS,
    "API_KEY_PARAM_NAME": _KEYS,
    "API_KEY_SECRET_ARN": _KEYS,
    "API_ROUTE_PREFIX": "base URLs end in /v1 or /api/v1 here",
    "DEFAULT_MAX_TOKENS": "a request without a limit gets the model's `max_output`",
    "ENABLE_APPLICATION_INFERENCE_PROFILES": "requests that name the ARN of a profile need a "
    "further endpoint: `provider: bedrock`, `upstream:` the ARN",
    "ENABLE_CROSS_REGION_INFERENCE": "an id with a geography and one without stand for the same "
    "model; the endpoint's `upstream` decides which is sent",
    "ENABLE_PROMPT_CACHING": "a request's own `cache_control` is sent",
}
_LOSSES: Final = frozenset({"ENABLE_APPLICATION_INFERENCE_PROFILES"})
_READ: Final = frozenset({_REGION, "DEBUG", *_DEFAULTS})


def read_bedrock_gateway(path: Path, placement: Placement) -> LitellmConfig:
    """Return the models of an environment; raise NotALitellmConfig for a file without settings."""
    settings = dict(_lines(read_source(path).decode("utf-8", "replace")))
    if not settings.keys() & {*_READ, *_ADVICE}:
        raise NotALitellmConfig(f"{path.as_posix()} has no NAME=VALUE of bedrock-access-gateway")
    region = settings.get(_REGION)
    params = {"aws_region_name": region} if region else {}
    notes = list(list_left(settings, _READ, _ADVICE, _LOSSES))
    named: list[Deployment] = []
    for variable, (alias, beginning, usual) in _DEFAULTS.items():
        model = f"bedrock/{settings.get(variable) or usual}"
        named.append(Deployment(name=alias, model=model, params=params, facts={}, section=_SECTION))
        text = f"names that begin with {beginning} meant this model: add an alias for each in use"
        notes.append(ImportNote(where=variable, text=text, is_loss=True))
    bedrock = SourceUpstream(name="bedrock", prefix="bedrock", params=params)
    known = offer_known(placement, [bedrock], _SECTION)
    return LitellmConfig(
        deployments=(*known, *named), sections={}, source="bedrock-gateway", notes=tuple(notes)
    )


def _lines(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        name, separator, value = line.strip().removeprefix("export ").partition("=")
        if separator and not name.startswith("#"):
            yield name.strip(), value.strip().strip("\"'")
