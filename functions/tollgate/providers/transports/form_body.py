"""Writes a multipart form as the parts of a body, so that a recording is sent without a copy.

https://www.rfc-editor.org/rfc/rfc7578, with names escaped as browsers do
(https://html.spec.whatwg.org/multipage/form-control-infrastructure.html#multipart-form-data).
"""

from collections.abc import Iterable, Sequence

from tollgate.core.ids import new_boundary
from tollgate.providers.ports.base import FormPart


def encode_form(parts: Iterable[FormPart]) -> tuple[str, Sequence[bytes]]:
    """Return the media type of a form, which includes the boundary, and the parts of its body."""
    boundary = new_boundary()
    body: list[bytes] = []
    for part in parts:
        body += (f"--{boundary}\r\n{_head(part)}\r\n\r\n".encode(), part.content, b"\r\n")
    body.append(f"--{boundary}--\r\n".encode())
    return f"multipart/form-data; boundary={boundary}", body


def _head(part: FormPart) -> str:
    head = f'content-disposition: form-data; name="{_escape(part.name)}"'
    if part.file_name is None:
        return head
    media_type = _escape(part.media_type or "application/octet-stream")
    return f'{head}; filename="{_escape(part.file_name)}"\r\ncontent-type: {media_type}'


def _escape(text: str) -> str:
    return text.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
