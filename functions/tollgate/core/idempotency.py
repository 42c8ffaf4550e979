"""Claims on `Idempotency-Key` values, which ensure that a repeated request gets the same answer."""

from msgspec import Struct


class Claim(Struct, frozen=True, kw_only=True):
    """The right of one request to produce the answer for an `Idempotency-Key`."""

    workspace_id: str
    key_hash: str
    """SHA-256 of the API key's id and the `Idempotency-Key`."""
    body_hash: str
    """SHA-256 of the path and the body."""
    request_id: str
    """The id of the request that holds the claim."""
