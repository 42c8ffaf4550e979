"""A chat completion request, from bytes to the middle."""

import re
from collections.abc import Iterable, Iterator
from typing import Final, assert_never

from pydantic import ValidationError

from tollgate.core.content import Reasoning, Refusal, Text, ToolCall
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.request import (
    AssistantMessage,
    GenerationRequest,
    Message,
    Sampling,
    SystemMessage,
    Tool,
    ToolChoice,
    ToolMessage,
    UserMessage,
)
from tollgate.ingress.base import ParsedCall
from tollgate.ingress.chat_completions.preferences import routing_preferences, unknown_preferences
from tollgate.ingress.json_body import decode_object
from tollgate.ingress.validation import request_error
from tollgate.wire import openai_chat as wire
from tollgate.wire import openai_chat_messages as said
from tollgate.wire.request_model import Wire

_HINTS: Final = {
    "functions": "Send them as `tools`.",
    "function_call": "Use `tool_choice` in a request and `tool_calls` in a message.",
}

# Names of ignored fields are told in a header: few, short, printable.
_IGNORED_MAX: Final = 32
_IGNORED_LENGTH_MAX: Final = 64
_UNPRINTABLE: Final = re.compile(r"[^\w.:\[\]-]", re.ASCII)


def parse(body: bytes) -> ParsedCall:
    """Understand a request; RequestError with the field at fault."""
    try:
        chat = wire.ChatRequest.model_validate(decode_object(body))
    except ValidationError as error:
        raise request_error(error, _HINTS) from error
    tools = tuple(_tool(tool.function) for tool in chat.tools or ())
    request = GenerationRequest(
        model=chat.model,
        messages=tuple(_message(message, n) for n, message in enumerate(chat.messages)),
        tools=tools,
        tool_choice=_tool_choice(chat.tool_choice, tools),
        # Without tools it says nothing, and some providers refuse it.
        parallel_tool_calls=chat.parallel_tool_calls if tools else None,
        output_tokens_max=_smaller(chat.max_tokens, chat.max_completion_tokens),
        sampling=_sampling(chat),
        user=chat.user,
        metadata=chat.metadata or {},
        preferences=routing_preferences(chat),
        size_bytes=len(body),
    )
    return ParsedCall(
        request=request,
        stream=bool(chat.stream),
        usage_on_finish=chat.usage_on == "finish",
        episode_id=chat.episode_id,
        ignored=_told(_unknown(chat)),
    )


def _smaller(one: int | None, other: int | None) -> int | None:
    given = [limit for limit in (one, other) if limit is not None]
    return min(given, default=None)


def _sampling(chat: wire.ChatRequest) -> Sampling:
    stop = chat.stop or ()
    return Sampling(
        temperature=chat.temperature,
        top_p=chat.top_p,
        top_k=chat.top_k,
        min_p=chat.min_p,
        presence_penalty=chat.presence_penalty,
        frequency_penalty=chat.frequency_penalty,
        repetition_penalty=chat.repetition_penalty,
        seed=chat.seed,
        stop=(stop,) if isinstance(stop, str) else tuple(stop),
        logit_bias=chat.logit_bias or {},
    )


def _tool(function: wire.FunctionDefinition) -> Tool:
    return Tool(
        name=function.name,
        description=function.description,
        parameters=function.parameters or {},
        strict=function.strict,
    )


def _tool_choice(choice: wire.ToolChoice | None, tools: tuple[Tool, ...]) -> ToolChoice | None:
    match choice:
        case None:
            return None
        case wire.NamedToolChoice(function=wire.NamedFunction(name=name)):
            if all(tool.name != name for tool in tools):
                raise RequestError(
                    ErrorCode.INVALID_REQUEST,
                    "tool_choice.function.name must be the name of one of `tools`.",
                    param="tool_choice.function.name",
                )
            return ToolChoice(mode="named", name=name)
        case "required":
            if not tools:
                raise RequestError(
                    ErrorCode.INVALID_REQUEST,
                    "tool_choice must not be 'required' without `tools`.",
                    param="tool_choice",
                )
            return ToolChoice(mode="required")
        case "auto" | "none":
            # Some providers refuse a choice among no tools, where it says nothing.
            return ToolChoice(mode=choice) if tools else None
        case _:
            assert_never(choice)


