"""The least that passes for a file of each type, and parts around it. Synthetic."""

import base64
from typing import Any

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8
JPEG = b"\xff\xd8\xff\xe0" + b"\0" * 8
GIF = b"GIF89a" + b"\0" * 8
WEBP = b"RIFF\x10\0\0\0WEBPVP8 "
WAV = b"RIFF\x10\0\0\0WAVEfmt "
MP3 = b"\xff\xfb\x90\x00" + b"\0" * 8
WEBM = b"\x1aE\xdf\xa3" + b"\0" * 8
PDF = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"
ZIP = b"PK\x03\x04" + b"\0" * 8
UNKNOWN = b"\0\x01\x02\x03\xfe\xff"


def b64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def data_url(content: bytes, type_: str = "application/octet-stream") -> str:
    return f"data:{type_};base64,{b64(content)}"


def image(url: str, **fields: Any) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url, **fields}}


def audio(data: str, format_: str) -> dict[str, Any]:
    return {"type": "input_audio", "input_audio": {"data": data, "format": format_}}


def file(**fields: Any) -> dict[str, Any]:
    return {"type": "file", "file": fields}
