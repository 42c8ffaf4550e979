"""A process that sends one request many times at once; it takes one order on its stdin."""

import asyncio
import json
import sys
from pathlib import Path

import msgspec
from msgspec import Struct

from tests.asgi import request
from tests.gateways import app_over_stores, house, request_body
from tests.scripted import Scripted, Silence, answers
from tests.stores import HandClock, aws_client, dynamo_stores
from tests.unit.routing.catalogs import endpoint, model
from tests.upstream.vectors import listed
from tollgate.aws.objects import FolderObjects
from tollgate.ingress.formats import CHAT_COMPLETIONS, EMBEDDINGS
from tollgate.stores.aws.tables import Tables
from tollgate.stores.records.kept_answers import DynamoAnswerStore

# While it lasts the others meet a claim that runs, after it an answer that is kept.
_ANSWER_TAKES_S = 0.3
_ASKS_AGAIN_AFTER_S = 0.05
_VECTORS_BODY = b'{"model": "acme/vec", "input": "Say hello."}'
_MODELS = {
    "acme/large": model(endpoint("near", "large-1")),
    "acme/small": model(endpoint("near", "small-1")),
    "other/tools": model(endpoint("far", "T")),
    "acme/vec": {
        "name": "Vectors",
        "kind": "embedding",
        "context": 100,
        "vectors": {"dimensions": 4},
        "endpoints": (endpoint("near", "vec-1"),),
    },
}


class Order(Struct, frozen=True, kw_only=True):
    """The request, the gateway, and how many callers send it at once."""

    endpoint_url: str
    tables: dict[str, str]
    folder: str
    secret: str
    key: str
    askers: int
    embeds: bool = False
    """True if it is for embeddings, and not for chat."""

    def to_json(self) -> str:
        return msgspec.json.encode(self).decode()


async def main(order: Order) -> list[str]:
    """Return each caller's reply: `made`, `kept`, or how many `409` came before one of these."""
    clock = HandClock()
    client = aws_client(order.endpoint_url, clock=clock, timeout_s=5.0)
    stores = dynamo_stores(client, Tables(**order.tables), clock)
    said = [listed(1, tokens=14)] if order.embeds else answers("Hello")
    home = await house(near=Scripted([Silence(_ANSWER_TAKES_S), *said]), models=_MODELS)
    kept = DynamoAnswerStore(
        client, stores.tables.core, FolderObjects(Path(order.folder)), clock=clock
    )
    app = app_over_stores(home, stores, answers=kept)

    async def ask(place: int) -> list[str]:
        told: list[str] = []
        while not told or told[-1] == "409":
            answer = await request(
                app,
                "POST",
                EMBEDDINGS.path if order.embeds else CHAT_COMPLETIONS.path,
                headers={
                    "authorization": f"Bearer {order.secret}",
                    "idempotency-key": order.key,
                },
                body=_VECTORS_BODY if order.embeds else request_body("acme/small"),
            )
            replayed = "x-idempotent-replay" in answer.headers
            made = "kept" if replayed else "made"
            told.append(made if answer.status == 200 else str(answer.status))
            await asyncio.sleep(_ASKS_AGAIN_AFTER_S)
        return told

    told = await asyncio.gather(*map(ask, range(order.askers)))
    await client.close()
    return [each for asker in told for each in asker]


if __name__ == "__main__":
    # Importing takes its time; everybody asks when the order comes.
    print("ready", flush=True)
    print(json.dumps(asyncio.run(main(Order(**json.loads(sys.stdin.readline()))))))
