"""Prices of hosts behind Hugging Face's router, which adds no markup.

Source: huggingface.co/docs/inference-providers/pricing (2026-11-22). genai-prices has the router's
price for each host, but lacks some hosts' own prices.
"""

import re
from collections.abc import Mapping
from datetime import date
from typing import Final
from urllib.parse import urlsplit

from genai_prices import data

from tollgate.cli.routing.published_prices import Published, Unpublished, convert_price
from tollgate.core.work.kinds import WorkKind
from tollgate.routing.schema import ProviderSection

ROUTER: Final = "Hugging Face router"
_ROUTER: Final = "router.huggingface.co"
# The router's names for hosts, by the hostname in a provider's `base_url`.
_HOSTS: Final[Mapping[str, str]] = {
    "api.cerebras.ai": "cerebras",
    "api.fireworks.ai": "fireworks-ai",
    "api.groq.com": "groq",
    "api.hyperbolic.xyz": "hyperbolic",
    "api.novita.ai": "novita",
    "api.sambanova.ai": "sambanova",
    "api.together.xyz": "together",
    "api.tokenfactory.nebius.com": "nebius",
    "inference.api.nscale.com": "nscale",
    "oai.endpoints.kepler.ai.cloud.ovh.net": "ovhcloud",
}
# Suffix that hosts append to the router's model name for a quantization.
_SERVED_AS: Final = re.compile(r"-fp[48]$")


def is_routed(row: ProviderSection) -> bool:
    """Return whether a provider is the router or a host behind the router."""
    host = urlsplit(row.base_url or "").hostname or ""
    return host == _ROUTER or host in _HOSTS


def find_routed_price(
    row: ProviderSection, upstream: str, day: date, *, kind: WorkKind
) -> Published:
    """Return the router's price for a host's model from one day on; raise Unpublished if there is
    none.
    """
    host = urlsplit(row.base_url or "").hostname or ""
    name, _, routed = upstream.partition(":")
    host_id = routed if host == _ROUTER else _HOSTS.get(host, "")
    publisher = next(
        (candidate for candidate in data.providers if candidate.id == f"huggingface_{host_id}"),
        None,
    )
    if publisher is None:
        raise Unpublished("the router does not publish this provider's prices")
    found = [
        candidate for candidate in publisher.models if _weights(candidate.id) == _weights(name)
    ]
    if len(found) != 1:
        raise Unpublished(f"{publisher.name} has no price for {upstream}")
    return convert_price(found[0], day, kind=kind)


def _weights(name: str) -> str:
    """Return a model's name without its author and its quantization."""
    bare = name.lower().rpartition("/")[2]
    return _SERVED_AS.sub("", bare)
