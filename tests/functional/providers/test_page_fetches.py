"""Pages that a model asks for: the guard, the domains of every redirect, and the limits.

Keeps C71.
"""

import pytest

from tests.functional.providers.test_public_fetches import LOOPBACK, METADATA, Names, at, guard
from tests.upstream import FakeUpstream, Script
from tollgate.core.addresses import DomainRules
from tollgate.core.buffer_budget import ProcessBuffers
from tollgate.http1.egress import Egress
from tollgate.tools.io.public_fetcher import PublicFetcher
from tollgate.tools.ports.base import PageLimits, RunFailure

ANY = DomainRules()
PAGE = Script(headers={"content-type": "text/plain"}, chunks=[b"hel", b"lo"])


def limits(
    domains: DomainRules = ANY, *, bytes_max: int = 1000, timeout_s: float = 5
) -> PageLimits:
    return PageLimits(domains=domains, bytes_max=bytes_max, timeout_s=timeout_s)


async def fault(fetcher: PublicFetcher, url: str, under: PageLimits | None = None) -> str:
    with pytest.raises(RunFailure) as failure:
        await fetcher.fetch_page(url, under or limits())
    assert LOOPBACK not in failure.value.words
    return failure.value.fault


def to(location: str) -> Script:
    return Script(status=302, headers={"location": location})


async def test_c71_a_page_has_its_last_address_and_type(upstream: FakeUpstream) -> None:
    upstream.enqueue(to("/b"), PAGE)
    names = Names(pages_example=[[LOOPBACK]])
    page = await guard(names).fetch_page(at("pages.example", upstream, "/a"), limits())
    assert (page.url, page.content) == (at("pages.example", upstream, "/b"), b"hello")
    assert page.claimed_type == "text/plain"


async def test_c71_a_redirect_leads_to_no_domain_that_is_not_allowed(
    upstream: FakeUpstream,
) -> None:
    names = Names(pages_example=[[LOOPBACK]], evil_example=[[LOOPBACK]])
    start, elsewhere = at("pages.example", upstream), at("evil.example", upstream)
    for domains in (
        DomainRules(allowed=("pages.example",)),
        DomainRules(blocked=("evil.example",)),
    ):
        upstream.enqueue(to(elsewhere))
        assert await fault(guard(names), start, limits(domains)) == "url_not_allowed"
    assert [received.path for received in upstream.received] == ["/a.png"] * 2
    assert "evil.example" not in names.asked
    upstream.enqueue(to(elsewhere), PAGE)
    assert (await guard(names).fetch_page(start, limits())).content == b"hello"


@pytest.mark.parametrize(
    "location",
    [
        f"http://{METADATA}/latest/meta-data/",
        "http://localhost/",
        "http://[::1]/",
        "http://2130706433/",
        "http://inside.example/",
        "file:///etc/passwd",
        "gopher://pages.example/",
        "http://user:pass@pages.example/",
        "//inside.example/",
    ],
)
async def test_c71_no_redirect_leads_inside(upstream: FakeUpstream, location: str) -> None:
    names = Names(pages_example=[[LOOPBACK]], inside_example=[["10.0.0.7"]], localhost=[["::1"]])
    upstream.enqueue(to(location))
    assert await fault(guard(names), at("pages.example", upstream)) == "url_not_allowed"
    assert len(upstream.received) == 1


async def test_c71_a_name_that_leads_inside_later_is_refused_then(upstream: FakeUpstream) -> None:
    """DNS rebinding: each fetch, and each redirect, resolves and checks, and connects to that."""
    upstream.enqueue(to("/again"))
    names = Names(fickle_example=[[LOOPBACK], [METADATA]])
    assert await fault(guard(names), at("fickle.example", upstream)) == "url_not_allowed"
    assert names.asked == ["fickle.example"] * 2
    assert len(upstream.received) == 1


@pytest.mark.parametrize("address", [METADATA, "10.0.0.7", "fd00:ec2::254", "::ffff:127.0.0.1"])
async def test_c71_a_private_address_is_never_connected_to(
    upstream: FakeUpstream, address: str
) -> None:
    names = Names(inside_example=[[address]])
    assert await fault(guard(names), at("inside.example", upstream)) == "url_not_allowed"
    assert await fault(PublicFetcher(Egress()), at(LOOPBACK, upstream)) == "url_not_allowed"
    assert upstream.connections == 0


@pytest.mark.parametrize(
    "script",
    [
        Script(status=404),
        Script(status=500),
        Script(chunks=[b"x" * 600, b"x" * 600]),
        Script(before_headers="close"),
        Script(before_headers="hang"),
        Script(headers={"content-encoding": "gzip"}, chunks=[b"x"]),
    ],
)
async def test_a_page_that_does_not_come_is_a_failed_tool(
    upstream: FakeUpstream, script: Script
) -> None:
    upstream.enqueue(script)
    names = Names(pages_example=[[LOOPBACK]])
    under = limits(timeout_s=0.2)
    assert await fault(guard(names), at("pages.example", upstream), under) == "url_not_accessible"


async def test_a_circle_of_redirects_ends(upstream: FakeUpstream) -> None:
    upstream.enqueue(*(to("/a") for _ in range(10)))
    names = Names(pages_example=[[LOOPBACK]])
    assert await fault(guard(names), at("pages.example", upstream)) == "url_not_accessible"
    assert len(upstream.received) == 4


async def test_c47_a_page_that_a_request_may_not_hold_fails_the_run_alone(
    upstream: FakeUpstream,
) -> None:
    upstream.enqueue(Script(chunks=[b"x" * 900]), PAGE)
    names, process = Names(pages_example=[[LOOPBACK]]), ProcessBuffers(request_bytes_max=100)
    url = at("pages.example", upstream)
    with process.open("acme"):
        assert await fault(guard(names), url) == "unavailable"
        assert process.size == 0
        assert (await guard(names).fetch_page(url, limits())).content == b"hello"
        assert process.size == 5
