"""A client for the identity issuer: its endpoints, keys and tokens.

"OpenID Connect Discovery 1.0", 4; "OpenID Connect Core 1.0", 3.1 and 12 (2026-11-22).
"""

import asyncio
from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Final, Protocol
from urllib.parse import quote_plus, urlencode

import msgspec
from joserfc.jwk import Key
from msgspec import Struct

from tollgate.core.clock import Clock
from tollgate.core.errors import AccessError, ErrorCode
from tollgate.core.secret import SecretReference
from tollgate.http1.errors import HttpError
from tollgate.http1.exchange import send_alone
from tollgate.http1.request import USUAL_HEADERS, Request
from tollgate.sign_in.configuration import SignIn, is_safe_address
from tollgate.sign_in.identity import (
    Expected,
    Identity,
    import_keys,
    key_of,
    read_header,
    refused_token,
    verify,
)
from tollgate.stores.ports.base import SecretStore

# A key that the issuer has withdrawn is still accepted for this long.
KEYS_CACHED_FOR_S: Final = 600.0
# Minimum interval between refetches of the JWKS, so that not every forged key id triggers a
# refetch.
_KEYS_AGAIN_S: Final = 30.0
_RETRY_AFTER_S: Final = 5.0
_TIMEOUT_S: Final = 5.0
_REPLY_BYTES_MAX: Final = 512 * 1024


class IssuerUnavailable(Exception):
    """Raised if the issuer returned no usable reply."""


class IssuerReply(Struct, frozen=True):
    """The status and body of an issuer's reply."""

    status: int
    body: bytes


class Fetch(Protocol):
    """A function that sends a request to the issuer, and may raise IssuerUnavailable."""

    async def __call__(
        self, url: str, *, form: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> IssuerReply:
        """Return the reply to a GET request, or to a POST request with a form."""


async def fetch_from_issuer(
    url: str, *, form: bytes | None = None, headers: Mapping[str, str] | None = None
) -> IssuerReply:
    """Send a GET request, or a POST request with a form, and return the reply.

    Raise IssuerUnavailable if the request fails. Redirects are not followed.
    """
    all_headers = {**USUAL_HEADERS, "accept": "application/json", **(headers or {})}
    if form is None:
        request = Request(method="GET", url=url, headers=all_headers)
    else:
        all_headers["content-type"] = "application/x-www-form-urlencoded"
        request = Request(method="POST", url=url, headers=all_headers, body=(form,))
    try:
        async with send_alone(request, timeout_s=_TIMEOUT_S) as reply:
            return IssuerReply(reply.status, await reply.read_all(_REPLY_BYTES_MAX))
    except HttpError as failed:
        raise IssuerUnavailable(type(failed).__name__) from failed


class _Metadata(Struct, frozen=True):
    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)


class IssuedTokens(Struct, frozen=True):
    """The tokens that the issuer returned for a code or a refresh token."""

    id_token: str | None = None
    refresh_token: str | None = None


class _Failure(Struct, frozen=True):
    error: str = ""


