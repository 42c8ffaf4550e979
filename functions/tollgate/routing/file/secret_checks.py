"""Finds sections that would send a platform secret, or send a key to the wrong host."""

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from tollgate.core.addresses import find_reach, is_address, is_disguised
from tollgate.core.secret import KeyVariables, is_platform_variable
from tollgate.routing.file.document import Where, YamlDocument
from tollgate.routing.file.key_hosts import KeyedRow, key_hosts_of
from tollgate.routing.file.problems import Problem, looks_like_secret
from tollgate.routing.scalars import KeySection

_PUNYCODE: Final = re.compile(r"(.*\.)?xn--")


class KeyRules(Struct, frozen=True):
    """A deployment's rules for provider keys: the allowed variables and the pinned pairs."""

    variables: KeyVariables
    pinned: frozenset[str] | None
    """Pinned pairs of a secret and a host; None if there is no template."""


def check_key(
    document: YamlDocument, where: Where, key: KeySection | None, rules: KeyRules
) -> Iterator[Problem]:
    """Yield a problem if a reference is empty, contains the key itself, or names a forbidden
    variable.
    """
    if key is None:
        return
    where = (*where, "key")
    if key.env is None and key.secret is None:
        yield document.at_value(where, "R043", "key names neither env nor secret")
    pasted = False
    for home, name in (("env", key.env), ("secret", key.secret)):
        if name and looks_like_secret(name):
            pasted = True
            message = f"{home} looks like the key itself; write the name of a variable or secret"
            yield document.at_value((*where, home), "R040", message)
    if key.env is not None and not pasted and not rules.variables.allows(key.env):
        yield _refused_variable(document, (*where, "env"), key.env)


def _refused_variable(document: YamlDocument, where: Where, name: str) -> Problem:
    if is_platform_variable(name):
        message = f"{name} is a variable of the platform and must not be sent to a provider"
        return document.at_value(where, "R044", message)
    message = f"{name} is not the name of a provider's key"
    hint = "name it *_API_KEY or *_SERVICE_ACCOUNT, or allow it in TOLLGATE_KEY_VARIABLES"
    return document.at_value(where, "R044", message, hint=hint)


def check_host(
    document: YamlDocument, where: Where, row: KeyedRow, *, development: bool
) -> Iterator[Problem]:
    """Yield a problem if the host in `base_url` is disguised or must not receive these requests."""
    if row.base_url is None:
        return
    where = (*where, "base_url")
    try:
        host = urlsplit(row.base_url).hostname or ""
    except ValueError:  # The host has brackets but is not an IPv6 address.
        host = ""
    if not host or is_disguised(host) or _PUNYCODE.match(host):
        message = "the host is disguised: write a complete address or a name in ASCII"
        yield document.at_value(where, "R045", message)
        return
    match find_reach(host):
        case "local" if not development:
            message = (
                f"{host} is this machine or its metadata service: only `tollgate dev` may reach it"
            )
            yield document.at_value(where, "R045", message, allowed_in_dev=True)
        case "private" if row.sends_credentials and not row.private:
            message = f"{host} is in a private network and would receive a key"
            yield document.at_value(where, "R045", message, hint="write private: true")
        case "public" | "private" if row.sends_credentials and not row.base_url.startswith(
            "https://"
        ):
            yield from _plain_text(document, where, row, host)


def check_pins(
    document: YamlDocument, where: Where, row: KeyedRow, rules: KeyRules
) -> Iterator[Problem]:
    """Yield a warning for each pair of a secret and a host that the template does not pin."""
    if rules.pinned is None:
        return
    for pair in key_hosts_of(row):
        if pair.pin not in rules.pinned:
            message = f"{pair.secret} would now also go to {pair.host}"
            hint = "if intended, run `tollgate permissions` and deploy before publishing"
            place = (*where, "base_url")
            yield document.at_value(place, "R046", message, hint=hint, severity="warning")


def _plain_text(
    document: YamlDocument, where: Where, row: KeyedRow, host: str
) -> Iterator[Problem]:
    """Yield a problem for a key that is sent over http, unless the host is private and
    declared so.
    """
    if not row.private:
        message = f"a key would reach {host} in plain text"
        hint = "write https, or private: true for your own network"
        yield document.at_value(where, "R045", message, hint=hint)
    elif is_address(host) and find_reach(host) == "public":
        message = f"{host} is a public address, which a key must not reach in plain text"
        yield document.at_value(where, "R045", message, hint="write https")
