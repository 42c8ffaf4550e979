"""The simulator's images: stripes whose colours are a hash of the prompt.

The simulated content filter refuses a prompt with the word `harm`.
"""

import base64
import hashlib
import struct
import zlib
from collections.abc import Iterator
from typing import Annotated, Final

import pydantic_core
from pydantic import BaseModel, Field

from tollgate.core.json_value import JsonValue
from tollgate.providers.ports.base import WireRequest
from tollgate.providers.simulator.faults import simulated_refusal

SIDE_MAX: Final = 4_096
_STRIPES: Final = 8
_TOKENS_PER_PICTURE_READ: Final = 64
_PIXELS_PER_TOKEN: Final = 1_024
_MAGIC: Final = b"\x89PNG\r\n\x1a\n"


class _PictureRequest(BaseModel):
    model: str
    prompt: str
    n: Annotated[int, Field(ge=1, le=10)] = 1
    size: Annotated[str, Field(pattern=r"^[1-9][0-9]{1,4}x[1-9][0-9]{1,4}$")] = "1024x1024"
    quality: str = "medium"
    reference_images: list[str] = Field(default=[])
    partial_images: int = 0

    @property
    def sides(self) -> tuple[int, int]:
        """The width and the height, each at most SIDE_MAX."""
        width, height = self.size.split("x")
        return min(int(width), SIDE_MAX), min(int(height), SIDE_MAX)

    @property
    def is_harmful(self) -> bool:
        """True if the prompt has the word that the simulated filter refuses."""
        return "harm" in self.prompt.lower().split()


def answer_with_pictures(request: WireRequest, body: bytes) -> Iterator[bytes]:
    """Return the events of a stream, or the whole answer as one piece.

    Raises UpstreamRefused for a harmful prompt, and ValidationError for an unreadable body.
    """
    images = _PictureRequest.model_validate_json(body)
    if images.is_harmful:
        raise simulated_refusal(400, "content_policy_violation")
    return _events(images) if request.reply_bytes_max is None else iter((_reply(images),))


def _reply(request: _PictureRequest) -> bytes:
    pictures = [{"b64_json": _picture(request, str(place))} for place in range(request.n)]
    usage = _usage(request, request.n)
    return pydantic_core.to_json(
        {"created": 0, "data": pictures, "quality": request.quality, "usage": usage}
    )


def _events(request: _PictureRequest) -> Iterator[bytes]:
    """Yield previews of the first image, and then each image."""
    for number in range(request.partial_images):
        yield _event("partial_image", request, f"preview {number}", partial_image_index=number)
    for place in range(request.n):
        yield _event("completed", request, str(place), usage=_usage(request, 1))


def _event(name: str, request: _PictureRequest, seed: str, **more: JsonValue) -> bytes:
    event = {
        "type": f"image_generation.{name}",
        "b64_json": _picture(request, seed),
        "quality": request.quality,
        **more,
    }
    return pydantic_core.to_json(event)


def _usage(request: _PictureRequest, pictures: int) -> dict[str, JsonValue]:
    width, height = request.sides
    text = len(request.prompt.split()) * pictures
    seen = len(request.reference_images) * _TOKENS_PER_PICTURE_READ * pictures
    drawn = -(-width * height // _PIXELS_PER_TOKEN) * pictures
    return {
        "input_tokens": text + seen,
        "input_tokens_details": {"text_tokens": text, "image_tokens": seen},
        "output_tokens": drawn,
        "output_tokens_details": {"text_tokens": 0, "image_tokens": drawn},
        "total_tokens": text + seen + drawn,
    }


def _picture(request: _PictureRequest, seed: str) -> str:
    """Return a PNG in base64, which depends only on the request and the seed."""
    width, height = request.sides
    source = "\0".join((seed, request.prompt, request.quality, *request.reference_images))
    colors = hashlib.shake_256(source.encode()).digest(3 * _STRIPES)
    packer = zlib.compressobj(1)
    pixels = []
    for row in range(height):
        stripe = 3 * (row * _STRIPES // height)
        pixels.append(packer.compress(b"\0" + colors[stripe : stripe + 3] * width))
    pixels.append(packer.flush())
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", b"".join(pixels)), (b"IEND", b""))
    return base64.b64encode(_MAGIC + b"".join(_chunk(*chunk) for chunk in chunks)).decode()


def _chunk(name: bytes, content: bytes) -> bytes:
    checked = name + content
    return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))
