"""Requests of every kind that a codec may be given."""

from hypothesis import strategies as st

from tollgate.core.content import (
    Audio,
    CacheMark,
    Document,
    Image,
    InlineMedia,
    MediaUrl,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
)
from tollgate.core.request import (
    AssistantMessage,
    GenerationRequest,
    JsonOutput,
    Message,
    ReasoningOptions,
    Sampling,
    SchemaOutput,
    SystemMessage,
    Tool,
    ToolChoice,
    ToolMessage,
    UserMessage,
)

PNG = InlineMedia(media_type="image/png", base64="iVBORw0KGgo=")
PDF = InlineMedia(media_type="application/pdf", base64="JVBERi0=")
WAV = InlineMedia(media_type="audio/wav", base64="UklGRg==")
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}

marks = st.sampled_from([None, CacheMark(), CacheMark(lifetime="1h")])
words = st.sampled_from(["Hi", "Paris?"])
texts = st.builds(Text, text=words, cache=marks)
image_urls = st.just(MediaUrl(url="https://example.org/a.png"))
images = st.builds(
    Image,
    source=st.just(PNG) | image_urls,
    detail=st.sampled_from([None, "auto", "low", "high"]),
    cache=marks,
)
audios = st.just(Audio(source=WAV, format="wav"))
tools = st.builds(
    Tool,
    name=st.sampled_from(["weather", "now"]),
    description=st.sampled_from([None, "Tells."]),
    parameters=st.sampled_from([{}, SCHEMA]),
    strict=st.sampled_from([None, True, False]),
    cache=marks,
)
choices = st.sampled_from(
    [
        None,
        ToolChoice(mode="auto"),
        ToolChoice(mode="none"),
        ToolChoice(mode="required"),
        ToolChoice(mode="named", name="weather"),
    ]
)
samplings = st.builds(
    Sampling,
    temperature=st.none() | st.floats(0, 2),
    top_p=st.none() | st.floats(0, 1),
    presence_penalty=st.none() | st.floats(-2, 2),
    seed=st.none() | st.integers(0, 100),
    stop=st.sampled_from([(), ("END",)]),
    logprobs=st.sampled_from([None, True]),
    top_logprobs=st.sampled_from([None, 2]),
)
outputs = st.sampled_from(
    [
        None,
        JsonOutput(),
        SchemaOutput(name="city", schema=SCHEMA),
        SchemaOutput(name="city", schema=SCHEMA, strict=True, description="A city."),
    ]
)
reasonings = st.sampled_from(
    [
        None,
        ReasoningOptions(),
        ReasoningOptions(effort="none"),
        ReasoningOptions(effort="max"),
        ReasoningOptions(tokens_max=5_000),
        ReasoningOptions(enabled=True, exclude=True),
    ]
)


@st.composite
def histories(draw: st.DrawFn, *, audio: bool, file_urls: bool) -> tuple[Message, ...]:
    """A conversation with calls that are all answered."""
    files = st.just(PDF) | (
        st.just(MediaUrl(url="https://example.org/a.pdf")) if file_urls else st.nothing()
    )
    documents = st.builds(Document, source=files, filename=st.sampled_from([None, "a.pdf"]))
    shown = texts | images | documents | (audios if audio else st.nothing())
    messages: list[Message] = [
        SystemMessage(content=(draw(texts),), role=draw(st.sampled_from(["system", "developer"]))),
        UserMessage(content=tuple(draw(st.lists(shown, min_size=1, max_size=3)))),
    ]
    for turn in range(draw(st.integers(0, 2))):
        call = ToolCall(id=f"call_{turn}", name="weather", arguments='{"city":"Paris"}')
        thoughts = draw(st.sampled_from([(), (Reasoning(text="Hm."),)]))
        said = draw(st.sampled_from([(), (Text(text="So."),), (Refusal(text="No."),)]))
        messages.append(AssistantMessage(content=(*thoughts, *said, call)))
        result = draw(st.lists(texts | images, max_size=2))
        messages.append(ToolMessage(call_id=call.id, content=tuple(result)))
    return tuple(messages)


@st.composite
def requests(draw: st.DrawFn, *, audio: bool = True, file_urls: bool = False) -> GenerationRequest:
    """A request with some of everything; `file_urls` are for formats that fetch documents."""
    return GenerationRequest(
        model="acme/m",
        messages=draw(histories(audio=audio, file_urls=file_urls)),
        tools=tuple(draw(st.lists(tools, max_size=2, unique_by=lambda tool: tool.name))),
        tool_choice=draw(choices),
        parallel_tool_calls=draw(st.sampled_from([None, False, True])),
        output_tokens_max=draw(st.sampled_from([None, 1, 4_096])),
        sampling=draw(samplings),
        output_format=draw(outputs),
        reasoning=draw(reasonings),
        choices=draw(st.integers(1, 3)),
        prompt_cache_key=draw(st.sampled_from([None, "k"])),
        service_tier=draw(st.sampled_from([None, "auto", "flex", "default"])),
        user=draw(st.sampled_from([None, "me"])),
    )
