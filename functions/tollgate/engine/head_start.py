"""The first request of a generation, prepared while money is held for it.

The request is encoded, authorized and connected meanwhile, but no byte is sent before the hold.
"""

import asyncio

from tollgate.core.request import GenerationRequest
from tollgate.engine.choices import EncodedAttempt, encode_attempt
from tollgate.engine.files.media import RequestMedia
from tollgate.engine.gateway import Gateway
from tollgate.providers.ports.base import ReadyRequest
from tollgate.routing.planning.plan import Attempt


class HeadStart:
    """The first attempt, prepared before its turn if it is one request with nothing to fetch.

    `aclose` must be called, whether the attempt had its turn or not.
    """

    def __init__(self, gateway: Gateway, attempt: Attempt, media: RequestMedia) -> None:
        self._gateway = gateway
        self._attempt = attempt
        self._media = media
        self._encoded: EncodedAttempt | None = None
        self._making: asyncio.Task[ReadyRequest] | None = None

    def begin(self) -> None:
        """Start preparing the request in a separate task; a repeated call does nothing."""
        request = self._media.request
        if (
            self._making is None
            and isinstance(request, GenerationRequest)
            and request.answers == 1
            # A round of server tools is encoded when its turn comes.
            and not request.server_tools
            and not request.preferences.require_parameters
            and self._media.is_whole_for(self._attempt.target)
        ):
            self._making = asyncio.create_task(self._make(request))

    def take(self, attempt: Attempt) -> tuple[EncodedAttempt, asyncio.Task[ReadyRequest]] | None:
        """Return the encoded attempt and its request, once; None if `attempt` was not prepared.

        The prepared attempt is dropped if another attempt has the first turn.
        """
        encoded, self._encoded = self._encoded, None
        if encoded is not None and self._making is not None and attempt is self._attempt:
            return encoded, self._making
        self._let_go()
        return None

    async def aclose(self) -> None:
        """Release the connection, which can be reused if nothing was sent on it."""
        if self._making is not None and not self._making.done():
            self._making.cancel()
            await asyncio.wait({self._making})
        self._let_go()

    def _let_go(self) -> None:
        """Release the request if it is ready, or stop preparing it."""
        if self._making is None or self._making.cancelled():
            return
        if not self._making.done():
            self._making.cancel()
        # The exception is retrieved, because asyncio logs exceptions that nobody retrieves.
        elif self._making.exception() is None:
            self._making.result().release()

    async def _make(self, request: GenerationRequest) -> ReadyRequest:
        provider = self._gateway.providers.provider(self._attempt.target.provider)
        self._encoded = encode_attempt(provider, self._attempt, request)
        return await self._encoded.make_ready()
