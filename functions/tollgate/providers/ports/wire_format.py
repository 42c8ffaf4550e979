"""The entry of a wire format: its codecs, and the facts that routing and encoders read."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from msgspec import Struct, field

from tollgate.core.dotted_names import DottedName
from tollgate.core.files.media_types import PDF
from tollgate.core.request import Need
from tollgate.core.work.kinds import WorkKind
from tollgate.providers.ports.base import (
    BatchCodec,
    Codec,
    NativeSearch,
    StreamedWorkCodec,
    Target,
    TokenCounter,
)
from tollgate.providers.ports.provider_batches import BatchForm
from tollgate.providers.ports.provider_jobs import JobCodec
from tollgate.providers.shared.readable import Readership

# The name of each media type in Converse.
CONVERSE_FILES: Final[Mapping[str, str]] = {
    "application/pdf": "pdf",
    "application/msword": "doc",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "text/csv": "csv",
    "text/html": "html",
    "text/markdown": "md",
    "text/plain": "txt",
}
# The media types that Messages accepts; all except PDF are sent as plain text.
MESSAGES_FILES: Final = frozenset(
    {
        "application/json",
        "application/pdf",
        "text/csv",
        "text/html",
        "text/markdown",
        "text/plain",
        "text/xml",
    }
)
TransportName = Literal[
    "http_sse", "bedrock_runtime", "bedrock_invoke", "sagemaker_runtime", "simulator"
]


class WireFormat(Struct, frozen=True, kw_only=True):
    """One format of requests and answers that providers speak."""

    codec: DottedName[Callable[["WireFormat"], Codec]] | None = None
    """Makes the codec for chat from this entry; None if the format has no chat."""
    transports: tuple[TransportName, ...]
    """The transports that can carry the format; the first is the default."""
    parameters: frozenset[str]
    """The optional parameters for which the format has a field; a server may refuse some of them.
    """
    signer: str | None = None
    """The signer of the reasoning in answers, unless the dialect names another."""
    other_signers: frozenset[str] = frozenset()
    """Other signers whose reasoning can be sent back."""
    takes_unsigned: Literal["none", "own"] = "none"
    """The unsigned reasoning that can be sent back: either none, or the reasoning of the format's
    signer.
    """
    call_signers: frozenset[str] = frozenset()
    """The signers whose signed tool calls can be sent back."""
    takes_images_back: bool = False
    """True if assistant turns can contain the images of earlier answers."""
    carries: frozenset[Need] = frozenset({"conversation"})
    """The needs beyond a single text that the format can express; a server may satisfy fewer."""
    batch_codecs: Mapping[WorkKind, DottedName[BatchCodec[Any]]] = field(default_factory=dict)
    """Codecs for other kinds of work with whole results."""
    stream_codecs: Mapping[WorkKind, DottedName[StreamedWorkCodec[Any]]] = field(
        default_factory=dict
    )
    """Codecs for other kinds of work with streamed results. A kind in both mappings is streamed if
    the caller wants a stream and one request is enough.
    """
    job_codecs: Mapping[WorkKind, DottedName[JobCodec]] = field(default_factory=dict)
    """Readers of jobs, for the kinds in `batch_codecs` that providers run as jobs."""
    batch_transports: frozenset[TransportName] = frozenset()
    """The transports that can carry other kinds of work."""
    batch_forms: Mapping[BatchForm, frozenset[WorkKind]] = field(default_factory=dict)
    """The forms of providers' batches that can have requests of the format, with their kinds."""
    native_search: NativeSearch | None = None
    """The web search of the format's providers, used if the dialect has `native_search`."""
    files: frozenset[str] = frozenset({PDF})
    """The media types of files that the format can carry, for models that read PDF."""
    applies_guardrails: bool = False
    """True if a request can name the operator's guardrail."""
    counter: DottedName[TokenCounter] | None = None
    """The counter of prompt tokens, used if the dialect has `counts_tokens`.
    """

    def make_codec(self) -> Codec | None:
        """Return the codec for chat, and import its modules; None if the format has no chat."""
        return None if self.codec is None else self.codec()(self)

    def signer_of(self, target: Target) -> str | None:
        """Return the signer of an endpoint's reasoning."""
        return target.dialect.known_signer or self.signer

    def readership_of(self, target: Target) -> Readership:
        """Return the rules for the reasoning that an endpoint accepts in the history."""
        return Readership(
            model=target.model,
            signers=self.other_signers | {self.signer_of(target)},
            unsigned=self.takes_unsigned,
            call_signers=self.call_signers,
            images=self.takes_images_back,
        )
