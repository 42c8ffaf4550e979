"""A caller's wish to be answered once."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Who may make an answer: SHA-256 of the caller's key and of its body, and who asks now."""

    workspace_id: str
    key_hash: str
    body_hash: str
    request_id: str
