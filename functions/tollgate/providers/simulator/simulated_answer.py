"""The simulator's answer to a generation; equal requests get equal answers."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

import pydantic_core
from pydantic import BaseModel, Field

from tollgate.core.json_value import JsonValue

_VALUES: Final[Mapping[str, JsonValue]] = {
    "string": "text",
    "integer": 1,
    "number": 1.5,
    "boolean": True,
    "array": [],
    "object": {},
    "null": None,
}
_CALLS_MAX: Final = 2
# The depth limit for values, because a schema may refer to itself.
_DEPTH_MAX: Final = 16
# The limit on values; without it, schemas that refer to one another would have exponentially many
# values.
_FILLED_MAX: Final = 10_000
_DEFINITIONS: Final = "#/$defs/"


class _File(BaseModel):
    filename: str = ""


class _Item(BaseModel):
    text: str = ""
    file: _File | None = None

    @property
    def shown(self) -> str:
        return f"[{self.file.filename}]" if self.file else self.text


class _Message(BaseModel):
    role: str
    content: str | list[_Item] | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return " ".join(item.shown for item in self.content)
        return self.content or ""


class _Schema(BaseModel):
    type: JsonValue = None
    enum: list[JsonValue] = Field(default=[])
    properties: dict[str, "_Schema"] = Field(default={})
    required: list[str] | None = None
    any_of: list["_Schema"] = Field(default=[], alias="anyOf")
    ref: str | None = Field(default=None, alias="$ref")
    definitions: dict[str, "_Schema"] = Field(default={}, alias="$defs")


class _Function(BaseModel):
    name: str
    parameters: _Schema = _Schema()


class _Tool(BaseModel):
    """A tool, or the choice of a tool."""

    function: _Function


class _Format(BaseModel):
    type: str


class SimulatedRequest(BaseModel):
    """The fields that the simulator reads in a chat completion or a legacy completion."""

    model: str
    messages: list[_Message] = Field(default=[])
    prompt: str | None = None
    """The prompt of a legacy completion, which has no messages."""
    tools: list[_Tool] = Field(default=[])
    tool_choice: Literal["auto", "none", "required"] | _Tool = "auto"
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    stop: str | list[str] = Field(default=[])
    response_format: _Format | None = None


def deltas(
    request: SimulatedRequest, *, call_id: str, calls_unforced: bool
) -> tuple[list[dict[str, JsonValue]], str]:
    """Return the deltas of an answer after the delta with the role, and the finish reason.

    Ids of tool calls begin with `call_id`. If `calls_unforced` is false, the answer has a tool
    call only if the request forces a call.
    """
    chosen = _chosen(request, calls_unforced=calls_unforced)
    if chosen:
        return list(_calls(chosen, call_id)), "tool_calls"
    words = re.findall(r"\s*\S+|\s+$", _until_stop(_answer_text(request), request.stop))
    limit = request.max_tokens or request.max_completion_tokens
    within_limit = words if limit is None else words[:limit]
    finish = "stop" if within_limit == words else "length"
    return [{"content": word} for word in within_limit], finish


def usage(request: SimulatedRequest, answer: Sequence[object]) -> JsonValue:
    """Return a usage report in which words of the prompt and deltas count as tokens."""
    texts = [*(message.text for message in request.messages), request.prompt or ""]
    prompt = sum(len(text.split()) for text in texts)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": len(answer),
        "total_tokens": prompt + len(answer),
        "prompt_tokens_details": {"cached_tokens": 0},
    }


def _answer_text(request: SimulatedRequest) -> str:
    text = _spoken(request)
    if request.response_format is not None and request.response_format.type == "json_object":
        return pydantic_core.to_json({"text": text}).decode()
    return text


def _until_stop(text: str, stop: str | list[str]) -> str:
    """Return the text up to the first stop sequence."""
    stops = [stop] if isinstance(stop, str) else stop
    places = [place for sequence in stops if sequence and (place := text.find(sequence)) >= 0]
    return text[: min(places, default=len(text))]


def _spoken(request: SimulatedRequest) -> str:
    if request.prompt is not None:
        return request.prompt
    last = request.messages[-1] if request.messages else None
    if last is not None and last.role == "tool":
        return f"The tool answered: {last.text}"
    spoken = [message.text for message in request.messages if message.role == "user"]
    return spoken[-1] if spoken else ""


def _chosen(request: SimulatedRequest, *, calls_unforced: bool) -> list[_Function]:
    """Return the tools to call: the tool that `tool_choice` names, or else the first two.

    After a tool result, return the last tool if a call is required, and otherwise no tool. The
    gateway puts the tool that emulates a JSON schema after the caller's tools.
    """
    answered = bool(request.messages) and request.messages[-1].role == "tool"
    if request.tool_choice == "auto" and (answered or not calls_unforced):
        return []
    if request.tool_choice == "none":
        return []
    offered = [tool.function for tool in request.tools]
    if isinstance(request.tool_choice, _Tool):
        name = request.tool_choice.function.name
        return [function for function in offered if function.name == name]
    return offered[-1:] if answered else offered[:_CALLS_MAX]


def _calls(functions: Sequence[_Function], id_: str) -> Iterator[dict[str, JsonValue]]:
    for index, function in enumerate(functions):
        schema = function.parameters
        filled = _Filling(schema.definitions).object_of(schema, _DEPTH_MAX)
        yield {
            "tool_calls": [
                {
                    "index": index,
                    "id": f"{id_}_{index}",
                    "type": "function",
                    "function": {"name": function.name, "arguments": ""},
                }
            ]
        }
        for piece in re.findall(r"[^,:]+[,:]?", pydantic_core.to_json(filled).decode()):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


class _Filling:
    """Fills a schema with at most `_FILLED_MAX` values, and with null from then on."""

    def __init__(self, definitions: Mapping[str, _Schema]) -> None:
        self._definitions = definitions
        self._left = _FILLED_MAX

    def object_of(self, schema: _Schema, depth: int) -> JsonValue:
        names = schema.properties if schema.required is None else schema.required
        return {name: self._value(schema.properties.get(name, _Schema()), depth) for name in names}

    def _value(self, schema: _Schema, depth: int) -> JsonValue:
        self._left -= 1
        if depth == 0 or self._left < 0:
            return None
        if schema.ref is not None:
            named = self._definitions.get(schema.ref.removeprefix(_DEFINITIONS), _Schema())
            return self._value(named, depth - 1)
        if schema.enum:
            return schema.enum[0]
        if schema.any_of:
            return self._value(schema.any_of[0], depth - 1)
        if schema.properties:
            return self.object_of(schema, depth - 1)
        kind = schema.type[0] if isinstance(schema.type, list) and schema.type else schema.type
        return _VALUES.get(kind, "text") if isinstance(kind, str) else "text"
