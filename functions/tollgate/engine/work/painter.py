"""Generates images for the server tool `image`; each is planned, retried and billed like an image
request.
"""

from decimal import Decimal
from typing import Final

import msgspec
from msgspec import Struct

from tollgate.core.content import InlineMedia, MadeImage, MediaUrl
from tollgate.core.errors import GatewayError
from tollgate.core.principal import Principal
from tollgate.core.records.generation import BillLine, Fee
from tollgate.core.work.images import ImagePiece, ImageRequest
from tollgate.engine.work.inner_calls import InnerCalls
from tollgate.tools.ports.base import Painted, RunFailure

_PIECES_PER_RATE: Final = Decimal(1_000_000)


class CatalogPainter(Struct, frozen=True, kw_only=True):
    """Implements `tools.ports.base.Painter` at fixed prices, which the hold covers."""

    calls: InnerCalls

    def fees_max_nano_usd(self, work: ImageRequest, principal: Principal) -> int:
        """Return the maximum cost of the work; raise GatewayError if no model may do the work."""
        return self.calls.plan(work, principal).cost_max_nano_usd

    async def paint(self, work: ImageRequest, principal: Principal, *, timeout_s: float) -> Painted:
        """Generate the images; raise RunFailure if no endpoint does so in time."""
        try:
            answer = await self.calls.answer(work, principal, timeout_s=timeout_s)
        except TimeoutError as late:
            raise RunFailure("unavailable", "the image was not generated in time") from late
        except GatewayError as error:
            raise RunFailure("unavailable", "no image could be generated") from error
        return Painted(
            images=tuple(map(_made_image, answer.response.output)),
            fees=tuple(map(_fee, answer.lines)),
        )


def _made_image(piece: bytes) -> MadeImage:
    picture = msgspec.json.decode(piece, type=ImagePiece)
    if picture.b64_json is None:
        return MadeImage(source=MediaUrl(url=picture.url or ""))
    media_type = f"image/{picture.output_format}"
    return MadeImage(source=InlineMedia(media_type=media_type, base64=picture.b64_json))


def _fee(line: BillLine) -> Fee:
    """Convert a line of the image model's bill to a fee of the tool with the same cost."""
    return Fee(
        item=f"image_model_{line.item}",
        quantity=line.quantity,
        usd_each=line.usd_per_million / _PIECES_PER_RATE,
    )
