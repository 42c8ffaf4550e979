"""Classifies hosts as public, private or local, and applies rules for domains."""

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final, Literal
from urllib.parse import urlsplit

from msgspec import Struct

# https://www.iana.org/assignments/iana-ipv4-special-registry (2026-11-21). One more address is
# added: 168.63.129.16 is a public address, but on Azure's virtual machines it reaches a service of
# Azure.
_REFUSED_V4: Final = tuple(
    ip_network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "168.63.129.16/32",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",
    )
)
# Only global unicast IPv6 addresses are public, except for reserved networks and networks that map
# to other addresses (Teredo, 6to4). Mapped, compatible and NAT64 addresses are outside 2000::/3.
# https://www.iana.org/assignments/iana-ipv6-special-registry (2026-11-21)
_GLOBAL_V6: Final = ip_network("2000::/3")
_REFUSED_V6: Final = tuple(
    ip_network(network)
    for network in ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20")
)
# Private networks, where an operator may run servers. The other non-public addresses (loopback,
# link-local, metadata services, multicast) never belong to a provider.
_PRIVATE: Final = tuple(
    ip_network(network)
    for network in ("10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")
)
# Metadata services within those private networks: Amazon EC2's, which also serves the time, and
# Alibaba's.
_METADATA: Final = tuple(ip_network(network) for network in ("fd00:ec2::/32", "100.100.100.200/32"))
# Names of the local machine (RFC 6761, RFC 6762), and of metadata services.
_LOCAL_NAMES: Final = re.compile(
    r"(.*\.)?localhost(\.localdomain)?"
    r"|(.*\.)?metadata(\.google\.internal|\.goog|\.azure\.internal)?"
    r"|(.*\.)?instance-data(\.ec2\.internal)?"
)
# Names in private networks (RFC 6762, RFC 8375, ICANN's `internal`), and names without a dot.
_PRIVATE_NAMES: Final = re.compile(
    r"[^.]+|.*\.(corp|home|home\.arpa|internal|intranet|lan|local|localdomain|private)"
)
# Hosts that a resolver may read as an IP address in another notation: decimal, octal, hexadecimal,
# short.
_NUMERIC: Final = re.compile(r"(.*\.)?(0[xX][0-9a-fA-F]*|[0-9]+)\.?")
# An ASCII domain as in a URL: labels of letters, digits and dashes, without scheme, path or
# trailing dot. At least two labels are required, so that no list can allow `localhost` or a whole
# top-level domain.
DOMAIN: Final = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)+$"
DOMAIN_CHARACTERS_MAX: Final = 253


def is_public(address: str) -> bool:
    """Return whether an IP address in standard notation is on the public internet."""
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    match ip:
        case IPv4Address():
            return not any(ip in network for network in _REFUSED_V4)
        case IPv6Address():
            known = ip.scope_id is None and ip in _GLOBAL_V6
            return known and not any(ip in network for network in _REFUSED_V6)


def is_address(host: str) -> bool:
    """Return whether a host is an IP address in standard notation."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def is_disguised(host: str) -> bool:
    """Return whether a host is an IP address in another notation: `2130706433`, `0177.0.0.1`."""
    return bool(_NUMERIC.fullmatch(host)) and not is_address(host)


# `local` means the machine itself or a metadata service.
Reach = Literal["public", "private", "local"]


def find_reach(host: str) -> Reach:
    """Return whether a host is public, private or local, without resolving names."""
    name = host.strip("[]").rstrip(".").lower()
    try:
        ip = ip_address(name)
    except ValueError:
        return _find_reach_of_name(name)
    if is_public(name):
        return "public"
    is_private = any(ip in network for network in _PRIVATE) and "%" not in name
    return "private" if is_private and not any(ip in block for block in _METADATA) else "local"


def _find_reach_of_name(name: str) -> Reach:
    if is_disguised(name) or ":" in name or _LOCAL_NAMES.fullmatch(name):
        return "local"
    return "private" if _PRIVATE_NAMES.fullmatch(name) else "public"


class DomainRules(Struct, frozen=True, kw_only=True):
    """The domains that a list allows or blocks."""

    allowed: tuple[str, ...] = ()
    """The allowed domains, including their subdomains; empty allows all."""
    blocked: tuple[str, ...] = ()
    admits_none: bool = False
    """True if the rules combine two lists with no allowed domain in common."""

    def admits(self, host: str) -> bool:
        """Return whether a host may be reached."""
        name = host.rstrip(".").lower()
        if self.admits_none or _is_in(name, self.blocked):
            return False
        return not self.allowed or _is_in(name, self.allowed)

    def narrow(self, other: "DomainRules") -> "DomainRules":
        """Return rules that admit a host only if both sets of rules admit it."""
        # If one list has a domain and the other list has a subdomain of it, both allow the
        # subdomain.
        common = (
            *(domain for domain in self.allowed if _is_in(domain, other.allowed)),
            *(domain for domain in other.allowed if _is_in(domain, self.allowed)),
        )
        both_limit = bool(self.allowed and other.allowed)
        allowed = common if both_limit else self.allowed or other.allowed
        return DomainRules(
            allowed=tuple(dict.fromkeys(allowed)),
            blocked=tuple(dict.fromkeys((*self.blocked, *other.blocked))),
            admits_none=self.admits_none or other.admits_none or (both_limit and not common),
        )


def host_of(url: str) -> str | None:
    """Return the host of an http(s) URL; None for any other string."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return None
    return host if parts.scheme.lower() in ("http", "https") and host else None


def _is_in(name: str, domains: Iterable[str]) -> bool:
    return any(name == domain or name.endswith(f".{domain}") for domain in domains)
