"""Sealing of texts that clients return unchanged, so that one workspace alone reads them.

AES-256-GCM with the key of the workspace: a text of another workspace, or one that was changed,
cannot be opened. Imported with the first compaction.
"""

import binascii
from hashlib import sha256
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from msgspec import Struct

_NONCE_BYTES: Final = 12


class WorkspaceSeal(Struct, frozen=True, kw_only=True):
    """Implements `ingress.base.Seal`."""

    workspace_id: str
    key: bytes

    def close(self, content: bytes, generation_id: str) -> str:
        """Return sealed content, the same for each call with the same content and generation.

        The nonce is derived from the generation's id, because a response is rendered several times
        and must not change. A generation seals one content, so no nonce is used for two contents.
        """
        nonce = sha256(generation_id.encode()).digest()[:_NONCE_BYTES]
        sealed = AESGCM(self.key).encrypt(nonce, content, self.workspace_id.encode())
        return binascii.b2a_base64(nonce + sealed, newline=False).decode()

    def open(self, sealed: str) -> bytes | None:
        """Return sealed content; None if another workspace sealed it or a client changed it."""
        try:
            raw = binascii.a2b_base64(sealed, strict_mode=True)
            nonce, rest = raw[:_NONCE_BYTES], raw[_NONCE_BYTES:]
            return AESGCM(self.key).decrypt(nonce, rest, self.workspace_id.encode())
        except (ValueError, InvalidTag):
            return None
