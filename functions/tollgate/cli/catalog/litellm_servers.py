"""Providers of imported deployments: their addresses, keys and sections."""

import re
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from msgspec import Struct
from pydantic import ValidationError

from tollgate.cli.catalog.litellm_config import Deployment, ImportNote
from tollgate.routing.schema import ProviderSection

PlainSection: TypeAlias = dict[str, Any]


class Unplaced(ValueError):
    """Raised for a deployment that cannot be converted; the message gives the reason."""


class ProviderOf(Struct, frozen=True, kw_only=True):
    """A provider of the result, and the provider of the base file that it comes from, if any."""

    slug: str
    section: PlainSection
    base: str | None = None
    alike: str | None = None
    """The provider of the base file with the same API as the server; None if none is known."""
    notes: tuple[ImportNote, ...] = ()


# The environment variables with the keys that LiteLLM uses if a deployment states none.
_USUAL_KEYS: Final = {
    "azure": "AZURE_API_KEY",
    "azure_ai": "AZURE_AI_API_KEY",
    "custom_openai": "OPENAI_API_KEY",
    "openai": "OPENAI_API_KEY",
}


def is_claude_at(prefix: str, upstream: str) -> bool:
    """Return True for a Claude model on a cloud that serves Claude by Anthropic's API.

    LiteLLM also decides this by the model's name (litellm 1.110.2, azure_ai and vertex_ai).
    """
    return prefix in ("azure_ai", "vertex_ai") and "claude" in upstream.lower()


def place_server(
    deployment: Deployment, prefix: str, address: str, alike: tuple[str, PlainSection] | None
) -> ProviderOf:
    """Return a new provider section for the server address in the config.

    `alike` has slug and section of the provider in the base file whose API Azure uses here.
    """
    try:
        parts = urlsplit(address if "://" in address else f"https://{address}")
    except ValueError as malformed:
        raise Unplaced("api_base is not an address") from malformed
    if not parts.hostname:
        raise Unplaced("api_base is missing: write the address of the server")
    path = parts.path.rstrip("/")
    is_claude = is_claude_at(prefix, deployment.model)
    if is_claude:
        path = "/anthropic/v1"
    elif prefix in ("azure", "azure_ai"):
        path = "/openai/v1"
    elif prefix in ("ollama", "ollama_chat"):
        path = "/v1"
    row: PlainSection = {
        "codec": "anthropic" if is_claude else "openai_chat",
        "transport": "http_sse",
        "base_url": f"{parts.scheme}://{parts.netloc}{path}",
    }
    if parts.scheme == "http":
        row["private"] = True
    if is_claude:
        row["auth"] = "x-api-key"
    elif prefix.startswith("azure"):
        row["auth"] = "api-key"
    if alike and "dialect" in alike[1]:
        row["dialect"] = alike[1]["dialect"]
    notes = note_key(deployment, None)
    usual = _USUAL_KEYS.get(prefix) if deployment.params.get("api_key") is None else None
    if variable := deployment.variable("api_key") or (usual if alike else None):
        row["key"] = {"env": variable}
    elif usual:
        # The server may belong to somebody else, so OpenAI's key is sent only if the user says so.
        text = f"api_key is missing, so LiteLLM sends {usual}: write key: {{ env: ... }} if needed"
        notes.append(deployment.note(text, is_loss=True))
    try:
        ProviderSection.model_validate(row)
    except ValidationError as refused:
        # The message leaves out the user information in the URL, which may contain a password.
        shown = f"{parts.scheme}://{parts.hostname}{path}"
        raise Unplaced(f"api_base cannot be the address of a provider: {shown}") from refused
    slug = slug_of(f"{prefix}-{parts.hostname.split('.')[0]}")
    return ProviderOf(slug=slug, section=row, alike=alike[0] if alike else None, notes=tuple(notes))


def place_region(slug: str, section: PlainSection, region: object) -> tuple[str, PlainSection]:
    """Return a provider of AWS in another region, with its slug."""
    moved = section | {"region": region}
    try:
        ProviderSection.model_validate(moved)
    except ValidationError as refused:
        raise Unplaced(
            "aws_region_name is not a region: write the region into the config"
        ) from refused
    return f"{slug}-{region}", moved


def is_at(section: PlainSection, address: str) -> bool:
    """Return True if an address is on the host of a provider."""
    try:
        host = urlsplit(address if "://" in address else f"https://{address}").hostname
    except ValueError as malformed:
        raise Unplaced("api_base is not an address") from malformed
    return host == urlsplit(section.get("base_url") or "").hostname


def note_key(deployment: Deployment, variable: str | None) -> list[ImportNote]:
    literal = deployment.params.get("api_key")
    if not isinstance(literal, str) or deployment.variable("api_key"):
        return []
    where = f"in {variable}" if variable else "as key: { env: ... }"
    text = f"the key in the config was not copied: set it {where}"
    return [deployment.note(text, is_loss=variable is None)]


def is_foreign(codec: str, upstream: str) -> bool:
    """Return True if exactly one of the format and the model is Anthropic's."""
    return (codec == "anthropic") != ("claude" in upstream.lower())


def no_provider(prefix: str) -> str:
    """Return the reason why a deployment of an unknown provider is left out."""
    if prefix == "auto_router":
        return "routes do not choose a model by the content of a prompt: write a route with `rules`"
    return f"the base file has no provider {prefix}: add it, see docs/adding-a-provider.md"


def slug_of(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:64]
