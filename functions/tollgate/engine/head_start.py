"""Prepares the first request while money is being held: encodes it, authorizes it and connects, but
sends nothing.
"""

import asyncio
from functools import partial

from tollgate.core.principal import Principal
from tollgate.core.request import GenerationRequest
from tollgate.core.work.base import Work
from tollgate.engine.choices import EncodedAttempt, encode_attempt
from tollgate.engine.gateway import Gateway
from tollgate.engine.side_thread import Computations
from tollgate.providers.ports.base import ReadyRequest
from tollgate.routing.planning.plan import Attempt


class HeadStart:
    """The first attempt, prepared in advance if it sends a single request. Call `aclose` at the
    end.

    `request` is None if URLs or files must be fetched first.
    """

    def __init__(
        self,
        gateway: Gateway,
        principal: Principal,
        attempt: Attempt,
        request: Work | None,
        *,
        computations: Computations,
    ) -> None:
        self._gateway = gateway
        self._principal = principal
        self._attempt = attempt
        self._request = request
        self._computations = computations
        # The result is None if the request could not be encoded.
        self._encoding: asyncio.Future[EncodedAttempt | None] | None = None
        self._making: asyncio.Task[ReadyRequest] | None = None

    def begin(self) -> None:
        """Start preparing the request in a separate task; a repeated call does nothing."""
        request = self._request
        if (
            self._making is None
            and isinstance(request, GenerationRequest)
            and request.answers == 1
            # Requests with server tools are encoded separately for each round.
            and not request.server_tools
            and not request.preferences.require_parameters
        ):
            self._encoding = asyncio.get_running_loop().create_future()
            self._making = asyncio.create_task(self._make(request, self._encoding))

    async def take(
        self, attempt: Attempt
    ) -> tuple[EncodedAttempt, asyncio.Task[ReadyRequest]] | None:
        """Return the prepared attempt and request, once; None if another attempt comes first.

        A prepared request that is not used is closed.
        """
        encoding, self._encoding = self._encoding, None
        if self._making is not None and encoding is not None and attempt is self._attempt:
            encoded = await encoding
            if encoded is not None:
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
        """Close a prepared request, or stop preparing it."""
        if self._making is None or self._making.cancelled():
            return
        if not self._making.done():
            self._making.cancel()
        # Reading the exception keeps asyncio from logging it as never retrieved.
        elif self._making.exception() is None:
            self._making.result().release()

    async def _make(
        self, request: GenerationRequest, encoding: asyncio.Future[EncodedAttempt | None]
    ) -> ReadyRequest:
        encoded: EncodedAttempt | None = None
        try:
            slug = self._attempt.target.provider
            provider = self._gateway.providers.provider(slug, self._principal)
            encode = partial(encode_attempt, provider, self._attempt, request)
            encoded = await self._computations.run(encode)
        finally:
            encoding.set_result(encoded)
        return await encoded.make_ready()
