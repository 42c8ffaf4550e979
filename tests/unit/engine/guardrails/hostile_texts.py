"""Hostile texts by kind: what a row promises to find, in the disguises that it promises to see."""

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from typing import Final

from tollgate.routing.guardrail_sections import Finding

# Published test numbers and examples, and invented secrets in the vendors' forms.
PLAIN: Final[Mapping[Finding, tuple[str, ...]]] = {
    "card_number": (
        "4111111111111111",
        "4111 1111 1111 1111",
        "4111-1111-1111-1111",
        "5555555555554444",
        "378282246310005",
        "3782 822463 10005",
        "6011111111111117",
        "4222222222222",
        "6304000000000000000",
    ),
    "iban": (
        "GB82WEST12345698765432",
        "GB82 WEST 1234 5698 7654 32",
        "DE89370400440532013000",
        "FR1420041010050500013M02606",
        "NO9386011117947",
        "MT84MALT011000012345MTLCAST001S",
    ),
    "email": ("ada@example.com", "a.b+c@mail.example.co", "x_1@example.org"),
    "secret": (
        "AKIAIOSFODNN7EXAMPLE",
        "ghp_" + "aB3" * 12,
        "github_pat_" + "aB3_" * 20,
        "glpat-" + "aB3-" * 5,
        "hf_" + "aB3" * 11,
        "npm_" + "aB3" * 12,
        "sk-proj-" + "aB3_" * 12,
        "sk-ant-api03-" + "aB3-" * 12,
        "sk_live_" + "aB3" * 8,
        "xoxb-" + "123-" * 6,
        "AIza" + "aB3-_" * 7,
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE" + "aB3+/" * 20 + "\n-----END RSA PRIVATE KEY-----",
    ),
}
# Texts with the form of a finding, but a wrong checksum or a missing part.
HARMLESS: Final = (
    "4111111111111112",
    "1234567890123456",
    "0000 0000 0000 0000",
    "41111111111111111111111111111111111",
    "GB82WEST12345698765433",
    "ada at example.com",
    "ada@localhost",
    "AKIA and ghp_short and sk-learn",
    "2026-11-27 20:30:00 and 192.168.100.200",
)
_FULL_WIDTH: Final = str.maketrans({chr(code): chr(code + 0xFEE0) for code in range(0x21, 0x7F)})
_ARABIC: Final = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")
_BOLD: Final = str.maketrans("0123456789", "𝟎𝟏𝟐𝟑𝟒𝟓𝟔𝟕𝟖𝟗")
_CYRILLIC: Final = str.maketrans("ABEKMHOPCTXaeopcx", "АВЕКМНОРСТХаеорсх")

DISGUISES: Final[Mapping[str, Callable[[str], str]]] = {
    "plain": str,
    "full_width": lambda text: text.translate(_FULL_WIDTH),
    "arabic_digits": lambda text: text.translate(_ARABIC),
    "bold_digits": lambda text: text.translate(_BOLD),
    "homoglyphs": lambda text: text.translate(_CYRILLIC),
    "zero_width": lambda text: "\u200b".join(text),
    "soft_hyphens": lambda text: "\u00ad".join(text),
    "joiners": lambda text: "\u2060\ufeff".join(text),
    "combining": lambda text: "".join(f"{each}\u0301" for each in text),
    "direction": lambda text: f"\u202e{text}\u202c",
}
ENCODINGS: Final[Mapping[str, Callable[[str], str]]] = {
    "base64": lambda text: b64encode(text.encode()).decode(),
    "base64_url": lambda text: urlsafe_b64encode(text.encode()).decode(),
    "base64_shifted": lambda text: "x" + b64encode(f"key: {text}.".encode()).decode(),
    "base64_unpadded": lambda text: b64encode(f"a {text}".encode()).decode().rstrip("="),
    "base64_in_json": lambda text: json.dumps({"data": b64encode(text.encode()).decode()}),
    "base64_of_full_width": lambda text: b64encode(text.translate(_FULL_WIDTH).encode()).decode(),
}
FRAMES: Final = ("{}", "It is {}.", "a\n{}\nb", '{{"x": "{}"}}', "({})", "x={} y", "«{}»")
