"""Parses the pictures of requests for images and videos: uploaded files, and references."""

from base64 import b64encode

from tollgate.core.content import Image, InlineMedia
from tollgate.core.files.media_types import detect_media_type
from tollgate.core.files.picture_files import find_picture_fault
from tollgate.ingress.shared.media import (
    MEDIA_BYTES_MAX,
    field_refusal,
    parse_file_id,
    parse_picture,
)
from tollgate.ingress.shared.wire.picture_reference import PictureReference


def parse_uploaded_picture(content: bytes, path: str) -> Image:
    """Return the picture in a file of a form; raise RequestError for other data."""
    if len(content) > MEDIA_BYTES_MAX:
        raise field_refusal(path, f"must be at most {MEDIA_BYTES_MAX} bytes")
    fault = find_picture_fault(content)
    if fault is not None:
        raise field_refusal(path, fault)
    return Image(
        source=InlineMedia(
            media_type=detect_media_type(content) or "", base64=b64encode(content).decode()
        )
    )


def parse_referenced_picture(picture: PictureReference, path: str) -> Image:
    """Return the picture that a URL, a data URL or a file id names."""
    if picture.file_id is not None:
        if picture.image_url is not None:
            raise field_refusal(path, "must have exactly one of image_url and file_id")
        return Image(source=parse_file_id(picture.file_id, path))
    if picture.image_url is None:
        raise field_refusal(f"{path}.image_url", "is required")
    return Image(source=parse_picture(picture.image_url, f"{path}.image_url"))
