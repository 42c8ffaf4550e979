"""Parses the output format, reasoning and log probabilities of a chat completion request."""

from typing import Final, assert_never

from tollgate.core.request import (
    Effort,
    JsonOutput,
    OutputFormat,
    ReasoningOptions,
    SchemaOutput,
)
from tollgate.ingress.chat_completions.wire import request as wire
from tollgate.ingress.shared.media import field_refusal

_NAME_DEFAULT: Final = "answer"
_SCHEMA: Final = "response_format.json_schema"


def parse_output_format(format_: wire.ResponseFormat | None) -> OutputFormat | None:
    """Return the requested output format; None for plain text."""
    match format_:
        case None | wire.TextFormat():
            return None
        case wire.JsonObjectFormat(json_schema=schema):
            if schema is None:
                return JsonOutput()
            return SchemaOutput(name=_NAME_DEFAULT, schema=schema)
        case wire.JsonSchemaFormat():
            return _schema_output(format_)
        case _:
            assert_never(format_)


def _schema_output(format_: wire.JsonSchemaFormat) -> SchemaOutput:
    stated = format_.json_schema
    if stated is None:
        if format_.bare_schema is None:
            raise field_refusal(_SCHEMA, "is required")
        return SchemaOutput(name=_NAME_DEFAULT, schema=format_.bare_schema)
    if stated.json_schema is not None:
        return SchemaOutput(
            name=stated.name or _NAME_DEFAULT,
            schema=stated.json_schema,
            description=stated.description,
            strict=stated.strict,
        )
    if is_bare(stated):
        # The caller sent the schema itself instead of an object with the field `schema`.
        schema = stated.model_dump(exclude_unset=True, by_alias=True, exclude={"strict", "name"})
        return SchemaOutput(name=stated.name or _NAME_DEFAULT, schema=schema, strict=stated.strict)
    raise field_refusal(f"{_SCHEMA}.schema", "is required")


def is_bare(schema: wire.JsonSchema) -> bool:
    """Return True if the object is itself a schema, without the field `schema`."""
    keywords = {"$ref", "$schema", "anyOf", "enum", "oneOf", "properties", "type"}
    return schema.json_schema is None and not keywords.isdisjoint(schema.model_extra or ())


def parse_reasoning(
    effort: Effort | None,
    options: wire.Reasoning | None,
    *,
    included: bool | None = None,
) -> ReasoningOptions | None:
    """Return the options from `reasoning_effort` and `reasoning`; raise RequestError on a conflict.

    `included` is `include_reasoning`, OpenRouter's older form of `reasoning.exclude`.
    """
    if options is None:
        if effort is None and included is not False:
            return None
        return ReasoningOptions(effort=effort, exclude=included is False)
    if included is not None and options.exclude not in (None, not included):
        raise field_refusal("include_reasoning", "must not contradict reasoning.exclude")
    exclude = bool(options.exclude) or included is False
    if effort is not None and options.effort not in (None, effort):
        raise field_refusal("reasoning.effort", "must not differ from reasoning_effort")
    effort = effort or options.effort
    tokens_max, enabled = options.max_tokens, options.enabled
    if effort is not None and tokens_max is not None:
        raise field_refusal("reasoning.max_tokens", "must not be combined with an effort")
    off = effort == "none" or tokens_max == 0
    if enabled is False and not off and (effort is not None or tokens_max is not None):
        raise field_refusal("reasoning.enabled", "must not be false with an effort or max_tokens")
    if enabled and off:
        raise field_refusal(
            "reasoning.enabled", "must not be true if the effort is 'none' or max_tokens is 0"
        )
    if effort is None and tokens_max is None and enabled is None and not exclude:
        return None
    return ReasoningOptions(
        effort=effort,
        tokens_max=tokens_max,
        enabled=enabled,
        exclude=exclude,
    )


def parse_log_probs(chat: wire.ChatFields) -> tuple[bool | None, int | None]:
    """Return True or None for log probabilities, and the number of alternative tokens or None."""
    if chat.top_logprobs and not chat.logprobs:
        raise field_refusal("top_logprobs", "requires logprobs: true")
    # False and 0 become None, because some providers refuse them.
    return chat.logprobs or None, chat.top_logprobs or None
