"""The recognition of scanned pages by the engine that routing.yaml names."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from tollgate.core.content import InlineMedia
from tollgate.core.documents import RecognitionFailed
from tollgate.routing.plugin_sections import OcrSection
from tollgate.stores.base import SecretStore
from tollgate.tools.base import EngineCalls, RunFailure
from tollgate.tools.engines.codec import EngineAccess, Scan
from tollgate.tools.engines.recognizers import RECOGNIZERS

# A dense page is some 10 KB, with places of its pictures and links some more.
_REPLY_BYTES_PER_PAGE: Final = 100_000
_REPLY_BYTES_MAX: Final = 32_000_000


class EngineRecognizer(Struct, frozen=True, kw_only=True):
    """Implements `core.documents.TextRecognizer`."""

    section: OcrSection
    calls: EngineCalls
    secrets: SecretStore

    async def recognize(self, document: InlineMedia, pages: Sequence[int]) -> Mapping[int, str]:
        """Return the text of each page; RecognitionFailed if the engine has not all of them."""
        engine = self.section.engine
        codec = RECOGNIZERS[engine]
        scan = Scan(model=self.section.model, document=document, pages=tuple(pages))
        try:
            body = await self.calls.exchange(
                engine,
                codec.encode(scan, await self._access()),
                bytes_max=min(_REPLY_BYTES_PER_PAGE * (len(pages) + 1), _REPLY_BYTES_MAX),
                timeout_s=self.section.timeout_s,
            )
            texts = codec.decode(body)
        except RunFailure as failure:
            raise RecognitionFailed(failure.words) from failure
        if missing := set(pages) - texts.keys():
            raise RecognitionFailed(f"the engine left out {len(missing)} of {len(pages)} pages")
        return {page: texts[page] for page in pages}

    async def _access(self) -> EngineAccess:
        key = ((await self.secrets.read(self.section.key.reference)) or "").strip()
        if not key or not (key.isascii() and key.isprintable()):
            raise RunFailure("unavailable", "the engine is not set up")
        return EngineAccess(base_url=self.section.address, key=key)
