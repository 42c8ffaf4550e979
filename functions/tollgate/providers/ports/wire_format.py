"""The row of a wire format: its codecs, and the facts that routing and its encoder read."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

from msgspec import Struct, field

from tollgate.core.dotted_names import DottedName
from tollgate.core.files.media_types import PDF
from tollgate.core.request import Need, WorkKind
from tollgate.providers.ports.base import (
    BatchCodec,
    Codec,
    NativeSearch,
    StreamedWorkCodec,
    Target,
    TokenCounter,
)
from tollgate.providers.shared.readable import Readership

TransportName = Literal[
    "http_sse", "bedrock_runtime", "bedrock_invoke", "sagemaker_runtime", "simulator"
]


class WireFormat(Struct, frozen=True, kw_only=True):
    """One format of requests and answers, as providers speak it."""

    codec: DottedName[Callable[["WireFormat"], Codec]] | None = None
    """Makes the codec of generations by this row; None if the format has no generations."""
    transports: tuple[TransportName, ...]
    """The transports that can carry the format; the first is the usual one."""
    parameters: frozenset[str]
    """The optional parameters that the format has a field for. A server may still refuse some."""
    signer: str | None = None
    """The signer of the reasoning in answers, unless the endpoint or its family has another."""
    other_signers: frozenset[str] = frozenset()
    """The signers beside it whose reasoning can be sent back."""
    takes_unsigned: Literal["none", "own"] = "none"
    """Reasoning that is sent back without a signature: none, or what the signer itself wrote."""
    call_signers: frozenset[str] = frozenset()
    """The signers of calls that can be sent back."""
    takes_images_back: bool = False
    """Whether pictures in answers can be sent back in turns of the model."""
    carries: frozenset[Need] = frozenset({"conversation"})
    """What it has room for beside one text of the user; all but conversations depends on the
    server.
    """
    # Its codecs of other kinds of work, and the transports that carry those. A kind of both is
    # streamed where the caller wants that and one request is enough.
    batch_codecs: Mapping[WorkKind, DottedName[BatchCodec[Any]]] = field(default_factory=dict)
    stream_codecs: Mapping[WorkKind, DottedName[StreamedWorkCodec[Any]]] = field(
        default_factory=dict
    )
    batch_transports: frozenset[TransportName] = frozenset()
    native_search: NativeSearch | None = None
    """The search of its providers' own; it is used where the dialect has `native_search`."""
    files: frozenset[str] = frozenset({PDF})
    """The types of files that it has room for, for a model that reads PDF."""
    applies_guardrails: bool = False
    """Whether the operator's guardrail can be applied to a request."""
    counter: DottedName[TokenCounter] | None = None
    """Its count of a prompt's tokens; None if it has none. It is used where the dialect has
    `counts_tokens`.
    """

    def make_codec(self) -> Codec | None:
        """Return the codec of generations, importing its folder; None if there are none."""
        return None if self.codec is None else self.codec()(self)

    def signer_of(self, target: Target) -> str | None:
        """Return the signer of an endpoint's reasoning."""
        return target.dialect.known_signer or self.signer

    def readership_of(self, target: Target) -> Readership:
        """Return the reasoning that an endpoint takes back, if the format carries signatures."""
        return Readership(
            model=target.model,
            signers=self.other_signers | {self.signer_of(target)},
            unsigned=self.takes_unsigned,
            call_signers=self.call_signers,
            images=self.takes_images_back,
        )