class Issuer:
    """A client for the issuer that the sign-in file names."""

    def __init__(
        self, sign_in: SignIn, fetch: Fetch, secrets: SecretStore, *, clock: Clock
    ) -> None:
        self._sign_in = sign_in
        self._fetch = fetch
        self._secrets = secrets
        self._clock = clock
        self._metadata: tuple[float, _Metadata] | None = None
        self._keys: tuple[float, list[Key]] | None = None
        self._failures = 0
        self._fetching = asyncio.Lock()

    async def authorization_url(
        self, *, redirect_uri: str, state: str, nonce: str, challenge: str
    ) -> str:
        """Return the issuer's address at which a person signs in."""
        endpoint = (await self._read_metadata()).authorization_endpoint
        query = {
            **self._sign_in.authorization_parameters,
            "response_type": "code",
            "client_id": self._sign_in.client_id,
            "redirect_uri": redirect_uri,
            "scope": " ".join(self._sign_in.scopes),
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"

    async def redeem(self, code: str, *, redirect_uri: str, verifier: str) -> IssuedTokens:
        """Return the tokens for a code; raise AccessError if the issuer refuses the code."""
        return await self._request_tokens(
            {
                "grant_type": "authorization_code",
                "code": code,
                "redirect_uri": redirect_uri,
                "code_verifier": verifier,
            }
        )

    async def refresh(self, refresh_token: str) -> IssuedTokens:
        """Return new tokens; raise AccessError if the issuer no longer accepts the person."""
        return await self._request_tokens(
            {"grant_type": "refresh_token", "refresh_token": refresh_token}
        )

    async def identify(self, token: str, *, nonce: str | None = None) -> Identity:
        """Return the identity in a token; raise AccessError unless every check passes."""
        header = read_header(token)
        key = key_of(header, self._keys_younger_than(KEYS_CACHED_FOR_S) or ())
        if key is None:
            key = key_of(header, await self._fetch_keys())
        if key is None:
            raise refused_token("the issuer has no key with the token's key id")
        expected = Expected(
            issuer=self._sign_in.issuer,
            client_id=self._sign_in.client_id,
            audiences=self._sign_in.audiences,
            nonce=nonce,
        )
        return verify(token, key, expected, now_s=self._clock.now_s())

    async def _request_tokens(self, form: dict[str, str]) -> IssuedTokens:
        metadata = await self._read_metadata()
        headers: dict[str, str] = {}
        secret = await self._read_secret()
        if secret is None or (
            "client_secret_basic" not in metadata.token_endpoint_auth_methods_supported
        ):
            form = {**form, "client_id": self._sign_in.client_id}
            if secret is not None:
                form["client_secret"] = secret
        else:
            headers["authorization"] = _basic(self._sign_in.client_id, secret)
        try:
            reply = await self._fetch(
                metadata.token_endpoint, form=urlencode(form).encode(), headers=headers
            )
        except IssuerUnavailable as failed:
            raise _unavailable() from failed
        if reply.status == 200:
            issued: IssuedTokens = _decode(reply.body, IssuedTokens)
            return issued
        if reply.status in (400, 401, 403):
            failure = _decode(reply.body, _Failure)
            # The caller sees only the issuer's error code, and only if it looks like an error code.
            error_code = failure.error if failure.error.replace("_", "").isalpha() else "no reason"
            raise refused_token(f"the identity provider says {error_code[:40]}")
        raise _unavailable()

    async def _read_secret(self) -> str | None:
        named = self._sign_in.client_secret
        if named is None:
            return None
        secret = await self._secrets.read(SecretReference(env=named.env, secret=named.secret))
        if secret is None:
            raise _unavailable("The client secret for sign-in is not set.")
        return secret

    async def _read_metadata(self) -> _Metadata:
        now_s = self._clock.monotonic_s()
        if self._metadata is not None and now_s < self._metadata[0]:
            return self._metadata[1]
        base = self._sign_in.issuer.rstrip("/")
        metadata: _Metadata = await self._read(
            f"{base}/.well-known/openid-configuration", _Metadata
        )
        if metadata.issuer != self._sign_in.issuer:
            raise _unavailable(
                "The identity provider states a different issuer than the sign-in file."
            )
        endpoints = (metadata.authorization_endpoint, metadata.token_endpoint, metadata.jwks_uri)
        if not all(map(is_safe_address, endpoints)):
            raise _unavailable("The identity provider states endpoints without https.")
        self._metadata = (now_s + KEYS_CACHED_FOR_S, metadata)
        return metadata

    def _keys_younger_than(self, age_s: float) -> list[Key] | None:
        """Return the cached keys if they are younger than `age_s`, else None; never wait."""
        if self._keys is None or self._clock.monotonic_s() - self._keys[0] >= age_s:
            return None
        return self._keys[1]

    async def _fetch_keys(self) -> list[Key]:
        """Return the issuer's keys, fetched at most twice a minute; all callers share a fetch.

        Only tokens whose key is not cached wait here, so forged key ids delay no other sign-in.
        """
        failures = self._failures
        async with self._fetching:
            keys = self._keys_younger_than(_KEYS_AGAIN_S)
            if keys is not None:
                return keys
            if self._failures != failures:
                # The fetch for which this caller waited has failed.
                raise _unavailable()
            try:
                metadata = await self._read_metadata()
                keys = import_keys(await self._read(metadata.jwks_uri, dict[str, Any]))
            except AccessError:
                self._failures += 1
                raise
            self._keys = (self._clock.monotonic_s(), keys)
            return keys

    async def _read(self, url: str, type_: type[Any]) -> Any:
        try:
            reply = await self._fetch(url)
        except IssuerUnavailable as failed:
            raise _unavailable() from failed
        if reply.status != 200:
            raise _unavailable()
        return _decode(reply.body, type_)


def _decode(body: bytes, type_: type[Any]) -> Any:
    try:
        return msgspec.json.decode(body, type=type_)
    except msgspec.DecodeError:
        # Do not chain the cause: the decoding error may quote a token.
        raise _unavailable() from None


def _basic(client_id: str, secret: str) -> str:
    """Return the Authorization header for a client with a secret (RFC 6749, 2.3.1)."""
    pair = f"{quote_plus(client_id)}:{quote_plus(secret)}"
    return f"Basic {b64encode(pair.encode()).decode('ascii')}"


def _unavailable(reason: str = "The identity provider returned no usable reply.") -> AccessError:
    return AccessError(ErrorCode.SERVICE_UNAVAILABLE, reason, retry_after_s=_RETRY_AFTER_S)
