"""Checks that calls and results in a history match, which some formats require."""

import hashlib
import re
from typing import NoReturn

import pydantic_core

from tollgate.core.content import ToolCall
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.json_value import JsonValue
from tollgate.core.request import ToolMessage


class OpenCalls:
    """The calls that have no result yet; `called` has the distinct tool names of all calls."""

    def __init__(self) -> None:
        self.called: list[str] = []
        self._names: dict[str, str] = {}

    def ask(self, call: ToolCall) -> None:
        """Add a call; raise RequestError if another call with the same id has no result yet."""
        if call.id in self._names:
            refuse(f"two calls have the id {call.id!r}")
        self._names[call.id] = call.name
        if call.name not in self.called:
            self.called.append(call.name)

    def answer(self, message: ToolMessage) -> str:
        """Close the call of a result and return its name; raise RequestError if none is open."""
        if message.call_id not in self._names:
            refuse(f"tool result {message.call_id!r} answers no open call")
        return self._names.pop(message.call_id)

    def need_none(self) -> None:
        """Raise RequestError if any call has no result when the conversation continues."""
        if self._names:
            missing = ", ".join(map(repr, self._names))
            refuse(f"no tool result for the call {missing}")


def arguments_object(call: ToolCall) -> JsonValue:
    """Return the arguments as an object, with exact integers; raise RequestError if invalid."""
    try:
        value: JsonValue = pydantic_core.from_json(call.arguments or "{}", allow_inf_nan=False)
    except ValueError as invalid:
        raise _refused(f"the arguments of call {call.id!r} are not JSON") from invalid
    if not isinstance(value, dict):
        refuse(f"the arguments of call {call.id!r} are not a JSON object")
    return value


def fitting_id(id_: str, allowed: re.Pattern[str]) -> str:
    """Return the id, or else an allowed id that is derived from it; a call and its result get the
    same id.
    """
    if allowed.fullmatch(id_):
        return id_
    return f"call_{hashlib.sha256(id_.encode()).hexdigest()[:32]}"


def refuse(what: str, code: ErrorCode = ErrorCode.INVALID_REQUEST) -> NoReturn:
    """Raise RequestError for invalid messages."""
    raise _refused(what, code)


def _refused(what: str, code: ErrorCode = ErrorCode.INVALID_REQUEST) -> RequestError:
    return RequestError(code, f"messages: {what}.", param="messages")
