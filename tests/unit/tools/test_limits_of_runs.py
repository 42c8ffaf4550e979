"""The limits of a fetch and of what a search makes known.

Keeps C71, C73.
"""

import json

from tests.unit.tools.toolboxes import SECTION, Toolbox, text_of
from tollgate.core.addresses import DomainRules
from tollgate.core.server_tools import ServerTool
from tollgate.http1.egress import Fetched
from tollgate.tools.ports.base import PageLimits, RunReport

URL = "https://a.example/page"
FETCH = ServerTool(id="web_fetch", blocked_domains=("b.example",))
SEARCH = ServerTool(id="web_search")


def page(content: bytes, type_: str) -> Fetched:
    return Fetched(url=URL, content=content, claimed_type=type_)


async def fetched(box: Toolbox, url: str = URL, remaining_s: float = 60) -> RunReport:
    return await box.tools.run(FETCH, {"url": url}, remaining_s=remaining_s)


async def test_c71_the_fetcher_gets_the_domains_the_bytes_and_the_time() -> None:
    section = {**SECTION, "web_fetch": {**SECTION["web_fetch"], "bytes_max": 5_000}}
    box = Toolbox(FETCH, section=section, said=URL, pages={URL: page(b"Hello", "text/plain")})
    await fetched(box)
    await fetched(box, remaining_s=3)
    # Redirects are the fetcher's, so that it must know the domains too.
    rules = DomainRules(blocked=("b.example",))
    assert box.pages.limits == [
        PageLimits(domains=rules, bytes_max=5_000, timeout_s=seconds) for seconds in (10, 3)
    ]


async def test_the_reader_of_a_page_is_asked_for_a_bounded_part_of_it() -> None:
    box = Toolbox(FETCH, said=URL, pages={URL: page(b"%PDF-1.7 x", "application/pdf")})
    await fetched(box)
    (task,) = box.reader.tasks
    assert (task.pages_max, task.cuts, task.pictures) == (50, True, "none")


async def test_c73_an_address_in_an_excerpt_may_be_fetched() -> None:
    excerpt = f"Read {URL} too."
    results = [{"url": "https://c.example/1", "title": "A page", "content": excerpt}]
    box = Toolbox(
        SEARCH,
        FETCH,
        answers=[json.dumps({"results": results}).encode()],
        pages={URL: page(b"Hello", "text/plain")},
    )
    assert (await fetched(box)).result.error == "url_not_in_prior_context"
    await box.tools.run(SEARCH, {"query": "a"}, remaining_s=60)
    assert "Hello" in text_of((await fetched(box)).result)
