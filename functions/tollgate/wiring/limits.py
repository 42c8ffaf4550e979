"""Wires the limits on callers."""

from tollgate.settings import Settings
from tollgate.web.http.cors import WebLimits


def wire_web_limits(settings: Settings) -> WebLimits:
    """Return the limits on callers from the settings."""
    return WebLimits(
        allowed_origins=settings.allowed_origins, body_bytes_max=settings.body_bytes_max
    )
