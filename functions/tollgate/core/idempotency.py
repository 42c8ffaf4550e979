"""The claim behind an `Idempotency-Key`: one answer for repeated requests."""

from msgspec import Struct


class Claim(Struct, frozen=True, kw_only=True):
    """The right to make the one answer for an `Idempotency-Key`."""

    workspace_id: str
    key_hash: str
    """SHA-256 of the API key's id and the `Idempotency-Key`."""
    body_hash: str
    """SHA-256 of the path and the body."""
    request_id: str
    """The request that makes the claim."""
