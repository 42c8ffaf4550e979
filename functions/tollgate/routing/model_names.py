"""Rules by which a model has more names than its slug, for the check and for requests.

The ids that vendors, Amazon Bedrock, Vertex AI, OpenRouter and LiteLLM give to one model differ by
prefixes and suffixes that say where the model runs. Two ids with the same key name one model.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct

from tollgate.providers.shared.bedrock import GEOGRAPHIES

# Prefixes that other gateways reserve: an alias that begins with one would never be found.
RESERVED_PREFIXES: Final = ("adapter:", "deployment:", "route:", "tensorzero::")

# Vendors in Bedrock's model ids, each before a dot: Bedrock user guide, "Supported foundation
# models" (2026-11-27).
_VENDORS: Final = frozenset(
    {
        *("ai21", "amazon", "anthropic", "cohere", "deepseek", "google", "meta", "minimax"),
        *("mistral", "moonshot", "moonshotai", "nvidia", "openai", "qwen", "stability", "writer"),
        *("xai", "zai"),
    }
)
# Suffixes of first versions in Bedrock's ids (`-v1:0`), and of models that Vertex AI hosts.
_SUFFIXES: Final = (":0", ":1", "-v1", "-maas")
# Versions in Vertex AI's ids that stand for the current one: cloud.google.com, "Model versions".
_CURRENT: Final = frozenset({"default", "latest"})
# Authors by the name of their organisation on Hugging Face, or by the name that a cloud gives them.
ORGANISATIONS: Final[Mapping[str, str]] = {
    "alibaba": "qwen",
    "deepseek-ai": "deepseek",
    "meta": "meta-llama",
    "minimaxai": "minimax",
    "mistral": "mistralai",
    "xai": "x-ai",
    "zai-org": "z-ai",
}
_FINE_TUNED: Final = "ft:"
# Author of the models that `tollgate dev` finds on its machine.
LOCAL_AUTHOR: Final = "local"
# Prefixes within the ids of one provider: regions, kinds of deployment, folders, and routes of
# LiteLLM.
_QUALIFIER: Final = re.compile(
    rf"{'|'.join(sorted(GEOGRAPHIES))}|[a-z]{{2}}(-gov)?-[a-z]+-[0-9]|global-standard|converse|"
    "invoke|converse_like|claude_platform|accounts|models|@cf|@oi|ps"
)


class NamedEndpoint(Protocol):
    """Endpoint, as far as names are concerned."""

    @property
    def provider(self) -> str:
        """Slug of the provider."""
        ...

    @property
    def upstream(self) -> str:
        """Name of the model at the provider."""
        ...


class NamedModel(Protocol):
    """Model, as far as names are concerned."""

    @property
    def names(self) -> Sequence[str]:
        """Further names that the file states."""
        ...

    @property
    def replaces(self) -> Sequence[str]:
        """Names of retired models."""
        ...

    @property
    def endpoints(self) -> Sequence[NamedEndpoint]:
        """Endpoints of the model."""
        ...


class NameIndex(Struct, frozen=True):
    """Models by the key of each name; a key with two models is ambiguous."""

    slugs: Mapping[str, tuple[str, ...]]
    replaced: Mapping[str, str]
    """Successor by the key of each retired model."""


def fold_name(name: str) -> str:
    """Return the key that all spellings of one id share; fine-tuned ids keep their spelling."""
    if name.startswith(_FINE_TUNED):
        return name
    key = name.lower()
    base, _, version = key.partition("@")
    if base and version:
        key = base if version in _CURRENT else f"{base}-{version}"
    for prefixes in (GEOGRAPHIES, _VENDORS):
        prefix, _, rest = key.partition(".")
        if rest and prefix in prefixes:
            key = rest
    for suffix in _SUFFIXES:
        key = key.removesuffix(suffix)
    return key


def is_qualifier(prefix: str) -> bool:
    """Return True if a prefix only says where or how a provider runs a model."""
    return _QUALIFIER.fullmatch(prefix) is not None


def index_names(models: Iterable[tuple[str, NamedModel]]) -> NameIndex:
    """Return the names of models by slug.

    Names are derived from the slug, with and without its author, and from each endpoint's
    `upstream`, with and without the folders before it. A name that a file states outranks these.
    Among models of one author, a slug outranks the `upstream` of another model. Other authors'
    models outrank those of the author `local`, which must not make a catalog's names ambiguous.
    """
    own: dict[str, set[str]] = {}
    derived: dict[str, set[str]] = {}
    stated: dict[str, set[str]] = {}
    replaced: dict[str, str] = {}
    for slug, model in models:
        for name in (slug, slug.partition("/")[2]):
            own.setdefault(fold_name(name), set()).add(slug)
        for endpoint in model.endpoints:
            for name in (endpoint.upstream, endpoint.upstream.rpartition("/")[2]):
                derived.setdefault(fold_name(name), set()).add(slug)
        for name in model.names:
            stated.setdefault(fold_name(name), set()).add(slug)
        replaced |= {fold_name(name): slug for name in model.replaces}
    for key, slugs in own.items():
        others = derived.get(key, set()) - slugs
        if {_author(slug) for slug in others} <= {_author(slug) for slug in slugs}:
            derived[key] = slugs
        else:
            derived[key] = slugs | others
    found = {**{key: _outranking(slugs) for key, slugs in derived.items()}, **stated}
    return NameIndex({key: tuple(sorted(slugs)) for key, slugs in found.items()}, replaced)


def _outranking(slugs: set[str]) -> set[str]:
    return {slug for slug in slugs if _author(slug) != LOCAL_AUTHOR} or slugs


def _author(slug: str) -> str:
    return slug.partition("/")[0]
