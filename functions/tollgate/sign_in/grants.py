"""The token endpoint's grants: device code, authorization code, refresh token.

RFC 6749, 7636 and 8628.
"""

import hmac
from collections.abc import Awaitable
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from tollgate.core.clock import Clock
from tollgate.core.errors import AccessError, ErrorCode, RequestError
from tollgate.core.ids import IdSource
from tollgate.core.records.audit import Actor
from tollgate.sign_in.browser import LIFETIME_S
from tollgate.sign_in.codes import (
    challenge_of,
    digest_of,
    new_secret_code,
    new_user_code,
    public_key_of,
    seal,
    unseal,
)
from tollgate.sign_in.issuer import IssuedTokens, Issuer
from tollgate.sign_in.people import People
from tollgate.sign_in.refusals import OAuthRefusal, refresh_is_busy, sign_in_over
from tollgate.sign_in.tickets import Approval, Code, Device, Family, SessionPlace
from tollgate.stores.ports.people import CodeStore, OpenedSession, SessionStore

INTERVAL_S: Final = 5
# A second less than the announced interval, for clients whose clock is slightly fast.
_INTERVAL_LEAST_MS: Final = 4_000
# A sign-in ends if it is not refreshed for this long.
FAMILY_S: Final = 30 * 86_400
_ISSUER_ANSWERS_MS: Final = 15_000
# If two programs of a person refresh at the same time, the slower one sends the previous token.
_CHANGED_JUST_NOW_MS: Final = 30_000
_Answer = TypeVar("_Answer")


class TokenPair(Struct, frozen=True, kw_only=True):
    """The token of a session, and the refresh token for the next session."""

    access_token: str
    expires_in: int
    """Seconds until the access token expires."""
    refresh_token: str | None
    """The refresh token; None if the issuer returned none, because the person's access could then
    not be checked again later.
    """


class WaitingDevice(Struct, frozen=True):
    """The codes for a program that must wait until a person has signed in."""

    device_code: str
    user_code: str


class _Claim(Struct, frozen=True, kw_only=True):
    """The refresh tokens of a sign-in, which one refresh has claimed."""

    digest: str
    family: Family
    mark: bytes
    """The stored value, which only this refresh replaces."""
    before: bytes
    """The stored value to restore if the refresh fails temporarily."""


