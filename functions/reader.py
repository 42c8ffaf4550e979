"""Lambda entry point that reads documents; only the streaming function invokes it.

Reading is isolated in this function, so that a document that crashes the process or uses up its
time fails only one request. The function's role may only read documents and write a log.
"""

import asyncio
from collections.abc import Mapping

from tollgate.observability.log import configure_logging
from tollgate.settings import Settings
from tollgate.wiring.reader import perform_invoked

configure_logging()
_settings = Settings()


def handler(event: Mapping[str, object], context: object) -> object:
    """Return the pages that an event requests, or the reason why the document cannot be read."""
    return asyncio.run(perform_invoked(event, _settings))
