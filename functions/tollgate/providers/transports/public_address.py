"""The network addresses to which the gateway may connect on a caller's behalf."""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final

# https://www.iana.org/assignments/iana-ipv4-special-registry (2026-11-21), and private services at
# public addresses: on every virtual machine of Azure, 168.63.129.16 is Azure itself.
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
# Of IPv6 only global unicast, without what stands for other addresses (Teredo, 6to4) or for none:
# mapped, compatible and NAT64 addresses lie outside of it.
# https://www.iana.org/assignments/iana-ipv6-special-registry (2026-11-21)
_GLOBAL_V6: Final = ip_network("2000::/3")
_REFUSED_V6: Final = tuple(
    ip_network(network)
    for network in ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20")
)
# Hosts that a resolver may take for an address: decimal, octal, hexadecimal, short.
_NUMERIC: Final = re.compile(r"(.*\.)?(0[xX][0-9a-fA-F]*|[0-9]+)\.?")


def is_public(address: str) -> bool:
    """Return whether an address, written in full, is one of the public internet."""
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
    """Return whether a host is an address in its full form, decimal for IPv4."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def is_disguised(host: str) -> bool:
    """Return whether a host is an address in another form: `2130706433`, `0x7f.1`, `0177.0.0.1`."""
    return bool(_NUMERIC.fullmatch(host)) and not is_address(host)
