"""Reader of `gateway.yaml`, the file of Anthropic's Claude apps gateway.

Format: https://code.claude.com/docs/en/claude-apps-gateway-config (seen 2026-11-27).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tollgate.cli.catalog.litellm_config import (
    Deployment,
    ImportNote,
    LitellmConfig,
    NotALitellmConfig,
    as_list,
    as_mapping,
    read_yaml_source,
)
from tollgate.cli.catalog.litellm_endpoints import Placement
from tollgate.cli.catalog.source_upstreams import SourceUpstream, list_left, offer_known

_SECTION: Final = "models"
# The providers whose name differs from LiteLLM's prefix.
_PREFIXES: Final = {"foundry": "azure_ai", "vertex": "vertex_ai"}
_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_READ: Final = frozenset({"auto_include_builtin_models", "models", "upstreams"})
_ROW_KEYS: Final = frozenset({"id", "label", "upstream_model"})
_UPSTREAM_KEYS: Final = frozenset({"auth", "base_url", "name", "provider", "region"})
_ADVICE: Final[Mapping[str, str]] = {
    "access_control": "callers' networks are restricted in front of the gateway",
    "admin": "management keys and `tollgate` change budgets",
    "enforcement": "budgets of keys, members and teams refuse requests",
    "limits": "sizes of requests are limited already",
    "listen": "the address and TLS are set where the gateway is deployed",
    "managed": "`availableModels` of a policy becomes `models` of a team, and its group a mapping "
    "to that team; settings of Claude Code stay in its managed settings",
    "oidc": "members sign in by OpenID Connect: docs/sign-in.md",
    "rate_limits": "rates are limited by key, member and team",
    "session": "sessions of members last as long as sign-in states",
    "store": "keys and money are in DynamoDB; no other database is needed",
    "telemetry": "spans go to a collector by OTLP, and metrics are log lines",
    "timeouts": "`timeouts` in `defaults`",
}
_LOSSES: Final = frozenset({"access_control", "managed"})


def read_apps_gateway(path: Path, placement: Placement) -> LitellmConfig:
    """Return the models of a file; raise NotALitellmConfig if the file has none."""
    sections = read_yaml_source(path)
    notes = list(list_left(sections, _READ, _ADVICE, _LOSSES))
    upstreams = list(_upstreams(as_list(sections.get("upstreams")), notes))
    has_builtin = sections.get("auto_include_builtin_models") is not False
    builtin = (
        list(offer_known(placement, upstreams, _SECTION, author="anthropic/"))
        if has_builtin
        else []
    )
    rows = as_list(sections.get("models"))
    listed = _models(rows, upstreams, placement, builtin=builtin, notes=notes)
    deployments = [*builtin, *listed]
    if not deployments:
        raise NotALitellmConfig(f"{path.as_posix()} has no upstreams with models")
    if has_builtin:
        text = "the Claude models of the base file replace the gateway's own list"
        notes.append(ImportNote(where="auto_include_builtin_models", text=text))
    return LitellmConfig(
        deployments=tuple(deployments), sections={}, source="claude-gateway", notes=tuple(notes)
    )


def _upstreams(entries: Sequence[Any], notes: list[ImportNote]) -> Iterator[SourceUpstream]:
    for entry in map(as_mapping, entries):
        provider = entry.get("provider")
        if not isinstance(provider, str):
            continue
        name = str(entry.get("name", provider))
        params: dict[str, Any] = {}
        if "region" in entry and provider == "bedrock":
            params["aws_region_name"] = entry["region"]
        if "base_url" in entry:
            params["api_base"] = _expand(entry["base_url"])
        auth = as_mapping(entry.get("auth"))
        if "api_key" in auth:
            params["api_key"] = _expand(auth["api_key"])
        for key in [*(f"auth.{it}" for it in auth if it != "api_key"), *entry]:
            if key not in _UPSTREAM_KEYS:
                text = f"its {key} has no counterpart"
                notes.append(ImportNote(where=f"upstreams {name}", text=text))
        yield SourceUpstream(name=name, prefix=_PREFIXES.get(provider, provider), params=params)


def _expand(value: object) -> object:
    """Return `${NAME}` as LiteLLM's reference to a variable, and anything else unchanged."""
    match = _VARIABLE.fullmatch(value) if isinstance(value, str) else None
    return f"os.environ/{match[1]}" if match else value


def _models(
    rows: Sequence[Any],
    upstreams: Sequence[SourceUpstream],
    placement: Placement,
    *,
    builtin: Sequence[Deployment],
    notes: list[ImportNote],
) -> Iterator[Deployment]:
    """Yield the endpoints of each listed model, in the order of the upstreams."""
    names = {each.name for each in upstreams}
    for row in map(as_mapping, rows):
        name, ids = row.get("id"), as_mapping(row.get("upstream_model"))
        if not isinstance(name, str):
            continue
        for key in [*(it for it in row if it not in _ROW_KEYS), *(ids.keys() - names)]:
            text = f"{key} has no counterpart"
            notes.append(ImportNote(where=f"{_SECTION} {name}", text=text, is_loss=key in ids))
        for order, upstream in enumerate(upstreams):
            # If an upstream has no id for the model, the gateway sends the id from its own list.
            stated = ids.get(upstream.name)
            models = (
                [f"{upstream.prefix}/{stated}"]
                if isinstance(stated, str)
                else [
                    each.model
                    for each in builtin
                    if each.params["order"] == order and placement.means(name, each.name)
                ]
            )
            for model in models[:1]:
                params = {**upstream.params, "order": order}
                yield Deployment(name=name, model=model, params=params, facts={}, section=_SECTION)
