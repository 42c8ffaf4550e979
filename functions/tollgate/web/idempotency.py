"""`Idempotency-Key`: the same request is generated, and billed, once."""

import logging
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.idempotency import Claim
from tollgate.engine.gateway import Call, Gateway
from tollgate.engine.generate import generate
from tollgate.engine.kept_answers import AnswerStore, KeepingSink, KeptAnswer, replay
from tollgate.engine.sink import EventSink, ReplyWriter
from tollgate.ingress.base import Ingress

_log = logging.getLogger(__name__)

_HEADER: Final = "idempotency-key"
_LENGTH_MAX: Final = 255


def claim_of(headers: Mapping[str, str], call: Call, *, path: str, body: bytes) -> Claim | None:
    """What the header claims; None without one. A key is private to the API key that sent it."""
    key = headers.get(_HEADER)
    if key is None:
        return None
    if not (0 < len(key) <= _LENGTH_MAX and key.isascii() and key.isprintable()):
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"Idempotency-Key: 1 to {_LENGTH_MAX} printable ASCII characters.",
        )
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
    """Give the answer that is kept, or make it and keep it."""
    kept = await answers.claim(claim)
    if kept is not None:
        await replay(
            _read(kept, claim),
            reply,
            ingress,
            call.parsed,
            request_id=claim.request_id,
            credits_per_usd=gateway.credits_per_usd,
        )
        return
    keeping = KeepingSink(sink, answers, claim, call.parsed.episode_id)
    try:
        await generate(gateway, call, keeping)
    finally:
        await keeping.release()


def _read(kept: bytes, claim: Claim) -> KeptAnswer:
    """The answer that is kept; who asked for one answer gets no second one in its place."""
    try:
        return KeptAnswer.from_bytes(kept)
    except ValueError as damaged:
        _log.error("the answer kept for claim %s cannot be read: %s", claim.key_hash, damaged)
        raise RequestError(
            ErrorCode.IDEMPOTENCY_CONFLICT,
            "The answer kept for this Idempotency-Key cannot be read any more; use a new one.",
        ) from damaged
