"""The function that reads documents: the streaming function invokes it, and nothing else.

A document that ends its process, or takes all its time, costs one request. Its role may read
documents that are being read, and write its log.
"""

import asyncio
from collections.abc import Mapping

from tollgate.observability.log import configure_logging
from tollgate.settings import Settings
from tollgate.wiring.reader import perform_invoked

configure_logging()
_settings = Settings()


def handler(event: Mapping[str, object], context: object) -> object:
    """Return the pages that an event asks for, or the fault of its document."""
    return asyncio.run(perform_invoked(event, _settings))
