"""Selects the options of Anthropic's format that a host of Claude accepts.

https://platform.claude.com/docs/en/api/beta-headers (seen 2026-11-22). Bedrock and Vertex
refuse unknown beta features, and fields whose beta feature was not requested, with status 400.
"""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from tollgate.core.json_value import JsonValue
from tollgate.core.request import NativeOptions

# Vertex and InvokeModel support `safeguards`. Converse's reply has no field for the results:
# https://docs.litellm.ai/docs/claude_code_auto_mode (2026-11-27)
SAFEGUARDS: Final = "dangerous-tool-use"
# The prefix of the beta feature that a host requires for each field.
_FEATURES_OF_FIELD: Final[Mapping[str, tuple[str, ...]]] = {
    "container": ("code-execution",),
    "context_management": ("context-management",),
    "mcp_servers": ("mcp-client",),
    "output_config.task_budget": ("task-budgets",),
    "safeguards": (SAFEGUARDS,),
}
# Prefixes of beta features for each field of a caller's tool; a host requires one of the features.
_FEATURES_OF_TOOL_FIELD: Final[Mapping[str, tuple[str, ...]]] = {
    "allowed_callers": ("advanced-tool-use",),
    "defer_loading": ("advanced-tool-use", "tool-search-tool"),
    "eager_input_streaming": ("fine-grained-tool-streaming",),
    "input_examples": ("advanced-tool-use", "tool-examples"),
}
# Prefixes of the beta features that Bedrock and Vertex accept.
# https://github.com/BerriAI/litellm/pull/19877 and
# https://github.com/router-for-me/CLIProxyAPI/issues/4750 (seen 2026-11-22)
BETAS_ELSEWHERE: Final = (
    "computer-use",
    "context-1m",
    "context-management",
    SAFEGUARDS,
    "interleaved-thinking",
)
_NOTHING: Final = NativeOptions(wire_format="anthropic")


def taken_options(native: NativeOptions | None, betas: tuple[str, ...] | None) -> NativeOptions:
    """Return the native options that a host accepts.

    `betas` has the prefixes of the beta features that the host accepts; None if the host accepts
    all. If `betas` is a list, a field is sent only together with its feature.
    """
    if native is None or native.wire_format != _NOTHING.wire_format:
        return _NOTHING
    if betas is None:
        return native
    features = tuple(beta for beta in native.betas if beta.startswith(betas))
    has_all = len(features) == len(native.betas)
    fields = _taken(native.fields, _FEATURES_OF_FIELD, features, has_all=has_all)
    unknown = _taken(native.unknown, _FEATURES_OF_FIELD, features, has_all=has_all)
    tool_fields = {
        name: _taken(tool_options, _FEATURES_OF_TOOL_FIELD, features, has_all=has_all)
        for name, tool_options in native.tool_fields.items()
    }
    return replace(
        native,
        betas=features,
        fields=fields,
        tool_fields=tool_fields,
        unknown=unknown,
        unknown_names=tuple(
            name
            for name in native.unknown_names
            if (name in unknown if name in native.unknown else has_all)
        ),
    )


def _taken(
    options: Mapping[str, JsonValue],
    features_of: Mapping[str, tuple[str, ...]],
    requested: tuple[str, ...],
    *,
    has_all: bool,
) -> dict[str, JsonValue]:
    """Return the fields for which the caller requested a beta feature.

    `has_all` is True if the host accepts all requested features. Otherwise, fields without a known
    feature are left out too, since a host refuses a field whose feature is missing.
    """
    return {
        name: value
        for name, value in options.items()
        if (
            any(feature.startswith(features_of[name]) for feature in requested)
            if name in features_of
            else has_all
        )
    }
