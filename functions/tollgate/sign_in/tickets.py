"""The values that the store of codes keeps between the steps of a sign-in."""

from typing import Any

from msgspec import Struct


class ForDevice(Struct, frozen=True, kw_only=True, tag="device"):
    """A sign-in for a program that waits elsewhere, by the hash of its device code."""

    device: str


class ForProgram(Struct, frozen=True, kw_only=True, tag="program"):
    """A sign-in for a page or program that the browser goes back to."""

    redirect_uri: str
    challenge: str
    state: str


class SignInAttempt(Struct, frozen=True, kw_only=True):
    """A person who is at the issuer now, by the hash of the state that comes back."""

    verifier: str
    nonce: str
    # Hash of the cookie of the browser that began.
    browser: str
    purpose: ForDevice | ForProgram


class Approval(Struct, frozen=True, kw_only=True):
    """A member who signed in, and the issuer's refresh token; it is stored sealed only."""

    workspace_id: str
    member_id: str
    # Issuer and subject.
    identity: str
    upstream: str | None


class Device(Struct, frozen=True, kw_only=True):
    """A program that waits for a person, by the hash of its device code."""

    public_key: dict[str, Any]
    asked_ms: int = 0
    """Unix millisecond of its last question."""
    sealed: str | None = None
    """Approval, once a person has signed in."""
    refusal: str | None = None
    """The reason for which the person was refused."""


class Code(Struct, frozen=True, kw_only=True):
    """A code that a browser carries back, by its hash."""

    redirect_uri: str
    challenge: str
    sealed: str


class Family(Struct, frozen=True, kw_only=True):
    """The refresh tokens of one sign-in, of which the last one counts, by the hash of their id."""

    # Hash of the secret of the last token, and its Approval sealed for that secret.
    current: str
    sealed: str
    # Of the token before, and the Unix millisecond of the change.
    previous: str | None = None
    changed_ms: int = 0
    busy_ms: int = 0
    """Unix millisecond until which the issuer is being asked."""
