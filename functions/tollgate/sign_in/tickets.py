"""The values that the code store or the browser keeps between the steps of a sign-in."""

from typing import Any

from msgspec import Struct


class ForDevice(Struct, frozen=True, kw_only=True, tag="device"):
    """Purpose of a sign-in that a program on another device is waiting for."""

    device: str
    """Hash of the device code."""


class ForProgram(Struct, frozen=True, kw_only=True, tag="program"):
    """Purpose of a sign-in that returns to the redirect address of a page or program."""

    redirect_uri: str
    challenge: str
    state: str


class SignInAttempt(Struct, frozen=True, kw_only=True):
    """A person who is signing in at the issuer; only the browser keeps it, sealed for `state`."""

    verifier: str
    nonce: str
    ends_s: int
    """Unix second from which the sign-in is refused."""
    purpose: ForDevice | ForProgram


class Approval(Struct, frozen=True, kw_only=True):
    """A member who signed in, and the issuer's refresh token; stored only encrypted."""

    workspace_id: str
    member_id: str
    identity: str
    """Issuer and subject, as in `Identity.name`."""
    upstream: str | None
    """The issuer's refresh token, or None if the issuer returned none."""


class Device(Struct, frozen=True, kw_only=True):
    """A program that waits until a person signs in; stored under the hash of its device code."""

    public_key: dict[str, Any]
    asked_ms: int = 0
    """Unix millisecond of the program's last poll."""
    sealed: str | None = None
    """The encrypted Approval, once a person has signed in."""
    refusal: str | None = None
    """Reason why the person was refused."""


class Code(Struct, frozen=True, kw_only=True):
    """An authorization code that the browser passes to a program; stored under the code's hash."""

    redirect_uri: str
    challenge: str
    sealed: str


class SessionPlace(Struct, frozen=True, kw_only=True):
    """The session that a refresh token renews."""

    workspace_id: str
    member_id: str
    id: str


class Family(Struct, frozen=True, kw_only=True):
    """The refresh tokens of a sign-in, stored by the hash of their id; only the latest is valid."""

    current: str
    """Hash of the secret of the latest token."""
    sealed: str
    """The Approval, encrypted so that only the secret of the latest token can decrypt it."""
    session: SessionPlace | None = None
    """Id of the session that the tokens belong to; None for tokens of an earlier version."""
    previous: str | None = None
    """Hash of the secret of the previous token."""
    changed_ms: int = 0
    """Unix millisecond at which the latest token replaced the previous one."""
    busy_ms: int = 0
    """Unix millisecond until which a refresh at the issuer is in progress."""
    claim: str | None = None
    """Random text of the refresh in progress, so that no two refreshes write the same value."""
