"""Short-lived codes: generation, spelling, hashing, and encryption of values for a code's holder.

A private key is derived from a code of 256 random bits, and is never stored. The store has the
code's hash and the public key, so the result of a browser sign-in can be encrypted before the
program polls for it (RFC 7516, ECDH-ES on X25519).
"""

from base64 import urlsafe_b64encode
from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from joserfc import jwe
from joserfc.errors import JoseError
from joserfc.jwk import OKPKey

# Vowels are left out, so that no code spells a word (RFC 8628, 6.1).
_LETTERS: Final = "BCDFGHJKLMNPQRSTVWXZ"
_GROUP: Final = 4
_GROUPS: Final = 2
_SECRET_BYTES: Final = 32
_HEADER: Final = {"alg": "ECDH-ES", "enc": "A256GCM"}
_REGISTRY: Final = jwe.JWERegistry(algorithms=[*_HEADER.values()])
_PURPOSE: Final = b"tollgate sealed grant\0"


def digest_of(code: str) -> str:
    """Return the hash under which a code is stored."""
    return sha256(code.encode()).hexdigest()


def new_secret_code(entropy: Callable[[int], bytes]) -> str:
    """Return a code with 256 random bits, which a program sends."""
    return urlsafe_b64encode(entropy(_SECRET_BYTES)).rstrip(b"=").decode("ascii")


def new_user_code(entropy: Callable[[int], bytes]) -> str:
    """Return a code with 34 random bits, such as `BCDF-GHJK`, which a person types."""
    random_number = int.from_bytes(entropy(16), "big")
    letters = []
    for _ in range(_GROUP * _GROUPS):
        random_number, letter = divmod(random_number, len(_LETTERS))
        letters.append(_LETTERS[letter])
    return "-".join("".join(letters[at : at + _GROUP]) for at in (0, _GROUP))


def read_user_code(text: str) -> str | None:
    """Return a typed code in its canonical spelling, or None if the text cannot be a code."""
    letters = [letter for letter in text.upper() if letter.isalnum()]
    if len(letters) != _GROUP * _GROUPS or not set(letters) <= set(_LETTERS):
        return None
    return "-".join("".join(letters[at : at + _GROUP]) for at in (0, _GROUP))


def challenge_of(verifier: str) -> str:
    """Return the S256 challenge of a code verifier (RFC 7636)."""
    return urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode("ascii")


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
