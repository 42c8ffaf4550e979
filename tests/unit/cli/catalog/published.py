"""A wheel with a price map, and a routing file of whose prices it states some."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import ZipFile

WHEEL = "litellm-9.8.7-py3-none-any.whl"
MEMBER = "litellm/model_prices_and_context_window_backup.json"
HEAD = """\
version: 1
providers:
  openai: { codec: openai_chat, transport: http_sse, base_url: https://api.openai.com/v1 }
  together: { codec: openai_chat, transport: http_sse, base_url: https://api.together.xyz/v1 }
models:
"""


def price_map(folder: Path, **entries: Mapping[str, Any]) -> Path:
    """A wheel whose map has these entries; two underscores stand for a slash."""
    content = {name.replace("__", "/"): entry for name, entry in entries.items()}
    path = folder / WHEEL
    with ZipFile(path, "w") as wheel:
        wheel.writestr(MEMBER, json.dumps(content))
    return path


def entry(dollars_in: float, dollars_out: float, **facts: Any) -> dict[str, Any]:
    """A model of Together's, priced per million tokens."""
    return {
        "litellm_provider": "together_ai",
        "mode": "chat",
        "input_cost_per_token": dollars_in / 1e6,
        "output_cost_per_token": dollars_out / 1e6,
        **facts,
    }


def model(upstream: str, price: str, *, more: str = "") -> str:
    """The lines of a model that Together serves, under a name that genai-prices does not have."""
    return (
        f"  acme/{upstream}:  # of ours\n"
        f"    name: {upstream}\n"
        "    context: 1000\n"
        "    max_output: 100\n"
        "    endpoints:\n"
        f"      - provider: together  # the only one\n"
        f"        upstream: {upstream}\n"
        f"{price}{more}"
    )


def block(dollars_in: str, dollars_out: str, source: str = "litellm 1.0.0") -> str:
    """A price in lines."""
    return (
        "        price:\n"
        f"          input: {dollars_in}  # dollars\n"
        f"          output: {dollars_out}\n"
        f"          source: {source}\n"
        "          checked: 2026-11-01\n"
    )
