"""A caller's wish to be answered once."""

from msgspec import Struct


class Claim(Struct, frozen=True, kw_only=True):
    """Who may make an answer: SHA-256 of the caller's key and of its body, and who asks now."""

    workspace_id: str
    key_hash: str
    body_hash: str
    request_id: str
