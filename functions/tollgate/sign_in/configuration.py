"""The sign-in file: the issuer, and the rules that map its identities to members."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from ipaddress import ip_address
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct, field

from tollgate.core.principal import MemberRole
from tollgate.stores.ports.people import SESSION_S_MAX

_FILE_BYTES_MAX: Final = 512 * 1024
# Parameters of the authorization request that the gateway sets itself.
OWN_PARAMETERS: Final = frozenset(
    {
        "client_id",
        "code_challenge",
        "code_challenge_method",
        "nonce",
        "redirect_uri",
        "response_mode",
        "response_type",
        "scope",
        "state",
    }
)

_Text = Annotated[str, Meta(min_length=1, max_length=512)]
_Words = tuple[_Text, ...]


class InvalidSignIn(Exception):
    """Raised if the sign-in file is invalid; the message names the wrong field."""


class ClientSecret(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The locations of the client secret, which is never in the file itself."""

    secret: _Text | None = None
    """Name of the secret in Secrets Manager."""
    env: _Text | None = None
    """Name of an environment variable, which takes precedence over Secrets Manager."""


class MemberRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule that maps identities with certain claims to members."""

    claims: Annotated[dict[_Text, _Text | _Words], Meta(min_length=1, max_length=16)]
    """Globs by claim. Each claim must match one of its globs; for a list, one item must match."""
    workspace: Annotated[str, Meta(min_length=1, max_length=63)]
    role: MemberRole
    team: Annotated[str, Meta(min_length=1, max_length=64)] | None = None
    """The team of the member; None keeps the member in its current team."""

    def matches(self, claims: Mapping[str, Any]) -> bool:
        """Return whether a person's claims match the rule."""
        return all(_matches(claims, name, globs) for name, globs in self.claims.items())


class ManagedSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of Claude Code for members of certain teams and roles."""

    settings: dict[str, Any]
    teams: _Words | None = None
    """None means all teams, and members without a team."""
    roles: tuple[MemberRole, ...] | None = None
    """None means all roles."""

    def are_of(self, role: str, team: str | None) -> bool:
        """Return whether a member with this role and team gets these settings."""
        of_team = self.teams is None or (team is not None and team in self.teams)
        return of_team and (self.roles is None or role in self.roles)


class SignIn(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of the sign-in file."""

    public_url: _Text
    """The gateway's public address, without `/v1`."""
    issuer: _Text
    client_id: _Text
    client_secret: ClientSecret | None = None
    """None for a public client."""
    scopes: _Words = ("openid", "email", "profile", "offline_access")
    authorization_parameters: Annotated[dict[_Text, _Text], Meta(max_length=16)] = field(
        default_factory=dict
    )
    """Further parameters of the authorization request."""
    audiences: _Words = ()
    """Audiences that `POST /session` accepts in a token, in addition to the client id."""
    member_claim: _Text = "email"
    """The claim whose value becomes the id of a new member."""
    creates_members: bool = True
    """True to create a member when a person whom a rule matches signs in for the first time."""
    session_s: Annotated[int, Meta(ge=60, le=SESSION_S_MAX)] = SESSION_S_MAX
    rules: Annotated[tuple[MemberRule, ...], Meta(min_length=1, max_length=500)]
    """Rules in order; the first that matches applies."""
    managed_settings: Annotated[tuple[ManagedSettings, ...], Meta(max_length=100)] = field(
        default=()
    )
    """Settings in order; the first that applies to the member is used."""

    def rule_of(self, claims: Mapping[str, Any]) -> MemberRule | None:
        """Return the first rule that matches a person's claims, or None if none does."""
        return next((rule for rule in self.rules if rule.matches(claims)), None)

    def settings_of(self, role: str, team: str | None) -> dict[str, Any] | None:
        """Return Claude Code's settings for a member, or None if there are none."""
        matching = (entry.settings for entry in self.managed_settings if entry.are_of(role, team))
        return next(matching, None)


def read_sign_in(content: bytes) -> SignIn:
    """Return the decoded sign-in file; raise InvalidSignIn if it is invalid."""
    if len(content) > _FILE_BYTES_MAX:
        raise InvalidSignIn(f"the file is larger than {_FILE_BYTES_MAX:,} bytes")
    try:
        sign_in = msgspec.json.decode(content, type=SignIn)
    except msgspec.DecodeError as invalid:
        raise InvalidSignIn(str(invalid)) from invalid
    for name in ("public_url", "issuer"):
        address: str = getattr(sign_in, name)
        if not is_safe_address(address):
            raise InvalidSignIn(f"{name}: must use https, or http on this machine")
        if urlsplit(address).query or urlsplit(address).fragment:
            raise InvalidSignIn(f"{name}: must not have a query or a fragment")
    reserved = sorted(OWN_PARAMETERS & sign_in.authorization_parameters.keys())
    if reserved:
        raise InvalidSignIn(f"authorization_parameters: {reserved[0]} is set by the gateway")
    if "openid" not in sign_in.scopes:
        raise InvalidSignIn("scopes: openid is missing")
    return msgspec.structs.replace(sign_in, public_url=sign_in.public_url.rstrip("/"))


def is_safe_address(address: str) -> bool:
    """Return whether traffic to an address is private: https, or a loopback host."""
    parts = urlsplit(address)
    if parts.username or parts.password or not parts.hostname:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname))


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _matches(claims: Mapping[str, Any], name: str, globs: str | tuple[str, ...]) -> bool:
    # Anyone can claim an email address that has not been verified.
    if name == "email" and claims.get("email_verified") is not True:
        return False
    value = claims.get(name)
    values = value if isinstance(value, list) else [value]
    accepted = (globs,) if isinstance(globs, str) else globs
    return any(
        fnmatchcase(_as_text(item), glob)
        for item in values
        if isinstance(item, str | bool | int)
        for glob in accepted
    )


def _as_text(value: str | bool | int) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
