"""The sign-in file says at the start what is wrong with it, and whom its rules know."""

from typing import Any

import msgspec
import pytest
from tests.unit.sign_in.signing_in import FILE

from tollgate.sign_in.configuration import InvalidSignIn, read_sign_in


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"issuer": "http://login.example"}, "issuer: must use https"),
        ({"issuer": "https://user:word@login.example"}, "issuer: must use https"),
        ({"issuer": "https://login.example?x=1"}, "issuer: must not have a query"),
        ({"public_url": "http://gateway.example"}, "public_url: must use https"),
        ({"session_s": 3_601}, r"\$.session_s"),
        ({"rules": []}, r"\$.rules"),
        ({"rules": [{"claims": {}, "workspace": "acme", "role": "viewer"}]}, "claims"),
        ({"rules": [{"claims": {"a": "b"}, "workspace": "acme", "role": "king"}]}, "role"),
        ({"rules": [{"claims": {"a": "b"}, "workspace": "a", "role": "admin", "x": 1}]}, "x"),
        ({"scopes": ["email"]}, "openid is missing"),
        ({"client_secret": {"value": "hush"}}, "value"),
        ({"authorization_parameters": {"nonce": "1"}}, "authorization_parameters: nonce"),
        ({"unknown": 1}, "unknown"),
    ],
)
def test_a_file_that_cannot_be_served_is_refused_with_its_field(
    changes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(InvalidSignIn, match=reason):
        read_sign_in(msgspec.json.encode({**FILE, **changes}))


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b" " * 600_000])
def test_what_is_no_such_file_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidSignIn):
        read_sign_in(content)


@pytest.mark.parametrize("address", ["http://127.0.0.1:8080", "http://[::1]:1", "http://localhost"])
def test_this_machine_needs_no_https(address: str) -> None:
    read = read_sign_in(msgspec.json.encode({**FILE, "issuer": address, "public_url": address}))
    assert read.issuer == address


@pytest.mark.parametrize(
    ("claims", "role"),
    [
        ({"groups": ["admins", "search"]}, "admin"),
        ({"groups": "admins"}, "admin"),
        ({"groups": ["search"], "email": "a@acme.example", "email_verified": True}, "developer"),
        # An address that nobody has verified proves nothing.
        ({"groups": ["search"], "email": "a@acme.example", "email_verified": False}, None),
        ({"groups": ["search"], "email": "a@acme.example"}, None),
        ({"groups": ["search"], "email": "a@acme.example", "email_verified": "true"}, None),
        ({"groups": ["search"], "email": "a@evil.example", "email_verified": True}, None),
        ({"groups": [["admins"], {"admins": 1}, None]}, None),
        ({}, None),
    ],
)
def test_the_first_rule_that_matches_counts(claims: dict[str, Any], role: str | None) -> None:
    rule = read_sign_in(msgspec.json.encode(FILE)).rule_of(claims)
    assert (rule and rule.role) == role
