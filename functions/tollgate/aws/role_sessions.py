"""Sessions of one IAM role, under names that AWS writes into its bill.

"IAM principal attribution", Amazon Bedrock user guide (2026-11-28): Bedrock records the principal
of every request to `bedrock-runtime` and `bedrock-mantle`, which for a session is
`arn:aws:sts::<account>:assumed-role/<role>/<session name>`.
"""

import asyncio
import hashlib
import logging
import re
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Final
from urllib.parse import urlencode

from tollgate.aws.container_credentials import CredentialsUnavailable, Lease
from tollgate.aws.failures import StoreUnavailable
from tollgate.aws.sigv4 import Credentials, Signer
from tollgate.core.clock import Clock
from tollgate.http1.errors import HttpError
from tollgate.http1.exchange import send_alone
from tollgate.http1.request import USUAL_HEADERS, Request

# The tag of a session. Cost Explorer groups by this tag once it is activated for cost allocation.
TEAM_TAG: Final = "tollgate-team"
# AWS's maximum duration of a session that another role's session begins, and maximum length of a
# session's name ("AssumeRole", AWS STS API reference, 2026-11-28).
_SESSION_S: Final = 3600
_NAME_LENGTH_MAX: Final = 64
_HASH_LENGTH: Final = 16
# A session is renewed in the background if it ends within this time.
_RENEWED_BEFORE_S: Final = 5 * 60
# A session that ends within this time signs no more requests, because AWS's clocks may be ahead.
_USED_BEFORE_S: Final = 60
# Minimum interval between renewals in the background.
_RENEWED_AGAIN_S: Final = 10.0
# Maximum number of sessions in memory; a further session replaces the oldest.
_SESSIONS_MAX: Final = 2000
_TIMEOUT_S: Final = 2.0
_REPLY_BYTES_MAX: Final = 64 * 1024
_VERSION: Final = "2011-06-15"
_LOGGER: Final = logging.getLogger("tollgate.credentials")


def session_name(workspace_id: str, team_id: str | None) -> str:
    """Return the session name for a team, or for a workspace's requests without a team.

    The characters of ids are a subset of those of session names. A name that is too long ends with
    a hash.
    """
    name = f"{team_id or ''}@{workspace_id}"
    if len(name) <= _NAME_LENGTH_MAX:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_HASH_LENGTH]
    return f"{name[: _NAME_LENGTH_MAX - _HASH_LENGTH - 1]}={digest}"


class StsRole:
    """A role that the gateway's own identity may assume."""

    def __init__(self, role_arn: str, signer: Signer, endpoint_url: str) -> None:
        self._role_arn = role_arn
        self._signer = signer
        self._url = endpoint_url.rstrip("/") + "/"

    async def assume(self, name: str) -> Lease:
        """Return the credentials of a new session; raise CredentialsUnavailable without any."""
        form = {
            "Action": "AssumeRole",
            "Version": _VERSION,
            "RoleArn": self._role_arn,
            "RoleSessionName": name,
            "DurationSeconds": _SESSION_S,
            "Tags.member.1.Key": TEAM_TAG,
            "Tags.member.1.Value": name,
        }
        body = urlencode(form).encode()
        content = {**USUAL_HEADERS, "content-type": "application/x-www-form-urlencoded"}
        try:
            headers = self._signer.sign("POST", self._url, content, body)
            request = Request(method="POST", url=self._url, headers=headers, body=(body,))
            async with send_alone(request, timeout_s=_TIMEOUT_S) as reply:
                status, answer = reply.status, await reply.read_all(_REPLY_BYTES_MAX)
        except (HttpError, StoreUnavailable) as failed:
            raise CredentialsUnavailable(f"STS: {type(failed).__name__}") from failed
        text = answer.decode(errors="replace")
        if status != 200:
            raise CredentialsUnavailable(f"STS: {_element(text, 'Code') or f'HTTP {status}'}")
        return _read_lease(text)


class RoleSession:
    """One session; concurrent callers wait for the same fetch."""

    def __init__(self, fetch: Callable[[], Awaitable[Lease]], clock: Clock) -> None:
        self._fetch = fetch
        self._clock = clock
        self._lease: Lease | None = None
        self._fetching: asyncio.Task[CredentialsUnavailable | None] | None = None
        self._renew_again_s = 0.0

    def current(self) -> Credentials | None:
        """Return the credentials; None before `prepare`."""
        return None if self._lease is None else self._lease.credentials

    async def prepare(self) -> None:
        """Fetch credentials if there are none or they are about to end; otherwise, start a renewal
        in the background if they end soon.

        Raises CredentialsUnavailable if a request would have no credentials.
        """
        lasts_s = 0.0 if self._lease is None else self._lease.ends_s - self._clock.now_s()
        if lasts_s > _RENEWED_BEFORE_S:
            return
        if lasts_s > _USED_BEFORE_S:
            if self._clock.monotonic_s() >= self._renew_again_s:
                self._begin()
            return
        is_joined = self._fetching is not None and not self._fetching.done()
        # A cancelled caller must not cancel the fetch for which others wait.
        failure = await asyncio.shield(self._begin())
        if failure is not None and is_joined:
            # Lambda may have frozen the process during an earlier caller's fetch, which then lost
            # its connection. A new fetch can succeed.
            failure = await asyncio.shield(self._begin())
        if failure is not None:
            raise failure

    def _begin(self) -> asyncio.Task[CredentialsUnavailable | None]:
        if self._fetching is None or self._fetching.done():
            self._renew_again_s = self._clock.monotonic_s() + _RENEWED_AGAIN_S
            self._fetching = asyncio.create_task(self._renew())
        return self._fetching

    async def _renew(self) -> CredentialsUnavailable | None:
        try:
            self._lease = await self._fetch()
        except CredentialsUnavailable as failure:
            _LOGGER.error("no role session", extra={"fields": {"failure": str(failure)}})
            return failure
        return None


class RoleSessions:
    """The sessions of one role by name; `assume` asks AWS for a session's credentials."""

    def __init__(self, assume: Callable[[str], Awaitable[Lease]], clock: Clock) -> None:
        self._assume = assume
        self._clock = clock
        self._sessions: dict[str, RoleSession] = {}

    def session(self, name: str) -> RoleSession:
        """Return the session of a name, whose credentials may not have been fetched yet."""
        session = self._sessions.get(name)
        if session is None:
            if len(self._sessions) >= _SESSIONS_MAX:
                del self._sessions[next(iter(self._sessions))]
            session = RoleSession(lambda: self._assume(name), self._clock)
            self._sessions[name] = session
        return session


def _read_lease(text: str) -> Lease:
    names = ("AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration")
    key_id, secret, token, expiration = (_element(text, name) for name in names)
    try:
        ends_s = datetime.fromisoformat(expiration).timestamp()
    except ValueError:
        ends_s = 0.0
    if not (key_id and secret and token and ends_s):
        # The reply contains secrets, so the message does not quote it.
        raise CredentialsUnavailable("STS: malformed reply")
    return Lease(Credentials(key_id, secret, token), ends_s)


def _element(text: str, name: str) -> str:
    found = re.search(rf"<{name}>([^<]+)</{name}>", text)
    return found[1].strip() if found else ""
