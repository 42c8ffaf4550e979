"""C71: what is fetched for a caller, and the ways around the guard that do not work.

Names are resolved by a table of the test; loopback, where its server is, is let through only where
a test says so.

Keeps C71.
"""

import asyncio
import socket
import threading
from collections.abc import Sequence

import pytest

from tests.unit.ingress.media_samples import PNG
from tests.upstream import FakeUpstream, Script
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.http1.egress import Egress, FetchLimits, resolve
from tollgate.providers.ports.base import FetchedMedia
from tollgate.tools.io.public_fetcher import PublicFetcher

LOOPBACK = "127.0.0.1"
METADATA = "169.254.169.254"
PICTURE = Script(headers={"content-type": "image/png"}, chunks=[PNG[:4], PNG[4:]])


class Names:
    """A resolver that says of a name what its table says next; the last answer stays."""

    def __init__(self, **answers: Sequence[Sequence[str]]) -> None:
        self.asked: list[str] = []
        self._answers = {name.replace("_", "."): list(said) for name, said in answers.items()}

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        if host not in self._answers:
            raise OSError("no such name")
        said = self._answers[host]
        return said.pop(0) if len(said) > 1 else said[0]


def guard(names: Names, **limits: float) -> PublicFetcher:
    """A guard that lets the test's own server through."""
    egress = Egress(resolve=names, also_allowed=frozenset({LOOPBACK}))
    return PublicFetcher(egress, FetchLimits(**limits))  # type: ignore[arg-type]  # numbers by name


def at(host: str, upstream: FakeUpstream, path: str = "/a.png") -> str:
    port = upstream.url.rpartition(":")[2]
    return f"http://{host}:{port}{path}"


async def refused(fetcher: PublicFetcher, url: str) -> str:
    with pytest.raises(RequestError) as refusal:
        await fetcher.fetch(url)
    assert refusal.value.code is ErrorCode.INVALID_REQUEST
    assert refusal.value.param == "messages"
    return refusal.value.message


async def test_c71_a_picture_is_fetched_under_the_name_it_was_asked_by(
    upstream: FakeUpstream,
) -> None:
    upstream.enqueue(PICTURE)
    names = Names(pictures_example=[[LOOPBACK]])
    url = at("pictures.example", upstream)
    assert await guard(names).fetch(url) == FetchedMedia(content=PNG, claimed_type="image/png")
    (received,) = upstream.received
    assert (received.method, received.path) == ("GET", "/a.png")
    assert received.headers["host"] == url.split("/")[2]
    assert received.headers["accept-encoding"] == "identity"
    assert "authorization" not in received.headers
    assert "cookie" not in received.headers


async def test_c71_a_resolver_that_changes_its_mind_is_not_asked_again(
    upstream: FakeUpstream,
) -> None:
    upstream.enqueue(PICTURE)
    names = Names(fickle_example=[[LOOPBACK], [METADATA]])
    await guard(names).fetch(at("fickle.example", upstream))
    assert names.asked == ["fickle.example"]
    assert "public address" in await refused(guard(names), at("fickle.example", upstream))


@pytest.mark.parametrize(
    "addresses",
    [[METADATA], ["10.0.0.7"], ["fd00:ec2::254"], ["::ffff:127.0.0.1"], [LOOPBACK, "10.0.0.7"], []],
)
async def test_c71_every_address_of_a_name_must_be_public(
    upstream: FakeUpstream, addresses: list[str]
) -> None:
    names = Names(inside_example=[addresses])
    assert "public address" in await refused(guard(names), at("inside.example", upstream))
    assert upstream.connections == 0


@pytest.mark.parametrize(
    "host",
    [
        LOOPBACK,
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "127.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "localhost",
        "①②⑦.⓪.⓪.①",
        "127。0。0。1",
    ],
)
async def test_c71_loopback_is_refused_in_every_spelling(upstream: FakeUpstream, host: str) -> None:
    await refused(PublicFetcher(Egress()), at(host, upstream))
    assert upstream.connections == 0


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "gopher://example.com/",
        "ftp://example.com/a.png",
        "http://user:pass@8.8.8.8/",
        "http://8.8.8.8@169.254.169.254/",
        "http:///a.png",
        "//example.com/a.png",
        "http://[::1",
        "http://example.com:99999/",
        "",
    ],
)
async def test_c71_only_plain_http_urls_are_fetched(url: str) -> None:
    names = Names(example_com=[[LOOPBACK]])
    await refused(PublicFetcher(Egress(resolve=names)), url)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_c71_a_redirect_is_followed_from_the_start(
    upstream: FakeUpstream, status: int
) -> None:
    upstream.enqueue(Script(status=status, headers={"location": "/b.png"}), PICTURE)
    names = Names(pictures_example=[[LOOPBACK]])
    await guard(names).fetch(at("pictures.example", upstream))
    assert [received.path for received in upstream.received] == ["/a.png", "/b.png"]
    assert names.asked == ["pictures.example"] * 2