def _message(message: said.Message, position: int) -> Message:
    match message:
        case said.SystemMessage() | said.DeveloperMessage():
            return SystemMessage(
                content=_texts(message.content), role=message.role, name=message.name
            )
        case said.UserMessage():
            return UserMessage(content=_texts(message.content), name=message.name)
        case said.AssistantMessage():
            content = (*_reasoning(message), *_said(message), *_calls(message))
            if not content:
                param = f"messages[{position}].content"
                raise RequestError(
                    ErrorCode.INVALID_REQUEST,
                    f"{param} is required of an assistant message without tool_calls.",
                    param=param,
                )
            return AssistantMessage(content=content, name=message.name)
        case said.ToolMessage():
            return ToolMessage(call_id=message.tool_call_id, content=_texts(message.content or ""))
        case _:
            assert_never(message)


def _texts(content: str | list[said.TextPart]) -> tuple[Text, ...]:
    if isinstance(content, str):
        return (Text(text=content),)
    return tuple(Text(text=part.text) for part in content)


def _reasoning(message: said.AssistantMessage) -> Iterator[Reasoning]:
    if message.reasoning_details:
        for detail in message.reasoning_details:
            yield Reasoning(text=detail.text or detail.summary or "", opaque=detail.opaque or {})
        return
    text = message.reasoning or message.reasoning_content
    if text:
        yield Reasoning(text=text)


def _said(message: said.AssistantMessage) -> Iterator[Text | Refusal]:
    content = message.content
    if isinstance(content, str):
        # Beside calls an empty string stands for null, and providers refuse empty text.
        if content or not message.tool_calls:
            yield Text(text=content)
    else:
        for part in content or ():
            match part:
                case said.TextPart():
                    yield Text(text=part.text)
                case said.RefusalPart():
                    yield Refusal(text=part.refusal)
                case _:
                    assert_never(part)
    if message.refusal:
        yield Refusal(text=message.refusal)


def _calls(message: said.AssistantMessage) -> Iterator[ToolCall]:
    for call in message.tool_calls or ():
        yield ToolCall(
            id=call.id,
            name=call.function.name,
            arguments=call.function.arguments,
            opaque=call.extra_content or {},
        )


def _unknown(chat: wire.ChatRequest) -> Iterator[str]:
    yield from _extra(chat, "")
    if chat.stream_options:
        yield from _extra(chat.stream_options, "stream_options.")
    yield from unknown_preferences(chat)
    for message in chat.messages:
        yield from _extra(message, "messages[].")
        if isinstance(message.content, list):
            for part in message.content:
                yield from _extra(part, "messages[].content[].")
        if isinstance(message, said.AssistantMessage):
            for call in message.tool_calls or ():
                yield from _extra(call, "messages[].tool_calls[].")
            for detail in message.reasoning_details or ():
                yield from _extra(detail, "messages[].reasoning_details[].")
    for tool in chat.tools or ():
        yield from _extra(tool, "tools[].")
        yield from _extra(tool.function, "tools[].function.")


def _extra(model: Wire, path: str) -> Iterator[str]:
    for name, value in (model.model_extra or {}).items():
        if value is not None:
            yield path + name


def _told(names: Iterable[str]) -> tuple[str, ...]:
    printable = (_UNPRINTABLE.sub("_", name)[:_IGNORED_LENGTH_MAX] for name in names)
    told = list(dict.fromkeys(printable))
    if len(told) > _IGNORED_MAX:
        told[_IGNORED_MAX:] = ["..."]
    return tuple(told)
