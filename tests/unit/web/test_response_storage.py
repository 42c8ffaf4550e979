"""Stored responses where their store fails, and of whatever a client sends.

Keeps C6, C80.
"""

import asyncio
import json
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.asgi import request
from tests.gateways import Always
from tests.stored_responses import PATH, open_shop
from tests.unit.ingress.test_parse_anything import REFUSALS
from tests.unit.ingress.test_responses_anything import requests
from tollgate.core.errors import ErrorCode, LedgerError, RequestError
from tollgate.core.ownership import UNOWNED
from tollgate.core.principal import Principal
from tollgate.engine.side_thread import SideThread
from tollgate.ingress.base import ParsedCall
from tollgate.ingress.responses.parse import parse_response_object
from tollgate.ingress.responses.stored import encode_stored, numbered
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits
from tollgate.web.records.response_storage import RESPONSE_BYTES_MAX, parse_with_turns

FIRST, SECOND, THIRD = "5g0DOBgUqHItj5x", "5g0DOBgUqHItj5y", "5g0DOBgUqHItj5z"


class FullBucket:
    """Nothing more fits in, or nothing is ever done."""

    def __init__(self, failure: Exception | None = None) -> None:
        self._failure = failure

    async def keep(self, *_: object, days: int) -> None:
        if self._failure is not None:
            raise self._failure
        await asyncio.sleep(3_600)

    async def get(self, *_: object, days: int | None = None) -> bytes | None:
        return None


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("failure", [LedgerError(ErrorCode.SERVICE_UNAVAILABLE, "full"), None])
async def test_c80_a_response_that_cannot_be_stored_is_answered_billed_and_says_so(
    stream: bool, failure: Exception | None, caplog: pytest.LogCaptureFixture
) -> None:
    begun_s = asyncio.get_running_loop().time()
    shop = await open_shop(FullBucket(failure))
    reply = await shop.ask("Say hello.", stream=stream)
    assert reply.status == 200
    if stream:
        seen = json.loads(reply.body.split(b"\n\n")[-2].splitlines()[1][6:])["response"]
    else:
        seen = reply.json
        assert reply.headers["x-tollgate-adapted"] == "store"
    assert (seen["status"], seen["store"], seen["adapted"]) == ("completed", False, ["store"])
    assert shop.home.record.cost_nano_usd > 0
    assert asyncio.get_running_loop().time() - begun_s <= 4
    [line] = caplog.messages
    assert "Hello" not in line


async def test_c80_no_answer_waits_for_its_store_beyond_the_end_of_the_invocation() -> None:
    shop = await open_shop(FullBucket())
    limits = WebLimits(stream_total_s=3)
    app = chat_app(shop.home.front, Always(shop.home.gateway), limits, responses=shop.log)
    begun_s = asyncio.get_running_loop().time()
    headers = {"authorization": f"Bearer {shop.secret}"}
    body = b'{"model":"acme/small","input":"Say hello."}'
    reply = await request(app, "POST", PATH, headers=headers, body=body)
    assert (reply.status, reply.json["store"]) == (200, False)
    # A second is left for the last bytes.
    assert asyncio.get_running_loop().time() - begun_s <= 2


@pytest.mark.parametrize("days", [7, None])
async def test_c80_an_explanation_reads_no_stored_turns_and_says_so(days: int | None) -> None:
    shop = await open_shop(Shelf(), days=days)
    body = b'{"model":"acme/small","input":"On","previous_response_id":"resp_1"}'
    path = "/v1/route/explain?format=responses"
    reply = await shop.api("POST", path, raw=body, key=shop.secret)
    assert (reply.status, reply.error["param"]) == (400, "previous_response_id")
    assert "route explanations cannot read" in reply.error["message"]
    assert "are not stored" not in reply.error["message"]


@pytest.mark.parametrize(
    ("role", "part"),
    [
        ("user", {"type": "input_text", "text": "Hi"}),
        ("assistant", {"type": "output_text", "text": "Hi", "annotations": []}),
    ],
)
def test_c80_a_message_is_listed_with_the_part_of_its_role(role: str, part: Any) -> None:
    [listed] = numbered([{"role": role, "content": "Hi"}], FIRST)
    assert listed == {
        "type": "message",
        "id": f"msg_{FIRST}_i0",
        "role": role,
        "content": [part],
    }


class Shelf:
    """Stored responses in memory."""

    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}
        self.reads: list[str] = []
        self.admissions = 0

    async def keep(
        self, workspace_id: str, generation_id: str, content: bytes, *, days: int
    ) -> None:
        self.contents[generation_id] = content

    async def get(
        self, workspace_id: str, generation_id: str, *, days: int | None = None
    ) -> bytes | None:
        self.reads.append(generation_id)
        return self.contents.get(generation_id)