@pytest.mark.parametrize(
    "location",
    [
        f"http://{METADATA}/latest/meta-data/",
        "http://inside.example/",
        "//inside.example/",
        "http://2852039166/",
        "http://[fd00:ec2::254]/",
        "file:///etc/passwd",
        "http://user@pictures.example/",
    ],
)
async def test_c71_a_redirect_leads_nowhere_else_than_a_url_may(
    upstream: FakeUpstream, location: str
) -> None:
    upstream.enqueue(Script(status=302, headers={"location": location}))
    names = Names(pictures_example=[[LOOPBACK]], inside_example=[[METADATA]])
    await refused(guard(names), at("pictures.example", upstream))
    assert len(upstream.received) == 1


async def test_c71_redirects_end(upstream: FakeUpstream) -> None:
    again = Script(status=302, headers={"location": "/a.png"})
    upstream.enqueue(*[again] * 4)
    names = Names(pictures_example=[[LOOPBACK]])
    assert "redirects too many times" in await refused(
        guard(names), at("pictures.example", upstream)
    )
    assert len(upstream.received) == 4


async def test_c71_a_body_has_a_limit(upstream: FakeUpstream) -> None:
    upstream.enqueue(PICTURE, PICTURE)
    names = Names(pictures_example=[[LOOPBACK]])
    url = at("pictures.example", upstream)
    assert (await guard(names, body_bytes_max=len(PNG)).fetch(url)).content == PNG
    assert "bytes" in await refused(guard(names, body_bytes_max=len(PNG) - 1), url)


async def test_c71_c82_a_fetch_may_have_its_own_limit_and_the_name_of_its_field(
    upstream: FakeUpstream,
) -> None:
    upstream.enqueue(PICTURE, PICTURE)
    fetcher = guard(Names(pictures_example=[[LOOPBACK]]), body_bytes_max=1)
    url = at("pictures.example", upstream)
    assert (await fetcher.fetch(url, field="url", bytes_max=len(PNG))).content == PNG
    with pytest.raises(RequestError, match="A URL in url has more than") as caught:
        await fetcher.fetch(url, field="url", bytes_max=len(PNG) - 1)
    assert caught.value.param == "url"


async def test_c71_a_server_that_does_not_answer_is_given_up(upstream: FakeUpstream) -> None:
    upstream.enqueue(Script(before_headers="hang"))
    names = Names(pictures_example=[[LOOPBACK]])
    assert "in time" in await refused(guard(names, total_s=0.05), at("pictures.example", upstream))


@pytest.mark.parametrize(
    "script",
    [
        Script(status=404),
        Script(status=206, chunks=[PNG]),
        Script(headers={"content-encoding": "gzip"}, chunks=[b"\x1f\x8b"]),
        Script(before_headers="close"),
        Script(chunks=[PNG], end="close"),
        Script(raw=b"SSH-2.0-OpenSSH\r\n"),
    ],
)
async def test_c71_whatever_else_answers_is_refused(upstream: FakeUpstream, script: Script) -> None:
    upstream.enqueue(script)
    names = Names(pictures_example=[[LOOPBACK]])
    await refused(guard(names), at("pictures.example", upstream))


async def test_c71_a_refusal_says_nothing_of_what_lies_inside(upstream: FakeUpstream) -> None:
    names = Names(pictures_example=[[LOOPBACK]])
    upstream.enqueue(Script(status=403, chunks=[b"secret"]))
    there = await refused(guard(names), at("pictures.example", upstream))
    nowhere = await refused(guard(names), "http://nowhere.example/")
    assert there == nowhere
    assert LOOPBACK not in there


async def test_a_name_server_that_does_not_answer_keeps_no_thread_of_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answered = threading.Event()

    def wait(*_: object, **__: object) -> list[object]:
        answered.wait(10)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", wait)
    # More than the threads that a loop has on any machine.
    waiting = [asyncio.create_task(resolve("slow.example", 443)) for _ in range(33)]
    try:
        async with asyncio.timeout(5):
            await asyncio.gather(*(asyncio.to_thread(answered.is_set) for _ in range(8)))
    finally:
        answered.set()
        await asyncio.wait(waiting)
