"""The table of wire formats, with the codecs of each format and the facts that routing reads.

A new format is a folder with encoder, decoder and errors, and an entry of `WIRE_FORMATS`. Entries
name their codecs as text, so a deployment without Claude never imports the code for Claude.
"""

from collections.abc import Mapping
from typing import Final, Literal, get_args

from tollgate.core.dotted_names import DottedName
from tollgate.core.request import TRANSCRIPT_NEEDS, SoundFormat
from tollgate.core.signers import (
    ANTHROPIC_BLOCKS,
    BEDROCK,
    CLAUDE,
    GEMINI,
    OPENAI,
    OPENAI_COMPACTIONS,
    OPENAI_ITEMS,
)
from tollgate.core.work.kinds import WorkKind
from tollgate.providers.ports.base import Codec, NativeSearch
from tollgate.providers.ports.parameters import PARAMETERS
from tollgate.providers.ports.wire_format import CONVERSE_FILES, MESSAGES_FILES, WireFormat

FormatName = Literal[
    "openai_chat",
    "openai_completions",
    "openai_responses",
    "anthropic",
    "bedrock",
    "gemini",
    "cohere",
    "hyperbolic",
    "presidio",
]

_BATCHED_CHAT: Final[frozenset[WorkKind]] = frozenset({"chat"})
_BATCHED_KINDS: Final[frozenset[WorkKind]] = _BATCHED_CHAT | {"embedding", "moderation"}

