"""Everything a caller may ask for beside the conversation, each alone in a request."""

from dataclasses import dataclass

from msgspec.structs import replace

from tests.unit.providers.requests import PDF, PNG, SCHEMA
from tollgate.core.content import CacheMark, Document, Image, Text, UserContent
from tollgate.core.request import (
    AssistantMessage,
    GenerationRequest,
    ReasoningOptions,
    Sampling,
    SystemMessage,
    Tool,
    ToolChoice,
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


def sampled(**wish: object) -> GenerationRequest:
    return replace(PLAIN, sampling=replace(Sampling(), **wish))  # type: ignore[arg-type]  # by name


def shown(*content: UserContent, name: str | None = None) -> GenerationRequest:
    return replace(PLAIN, messages=(UserMessage(content=content, name=name),))


@dataclass(frozen=True)
class Wish:
    """A request that differs from `without` in the one thing that `name` names."""

    name: str
    wished: GenerationRequest
    without: GenerationRequest = PLAIN


MARKED = Text(text="Hi", cache=MARK)
WISHES = (
    Wish("temperature", sampled(temperature=0.3)),
    Wish("top_p", sampled(top_p=0.4)),
    Wish("top_k", sampled(top_k=7)),
    Wish("min_p", sampled(min_p=0.1)),
    Wish("presence_penalty", sampled(presence_penalty=0.5)),
    Wish("frequency_penalty", sampled(frequency_penalty=0.5)),
    Wish("repetition_penalty", sampled(repetition_penalty=1.1)),
    Wish("seed", sampled(seed=7)),
    Wish("stop", sampled(stop=("END",))),
    Wish("logit_bias", sampled(logit_bias={"7": 1.0})),
    Wish("logprobs", sampled(logprobs=True)),
    Wish("top_logprobs", sampled(logprobs=True, top_logprobs=2), sampled(logprobs=True)),
    Wish("max_tokens", replace(PLAIN, output_tokens_max=50)),
    Wish("tool_choice", replace(PLAIN, tool_choice=ToolChoice(mode="required"))),
    Wish("tool_choice", replace(PLAIN, tool_choice=ToolChoice(mode="named", name="weather"))),
    Wish("tool_choice", replace(PLAIN, tool_choice=ToolChoice(mode="none"))),
    Wish("parallel_tool_calls", replace(PLAIN, parallel_tool_calls=False)),
    Wish("tools.strict", replace(PLAIN, tools=(replace(TOOL, strict=True),))),
    Wish("cache_control", replace(PLAIN, tools=(replace(TOOL, cache=MARK),))),
    Wish("cache_control", shown(MARKED), shown(HI)),
    Wish("cache_control", shown(HI, Image(source=PNG, cache=MARK)), shown(HI, Image(source=PNG))),
    Wish(
        "cache_control",
        replace(PLAIN, messages=(SystemMessage(content=(MARKED,)), PLAIN.messages[1])),
    ),
    Wish("reasoning", replace(PLAIN, reasoning=ReasoningOptions(effort="high"))),
    Wish("reasoning", replace(PLAIN, reasoning=ReasoningOptions(tokens_max=2_000))),
    Wish("prompt_cache_key", replace(PLAIN, prompt_cache_key="k")),
    Wish("service_tier", replace(PLAIN, service_tier="default")),
    Wish("service_tier", replace(PLAIN, service_tier="priority")),
    Wish("user", replace(PLAIN, user="me")),
    Wish("messages[].name", shown(HI, name="Zoe"), shown(HI)),
    Wish(
        "messages[].name",
        replace(PLAIN, messages=(SystemMessage(content=(HI,), name="Zoe"), PLAIN.messages[1])),
    ),
    Wish(
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
    Wish("image_url.detail", shown(Image(source=PNG, detail="low")), shown(Image(source=PNG))),
    Wish(
        "file.filename",
        shown(HI, Document(source=PDF, filename="a.pdf")),
        shown(HI, Document(source=PDF)),
    ),
)
