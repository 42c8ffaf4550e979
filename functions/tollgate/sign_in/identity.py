"""Identities of people, and the verification of the issuer's tokens that contain them."""

from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec
from joserfc import jws, jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, Key, OKPKey, RSAKey
from joserfc.util import urlsafe_b64decode
from msgspec import Struct

from tollgate.core.errors import AccessError, ErrorCode
from tollgate.core.principal import TOKEN_LENGTH_MAX

# Only asymmetric signatures are accepted: `none` means unsigned, and with HS256 every verifier
# could sign a token.
ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA", "Ed25519"),
)
_KEY_KINDS: Final[Mapping[str, type[Key]]] = {"RSA": RSAKey, "EC": ECKey, "OKP": OKPKey}
_TYPES: Final = frozenset({None, "jwt", "at+jwt", "application/at+jwt"})
# Seconds by which the clocks of the issuer and the gateway may differ.
LEEWAY_S: Final = 60
_REGISTRY: Final = jws.JWSRegistry(algorithms=list(ALGORITHMS))


class Expected(Struct, frozen=True, kw_only=True):
    """The claims that a token must have to be accepted."""

    issuer: str
    client_id: str
    audiences: tuple[str, ...] = ()
    """Accepted audiences in addition to the client id."""
    nonce: str | None = None
    """Nonce of a browser sign-in; None for a token that a caller presents."""


class Identity(Struct, frozen=True, kw_only=True):
    """A person who is known to the issuer."""

    issuer: str
    subject: str
    claims: Mapping[str, Any]
    issued_s: int
    """Unix second at which the token was issued."""
    expires_s: int
    """Unix second at which the token expires."""

    @property
    def name(self) -> str:
        """The issuer and the person's id at the issuer, which is unique across issuers."""
        return f"{self.issuer} {self.subject}"


class TokenHeader(Struct, frozen=True):
    """The header of a token, before any verification."""

    alg: str
    kid: str | None = None
    typ: str | None = None
    crit: tuple[str, ...] | None = None


def read_header(token: str) -> TokenHeader:
    """Return a token's header; raise AccessError if the header is invalid or not accepted."""
    if len(token) > TOKEN_LENGTH_MAX or token.count(".") != 2:
        raise refused_token("it is not a signed JWT")
    try:
        raw = urlsafe_b64decode(token.partition(".")[0].encode("ascii"))
        header = msgspec.json.decode(raw, type=TokenHeader)
    except (ValueError, msgspec.DecodeError) as malformed:
        raise refused_token("it is not a signed JWT") from malformed
    if header.alg not in ALGORITHMS:
        raise refused_token("its algorithm is not accepted")
    if (header.typ and header.typ.lower()) not in _TYPES or header.crit:
        raise refused_token("it is a token of another kind")
    return header


def import_keys(jwks: Mapping[str, Any]) -> list[Key]:
    """Return the keys of a JWKS that can verify signatures; skip all others."""
    keys: list[Key] = []
    raw_keys = jwks.get("keys")
    for raw in raw_keys if isinstance(raw_keys, list) else ():
        if not isinstance(raw, dict) or raw.get("use", "sig") != "sig":
            continue
        kind = _KEY_KINDS.get(str(raw.get("kty")))
        if kind is None:
            continue
        try:
            keys.append(kind.import_key(raw))
        except (JoseError, ValueError, TypeError, KeyError):
            continue
    return keys


def key_of(header: TokenHeader, keys: Collection[Key]) -> Key | None:
    """Return the key that a header names, or the only key of the set if the header names none."""
    if header.kid is None:
        return next(iter(keys)) if len(keys) == 1 else None
    return next((key for key in keys if key.kid == header.kid), None)


def verify(token: str, key: Key, expected: Expected, *, now_s: float) -> Identity:
    """Return the identity in a token; raise AccessError unless every check passes."""
    try:
        claims = jwt.decode(token, key, registry=_REGISTRY).claims
        jwt.JWTClaimsRegistry(
            now=int(now_s),
            leeway=LEEWAY_S,
            iss={"essential": True, "value": expected.issuer},
            sub={"essential": True},
            exp={"essential": True},
            iat={"essential": True},
        ).validate(claims)
    except (JoseError, ValueError, TypeError) as invalid:
        # The library's description names the claim, and never quotes the token.
        reason = invalid.description if isinstance(invalid, JoseError) else None
        raise refused_token(reason or "its signature is not valid") from invalid
    _check_audience(claims, expected)
    if expected.nonce is not None and claims.get("nonce") != expected.nonce:
        raise refused_token("its nonce belongs to another sign-in")
    # A token with `events` is a logout token.
    if "events" in claims:
        raise refused_token("it is a token of another kind")
    subject = claims["sub"]
    if not isinstance(subject, str) or not 0 < len(subject) <= 255:
        raise refused_token("its sub must be a string of 1 to 255 characters")
    return Identity(
        issuer=expected.issuer,
        subject=subject,
        claims=claims,
        issued_s=int(claims["iat"]),
        expires_s=int(claims["exp"]),
    )


def refused_token(reason: str) -> AccessError:
    """Return the error for a token that is not accepted."""
    return AccessError(ErrorCode.INVALID_API_KEY, f"The identity token is refused: {reason}.")


def _check_audience(claims: Mapping[str, Any], expected: Expected) -> None:
    stated = claims.get("aud")
    audiences = stated if isinstance(stated, list) else [stated]
    if expected.client_id not in audiences:
        # Other audiences are accepted only in tokens that callers present, not in browser sign-ins.
        if expected.nonce is None and set(expected.audiences) & {
            audience for audience in audiences if audience
        }:
            return
        raise refused_token("it is for another audience")
    party = claims.get("azp")
    if party is None and len(audiences) > 1:
        raise refused_token("it has several audiences and no azp")
    if party not in (None, expected.client_id, *expected.audiences):
        raise refused_token("it was issued to another client")
