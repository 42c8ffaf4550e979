"""Parses multipart/form-data as sent by browsers, curl and OpenAI's SDKs.

https://www.rfc-editor.org/rfc/rfc7578. OpenAI's SDKs write lists and objects with brackets
(`name[]`, `name[key]`: openai-python `_qs.py`, openai-node `internal/uploads.ts`, 2026-11-22).
"""

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from msgspec import Struct, field
from pydantic_core import to_json
from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header

from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.json_value import JsonValue
from tollgate.ingress.shared.media import field_refusal
from tollgate.ingress.validation import decode_object

PARTS_MAX: Final = 128
HEADERS_MAX: Final = 8
HEADER_BYTES_MAX: Final = 4_096
NAME_LENGTH_MAX: Final = 256
TEXT_BYTES_MAX: Final = 256 * 1024
# The maximum in RFC 2046, 5.1.1.
_BOUNDARY_LENGTH_MAX: Final = 70
# The deepest nesting that a form field may have.
_KEYS_MAX: Final = 3

_NAME: Final = re.compile(r"([^\[\]]+)((?:\[[^\[\]]*\])*)")
_KEY: Final = re.compile(r"\[([^\[\]]*)\]")
# A part with one of these media types is a file even without a file name.
_FILE_TYPES: Final = ("application/octet-stream", "audio/", "image/", "video/")
_PLAIN_ENCODINGS: Final = frozenset({"", "7bit", "8bit", "binary"})


class FileLabel(Struct, frozen=True, kw_only=True):
    """The name and media type that a client sends with a file."""

    filename: str
    """The file name as sent, including folders; empty if missing."""
    media_type: str
    """The media type as sent; empty if missing."""


class Form(Struct, frozen=True, kw_only=True):
    """The parts of a form, keyed by field name, in the order of the body."""

    texts: Mapping[str, tuple[str, ...]]
    """The text values, keyed by field name as sent, including brackets."""
    files: Mapping[str, tuple[bytes, ...]]
    """The file contents, keyed by field name; a trailing `[]` is removed from the name."""
    labels: Mapping[str, tuple[FileLabel, ...]] = field(default_factory=dict)
    """File labels, keyed by field name and in the same order as `files`."""

    def file(self, name: str) -> bytes | None:
        """Return the field's file, or None; raise RequestError if the field is text or several
        files.
        """
        if name in self.texts:
            raise field_refusal(name, "must be a file")
        contents = self.files.get(name, ())
        if len(contents) > 1:
            raise field_refusal(name, "must be one file")
        return contents[0] if contents else None

    def unread_files(self, *read_fields: str) -> tuple[str, ...]:
        """Return the names of file fields that are not in `read`."""
        return tuple(name for name in self.files if name not in read_fields)

    def described(self) -> bytes:
        """Return the form as JSON that does not depend on the boundary or the order of fields."""
        files: dict[str, list[JsonValue]] = {
            name: [
                {"bytes": len(content), "sha256": sha256(content).hexdigest()}
                for content in contents
            ]
            for name, contents in self.files.items()
        }
        texts: dict[str, list[JsonValue]] = {name: [*values] for name, values in self.texts.items()}
        both = texts | {f"{name} (file)" if name in texts else name: files[name] for name in files}
        return to_json(dict(sorted(both.items())))

    def values(
        self, *, lists: frozenset[str] = frozenset(), objects: frozenset[str] = frozenset()
    ) -> dict[str, JsonValue]:
        """Return the text fields as an object; empty values are omitted.

        A field in `lists` may be repeated without brackets. A field in `objects` may contain JSON.
        """
        values: dict[str, JsonValue] = {}
        for name, texts in self.texts.items():
            field, keys = _steps(name)
            texts_sent = [text for text in texts if text]
            if not texts_sent:
                continue
            if not keys and field in lists:
                keys = ("",)
            if keys and not keys[-1]:
                _place(values, field, keys[:-1], list(texts_sent))
            elif len(texts_sent) > 1:
                raise field_refusal(name, "must not be repeated")
            elif not keys and field in objects and texts_sent[0].lstrip().startswith("{"):
                _place(values, field, (), _decoded(field, texts_sent[0]))
            else:
                _place(values, field, keys, texts_sent[0])
        return values


def parse_form(body: bytes, content_type: str) -> Form:
    """Parse a form; raise RequestError, with the field at fault if known."""
    reader = _PartReader()
    try:
        parser = MultipartParser(
            _boundary(content_type),
            {
                "on_part_begin": reader.begin,
                "on_header_field": reader.add_header_name,
                "on_header_value": reader.add_header_value,
                "on_header_end": reader.end_header,
                "on_headers_finished": reader.end_headers,
                "on_part_data": reader.add_content,
                "on_part_end": reader.end,
                "on_end": reader.close,
            },
            max_header_count=HEADERS_MAX,
            max_header_size=HEADER_BYTES_MAX,
        )
        parser.write(body)
    except FormParserError as malformed:
        raise reader.refusal(f"is malformed: {malformed}") from malformed
    if not reader.closed:
        raise reader.refusal("ends before its last boundary")
    return Form(
        texts={name: tuple(values) for name, values in reader.texts.items()},
        files={name: tuple(values) for name, values in reader.files.items()},
        labels={name: tuple(values) for name, values in reader.labels.items()},
    )


