"""Providers of imported deployments: their addresses, keys and sections."""

import re
from typing import Any, TypeAlias
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
    notes: tuple[ImportNote, ...] = ()


def place_server(deployment: Deployment, prefix: str, address: str) -> ProviderOf:
    """Return a new provider section for the server address in the config."""
    try:
        parts = urlsplit(address if "://" in address else f"https://{address}")
    except ValueError as malformed:
        raise Unplaced("api_base is not an address") from malformed
    if not parts.hostname:
        raise Unplaced("api_base is missing: write the address of the server")
    path = parts.path.rstrip("/")
    if prefix in ("azure", "azure_ai"):
        path = "/openai/v1"
    elif prefix in ("ollama", "ollama_chat"):
        path = "/v1"
    row: PlainSection = {
        "codec": "openai_chat",
        "transport": "http_sse",
        "base_url": f"{parts.scheme}://{parts.netloc}{path}",
    }
    if parts.scheme == "http":
        row["private"] = True
    if prefix.startswith("azure"):
        row["auth"] = "api-key"
    if variable := deployment.variable("api_key"):
        row["key"] = {"env": variable}
    try:
        ProviderSection.model_validate(row)
    except ValidationError as refused:
        # The message leaves out the user information in the URL, which may contain a password.
        shown = f"{parts.scheme}://{parts.hostname}{path}"
        raise Unplaced(f"api_base cannot be the address of a provider: {shown}") from refused
    slug = slug_of(f"{prefix}-{parts.hostname.split('.')[0]}")
    return ProviderOf(slug=slug, section=row, notes=tuple(note_key(deployment, None)))


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
    return [deployment.note(f"the key in the config was not copied: set it {where}")]


def slug_of(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:64]
