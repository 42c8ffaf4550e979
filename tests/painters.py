"""A gateway whose two providers make pictures, and the requests for them.

The providers' answers are synthetic, after their documents.
"""

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from urllib3.filepost import encode_multipart_formdata

from tests.asgi import Exchange, request
from tests.gateways import Always, House, ShelvedMedia, house
from tests.pictures import data_url, png, png_text
from tests.scripted import Scripted, frame
from tests.unit.routing.catalogs import model, price, provider
from tollgate.ingress.formats import IMAGE_EDITS, IMAGE_GENERATIONS
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

DRAWN = png_text(64, 32)
USED = {
    "input_tokens": 30,
    "input_tokens_details": {"text_tokens": 10, "image_tokens": 20},
    "output_tokens": 400,
    "total_tokens": 430,
}
BY_PICTURE = {"input": Decimal(0), "image": Decimal("0.02")}
BY_TOKENS = {
    "input": Decimal(5),
    "output": Decimal(10),
    "image_input": Decimal(8),
    "image_output": Decimal(30),
}
OPENAI = {
    "images_max": 4,
    "takes": ("background", "mask", "output_format", "quality", "stream"),
    "base64": "b64_json",
    "urls": True,
    "edits": "form",
}
PICTURE = {"image_url": data_url(png())}


def whole(count: int = 1, **more: Any) -> Any:
    return frame({"created": 1, "data": [{"b64_json": DRAWN}] * count, **more})


def painter(rates: dict[str, Decimal], **facts: Any) -> dict[str, Any]:
    kept = {name: rate for name, rate in price("0").items() if name not in ("input", "output")}
    offers = [
        {"provider": slug, "upstream": "p-1", "price": kept | rates, **facts}
        for slug in ("near", "far")
    ]
    section = model(*offers, kind="image", input=("text", "image"))
    del section["max_output"]
    return section


async def home_of_painters(
    *near: Any,
    far: Any = None,
    rates: dict[str, Decimal] | None = None,
    dialect: dict[str, Any] | None = None,
    media: ShelvedMedia | None = None,
    fetches_urls: tuple[str, ...] = (),
    **facts: Any,
) -> House:
    images = {**OPENAI, **(dialect or {})}
    row = provider(dialect={"images": images, "fetches_urls": fetches_urls})
    return await house(
        near=Scripted(*near),
        far=Scripted(far) if far else None,
        media=media,
        providers={"near": row, "far": row},
        models={"acme/paint": painter(rates or BY_PICTURE, **facts)},
        aliases={},
        routes={},
    )


async def draw(home: House, path: str = IMAGE_GENERATIONS.path, **fields: Any) -> Exchange:
    app = chat_app(home.front, Always(home.gateway), WebLimits())
    body = {"model": "acme/paint", "prompt": "two cats", **fields}
    return await request(
        app,
        "POST",
        path,
        headers={"authorization": f"Bearer {home.secret}"},
        body=json.dumps(body).encode(),
    )


async def upload(
    home: House,
    *files: tuple[str, bytes],
    headers: Mapping[str, str] | None = None,
    stores: Mapping[str, Any] | None = None,
    **texts: str,
) -> Exchange:
    """An edit as a form, which the SDKs send."""
    fields = {"model": "acme/paint", "prompt": "two cats", **texts}
    parts = list(fields.items())
    body, content_type = encode_multipart_formdata(
        [*parts, *((name, ("cat.png", content, "image/png")) for name, content in files)]
    )
    return await request(
        chat_app(home.front, Always(home.gateway), WebLimits(), **(stores or {})),
        "POST",
        IMAGE_EDITS.path,
        headers={
            "authorization": f"Bearer {home.secret}",
            "content-type": content_type,
            **(headers or {}),
        },
        body=body,
    )


async def edit(home: House, **fields: Any) -> Exchange:
    return await draw(home, IMAGE_EDITS.path, **{"images": [PICTURE], **fields})


def events_of(reply: Exchange) -> list[dict[str, Any]]:
    lines = reply.body.decode().split("\n")
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
