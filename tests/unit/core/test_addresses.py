"""C71: which addresses are public, in whatever spelling.

Keeps C71.
"""

import pytest

from tests.cells import cells
from tollgate.core.addresses import find_reach, is_address, is_disguised, is_public


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00::1"]
)
def test_c71_the_public_internet_is_public(address: str) -> None:
    assert is_public(address)


@cells(
    "address",
    [
        "0.0.0.0",
        "10.1.2.3",
        "100.64.0.1",
        "100.100.100.200",
        "127.0.0.1",
        "127.255.255.254",
        "168.63.129.16",
        "169.254.169.254",
        "169.254.170.2",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.192",
        "192.168.1.1",
        "198.18.0.1",
        "203.0.113.9",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:8.8.8.8",
        "::ffff:a9fe:a9fe",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b:1::a9fe:a9fe",
        "100::1",
        "2001::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "2002:a9fe:a9fe::1",
        "3fff::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fe80::1%eth0",
        "2a00::1%eth0",
        "fec0::1",
        "ff02::1",
        "localhost",
        "",
    ],
)
def test_c71_everything_else_is_not(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "host",
    [
        "2130706433",
        "0x7f000001",
        "0X7F.1",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "017700000001",
        "127.1",
        "127.0.1",
        "127.0.0.1.",
        "127.0.0.01",
        "0",
        "0x",
        "name.127.0.0.1",
        "a.1",
    ],
)
def test_c71_an_address_in_another_spelling_is_disguised(host: str) -> None:
    assert is_disguised(host)
    assert not is_address(host)


@pytest.mark.parametrize("host", ["example.com", "1password.com", "0x.example", "8.8.8.8", "::1"])
def test_c71_names_and_plain_addresses_are_not_disguised(host: str) -> None:
    assert not is_disguised(host)


@cells(
    ("host", "reach"),
    [
        ("api.openai.com", "public"),
        ("API.OpenAI.com.", "public"),
        ("8.8.8.8", "public"),
        ("[2606:4700::1111]", "public"),
        ("10.0.0.7", "private"),
        ("192.168.1.4", "private"),
        ("[fd12:3456::1]", "private"),
        ("vllm", "private"),
        ("vllm.internal", "private"),
        ("ip-10-0-0-7.ec2.internal", "private"),
        ("vllm.default.svc.cluster.local", "private"),
        ("127.0.0.1", "local"),
        ("127.8.8.8", "local"),
        ("0.0.0.0", "local"),
        ("[::1]", "local"),
        ("[::]", "local"),
        ("[::ffff:127.0.0.1]", "local"),
        ("[64:ff9b::7f00:1]", "local"),
        ("[fe80::1%25eth0]", "local"),
        ("169.254.169.254", "local"),
        ("169.254.170.2", "local"),
        ("[fd00:ec2::254]", "local"),
        ("100.100.100.200", "local"),
        ("168.63.129.16", "local"),
        ("224.0.0.1", "local"),
        ("localhost", "local"),
        ("LOCALHOST.", "local"),
        ("anything.localhost", "local"),
        ("metadata.google.internal", "local"),
        ("metadata", "local"),
        ("instance-data.ec2.internal", "local"),
        ("2130706433", "local"),
        ("[1:2]", "local"),
        ("0x7f.1", "local"),
        ("0177.0.0.1", "local"),
        ("127.1", "local"),
        ("evil.0x7f000001", "local"),
    ],
)
def test_c93_a_host_is_public_private_or_local(host: str, reach: str) -> None:
    assert find_reach(host) == reach
