"""The request for OpenAI's own compaction of a conversation, and the item in its reply.

https://developers.openai.com/api/reference/resources/responses/methods/compact (2026-11-28), also
served by xAI (https://docs.x.ai/developers/advanced-api-usage/context-compaction, 2026-11-28).
"""

from typing import Final

from msgspec.structs import replace

from tollgate.core.content import Provenance
from tollgate.core.request import GenerationRequest
from tollgate.core.signers import OPENAI_COMPACTIONS
from tollgate.providers.codecs.openai_responses.wire import Response
from tollgate.providers.ports.base import Target, WireRequest
from tollgate.providers.shared.refusals import malformed_error

OBJECT: Final = "response.compaction"
_FIELDS: Final = frozenset({"input", "model", "prompt_cache_key"})
# The reply repeats the user's messages, including their files.
_REPLY_BYTES_MAX: Final = 64 * 1024 * 1024


def is_compacted_by(target: Target, request: GenerationRequest) -> bool:
    """Return whether a request is for the provider's own compaction."""
    compaction = request.compaction
    return target.dialect.compacts and compaction is not None and compaction.by_provider


def without_task(request: GenerationRequest) -> GenerationRequest:
    """Return the request without the message that asks a model for a record."""
    return replace(request, messages=request.messages[:-1])


def encode_compaction(wire: WireRequest) -> WireRequest:
    """Convert the request for a response to the one for `POST …/responses/compact`."""
    path, _, query = wire.path.partition("?")
    return replace(
        wire,
        path=f"{path}/compact" + (f"?{query}" if query else ""),
        body={name: value for name, value in wire.body.items() if name in _FIELDS},
        reply_bytes_max=_REPLY_BYTES_MAX,
    )


def compaction_of(response: Response, provider: str) -> Provenance:
    """Return the compaction item; the gateway already has the user's messages before it."""
    contents = [item.encrypted_content for item in response.output if item.type == "compaction"]
    match contents:
        case [str(content)]:
            return Provenance(signer=OPENAI_COMPACTIONS, data=content, is_compaction=True)
        case _:
            raise malformed_error(provider, "a reply without exactly one compaction item")
