"""The browser's part of a sign-in: the redirect to the issuer, and the return from the issuer."""

import re
from typing import Final
from urllib.parse import urlencode, urlsplit

import msgspec
from msgspec import Struct

from tollgate.core.clock import Clock
from tollgate.core.errors import AccessError, ErrorCode, RequestError
from tollgate.core.ids import IdSource
from tollgate.core.records.audit import Actor
from tollgate.sign_in.codes import (
    challenge_of,
    digest_of,
    new_secret_code,
    public_key_of,
    read_user_code,
    seal,
    unseal,
)
from tollgate.sign_in.configuration import SignIn, is_loopback
from tollgate.sign_in.issuer import Issuer
from tollgate.sign_in.people import People
from tollgate.sign_in.tickets import Approval, Code, Device, ForDevice, ForProgram, SignInAttempt
from tollgate.stores.ports.people import CodeStore, Member

CALLBACK: Final = "/oauth/callback"
CONSOLE: Final = "/console"
LIFETIME_S: Final = 600
CODE_LIFETIME_S: Final = 60
_STATE_LENGTH_MAX: Final = 512
# Browsers drop a cookie of more than 4,096 bytes.
_COOKIE_LENGTH_MAX: Final = 3_800
_CHALLENGE: Final = re.compile(r"[A-Za-z0-9_-]{43}")


class Departure(Struct, frozen=True):
    """The address at which a person signs in, and a cookie with the sealed SignInAttempt."""

    url: str
    cookie: str


class Arrival(Struct, frozen=True):
    """The result of a sign-in in the browser: the member, and the address to redirect to."""

    member: Member
    url: str | None
    """The address to redirect to; None if a program on another device waits for the sign-in."""