class _PartReader:
    """The parser's callbacks, which collect the complete parts and the current part."""

    def __init__(self) -> None:
        self.texts: dict[str, list[str]] = {}
        self.files: dict[str, list[bytes]] = {}
        self.labels: dict[str, list[FileLabel]] = {}
        self.closed = False
        self._parts = 0
        self._headers: dict[str, bytes] = {}
        self._header_name = self._header_value = b""
        self._name: str | None = None
        self._is_file = False
        self._label = FileLabel(filename="", media_type="")
        self._pieces: list[bytes] = []
        self._size = 0

    def refusal(self, what: str) -> RequestError:
        """Return an error about the form, with the name of the current part if known."""
        if self._name is None:
            return RequestError(ErrorCode.INVALID_REQUEST, f"The form {what}.")
        return RequestError(
            ErrorCode.INVALID_REQUEST,
            f"The form {what}, within the field {self._name}.",
            param=self._name,
        )

    def begin(self) -> None:
        self._parts += 1
        self._name = None
        if self._parts > PARTS_MAX:
            raise self.refusal(f"has more than {PARTS_MAX} parts")
        self._headers, self._pieces, self._size = {}, [], 0

    def add_header_name(self, chunk: bytes, start: int, end: int) -> None:
        self._header_name += chunk[start:end]

    def add_header_value(self, chunk: bytes, start: int, end: int) -> None:
        self._header_value += chunk[start:end]

    def end_header(self) -> None:
        self._headers[self._header_name.decode("latin-1").lower()] = self._header_value
        self._header_name = self._header_value = b""

    def end_headers(self) -> None:
        disposition, options = _options(self._headers.get("content-disposition", b""))
        try:
            name = options.get(b"name", b"").decode()
        except UnicodeDecodeError:
            name = ""
        if disposition != b"form-data" or not 0 < len(name) <= NAME_LENGTH_MAX:
            raise self.refusal(
                f"needs a name of 1 to {NAME_LENGTH_MAX} UTF-8 characters for each part; "
                f"part {self._parts} has none"
            )
        media_type, _ = _options(self._headers.get("content-type", b""))
        self._is_file = b"filename" in options or media_type.decode("latin-1").startswith(
            _FILE_TYPES
        )
        self._name = name.removesuffix("[]") if self._is_file else name
        # Browsers and OpenAI's SDK for Python encode a quotation mark in a file name as %22.
        filename = options.get(b"filename", b"").decode(errors="replace").replace("%22", '"')
        self._label = FileLabel(filename=filename, media_type=media_type.decode("latin-1"))
        encoding = self._headers.get("content-transfer-encoding", b"")
        if encoding.strip().lower().decode("latin-1") not in _PLAIN_ENCODINGS:
            raise field_refusal(self._name, "must be sent without a content-transfer-encoding")

    def add_content(self, chunk: bytes, start: int, end: int) -> None:
        self._size += end - start
        if not self._is_file and self._size > TEXT_BYTES_MAX:
            raise field_refusal(str(self._name), f"must have at most {TEXT_BYTES_MAX} bytes")
        self._pieces.append(chunk[start:end])

    def end(self) -> None:
        name, content = str(self._name), b"".join(self._pieces)
        self._pieces = []
        if self._is_file:
            self.files.setdefault(name, []).append(content)
            self.labels.setdefault(name, []).append(self._label)
            return
        try:
            self.texts.setdefault(name, []).append(content.decode())
        except UnicodeDecodeError as invalid:
            raise field_refusal(name, "must be text in UTF-8") from invalid

    def close(self) -> None:
        self.closed = True


def _options(header: bytes) -> tuple[bytes, dict[bytes, bytes]]:
    return parse_options_header(header.decode("latin-1"))


def _boundary(content_type: str) -> bytes:
    _, options = parse_options_header(content_type)
    boundary = options.get(b"boundary", b"")
    if not 0 < len(boundary) <= _BOUNDARY_LENGTH_MAX:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"The content-type of a form must state a boundary of 1 to {_BOUNDARY_LENGTH_MAX} "
            "characters.",
        )
    return boundary


def _steps(name: str) -> tuple[str, tuple[str, ...]]:
    """Return the field in a form name, and the keys in brackets after it; an empty last key means a
    list.
    """
    match = _NAME.fullmatch(name)
    keys = tuple(_KEY.findall(match[2])) if match else ()
    if match is None or "" in keys[:-1] or len(keys) > _KEYS_MAX:
        raise field_refusal(name, "is not a valid field name: write field, field[] or field[key]")
    return match[1], keys


def _decoded(field: str, text: str) -> JsonValue:
    try:
        return decode_object(text.encode())
    except RequestError as invalid:
        raise field_refusal(field, "must be an object in JSON") from invalid


def _place(
    values: dict[str, JsonValue], field: str, keys: tuple[str, ...], value: JsonValue
) -> None:
    """Set a value in the nested objects in `values`; extend a list that is already there."""
    *outer, last = (field, *keys)
    container = values
    for key in outer:
        inner = container.setdefault(key, {})
        if not isinstance(inner, dict):
            raise field_refusal(field, "conflicts with another field of the same name")
        container = inner
    before = container.get(last)
    if isinstance(before, list) and isinstance(value, list):
        before.extend(value)
    elif last in container:
        raise field_refusal(field, "conflicts with another field of the same name")
    else:
        container[last] = value
