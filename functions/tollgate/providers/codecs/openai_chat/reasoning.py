"""The fields that turn thinking on or off on a chat completions server."""

from tollgate.core.json_value import JsonValue
from tollgate.core.request import ReasoningOptions
from tollgate.providers.ports.base import Target
from tollgate.providers.shared.efforts import effort_wanted, nearest_effort, wants_thoughts

_ADAPTED = ("reasoning",)


def reasoning_fields(
    wanted: ReasoningOptions | None, target: Target
) -> tuple[dict[str, JsonValue], tuple[str, ...]]:
    """Return the fields of the body, and `reasoning` if they depart from the request."""
    thinks = None if wanted is None else wants_thoughts(wanted)
    if wanted is None or thinks is None:
        return {}, ()
    if "reasoning" not in target.supports:
        return {}, _ADAPTED if thinks else ()
    match target.dialect.reasoning:
        case "effort":
            return _effort(wanted, target)
        case "object":
            return {"reasoning": _object(wanted, thinks=thinks)}, ()
        case "thinking":
            switch: JsonValue = {"type": "enabled" if thinks else "disabled"}
            fields, changed = _effort(wanted, target) if thinks else ({}, ())
            return {"thinking": switch, **fields}, changed
        case _:
            return {}, _ADAPTED


def _effort(
    wanted: ReasoningOptions, target: Target
) -> tuple[dict[str, JsonValue], tuple[str, ...]]:
    effort = effort_wanted(wanted)
    if effort is None:
        return {}, ()
    known = nearest_effort(effort, target.dialect.efforts)
    exact = known == effort and wanted.tokens_max is None
    return {} if known is None else {"reasoning_effort": known}, () if exact else _ADAPTED


def _object(wanted: ReasoningOptions, *, thinks: bool) -> JsonValue:
    if not thinks:
        return {"enabled": False}
    # OpenRouter refuses a budget together with an effort.
    if wanted.tokens_max is not None:
        return {"max_tokens": wanted.tokens_max}
    return {"enabled": True} if wanted.effort is None else {"effort": wanted.effort}
