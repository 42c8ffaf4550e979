"""Lists of networks, and the source of a request behind proxies.

Keeps C60.
"""

import pytest

from tollgate.core.networks import NETWORKS_MAX, find_source, is_within, parse_networks

TRUSTED = parse_networks("10.0.0.0/8, 2001:db8:1::/48")


@pytest.mark.parametrize(
    "malformed",
    ["", ",", "192.0.2.7,", "192.0.2.7/8", "10.0.0.0/33", "example.com", "::/129", "010.0.0.1"],
)
def test_c60_a_malformed_list_is_refused(malformed: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_networks(malformed)


def test_c60_a_list_has_an_end() -> None:
    assert len(parse_networks(",".join(["::1"] * NETWORKS_MAX))) == NETWORKS_MAX
    with pytest.raises(ValueError, match="more than 100"):
        parse_networks(",".join(["::1"] * (NETWORKS_MAX + 1)))


@pytest.mark.parametrize(
    ("address", "admitted"),
    [
        ("192.0.2.7", True),
        ("::ffff:192.0.2.7", True),
        ("192.0.2.8", False),
        ("198.51.100.255", True),
        ("2001:db8::ffff", True),
        ("2001:db9::1", False),
        ("", False),
        (None, False),
        ("unknown", False),
        ("192.0.2.7:443", False),
    ],
)
def test_c60_addresses_of_both_kinds_are_found(address: str | None, admitted: bool) -> None:
    networks = parse_networks("192.0.2.7, 198.51.100.0/24, 2001:db8::/32")
    assert is_within(address, networks) is admitted


@pytest.mark.parametrize(
    ("peer", "forwarded", "source"),
    [
        ("192.0.2.1", [], "192.0.2.1"),
        # Whatever a caller sends itself has no effect.
        ("192.0.2.1", ["10.1.1.1"], "192.0.2.1"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["192.0.2.1"], "192.0.2.1"),
        ("10.0.0.1", ["198.51.100.1", " 192.0.2.1"], "192.0.2.1"),
        ("10.0.0.1", ["198.51.100.1", "192.0.2.1", "10.2.2.2"], "192.0.2.1"),
        ("::ffff:10.0.0.1", ["::ffff:192.0.2.1"], "192.0.2.1"),
        ("2001:db8:1::1", ["2001:db8:2::1"], "2001:db8:2::1"),
        ("10.0.0.1", ["192.0.2.1", "unknown"], None),
        ("10.0.0.1", [""], None),
        (None, ["192.0.2.1"], None),
    ],
)
def test_c60_only_what_trusted_proxies_have_added_is_read(
    peer: str | None, forwarded: list[str], source: str | None
) -> None:
    assert find_source(peer, forwarded, TRUSTED) == source
