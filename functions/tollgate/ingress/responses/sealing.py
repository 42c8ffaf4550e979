"""Encrypts content that clients store and send back, separately for each workspace.

The cipher is AES-256-GCM with the workspace's key, so content that was changed, or that belongs to
another workspace, cannot be decrypted. This module is imported at the first compaction.
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
        """Return encrypted content, which is the same for each call with the same arguments.

        A response is rendered several times and must not change, so the nonce is derived from the
        generation's id. Each generation seals only one content, so no nonce is used twice.
        """
        nonce = sha256(generation_id.encode()).digest()[:_NONCE_BYTES]
        sealed = AESGCM(self.key).encrypt(nonce, content, self.workspace_id.encode())
        return binascii.b2a_base64(nonce + sealed, newline=False).decode()

    def open(self, sealed: str) -> bytes | None:
        """Decrypt sealed content; return None if another workspace sealed it or it was changed."""
        try:
            raw = binascii.a2b_base64(sealed, strict_mode=True)
            nonce, ciphertext = raw[:_NONCE_BYTES], raw[_NONCE_BYTES:]
            return AESGCM(self.key).decrypt(nonce, ciphertext, self.workspace_id.encode())
        except (ValueError, InvalidTag):
            return None
