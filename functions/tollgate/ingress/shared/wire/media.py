"""Models of media and of cache marks that client formats share."""

from typing import Final, Literal

from tollgate.ingress.shared.wire.request_model import Wire

URL_LENGTH_MAX: Final = 8_192


class CacheControl(Wire):
    """A mark up to which the prompt should be cached."""

    type: Literal["ephemeral"] = "ephemeral"
    ttl: Literal["5m", "1h"] | None = None
