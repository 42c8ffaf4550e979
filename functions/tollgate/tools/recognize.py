"""Recognizes the text of scanned pages by the OCR engine that routing.yaml names."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tollgate.aws.sigv4 import Signer
from tollgate.core.content import InlineMedia
from tollgate.core.documents.reading import DocumentPage, RecognitionFailed
from tollgate.routing.plugin_sections import OcrEngine, OcrSection
from tollgate.stores.ports.base import SecretStore
from tollgate.tools.engines.codec import EngineAccess, RecognitionCodec, Scan, find_access
from tollgate.tools.engines.mistral_ocr import MISTRAL_OCR
from tollgate.tools.engines.textract import TEXTRACT
from tollgate.tools.ports.base import EngineCalls, EngineRequest, RunFailure

# Maximum size of a reply per page: about 10 KB of text, with the positions of images and links.
_REPLY_BYTES_PER_PAGE: Final = 100_000
_REPLY_BYTES_MAX: Final = 32_000_000
# Maximum size of a reply with the position of each word of a page, a few hundred bytes per word.
_LINES_BYTES_MAX: Final = 8_000_000
# Maximum number of concurrent requests for one document, if each page has its own request.
_AT_A_TIME_MAX: Final = 4
# The only table of OCR engines: the codec of each `ocr.engine` in routing.yaml.
RECOGNIZERS: Final[Mapping[OcrEngine, RecognitionCodec]] = {
    "mistral": MISTRAL_OCR,
    "textract": TEXTRACT,
}


class EngineRecognizer(Struct, frozen=True, kw_only=True):
    """Implements `core.documents.reading.TextRecognizer`."""

    section: OcrSection
    calls: EngineCalls
    secrets: SecretStore
    region: str
    """Default AWS region."""
    signer: Callable[[str, str], Signer]
    """A function that returns a signer for a service and a region, which signs with the gateway's
    AWS role.
    """

    async def recognize(
        self, document: InlineMedia, pages: Sequence[DocumentPage]
    ) -> Mapping[int, str]:
        """Return the text of each page; raise RecognitionFailed if the engine omits a page."""
        codec = RECOGNIZERS[self.section.engine]
        scan = Scan(
            model=self.section.model or "",
            document=document,
            pages=tuple(page.number for page in pages),
            pictures={page.number: page.picture for page in pages if page.picture is not None},
        )
        try:
            async with asyncio.timeout(self.section.timeout_s):
                texts = await self._exchange(codec, scan)
        except RunFailure as failure:
            raise RecognitionFailed(failure.words) from failure
        except TimeoutError as late:
            raise RecognitionFailed("the engine did not answer in time") from late
        if missing := set(scan.pages) - texts.keys():
            raise RecognitionFailed(f"the engine left out {len(missing)} of {len(pages)} pages")
        return {page: texts[page] for page in scan.pages}

    async def _exchange(self, codec: RecognitionCodec, scan: Scan) -> Mapping[int, str]:
        """Send the requests for a document, several at a time, and decode the replies."""
        requests = codec.encode(scan, await self._access())
        size_max = min(_REPLY_BYTES_PER_PAGE * (len(scan.pages) + 1), _REPLY_BYTES_MAX)
        if len(requests) > 1:
            size_max = _LINES_BYTES_MAX
        turns = asyncio.Semaphore(_AT_A_TIME_MAX)

        async def send(request: EngineRequest) -> bytes:
            async with turns:
                return await self.calls.exchange(
                    self.section.engine,
                    self._signed(request),
                    bytes_max=size_max,
                    timeout_s=self.section.timeout_s,
                )

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(send(request)) for request in requests]
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from failures
        return codec.decode([task.result() for task in tasks], scan)

    def _signed(self, request: EngineRequest) -> EngineRequest:
        service = self.section.service.aws_service
        if service is None:
            return request
        signer = self.signer(service, self._region)
        headers = signer.sign(request.method, request.url, request.headers, request.body)
        return replace(request, headers=headers)

    @property
    def _region(self) -> str:
        return self.section.region or self.region

    async def _access(self) -> EngineAccess:
        service, address = self.section.service, self.section.address
        if address is None:
            # "Amazon Textract endpoints and quotas", AWS General Reference (2026-11-22).
            address = f"https://{service.aws_service}.{self._region}.amazonaws.com"
        return await find_access(address, self.section.key, self.secrets)
