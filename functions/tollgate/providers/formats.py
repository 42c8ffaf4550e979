"""The one table of wire formats: a codec for each name, and every fact about it that others read.

A new format is a folder of encoder, decoder and errors, a loader here, and a row of `WIRE_FORMATS`.
Loaders import what they load, so that a deployment without Claude never imports Claude's models.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, get_args

from msgspec import Struct, field

from tollgate.core.media_types import PDF
from tollgate.core.request import TRANSCRIPT_NEEDS, Need, SoundFormat, WorkKind
from tollgate.core.signers import ANTHROPIC_BLOCKS, BEDROCK, CLAUDE, GEMINI, OPENAI
from tollgate.providers import work_codecs
from tollgate.providers.base import (
    BatchCodec,
    Codec,
    NativeSearch,
    StreamedWorkCodec,
    Target,
    TokenCounter,
)
from tollgate.providers.parameters import PARAMETERS
from tollgate.providers.shared.file_types import CONVERSE_FILES, MESSAGES_FILES
from tollgate.providers.shared.readable import Readership

FormatName = Literal[
    "openai_chat",
    "openai_completions",
    "openai_responses",
    "anthropic",
    "bedrock",
    "gemini",
    "cohere",
    "hyperbolic",
]
TransportName = Literal[
    "http_sse", "bedrock_runtime", "bedrock_invoke", "sagemaker_runtime", "simulator"
]


class WireFormat(Struct, frozen=True, kw_only=True):
    """One format of requests and answers, as providers speak it."""

    # Import the format's folder and return its codec; None if it has no generations.
    load: Callable[[], Codec] | None
    # The transports that can carry the format; the first is the usual one.
    transports: tuple[TransportName, ...]
    # The optional parameters that the format has a field for. A server may still refuse some.
    parameters: frozenset[str]
    # The signer of the reasoning in answers, unless the endpoint or its family has another.
    signer: str | None = None
    # The signers beside it whose reasoning can be sent back.
    other_signers: frozenset[str] = frozenset()
    # Reasoning that is sent back without a signature: none, or what the signer itself wrote.
    takes_unsigned: Literal["none", "own"] = "none"
    # The signers of calls that can be sent back.
    call_signers: frozenset[str] = frozenset()
    # Whether pictures in answers can be sent back in turns of the model.
    takes_images_back: bool = False
    # What it has room for beside one text of the user; all but conversations depends on the server.
    carries: frozenset[Need] = frozenset({"conversation"})
    # Loaders of its codecs of other kinds of work, and the transports that carry those. A kind of
    # both is streamed where the caller wants that and one request is enough.
    batch_codecs: Mapping[WorkKind, Callable[[], BatchCodec[Any]]] = field(default_factory=dict)
    stream_codecs: Mapping[WorkKind, Callable[[], StreamedWorkCodec[Any]]] = field(
        default_factory=dict
    )
    batch_transports: frozenset[TransportName] = frozenset()
    # The search of its providers' own; it is used where the dialect has `native_search`.
    native_search: NativeSearch | None = None
    # The types of files that it has room for, for a model that reads PDF.
    files: frozenset[str] = frozenset({PDF})
    # Whether the operator's guardrail can be applied to a request.
    applies_guardrails: bool = False
    # Import and return how the format counts tokens; None if it cannot. It is used where the
    # dialect has `counts_tokens`.
    load_counter: Callable[[], TokenCounter] | None = None


def _load_openai_chat() -> Codec:
    from tollgate.providers.openai_chat.choices import ChoiceDemultiplexer
    from tollgate.providers.openai_chat.decode import ChatDecoder
    from tollgate.providers.openai_chat.encode import encode
    from tollgate.providers.shared.openai_errors import parse_openai_reply_error

    return Codec(
        encode=encode,
        decoder=lambda target: ChatDecoder(target.provider, signer=target.dialect.known_signer),
        error=parse_openai_reply_error,
        demultiplexer=lambda target, choices: ChoiceDemultiplexer(target.provider, choices),
    )


def _load_openai_completions() -> Codec:
    from tollgate.providers.openai_chat.choices import ChoiceDemultiplexer
    from tollgate.providers.openai_completions.decode import CompletionDecoder
    from tollgate.providers.openai_completions.encode import encode
    from tollgate.providers.shared.openai_errors import parse_openai_reply_error

    return Codec(
        encode=encode,
        decoder=lambda target: CompletionDecoder(target.provider),
        error=parse_openai_reply_error,
        demultiplexer=lambda target, choices: ChoiceDemultiplexer(target.provider, choices),
    )


def _load_openai_responses() -> Codec:
    from tollgate.providers.openai_responses.decode import ResponsesDecoder
    from tollgate.providers.openai_responses.encode import encode
    from tollgate.providers.shared.openai_errors import parse_openai_reply_error

    return Codec(
        encode=encode,
        decoder=lambda target: ResponsesDecoder(
            target.provider,
            signer=signer_of("openai_responses", target),
            searches=target.native_search is not None,
        ),
        error=parse_openai_reply_error,
        has_text_tools=True,
    )


def _load_openai_responses_counter() -> TokenCounter:
    from tollgate.providers.openai_responses.count import encode_count

    return TokenCounter(encode=encode_count, fields=("input_tokens",))


def _load_anthropic() -> Codec:
    from tollgate.providers.anthropic.decode import MessagesDecoder
    from tollgate.providers.anthropic.encode import encode
    from tollgate.providers.anthropic.errors import error_of_reply

    return Codec(
        encode=encode,
        decoder=lambda target: MessagesDecoder(
            target.provider, signer=signer_of("anthropic", target)
        ),
        error=error_of_reply,
    )


def _load_anthropic_counter() -> TokenCounter:
    from tollgate.providers.anthropic.count import encode_count

    return TokenCounter(encode=encode_count, fields=("input_tokens", "inputTokens"))


def _load_bedrock() -> Codec:
    from tollgate.providers.bedrock.decode import ConverseDecoder
    from tollgate.providers.bedrock.encode import encode
    from tollgate.providers.bedrock.errors import error_of_reply

    return Codec(
        encode=encode,
        decoder=lambda target: ConverseDecoder(
            target.provider, signer=signer_of("bedrock", target)
        ),
        error=error_of_reply,
    )


def _load_bedrock_counter() -> TokenCounter:
    from tollgate.providers.bedrock.count import encode_count

    return TokenCounter(encode=encode_count, fields=("inputTokens",))


def _load_gemini() -> Codec:
    from tollgate.providers.gemini.decode import GeminiDecoder
    from tollgate.providers.gemini.encode import encode
    from tollgate.providers.gemini.errors import error_of_reply

    return Codec(
        encode=encode,
        decoder=lambda target: GeminiDecoder(
            target.provider,
            signer=signer_of("gemini", target),
            searches_billed_once=target.dialect.gemini.searches_billed_once,
        ),
        error=error_of_reply,
    )


def _load_gemini_counter() -> TokenCounter:
    from tollgate.providers.gemini.count import encode_count

    return TokenCounter(encode=encode_count, fields=("totalTokens",))


WIRE_FORMATS: Final[Mapping[str, WireFormat]] = {
    # Chat completions, of OpenAI and of everyone who imitates it.
    "openai_chat": WireFormat(
        load=_load_openai_chat,
        transports=("http_sse", "sagemaker_runtime", "simulator"),
        parameters=frozenset(PARAMETERS),
        carries=TRANSCRIPT_NEEDS
        | {"conversation", "image_output", "token_ids", *get_args(SoundFormat)},
        batch_codecs={
            "embedding": work_codecs.load_openai_embeddings,
            "rerank": work_codecs.load_jina_rerank,
            "moderation": work_codecs.load_openai_moderations,
            "image": work_codecs.load_openai_images,
        },
        stream_codecs={
            "image": work_codecs.load_openai_streamed_images,
            "speech": work_codecs.load_openai_speech,
            "transcription": work_codecs.load_openai_transcription,
        },
        batch_transports=frozenset({"http_sse", "simulator"}),
    ),
    # OpenAI's legacy completions, of servers of base models and of those that fill a gap.
    "openai_completions": WireFormat(
        load=_load_openai_completions,
        transports=("http_sse", "sagemaker_runtime", "simulator"),
        parameters=frozenset(PARAMETERS)
        - {"parallel_tool_calls", "prompt_cache_key", "service_tier"},
        carries=frozenset({"echo", "suffix"}),
    ),
    # OpenAI's Responses, for models that refuse tools on chat completions.
    "openai_responses": WireFormat(
        load=_load_openai_responses,
        load_counter=_load_openai_responses_counter,
        native_search=NativeSearch(allows_domains=True),
        transports=("http_sse",),
        signer=OPENAI,
        parameters=frozenset(
            {
                "logprobs",
                "parallel_tool_calls",
                "prompt_cache_key",
                "service_tier",
                "temperature",
                "top_logprobs",
                "top_p",
                "user",
            }
        ),
    ),
    # Anthropic's Messages: Anthropic's own, Vertex AI's, and Bedrock's InvokeModel.
    "anthropic": WireFormat(
        load=_load_anthropic,
        load_counter=_load_anthropic_counter,
        native_search=NativeSearch(allows_domains=True, blocks_domains=True),
        transports=("http_sse", "bedrock_invoke"),
        signer=CLAUDE,
        other_signers=frozenset({ANTHROPIC_BLOCKS}),
        files=MESSAGES_FILES,
        parameters=frozenset(
            {"parallel_tool_calls", "service_tier", "stop", "temperature", "top_k", "top_p", "user"}
        ),
    ),
    # Bedrock's Converse, whatever model family is behind it.
    "bedrock": WireFormat(
        load=_load_bedrock,
        load_counter=_load_bedrock_counter,
        transports=("bedrock_runtime",),
        signer=BEDROCK,
        parameters=frozenset({"service_tier", "stop", "temperature", "top_p"}),
        files=frozenset(CONVERSE_FILES),
        applies_guardrails=True,
        batch_codecs={
            "embedding": work_codecs.load_bedrock_embeddings,
            "rerank": work_codecs.load_bedrock_rerank,
            "image": work_codecs.load_bedrock_images,
            "moderation": work_codecs.load_guardrails,
        },
        batch_transports=frozenset({"bedrock_runtime"}),
    ),
    # Gemini's generateContent, on AI Studio and on Vertex AI.
    "gemini": WireFormat(
        load=_load_gemini,
        load_counter=_load_gemini_counter,
        # Before Gemini 3 functions beside it are a 400.
        native_search=NativeSearch(beside_functions=False),
        transports=("http_sse",),
        signer=GEMINI,
        # As Google's own SDK keeps its history, thoughts and all.
        takes_unsigned="own",
        call_signers=frozenset({GEMINI}),
        takes_images_back=True,
        carries=frozenset({"conversation", "image_output", "wav", "pcm"}),
        parameters=frozenset(
            {
                "frequency_penalty",
                "logprobs",
                "presence_penalty",
                "seed",
                "stop",
                "temperature",
                "top_k",
                "top_logprobs",
                "top_p",
            }
        ),
        batch_codecs={
            "embedding": work_codecs.load_gemini_embeddings,
            "image": work_codecs.load_gemini_images,
        },
        stream_codecs={"speech": work_codecs.load_gemini_speech},
        batch_transports=frozenset({"http_sse"}),
    ),
    # Cohere's own API, for what its layer of OpenAI's format leaves out.
    "cohere": WireFormat(
        load=None,
        transports=("http_sse",),
        parameters=frozenset(),
        batch_codecs={
            "embedding": work_codecs.load_cohere_embeddings,
            "rerank": work_codecs.load_cohere_rerank,
        },
        batch_transports=frozenset({"http_sse"}),
    ),
    # Hyperbolic's own API of sound, beside its layer of OpenAI's format.
    "hyperbolic": WireFormat(
        load=None,
        transports=("http_sse",),
        parameters=frozenset(),
        carries=frozenset({"mp3"}),
        stream_codecs={"speech": work_codecs.load_hyperbolic_speech},
        batch_transports=frozenset({"http_sse"}),
    ),
}

# The field of a provider's row that a transport cannot do without.
TRANSPORT_NEEDS: Final[Mapping[str, Literal["base_url", "region"]]] = {
    "http_sse": "base_url",
    "bedrock_runtime": "region",
    "bedrock_invoke": "region",
    "sagemaker_runtime": "region",
}
# The transports that sign with the gateway's own AWS credentials.
AWS_TRANSPORTS: Final = frozenset({"bedrock_runtime", "bedrock_invoke", "sagemaker_runtime"})


def codec_of(name: FormatName) -> Codec:
    """Return the codec of a format's generations, importing its folder at the first call."""
    load = WIRE_FORMATS[name].load
    if load is None:
        raise ValueError(f"the format {name} has no generations")
    return load()


def signer_of(name: FormatName, target: Target) -> str | None:
    """Return the signer of an endpoint's reasoning."""
    return target.dialect.known_signer or WIRE_FORMATS[name].signer


def readership_of(name: FormatName, target: Target) -> Readership:
    """Return the reasoning that an endpoint takes back, in a format with room for signatures."""
    format_ = WIRE_FORMATS[name]
    return Readership(
        model=target.model,
        signers=format_.other_signers | {signer_of(name, target)},
        unsigned=format_.takes_unsigned,
        call_signers=format_.call_signers,
        images=format_.takes_images_back,
    )
