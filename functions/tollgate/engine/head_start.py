"""Prepares the first request (encodes, authorizes, connects) while money is being held, but sends
nothing.
"""

import asyncio

from tollgate.core.request import GenerationRequest
from tollgate.engine.choices import EncodedAttempt, encode_attempt
from tollgate.engine.files.media import RequestMedia
from tollgate.engine.gateway import Gateway
from tollgate.providers.ports.base import ReadyRequest
from tollgate.routing.planning.plan import Attempt


class HeadStart:
    """First attempt, prepared in advance if it is a single request without URLs or files; callers
    must call `aclose`.
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
            # Requests with server tools are encoded for each round.
            and not request.server_tools
            and not request.preferences.require_parameters
            and self._media.is_whole_for(self._attempt.target)
        ):
            self._making = asyncio.create_task(self._make(request))

    def take(self, attempt: Attempt) -> tuple[EncodedAttempt, asyncio.Task[ReadyRequest]] | None:
        """Return the prepared attempt and request, once; None if another attempt comes first.

        A prepared request that is not used is released.
        """
        encoded, self._encoded = self._encoded, None
        if encoded is not None and self._making is not None and attempt is self._attempt:
            return encoded, self._making
        self._release()
        return None

    async def aclose(self) -> None:
        """Stop preparing, and release an unused connection for other requests."""
        if self._making is not None and not self._making.done():
            self._making.cancel()
            await asyncio.wait({self._making})
        self._release()

    def _release(self) -> None:
        """Release a prepared request, or stop preparing it."""
        if self._making is None or self._making.cancelled():
            return
        if not self._making.done():
            self._making.cancel()
        # Reading the exception keeps asyncio from logging it as never retrieved.
        elif self._making.exception() is None:
            self._making.result().release()

    async def _make(self, request: GenerationRequest) -> ReadyRequest:
        provider = self._gateway.providers.provider(self._attempt.target.provider)
        self._encoded = encode_attempt(provider, self._attempt, request)
        return await self._encoded.make_ready()
