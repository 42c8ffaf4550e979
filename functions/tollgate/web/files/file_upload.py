"""Reads the form that uploads a file, and checks everything except the store's limits."""

import re
from hashlib import sha256
from typing import Final

from msgspec import Struct
from pydantic_core import to_json

from tollgate.core.errors import invalid_request
from tollgate.core.files.file_types import HEAD_BYTES, read_media_type
from tollgate.core.files.stored import NewFile, check_size, clean_filename
from tollgate.core.idempotency import Claim
from tollgate.core.principal import Principal
from tollgate.ingress.form_body import parse_form
from tollgate.ingress.validation import validate_texts
from tollgate.web.files.file_shapes import FileFields

_CLAIM: Final = re.compile(r"[A-Za-z0-9_.:-]{1,255}", re.ASCII)
_OBJECTS: Final = frozenset({"expires_after"})


class Upload(Struct, frozen=True, kw_only=True):
    """A file from a form, not yet checked against the workspace's limits."""

    file: NewFile
    content: bytes

    def claim(self, key: str, request_id: str) -> Claim:
        """Return the claim for an Idempotency-Key, which ensures that the same file is stored only
        once.
        """
        if not _CLAIM.fullmatch(key):
            raise invalid_request(
                "Idempotency-Key: 1 to 255 letters, digits and characters of `_.:-`."
            )
        file = self.file
        stated = (file.filename, file.purpose, file.media_type, file.expires_after_s)
        body = to_json(["file", *stated, sha256(self.content).hexdigest()])
        return Claim(
            workspace_id=file.workspace_id,
            key_hash=sha256(f"{file.key_id}\n{key}".encode()).hexdigest(),
            body_hash=sha256(body).hexdigest(),
            request_id=request_id,
        )


def read_upload(body: bytes, content_type: str, principal: Principal, *, bytes_max: int) -> Upload:
    """Return the file in a form; raise RequestError with the invalid field."""
    form = parse_form(body, content_type)
    fields = validate_texts(FileFields, form.values(objects=_OBJECTS))
    content = form.file("file")
    if not content:
        fault = "is required" if content is None else "must not be empty"
        raise invalid_request(f"file {fault}.", "file")
    check_size(len(content), bytes_max, "file")
    [label] = form.labels["file"]
    filename = clean_filename(label.filename)
    media_type = read_media_type(
        content[:HEAD_BYTES],
        is_whole=len(content) <= HEAD_BYTES,
        filename=filename,
        stated=label.media_type,
        purpose=fields.purpose,
    )
    return Upload(file=fields.new_file(principal, filename, media_type), content=content)
