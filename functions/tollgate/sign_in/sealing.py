"""Encryption of stored values that only the holder of a code can read.

The private key is derived from the code, which has 256 random bits, and is never stored. The store
has the code's hash and the public key, so the result of a browser sign-in can be encrypted before
the program polls for it (RFC 7516, ECDH-ES on X25519).
"""

from hashlib import sha256
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from joserfc import jwe
from joserfc.errors import JoseError
from joserfc.jwk import OKPKey

_HEADER: Final = {"alg": "ECDH-ES", "enc": "A256GCM"}
_REGISTRY: Final = jwe.JWERegistry(algorithms=[*_HEADER.values()])
_PURPOSE: Final = b"tollgate sealed grant\0"


def public_key_of(code: str) -> dict[str, Any]:
    """Return the public key that seals values for the holder of a code."""
    return dict(_private_key(code).as_dict(private=False))


def seal(public_key: dict[str, Any], value: bytes) -> str:
    """Return a value encrypted for the holder of the key's code."""
    return jwe.encrypt_compact(
        dict(_HEADER), value, OKPKey.import_key(public_key), registry=_REGISTRY
    )


def unseal(code: str, sealed: str) -> bytes | None:
    """Return the content of a sealed value, or None if it was sealed for another code."""
    try:
        opened = jwe.decrypt_compact(sealed, _private_key(code), registry=_REGISTRY)
    except (JoseError, ValueError):
        return None
    return opened.plaintext


def _private_key(code: str) -> OKPKey:
    raw = X25519PrivateKey.from_private_bytes(sha256(_PURPOSE + code.encode()).digest())
    pem = raw.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return OKPKey.import_key(pem)