WIRE_FORMATS: Final[Mapping[str, WireFormat]] = {
    # Chat completions, by OpenAI and many compatible servers.
    "openai_chat": WireFormat(
        codec=DottedName("tollgate.providers.codecs.openai_chat.codec:make_codec"),
        transports=("http_sse", "sagemaker_runtime", "simulator"),
        parameters=frozenset(PARAMETERS),
        carries=TRANSCRIPT_NEEDS
        | {"conversation", "image_output", "token_ids", *get_args(SoundFormat)},
        batch_codecs={
            "embedding": DottedName("tollgate.providers.codecs.openai_embeddings.codec:CODEC"),
            "rerank": DottedName("tollgate.providers.codecs.rerank.codec:JINA_CODEC"),
            "moderation": DottedName("tollgate.providers.codecs.openai_moderations.codec:CODEC"),
            "decision": DottedName("tollgate.providers.codecs.openai_decisions.codec:CODEC"),
            "image": DottedName("tollgate.providers.codecs.openai_images.codec:CODEC"),
            "video": DottedName("tollgate.providers.codecs.openai_videos.codec:CODEC"),
        },
        job_codecs={"video": DottedName("tollgate.providers.codecs.openai_videos.codec:JOB_CODEC")},
        stream_codecs={
            "image": DottedName("tollgate.providers.codecs.openai_images.stream:STREAM_CODEC"),
            "speech": DottedName("tollgate.providers.codecs.openai_speech.codec:CODEC"),
            "transcription": DottedName(
                "tollgate.providers.codecs.openai_transcription.decode:CODEC"
            ),
        },
        batch_transports=frozenset({"http_sse", "simulator"}),
        batch_forms={"openai": _BATCHED_KINDS, "mistral": _BATCHED_KINDS, "xai": _BATCHED_CHAT},
    ),
    # OpenAI's legacy completions, for base models and for fill-in-the-middle models.
    "openai_completions": WireFormat(
        codec=DottedName("tollgate.providers.codecs.openai_completions.codec:make_codec"),
        transports=("http_sse", "sagemaker_runtime", "simulator"),
        parameters=frozenset(PARAMETERS)
        - {"parallel_tool_calls", "prompt_cache_key", "service_tier"},
        carries=frozenset({"echo", "suffix"}),
        batch_forms={"openai": _BATCHED_CHAT},
    ),
    # OpenAI's Responses, for models that refuse tools on chat completions.
    "openai_responses": WireFormat(
        codec=DottedName("tollgate.providers.codecs.openai_responses.codec:make_codec"),
        counter=DottedName("tollgate.providers.codecs.openai_responses.codec:COUNTER"),
        native_search=NativeSearch(allows_domains=True),
        transports=("http_sse",),
        signer=OPENAI,
        other_signers=frozenset({OPENAI_COMPACTIONS, OPENAI_ITEMS}),
        batch_forms={"openai": _BATCHED_CHAT},
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
    # Anthropic's Messages, on Anthropic's API, Vertex AI, and Bedrock's InvokeModel.
    "anthropic": WireFormat(
        codec=DottedName("tollgate.providers.codecs.anthropic.codec:make_codec"),
        counter=DottedName("tollgate.providers.codecs.anthropic.codec:COUNTER"),
        native_search=NativeSearch(allows_domains=True, blocks_domains=True),
        transports=("http_sse", "bedrock_invoke"),
        signer=CLAUDE,
        other_signers=frozenset({ANTHROPIC_BLOCKS}),
        files=MESSAGES_FILES,
        batch_forms={"anthropic": _BATCHED_CHAT},
        parameters=frozenset(
            {"parallel_tool_calls", "service_tier", "stop", "temperature", "top_k", "top_p", "user"}
        ),
    ),
    # Bedrock's Converse, for every model family on Bedrock.
    "bedrock": WireFormat(
        codec=DottedName("tollgate.providers.codecs.bedrock.codec:make_codec"),
        counter=DottedName("tollgate.providers.codecs.bedrock.codec:COUNTER"),
        transports=("bedrock_runtime",),
        signer=BEDROCK,
        parameters=frozenset({"service_tier", "stop", "temperature", "top_p"}),
        files=frozenset(CONVERSE_FILES),
        applies_guardrails=True,
        batch_codecs={
            "embedding": DottedName("tollgate.providers.codecs.bedrock_embeddings.codec:CODEC"),
            "rerank": DottedName("tollgate.providers.codecs.rerank.codec:BEDROCK_CODEC"),
            "image": DottedName("tollgate.providers.codecs.bedrock_images.codec:CODEC"),
            "moderation": DottedName("tollgate.providers.codecs.bedrock_guardrails.codec:CODEC"),
        },
        batch_transports=frozenset({"bedrock_runtime"}),
        batch_forms={"bedrock": _BATCHED_CHAT},
    ),
    # Gemini's generateContent, on AI Studio and on Vertex AI.
    "gemini": WireFormat(
        codec=DottedName("tollgate.providers.codecs.gemini.codec:make_codec"),
        counter=DottedName("tollgate.providers.codecs.gemini.codec:COUNTER"),
        # Models before Gemini 3 refuse requests with both search and functions.
        native_search=NativeSearch(beside_functions=False),
        transports=("http_sse",),
        signer=GEMINI,
        # Google's own SDK also sends unsigned thoughts back.
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
                "service_tier",
                "stop",
                "temperature",
                "top_k",
                "top_logprobs",
                "top_p",
            }
        ),
        batch_codecs={
            "embedding": DottedName("tollgate.providers.codecs.gemini.vectors:EMBEDDING_CODEC"),
            "image": DottedName("tollgate.providers.codecs.gemini.pictures:IMAGE_CODEC"),
        },
        stream_codecs={
            "speech": DottedName("tollgate.providers.codecs.gemini.speech:SPEECH_CODEC")
        },
        batch_transports=frozenset({"http_sse"}),
        batch_forms={"gemini": frozenset({"chat", "embedding"})},
    ),
    # Cohere's own API, for the kinds of work that its OpenAI-compatible API lacks.
    "cohere": WireFormat(
        transports=("http_sse",),
        parameters=frozenset(),
        batch_codecs={
            "embedding": DottedName("tollgate.providers.codecs.cohere.codec:CODEC"),
            "rerank": DottedName("tollgate.providers.codecs.rerank.codec:COHERE_CODEC"),
        },
        batch_transports=frozenset({"http_sse"}),
    ),
    # Hyperbolic's own audio API, which its OpenAI-compatible API lacks.
    "hyperbolic": WireFormat(
        transports=("http_sse",),
        parameters=frozenset(),
        carries=frozenset({"mp3"}),
        stream_codecs={"speech": DottedName("tollgate.providers.codecs.hyperbolic.speech:CODEC")},
        batch_transports=frozenset({"http_sse"}),
    ),
    # The analyzer of Microsoft Presidio, for guardrails.
    "presidio": WireFormat(
        transports=("http_sse",),
        parameters=frozenset(),
        batch_codecs={"moderation": DottedName("tollgate.providers.codecs.presidio.codec:CODEC")},
        batch_transports=frozenset({"http_sse"}),
    ),
}

# The field that each transport requires in a provider's row.
TRANSPORT_NEEDS: Final[Mapping[str, Literal["base_url", "region"]]] = {
    "http_sse": "base_url",
    "bedrock_runtime": "region",
    "bedrock_invoke": "region",
    "sagemaker_runtime": "region",
}
# The transports that sign with the gateway's own AWS credentials.
BEDROCK_TRANSPORTS: Final = frozenset({"bedrock_runtime", "bedrock_invoke"})
AWS_TRANSPORTS: Final = BEDROCK_TRANSPORTS | {"sagemaker_runtime"}


def codec_of(name: FormatName) -> Codec:
    """Return a format's codec for chat, whose modules the first call imports."""
    codec = WIRE_FORMATS[name].make_codec()
    if codec is None:
        raise ValueError(f"the format {name} has no chat")
    return codec
