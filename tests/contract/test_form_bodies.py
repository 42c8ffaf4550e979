"""A form is known by its fields and the content of its files, however it is bounded.

Keeps C68, C69, C82.
"""

import json

from urllib3.filepost import encode_multipart_formdata

from tests.asgi import Exchange, request
from tests.gateways import Always, House
from tests.painters import home_of_painters, upload, whole
from tests.pictures import png
from tests.scripted import frame
from tests.stores import TESTER, DynamoStores, HandClock
from tests.unit.engine.scribes import SOUND, VERBOSE, home_of_scribes
from tests.unit.ingress.recordings import wav
from tollgate.aws.objects import ObjectStore
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.records.contents import ObjectContentLog
from tollgate.stores.records.kept_answers import DynamoAnswerStore
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

PATH = "/v1/audio/transcriptions"


async def write_down(
    home: House, secret: str, *, boundary: str, file: bytes = SOUND, **stores: object
) -> Exchange:
    fields = {"model": "ears", "file": ("a.wav", file), "prompt": "Ada"}
    body, type_ = encode_multipart_formdata(fields, boundary=boundary)
    return await request(
        chat_app(home.front, Always(home.gateway), WebLimits(), **stores),
        "POST",
        PATH,
        headers={
            "authorization": f"Bearer {secret}",
            "content-type": type_,
            **({"idempotency-key": "k"} if "answers" in stores else {}),
        },
        body=body,
    )


async def test_c68_c82_a_form_that_is_bounded_anew_is_the_same_request(
    dynamo: DynamoStores, objects: ObjectStore
) -> None:
    answers = DynamoAnswerStore(dynamo.client, dynamo.tables.core, objects, clock=dynamo.clock)
    home = await home_of_scribes([frame(VERBOSE)])
    first = await write_down(home, home.secret, boundary="one", answers=answers)
    again = await write_down(home, home.secret, boundary="two", answers=answers)
    assert (first.status, again.headers["x-idempotent-replay"]) == (200, "true")
    assert again.json == first.json
    assert len(home.near.requests) == 1
    other = await write_down(home, home.secret, boundary="one", file=wav(9), answers=answers)
    assert other.status == 422


async def test_c68_c69_c82_a_form_of_pictures_is_known_in_the_same_way(
    dynamo: DynamoStores, objects: ObjectStore
) -> None:
    answers = DynamoAnswerStore(dynamo.client, dynamo.tables.core, objects, clock=dynamo.clock)
    contents = ObjectContentLog(objects, clock=HandClock(0))
    home = await home_of_painters([whole()])
    key = await home.stores.keys.create(
        NewKey(workspace_id="acme", label="kept", content_days=30), by=TESTER
    )
    headers = {"authorization": f"Bearer {key.secret}", "idempotency-key": "p"}
    stores = {"answers": answers, "contents": contents}

    async def edited(file: bytes) -> Exchange:
        return await upload(home, ("image", file), headers=headers, stores=stores)

    first, again, other = await edited(png()), await edited(png()), await edited(png(8, 8))
    assert (first.status, again.headers["x-idempotent-replay"], other.status) == (200, "true", 422)
    content = await contents.get("acme", home.record.id)
    assert content is not None
    kept = json.loads(content)["request"]
    assert (kept["prompt"], kept["image"][0]["bytes"]) == (["two cats"], len(png()))


async def test_c69_c82_of_a_form_its_fields_are_kept_and_the_hash_of_its_file(
    objects: ObjectStore,
) -> None:
    contents = ObjectContentLog(objects, clock=HandClock(0))
    home = await home_of_scribes([frame(VERBOSE)])
    key = await home.stores.keys.create(
        NewKey(workspace_id="acme", label="kept", content_days=30), by=TESTER
    )
    reply = await write_down(home, key.secret, boundary="one", contents=contents)
    assert reply.status == 200
    content = await contents.get("acme", home.record.id)
    assert content is not None
    kept = json.loads(content)["request"]
    assert (kept["model"], kept["prompt"]) == (["ears"], ["Ada"])
    [file] = kept["file"]
    assert (file["bytes"], len(file["sha256"])) == (len(SOUND), 64)