ANSWER = json.dumps(
    {
        "output": [
            {"type": "reasoning", "id": f"rs_{FIRST}_0", "summary": []},
            {
                "type": "function_call",
                "id": f"fc_{FIRST}_1",
                "call_id": "call_1",
                "name": "f",
                "arguments": "{}",
            },
        ]
    }
).encode()
references = st.fixed_dictionaries(
    {
        "type": st.just("item_reference"),
        "id": st.sampled_from([f"fc_{FIRST}_1", f"rs_{FIRST}_0", f"msg_{FIRST}_7", "rs_1", ""]),
    }
)


async def parse_stored(shelf: Shelf, body: bytes) -> ParsedCall:
    async def admit() -> None:
        shelf.admissions += 1

    async def read_seal() -> None:
        raise AssertionError("nothing is compacted")

    return await parse_with_turns(
        shelf,
        body,
        partial(parse_response_object, headers={}),
        principal=Principal(
            key_id="key", workspace_id="acme", role="inference", label="key", response_days=7
        ),
        reach=UNOWNED,
        admit=admit,
        read_seal=read_seal,
        compacts=False,
        side=SideThread(),
    )


@pytest.mark.parametrize(
    ("names", "reads"),
    [([f"fc_{FIRST}_1"], [SECOND]), ([f"fc_{FIRST}_1", f"msg_{THIRD}_0"], [SECOND, THIRD])],
)
async def test_c80_what_the_previous_response_has_is_read_once(
    names: list[str], reads: list[str]
) -> None:
    shelf = Shelf()
    earlier = [{"role": "user", "content": "An item of no id."}, *json.loads(ANSWER)["output"]]
    shelf.contents[SECOND] = encode_stored(b'{"output":[]}', earlier)
    said = {"type": "message", "id": f"msg_{THIRD}_0", "role": "user", "content": "Hi"}
    shelf.contents[THIRD] = encode_stored(b'{"output":[]}', [*earlier, said])
    input_ = [{"type": "item_reference", "id": name} for name in names]
    body = {"model": "m", "input": input_, "previous_response_id": f"resp_{SECOND}"}
    await parse_stored(shelf, json.dumps(body).encode())
    assert shelf.reads == reads
    assert shelf.admissions == len(reads)


def named_items(count: int) -> tuple[Shelf, bytes]:
    """A shelf of responses, and a request that names an item of each."""
    shelf, input_ = Shelf(), []
    for place in range(count):
        generation_id = f"5g0DOBgUqHItj{place:02}"
        said = {"type": "message", "id": f"msg_{generation_id}_0", "role": "user", "content": "Hi"}
        shelf.contents[generation_id] = encode_stored(b'{"output":[]}', [said])
        input_.append({"type": "item_reference", "id": said["id"]})
    return shelf, json.dumps({"model": "m", "input": input_}).encode()


async def test_c80_a_request_that_names_many_responses_reads_a_bounded_number() -> None:
    shelf, body = named_items(12)
    with pytest.raises(RequestError, match=r"input\[0\]"):
        await parse_stored(shelf, body)
    assert shelf.reads == sorted(shelf.contents, reverse=True)[:8]


async def test_c80_a_request_that_names_large_responses_reads_a_bounded_size() -> None:
    shelf, body = named_items(4)
    large = {"role": "user", "content": "x" * RESPONSE_BYTES_MAX}
    for generation_id in shelf.contents:
        shelf.contents[generation_id] = encode_stored(b'{"output":[]}', [large])
    with pytest.raises(RequestError, match=r"input\[0\]"):
        await parse_stored(shelf, body)
    # The second of them is beyond twice the bound of one.
    assert len(shelf.reads) == 2


@given(
    request=requests,
    more=st.lists(references, max_size=2),
    previous=st.sampled_from([None, f"resp_{FIRST}", f"resp_{SECOND}", "resp_1", ""]),
)
async def test_c6_c80_what_is_stored_of_any_request_is_understood_again(
    request: Any, more: list[Any], previous: str | None
) -> None:
    shelf = Shelf()
    shelf.contents[FIRST] = encode_stored(ANSWER, [])

    async def parse(body: Any) -> Any:
        sent = json.dumps(body).encode()
        return await parse_stored(shelf, sent)

    if isinstance(request["input"], list):
        request = request | {"input": [*request["input"], *more]}
    parsed, refused = None, None
    try:
        parsed = await parse(request | {"previous_response_id": previous})
    except RequestError as error:
        refused = error
    if parsed is None:
        assert refused is not None
        assert refused.code in {
            *REFUSALS,
            ErrorCode.NOT_FOUND,
            ErrorCode.PREVIOUS_RESPONSE_NOT_FOUND,
        }
        return
    if parsed.stored_input is None:
        assert request["store"] is False
        return
    shelf.contents[SECOND] = encode_stored(ANSWER, numbered(parsed.stored_input, SECOND))
    again = await parse({"model": "m", "input": "On", "previous_response_id": f"resp_{SECOND}"})
    assert again.stored_input is not None
    assert len(again.stored_input) == len(parsed.stored_input) + 3
