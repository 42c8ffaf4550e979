"""What callers may do, as the settings say."""

from tollgate.settings import Settings
from tollgate.web.cors import WebLimits


def web_limits(settings: Settings) -> WebLimits:
    """What the settings let callers do."""
    return WebLimits(
        allowed_origins=settings.allowed_origins, body_bytes_max=settings.body_bytes_max
    )
