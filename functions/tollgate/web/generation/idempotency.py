"""`Idempotency-Key` on metered requests, which ensures that repeated requests are billed once."""

import logging
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from tollgate.core.errors import ErrorCode, RequestError, invalid_request
from tollgate.core.idempotency import Claim
from tollgate.engine.gateway import Call, Gateway
from tollgate.engine.generate import generate
from tollgate.engine.replies.kept_answers import AnswerStore, KeepingSink, KeptAnswer, replay
from tollgate.engine.replies.sink import EventSink, ReplyWriter
from tollgate.ingress.base import Ingress

_log = logging.getLogger(__name__)

IDEMPOTENCY_KEY: Final = "idempotency-key"
_LENGTH_MAX: Final = 255


def claim_of(headers: Mapping[str, str], call: Call, *, path: str, body: bytes) -> Claim | None:
    """Return the claim for the Idempotency-Key header; None if the request has none.

    The claim includes the API key, so two API keys may use the same header value. Raises
    RequestError if the value is empty, too long or not printable ASCII.
    """
    key = headers.get(IDEMPOTENCY_KEY)
    if key is None:
        return None
    if not (0 < len(key) <= _LENGTH_MAX and key.isascii() and key.isprintable()):
        raise invalid_request(f"Idempotency-Key: 1 to {_LENGTH_MAX} printable ASCII characters.")
    principal = call.principal
    return Claim(
        workspace_id=principal.workspace_id,
        key_hash=sha256(f"{principal.key_id}\n{key}".encode()).hexdigest(),
        body_hash=sha256(path.encode() + b"\n" + body).hexdigest(),
        request_id=call.request_id,
    )


async def generate_once(
    gateway: Gateway,
    answers: AnswerStore,
    claim: Claim,
    *,
    call: Call,
    sink: EventSink,
    reply: ReplyWriter,
    ingress: Ingress,
) -> None:
    """Replay the reply stored for this claim, or generate the reply and store it."""
    stored_reply = await answers.claim(claim)
    if stored_reply is not None:
        await replay(
            _decode(stored_reply, claim),
            gateway,
            reply,
            ingress,
            parsed=call.parsed,
            request_id=claim.request_id,
        )
        return
    keeping = KeepingSink(sink, answers, claim, call.parsed.episode_id)
    try:
        await generate(gateway, call, keeping)
    finally:
        await keeping.release()


def _decode(stored_reply: bytes, claim: Claim) -> KeptAnswer:
    """Decode a stored reply; raise RequestError if it is corrupt.

    Generating the answer again would bill the same request twice.
    """
    try:
        return KeptAnswer.from_bytes(stored_reply)
    except ValueError as corrupt:
        _log.error("the stored reply of claim %s is corrupt: %s", claim.key_hash, corrupt)
        raise RequestError(
            ErrorCode.IDEMPOTENCY_CONFLICT,
            "The stored reply of this Idempotency-Key is corrupt; use a new key.",
        ) from corrupt
