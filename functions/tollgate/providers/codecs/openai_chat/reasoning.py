"""The fields that turn thinking on or off on a chat completions server."""

from tollgate.core.json_value import JsonValue
from tollgate.core.request import ReasoningOptions
from tollgate.providers.ports.base import Target
from tollgate.providers.shared.efforts import effort_wanted, nearest_effort, wants_thoughts

_ADAPTED = ("reasoning",)


def reasoning_fields(
    options: ReasoningOptions | None, target: Target
) -> tuple[dict[str, JsonValue], tuple[str, ...]]:
    """Return the fields of the body, and the name `reasoning` if they differ from the request."""
    thinks = None if options is None else wants_thoughts(options)
    if options is None or thinks is None:
        return {}, ()
    if "reasoning" not in target.supports:
        return {}, _ADAPTED if thinks else ()
    match target.dialect.reasoning:
        case "effort":
            return _effort(options, target)
        case "object":
            return {"reasoning": _object(options, thinks=thinks)}, ()
        case "thinking":
            switch: JsonValue = {"type": "enabled" if thinks else "disabled"}
            fields, changed = _effort(options, target) if thinks else ({}, ())
            return {"thinking": switch, **fields}, changed
        case _:
            return {}, _ADAPTED


def _effort(
    options: ReasoningOptions, target: Target
) -> tuple[dict[str, JsonValue], tuple[str, ...]]:
    effort = effort_wanted(options)
    if effort is None:
        return {}, ()
    nearest = nearest_effort(effort, target.dialect.efforts)
    exact = nearest == effort and options.tokens_max is None
    return {} if nearest is None else {"reasoning_effort": nearest}, () if exact else _ADAPTED


def _object(options: ReasoningOptions, *, thinks: bool) -> JsonValue:
    if not thinks:
        return {"enabled": False}
    # OpenRouter refuses requests that have both a budget and an effort.
    if options.tokens_max is not None:
        return {"max_tokens": options.tokens_max}
    return {"enabled": True} if options.effort is None else {"effort": options.effort}
