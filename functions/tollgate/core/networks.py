"""Lists of networks, and the address that a request comes from."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Final

NETWORKS_MAX: Final = 100
_Network = IPv4Network | IPv6Network


@lru_cache(maxsize=1_000)
def parse_networks(text: str) -> tuple[_Network, ...]:
    """Return the addresses and CIDR networks in a comma-separated list.

    Raises ValueError if the list is empty or too long, or if an entry is neither.
    """
    networks = tuple(ip_network(entry.strip()) for entry in text.split(","))
    if len(networks) > NETWORKS_MAX:
        raise ValueError(f"there are more than {NETWORKS_MAX} networks")
    return networks


def is_within(address: str | None, networks: Iterable[_Network]) -> bool:
    """Return whether an address is in one of the networks; False for an unknown address."""
    ip = _parse(address or "")
    return ip is not None and any(ip in network for network in networks)


def find_source(
    peer: str | None, forwarded: Sequence[str], trusted: Sequence[_Network]
) -> str | None:
    """Return the address that a request comes from; None if it cannot be known.

    `forwarded` has the addresses that proxies added to `X-Forwarded-For`, in order. They are read
    from the end, as long as they were added by a trusted proxy, because the caller may have sent
    the others.
    """
    for address in reversed(forwarded):
        if not is_within(peer, trusted):
            break
        ip = _parse(address.strip())
        if ip is None:
            return None
        peer = str(ip)
    return peer


def _parse(address: str) -> IPv4Address | IPv6Address | None:
    """Return an address, converting an IPv4-mapped IPv6 address to IPv4; None if the text is not an
    address.
    """
    try:
        ip = ip_address(address)
    except ValueError:
        return None
    mapped = ip.ipv4_mapped if isinstance(ip, IPv6Address) else None
    return mapped or ip
