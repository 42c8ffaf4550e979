"""Whatever a caller asks for goes out, is refused, or is named as left out: for every codec.

Each wish is sent alone and the body compared with that of the same request without it.

Keeps C11, C13, C15, C17.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest

from tests.unit.providers.requests import PDF, PNG, SCHEMA
from tests.upstream.wires import WIRES, Wire
from tollgate.core.content import CacheMark, Document, Image, Text
from tollgate.core.errors import RequestError
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
from tollgate.providers.base import Target, WireRequest
from tollgate.providers.dialect import Dialect

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


def shown(*content: Text | Image | Document, name: str | None = None) -> GenerationRequest:
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
    Wish("max_tokens", replace(PLAIN, output_tokens_max=5)),
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
# What is left out by design, because nothing that a caller may see depends on it: names of files
# reach models as text on some formats, and there a neutral one is sent.
NEUTRAL = frozenset({"file.filename"})


def plainest(wire: Wire) -> Target:
    """The endpoint of a row that states nothing, with a model that can do no more than tools."""
    dialect = Dialect(claude_carrier=wire.dialect.claude_carrier)
    return replace(wire.target, dialect=dialect, supports=frozenset({"tools"}))


TARGETS: Mapping[str, tuple[Wire, Target]] = {
    **{wire.name: (wire, wire.target) for wire in WIRES},
    **{f"{wire.name}-plainest": (wire, plainest(wire)) for wire in WIRES},
}


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("wish", WISHES, ids=lambda wish: wish.name)
def test_c13_a_wish_goes_out_or_is_named_or_refused(name: str, wish: Wish) -> None:
    wire, target = TARGETS[name]
    without = wire.codec.encode(wish.without, target)
    try:
        sent: WireRequest = wire.codec.encode(wish.wished, target)
    except RequestError:
        return
    is_named = wish.name in sent.adapted
    assert sent.body != without.body or is_named or wish.name in NEUTRAL
    assert wish.name not in without.adapted


@pytest.mark.parametrize("name", TARGETS)
def test_c13_nothing_is_named_where_nothing_was_asked(name: str) -> None:
    wire, target = TARGETS[name]
    assert wire.codec.encode(PLAIN, target).adapted == ()
