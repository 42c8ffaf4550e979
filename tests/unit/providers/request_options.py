"""Every option that a caller may set beside the conversation, each alone in a request."""

from dataclasses import dataclass

from msgspec.structs import replace

from tests.unit.providers.requests import PDF, PNG, SCHEMA
from tollgate.core.content import CacheMark, Document, Image, Text, ToolCall, UserContent
from tollgate.core.request import (
    AssistantMessage,
    GenerationRequest,
    ReasoningOptions,
    Sampling,
    SystemMessage,
    Tool,
    ToolChoice,
    ToolMessage,
    UserMessage,
)

MARK = CacheMark()
TOOL = Tool(name="weather", description="Tells.", parameters=SCHEMA)
HI = Text(text="Hi")
PLAIN = GenerationRequest(
    model="acme/m",
    messages=(SystemMessage(content=(HI,)), UserMessage(content=(HI,))),
    tools=(TOOL,),
)


def sampled(**stated: object) -> GenerationRequest:
    return replace(PLAIN, sampling=replace(Sampling(), **stated))  # type: ignore[arg-type]  # by name


def shown(*content: UserContent, name: str | None = None) -> GenerationRequest:
    return replace(PLAIN, messages=(UserMessage(content=content, name=name),))


@dataclass(frozen=True)
class Option:
    """A request that differs from `without` in the one thing that `name` names."""

    name: str
    request: GenerationRequest
    without: GenerationRequest = PLAIN


MARKED = Text(text="Hi", cache=MARK)
CALL = ToolCall(id="call_1", name="weather", arguments="{}")


def answered(call: ToolCall, *, failed: bool = False) -> GenerationRequest:
    result = ToolMessage(call_id=call.id, content=(HI,), failed=failed)
    return replace(PLAIN, messages=(*PLAIN.messages, AssistantMessage(content=(call,)), result))


OPTIONS = (
    Option("temperature", sampled(temperature=0.3)),
    Option("top_p", sampled(top_p=0.4)),
    Option("top_k", sampled(top_k=7)),
    Option("min_p", sampled(min_p=0.1)),
    Option("presence_penalty", sampled(presence_penalty=0.5)),
    Option("frequency_penalty", sampled(frequency_penalty=0.5)),
    Option("repetition_penalty", sampled(repetition_penalty=1.1)),
    Option("seed", sampled(seed=7)),
    Option("stop", sampled(stop=("END",))),
    Option("logit_bias", sampled(logit_bias={"7": 1.0})),
    Option("logprobs", sampled(logprobs=True)),
    Option("top_logprobs", sampled(logprobs=True, top_logprobs=2), sampled(logprobs=True)),
    Option("max_tokens", replace(PLAIN, output_tokens_max=50)),
    Option("tool_choice", replace(PLAIN, tool_choice=ToolChoice(mode="required"))),
    Option("tool_choice", replace(PLAIN, tool_choice=ToolChoice(mode="named", name="weather"))),
    Option("tool_choice", replace(PLAIN, tool_choice=ToolChoice(mode="none"))),
    Option("parallel_tool_calls", replace(PLAIN, parallel_tool_calls=False)),
    Option("tools.strict", replace(PLAIN, tools=(replace(TOOL, strict=True),))),
    Option("cache_control", replace(PLAIN, tools=(replace(TOOL, cache=MARK),))),
    Option("cache_control", shown(MARKED), shown(HI)),
    Option("cache_control", shown(HI, Image(source=PNG, cache=MARK)), shown(HI, Image(source=PNG))),
    Option(
        "cache_control",
        replace(PLAIN, messages=(SystemMessage(content=(MARKED,)), PLAIN.messages[1])),
    ),
    Option("cache_control", answered(replace(CALL, cache=MARK)), answered(CALL)),
    Option("tool_result.is_error", answered(CALL, failed=True), answered(CALL)),
    Option("reasoning", replace(PLAIN, reasoning=ReasoningOptions(effort="high"))),
    Option("reasoning", replace(PLAIN, reasoning=ReasoningOptions(tokens_max=2_000))),
    Option("prompt_cache_key", replace(PLAIN, prompt_cache_key="k")),
    Option("service_tier", replace(PLAIN, service_tier="default")),
    Option("service_tier", replace(PLAIN, service_tier="priority")),
    Option("user", replace(PLAIN, user="me")),
    Option("messages[].name", shown(HI, name="Zoe"), shown(HI)),
    Option(
        "messages[].name",
        replace(PLAIN, messages=(SystemMessage(content=(HI,), name="Zoe"), PLAIN.messages[1])),
    ),
    Option(
        "messages[].name",
        replace(
            PLAIN,
            messages=(
                *PLAIN.messages,
                AssistantMessage(content=(HI,), name="Zoe"),
                *shown(HI).messages,
            ),
        ),
        replace(
            PLAIN, messages=(*PLAIN.messages, AssistantMessage(content=(HI,)), *shown(HI).messages)
        ),
    ),
    Option("image_url.detail", shown(Image(source=PNG, detail="low")), shown(Image(source=PNG))),
    Option(
        "file.filename",
        shown(HI, Document(source=PDF, filename="a.pdf")),
        shown(HI, Document(source=PDF)),
    ),
)


def as_one_text(request: GenerationRequest) -> GenerationRequest:
    """The request without what no prompt can say: its tools, and all messages but the last text."""
    last = next(it for it in reversed(request.messages) if isinstance(it, UserMessage))
    texts = tuple(part for part in last.content if isinstance(part, Text))
    return replace(
        request,
        messages=(UserMessage(content=texts, name=last.name),),
        tools=(),
        tool_choice=None,
        output_format=None,
    )


# Those that a prompt can have: what differs only in tools, media or roles is none of them.
TEXT_OPTIONS = tuple(
    option
    for option in (
        Option(each.name, as_one_text(each.request), as_one_text(each.without)) for each in OPTIONS
    )
    if option.request != option.without and option.name != "parallel_tool_calls"
)