class Grants:
    """The token endpoint: opens a session for a program after a person has signed in."""

    def __init__(
        self,
        issuer: Issuer,
        people: People,
        sessions: SessionStore,
        codes: CodeStore,
        *,
        session_s: int,
        ids: IdSource,
        clock: Clock,
    ) -> None:
        self._issuer = issuer
        self._people = people
        self._sessions = sessions
        self._codes = codes
        self._session_s = session_s
        self._ids = ids
        self._clock = clock

    async def wait_for_person(self) -> WaitingDevice:
        """Return two new codes: one for the program to poll with, one for the person to type."""
        code, user_code = (
            new_secret_code(self._ids.random_bytes),
            new_user_code(self._ids.random_bytes),
        )
        device = Device(public_key=public_key_of(code))
        digest = digest_of(code)
        await self._codes.add("device", digest, msgspec.json.encode(device), lifetime_s=LIFETIME_S)
        added = await self._codes.add(
            "user", digest_of(user_code), digest.encode("ascii"), lifetime_s=LIFETIME_S
        )
        if not added:
            # The code collides with another program's code: 1 in 25 billion per pending sign-in.
            raise OAuthRefusal("temporarily_unavailable", "Try again.")
        return WaitingDevice(code, user_code)

    async def redeem_device(self, code: str, *, by: Actor) -> TokenPair:
        """Return a session once a person has signed in; raise OAuthRefusal until then."""
        digest = digest_of(code)
        stored = await self._codes.read("device", digest)
        if stored is None:
            raise OAuthRefusal("expired_token", "This device code is unknown, used or expired.")
        device = msgspec.json.decode(stored, type=Device)
        if device.refusal is not None:
            await self._codes.take("device", digest)
            raise OAuthRefusal("access_denied", device.refusal)
        if device.sealed is None:
            await self._note_question(digest, stored, device)
            raise OAuthRefusal("authorization_pending", "Nobody has signed in yet.")
        if await self._codes.take("device", digest) is None:
            raise OAuthRefusal("expired_token", "This device code has been used.")
        return await self._begin(_approval(code, device.sealed), by)

    async def redeem_code(
        self, code: str, *, verifier: str, redirect_uri: str, by: Actor
    ) -> TokenPair:
        """Return a session for an authorization code, which works once."""
        encoded = await self._codes.take("code", digest_of(code))
        if encoded is None:
            raise OAuthRefusal("invalid_grant", "This code is unknown, used or expired.")
        stored = msgspec.json.decode(encoded, type=Code)
        if not hmac.compare_digest(stored.challenge, challenge_of(verifier)):
            raise OAuthRefusal("invalid_grant", "The code_verifier does not match the challenge.")
        if stored.redirect_uri != redirect_uri:
            raise OAuthRefusal(
                "invalid_grant", "The redirect_uri differs from the one that began the sign-in."
            )
        return await self._begin(_approval(code, stored.sealed), by)

    async def refresh(self, token: str, *, by: Actor) -> TokenPair:
        """Return a new session and refresh token, if the issuer still accepts the person.

        If a refresh token is used twice, the sign-in ends, because one of the two users must have
        stolen the token.
        """
        name, _, secret = token.partition(".")
        digest = digest_of(name)
        stored = await self._codes.read("refresh", digest)
        if stored is None:
            raise sign_in_over("This refresh token is unknown, or its sign-in has ended.")
        family = msgspec.json.decode(stored, type=Family)
        await self._check_latest(digest, family, secret, by)
        approval = _approval(secret, family.sealed)
        claim = await self._claim(digest, family, stored)
        tokens = await self._unless_refused(claim, self._ask_issuer(approval), by)
        if tokens.refresh_token not in (None, approval.upstream):
            approval = msgspec.structs.replace(approval, upstream=tokens.refresh_token)
            claim = await self._keep(claim, secret, approval, by)
        identified = self._identify(tokens, approval, by)
        approval = await self._unless_refused(claim, identified, by)
        session = await self._renew(family.session, approval, by)
        if session is None:
            await self._end(digest, family, by)
            raise sign_in_over("The session was ended, or the member was removed.")
        next_secret = new_secret_code(self._ids.random_bytes)
        after = _family(
            next_secret,
            approval,
            session.id,
            previous=family.current,
            changed_ms=self._now_ms(),
        )
        if not await self._store(digest, claim.mark, msgspec.json.encode(after)):
            raise await self._overtaken(digest, session, by)
        return self._pair(session, f"{name}.{next_secret}")

    async def revoke(self, token: str, *, by: Actor) -> None:
        """End the session to which a refresh token or an access token belongs (RFC 7009)."""
        name, _, secret = token.partition(".")
        stored = await self._codes.read("refresh", digest_of(name))
        if stored is None:
            await self._sessions.close(token, by=by)
            return
        family = msgspec.json.decode(stored, type=Family)
        if digest_of(secret) in (family.current, family.previous):
            await self._end(digest_of(name), family, by)

    async def _end(self, digest: str, family: Family, by: Actor) -> None:
        """End a sign-in: its refresh tokens, and the session with all its access tokens."""
        await self._codes.take("refresh", digest)
        session = family.session
        if session is not None:
            await self._sessions.end(session.workspace_id, session.member_id, session.id, by=by)

    async def _check_latest(self, digest: str, family: Family, secret: str, by: Actor) -> None:
        """Raise OAuthRefusal unless the secret is the current one and no refresh is in progress."""
        secret_digest = digest_of(secret)
        if secret_digest == family.current:
            if self._now_ms() < family.busy_ms:
                raise refresh_is_busy()
            return
        recent = self._now_ms() < family.changed_ms + _CHANGED_JUST_NOW_MS
        if secret_digest == family.previous and recent:
            raise refresh_is_busy()
        await self._end(digest, family, by)
        raise sign_in_over("This refresh token was used before, so its sign-in has ended.")

    async def _claim(self, digest: str, family: Family, stored: bytes) -> _Claim:
        """Mark a family as being refreshed; raise OAuthRefusal if another refresh was faster."""
        busy = msgspec.structs.replace(
            family,
            busy_ms=self._now_ms() + _ISSUER_ANSWERS_MS,
            claim=new_secret_code(self._ids.random_bytes),
        )
        mark = msgspec.json.encode(busy)
        if not await self._store(digest, stored, mark):
            raise refresh_is_busy()
        return _Claim(digest=digest, family=busy, mark=mark, before=stored)

    async def _keep(self, claim: _Claim, secret: str, approval: Approval, by: Actor) -> _Claim:
        """Store the issuer's new refresh token immediately, for the holder of the current secret.

        An issuer that rotates refresh tokens ends the sign-in if the old token is sent again, so
        the new token must survive the failure of a later step.
        """
        sealed = seal(public_key_of(secret), msgspec.json.encode(approval))
        family = msgspec.structs.replace(claim.family, sealed=sealed)
        idle = msgspec.structs.replace(family, busy_ms=0, claim=None)
        kept = _Claim(
            digest=claim.digest,
            family=family,
            mark=msgspec.json.encode(family),
            before=msgspec.json.encode(idle),
        )
        if not await self._store(claim.digest, claim.mark, kept.mark):
            raise await self._overtaken(claim.digest, None, by)
        return kept

    async def _store(self, digest: str, old: bytes, new: bytes) -> bool:
        """Replace a family; return False if another writer was faster."""
        if await self._codes.replace("refresh", digest, old, new, lifetime_s=FAMILY_S):
            return True
        # If the reply to a successful write was lost, the retry fails. Each value is unique, so a
        # read shows whether the write succeeded.
        return await self._codes.read("refresh", digest) == new

    async def _unless_refused(
        self, claim: _Claim, answer: Awaitable[_Answer], by: Actor
    ) -> _Answer:
        """Return the result; after a temporary refusal release the claim, else end the sign-in."""
        try:
            return await answer
        except (AccessError, RequestError) as refused:
            # If the rule's team is missing, an admin must fix the rule; a new sign-in would not
            # help.
            if refused.code is ErrorCode.SERVICE_UNAVAILABLE or isinstance(refused, RequestError):
                await self._store(claim.digest, claim.mark, claim.before)
                raise OAuthRefusal("temporarily_unavailable", refused.message) from refused
            await self._end(claim.digest, claim.family, by)
            raise sign_in_over(refused.message) from refused

    async def _overtaken(
        self, digest: str, session: OpenedSession | None, by: Actor
    ) -> OAuthRefusal:
        """Return the refusal for a refresh that lost its claim to another refresh or a sign-out."""
        if await self._codes.read("refresh", digest) is not None:
            return refresh_is_busy()
        if session is not None:
            await self._sessions.close(session.secret, by=by)
        return sign_in_over("The sign-in has ended.")

    async def _ask_issuer(self, approval: Approval) -> IssuedTokens:
        """Return new tokens from the issuer; raise AccessError if the issuer refuses."""
        if approval.upstream is None:
            raise AccessError(ErrorCode.PERMISSION_DENIED, "The sign-in has ended.")
        return await self._issuer.refresh(approval.upstream)

    async def _identify(self, tokens: IssuedTokens, approval: Approval, by: Actor) -> Approval:
        """Return the approval, with its member updated if the issuer returned an identity."""
        if tokens.id_token is None:
            return approval
        identity = await self._issuer.identify(tokens.id_token)
        if identity.name != approval.identity:
            raise AccessError(ErrorCode.PERMISSION_DENIED, "The issuer returned another identity.")
        member = await self._people.admit(identity, by=by)
        return msgspec.structs.replace(
            approval, workspace_id=member.workspace_id, member_id=member.id
        )

    async def _begin(self, approval: Approval, by: Actor) -> TokenPair:
        session = await self._open(approval, by)
        if session is None:
            raise OAuthRefusal("access_denied", "The member was removed.")
        if approval.upstream is None:
            return self._pair(session, None)
        name, secret = (new_secret_code(self._ids.random_bytes) for _ in range(2))
        family = msgspec.json.encode(_family(secret, approval, session.id))
        await self._codes.add("refresh", digest_of(name), family, lifetime_s=FAMILY_S)
        return self._pair(session, f"{name}.{secret}")

    async def _open(self, approval: Approval, by: Actor) -> OpenedSession | None:
        return await self._sessions.open(
            approval.workspace_id,
            approval.member_id,
            lifetime_s=self._session_s,
            renewable_s=None if approval.upstream is None else FAMILY_S,
            by=by,
        )

    async def _renew(
        self, place: SessionPlace | None, approval: Approval, by: Actor
    ) -> OpenedSession | None:
        """Return a new secret for a session; return None if the session has ended.

        If the sign-in's rule has moved the person to another workspace, open a session there.
        """
        if place is None:
            return await self._open(approval, by)
        here = (approval.workspace_id, approval.member_id)
        if (place.workspace_id, place.member_id) != here:
            await self._sessions.end(place.workspace_id, place.member_id, place.id, by=by)
            return await self._open(approval, by)
        return await self._sessions.renew(
            place.workspace_id,
            place.member_id,
            place.id,
            lifetime_s=self._session_s,
            renewable_s=FAMILY_S,
            by=by,
        )

    async def _note_question(self, digest: str, stored: bytes, device: Device) -> None:
        """Record a poll by the device; raise OAuthRefusal if the device polls too often."""
        now_ms = self._now_ms()
        if now_ms - device.asked_ms < _INTERVAL_LEAST_MS:
            raise OAuthRefusal("slow_down", f"Poll every {INTERVAL_S} seconds.")
        polled = msgspec.json.encode(msgspec.structs.replace(device, asked_ms=now_ms))
        await self._codes.replace("device", digest, stored, polled, lifetime_s=None)

    def _pair(self, session: OpenedSession, refresh_token: str | None) -> TokenPair:
        return TokenPair(
            access_token=session.secret,
            expires_in=max(0, session.expires_s - int(self._clock.now_s())),
            refresh_token=refresh_token,
        )

    def _now_ms(self) -> int:
        return int(self._clock.now_s() * 1_000)


def _family(
    secret: str,
    approval: Approval,
    session_id: str,
    *,
    previous: str | None = None,
    changed_ms: int = 0,
) -> Family:
    return Family(
        session=SessionPlace(
            workspace_id=approval.workspace_id, member_id=approval.member_id, id=session_id
        ),
        current=digest_of(secret),
        sealed=seal(public_key_of(secret), msgspec.json.encode(approval)),
        previous=previous,
        changed_ms=changed_ms,
    )


def _approval(code: str, sealed: str) -> Approval:
    opened = unseal(code, sealed)
    if opened is None:
        raise OAuthRefusal("invalid_grant", "This code does not belong to this sign-in.")
    return msgspec.json.decode(opened, type=Approval)