class BrowserSignIn:
    """The browser's part of a sign-in: redirects to the issuer and handles the return."""

    def __init__(
        self,
        sign_in: SignIn,
        issuer: Issuer,
        people: People,
        codes: CodeStore,
        *,
        ids: IdSource,
        clock: Clock,
    ) -> None:
        self._sign_in = sign_in
        self._issuer = issuer
        self._people = people
        self._codes = codes
        self._ids = ids
        self._clock = clock

    async def leave_for_device(self, typed_code: str) -> Departure:
        """Begin a sign-in for a program on another device; raise RequestError if no program waits
        for this code.
        """
        code = read_user_code(typed_code)
        device_digest = None if code is None else await self._codes.read("user", digest_of(code))
        if device_digest is None:
            raise RequestError(
                ErrorCode.NOT_FOUND,
                "No program is waiting for this code. Compare the code with your terminal; codes "
                "expire after ten minutes.",
                param="user_code",
            )
        return await self._leave(ForDevice(device=device_digest.decode("ascii")))

    async def leave_for_program(self, purpose: ForProgram) -> Departure:
        """Begin a sign-in that returns to the console, or to a program on the person's machine."""
        if not self._may_end_at(purpose.redirect_uri):
            raise _invalid("redirect_uri", "must be the console's address, or http on this machine")
        if not _CHALLENGE.fullmatch(purpose.challenge):
            raise _invalid("code_challenge", "must be an S256 challenge of 43 characters")
        if not 0 < len(purpose.state) <= _STATE_LENGTH_MAX:
            raise _invalid("state", f"must have 1 to {_STATE_LENGTH_MAX} characters")
        return await self._leave(purpose)

    async def arrive(self, *, state: str, code: str, cookie: str, by: Actor) -> Arrival:
        """Finish a sign-in; raise AccessError if it is refused or began in another browser."""
        attempt = self._open_attempt(state, cookie)
        try:
            approval, member = await self._approve(code, attempt, by)
        except (AccessError, RequestError) as refused:
            lasts = refused.code is not ErrorCode.SERVICE_UNAVAILABLE
            if lasts and isinstance(attempt.purpose, ForDevice):
                await self._answer_device(attempt.purpose, refusal=refused.message)
            raise
        match attempt.purpose:
            case ForDevice():
                await self._answer_device(attempt.purpose, approval=approval)
                return Arrival(member, None)
            case ForProgram() as program:
                return Arrival(member, await self._hand_over(program, approval))

    async def turn_back(self, *, state: str, cookie: str) -> str | None:
        """End a sign-in that the issuer refused; return the address to redirect to, if any."""
        attempt = self._open_attempt(state, cookie)
        match attempt.purpose:
            case ForDevice() as device:
                await self._answer_device(device, refusal="the identity provider refused")
                return None
            case ForProgram(redirect_uri=address, state=program_state):
                return _with_query(address, {"error": "access_denied", "state": program_state})

    async def _leave(self, purpose: ForDevice | ForProgram) -> Departure:
        """Return the issuer's address with a new state, and the cookie that only the state can
        decrypt.

        Nothing is stored, because anyone may begin a sign-in. The callback needs both parts: the
        state from the issuer, and the cookie from the browser in which the sign-in began.
        """
        state, nonce, verifier = (new_secret_code(self._ids.random_bytes) for _ in range(3))
        attempt = SignInAttempt(
            verifier=verifier,
            nonce=nonce,
            ends_s=int(self._clock.now_s()) + LIFETIME_S,
            purpose=purpose,
        )
        cookie = seal(public_key_of(state), msgspec.json.encode(attempt))
        if len(cookie) > _COOKIE_LENGTH_MAX:
            raise _invalid("redirect_uri", "and state are too long")
        url = await self._issuer.authorization_url(
            redirect_uri=self._callback,
            state=state,
            nonce=nonce,
            challenge=challenge_of(verifier),
        )
        return Departure(url, cookie)

    def _open_attempt(self, state: str, cookie: str) -> SignInAttempt:
        opened = unseal(state, cookie)
        if opened is None:
            raise _refused("It has ended, or began in another browser. Start again here.")
        attempt = msgspec.json.decode(opened, type=SignInAttempt)
        if attempt.ends_s <= self._clock.now_s():
            raise _refused("It took more than ten minutes. Start again.")
        return attempt

    async def _approve(
        self, code: str, attempt: SignInAttempt, by: Actor
    ) -> tuple[Approval, Member]:
        tokens = await self._issuer.redeem(
            code, redirect_uri=self._callback, verifier=attempt.verifier
        )
        if tokens.id_token is None:
            raise _refused("The identity provider returned no identity token.")
        identity = await self._issuer.identify(tokens.id_token, nonce=attempt.nonce)
        member = await self._people.admit(identity, by=by)
        approval = Approval(
            workspace_id=member.workspace_id,
            member_id=member.id,
            identity=identity.name,
            upstream=tokens.refresh_token,
        )
        return approval, member

    async def _answer_device(
        self, purpose: ForDevice, *, approval: Approval | None = None, refusal: str | None = None
    ) -> None:
        """Store the result for the polling device; raise AccessError if the device code has
        expired.
        """
        # The device polls at the same time, which changes the stored item, so the conditional write
        # may fail and is then retried.
        for _ in range(5):
            stored = await self._codes.read("device", purpose.device)
            if stored is None:
                break
            device = msgspec.json.decode(stored, type=Device)
            sealed = approval and seal(device.public_key, msgspec.json.encode(approval))
            new = msgspec.structs.replace(device, sealed=sealed, refusal=refusal)
            if await self._codes.replace(
                "device", purpose.device, stored, msgspec.json.encode(new), lifetime_s=None
            ):
                return
        if approval is not None:
            raise _refused("The program is no longer waiting. Start again.")

    async def _hand_over(self, program: ForProgram, approval: Approval) -> str:
        """Return the program's address with a one-time code that only the program can redeem."""
        code = new_secret_code(self._ids.random_bytes)
        stored = Code(
            redirect_uri=program.redirect_uri,
            challenge=program.challenge,
            sealed=seal(public_key_of(code), msgspec.json.encode(approval)),
        )
        await self._codes.add(
            "code", digest_of(code), msgspec.json.encode(stored), lifetime_s=CODE_LIFETIME_S
        )
        return _with_query(program.redirect_uri, {"code": code, "state": program.state})

    def _may_end_at(self, address: str) -> bool:
        console = self._sign_in.public_url + CONSOLE
        # Compare the whole address: `console/../` would reach other pages on the same host.
        return address in (console, f"{console}/") or _is_listener(address)

    @property
    def _callback(self) -> str:
        return self._sign_in.public_url + CALLBACK


def _is_listener(address: str) -> bool:
    """Return whether an address is a local program's loopback listener (RFC 8252, 7.3)."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return False
    if parts.fragment or parts.username or parts.password or parts.query or not port:
        return False
    return parts.scheme == "http" and is_loopback(parts.hostname or "")


def _with_query(address: str, query: dict[str, str]) -> str:
    return f"{address}?{urlencode(query)}"


def _refused(reason: str) -> AccessError:
    return AccessError(ErrorCode.PERMISSION_DENIED, f"The sign-in is refused. {reason}")


def _invalid(name: str, problem: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REQUEST, f"{name} {problem}.", param=name)
