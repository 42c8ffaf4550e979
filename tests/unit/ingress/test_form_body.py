"""Forms are parsed as their senders mean them, within limits, and errors name the field."""

import contextlib
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field
from urllib3.filepost import encode_multipart_formdata

from tollgate.core.errors import RequestError
from tollgate.core.files.media_types import is_form
from tollgate.ingress.form_body import (
    HEADER_BYTES_MAX,
    HEADERS_MAX,
    NAME_LENGTH_MAX,
    PARTS_MAX,
    TEXT_BYTES_MAX,
    Form,
    parse_form,
)
from tollgate.ingress.shared.wire.request_fields import ProviderPreferences
from tollgate.ingress.shared.wire.request_model import Wire
from tollgate.ingress.validation import validate_texts

TYPE = 'multipart/form-data; boundary="edge"'


def part(name: str, content: bytes, *, filename: str | None = None, headers: str = "") -> bytes:
    named = f'; filename="{filename}"' if filename is not None else ""
    head = f'Content-Disposition: form-data; name="{name}"{named}\r\n{headers}\r\n'
    return b"--edge\r\n" + head.encode() + content + b"\r\n"


def parsed(*parts: bytes) -> Form:
    return parse_form(b"".join(parts) + b"--edge--\r\n", TYPE)


def refusal(*parts: bytes, last: bytes = b"--edge--\r\n", type_: str = TYPE) -> RequestError:
    with pytest.raises(RequestError) as caught:
        parse_form(b"".join(parts) + last, type_)
    return caught.value


@given(
    texts=st.dictionaries(st.sampled_from(["model", "prompt", "größe"]), st.text(min_size=1)),
    content=st.one_of(st.binary(), st.sampled_from([b"\r\n--", b"--edge", b"\r\n--edgy\r\n"])),
)
def test_what_a_library_encodes_is_parsed_back(texts: dict[str, str], content: bytes) -> None:
    fields = {**texts, "file": ("a.wav", content, "audio/wav")}
    body, type_ = encode_multipart_formdata(fields)
    form = parse_form(body, type_)
    assert form.values() == texts
    assert form.file("file") == content


def test_c68_forms_that_differ_are_described_apart() -> None:
    as_text, file = parsed(part("a", b"x"), part("b", b"y")), part("a", b"x", filename="a")
    orders = [part("b", b"y"), part("a", b"x")], [part("a", b"x"), part("b", b"y")]
    assert {parsed(*each).described() for each in orders} == {as_text.described()}
    other = [
        parsed(part("a", b"x"), part("b", b"z")),
        parsed(part("a", b"x"), part("a", b"y")),
        parsed(part("a", b"x")),
        # A file and a text of one name, the text beside a file, and the file alone.
        parsed(part("a", b"x"), file),
        parsed(part("a", b"y"), file),
        parsed(file),
    ]
    assert len({form.described() for form in other} | {as_text.described()}) == 7


def test_lists_and_objects_are_read_from_brackets() -> None:
    form = parsed(
        part("timestamp_granularities[]", b"word"),
        part("timestamp_granularities[]", b"segment"),
        part("include", b"logprobs"),
        part("include", b"text"),
        part("chunking_strategy[type]", b"server_vad"),
        part("chunking_strategy[threshold]", b"0.5"),
        part("provider[order][]", b"groq"),
        part("metadata", b'{"team":"a"}'),
        part("language", b""),
    )
    assert form.values(lists=frozenset({"include"}), objects=frozenset({"metadata"})) == {
        "timestamp_granularities": ["word", "segment"],
        "include": ["logprobs", "text"],
        "chunking_strategy": {"type": "server_vad", "threshold": "0.5"},
        "provider": {"order": ["groq"]},
        "metadata": {"team": "a"},
    }


def test_files_may_repeat_with_or_without_brackets() -> None:
    form = parsed(
        part("image[]", b"a", filename="a.png"),
        part("image", b"b", filename="b.png"),
        part("mask", b"m", headers="Content-Type: image/png\r\n"),
    )
    assert form.files == {"image": (b"a", b"b"), "mask": (b"m",)}
    assert form.file("mask") == b"m"
    assert form.file("file") is None
    with pytest.raises(RequestError) as caught:
        form.file("image")
    assert caught.value.param == "image"


def test_a_text_where_a_file_is_due_is_refused() -> None:
    with pytest.raises(RequestError) as caught:
        parsed(part("file", b"@speech.wav")).file("file")
    assert (caught.value.param, caught.value.message) == ("file", "file must be a file.")


@pytest.mark.parametrize(
    ("parts", "field"),
    [
        ((part("model", b"a"), part("model", b"b")), "model"),
        ((part("a", b"1"), part("a[b]", b"2")), "a"),
        ((part("a[b]", b"1"), part("a", b"2")), "a"),
        ((part("a[]", b"1"), part("a[b]", b"2")), "a"),
        ((part("a[b]", b"1"), part("a[]", b"2")), "a"),
        ((part("a[][b]", b"1"),), "a[][b]"),
        ((part("a[b", b"1"),), "a[b"),
        ((part("[]", b"1"),), "[]"),
        ((part("a[b][c][d][e]", b"1"),), "a[b][c][d][e]"),
        ((part("metadata", b"{"),), "metadata"),
    ],
)
def test_names_that_contradict_each_other_are_refused(parts: tuple[bytes, ...], field: str) -> None:
    with pytest.raises(RequestError) as caught:
        parsed(*parts).values(objects=frozenset({"metadata"}))
    assert caught.value.param == field


@pytest.mark.parametrize(
    ("parts", "field"),
    [
        ((part("model", b"\xff"),), "model"),
        ((part("model", b"x" * (TEXT_BYTES_MAX + 1)),), "model"),
        ((part("file", b"x", headers="Content-Transfer-Encoding: base64\r\n"),), "file"),
        ((part("", b"x"),), None),
        ((part("n" * (NAME_LENGTH_MAX + 1), b"x"),), None),
        ((part("a", b"x", headers=f"x: {'y' * HEADER_BYTES_MAX}\r\n"),), None),
        ((part("a", b"x", headers="x: y\r\n" * HEADERS_MAX),), None),
        ((part("a", b"x"),) * (PARTS_MAX + 1), None),
        ((b"--edge\r\n\r\nno name\r\n",), None),
        ((b'--edge\r\nContent-Disposition: attachment; name="a"\r\n\r\nx\r\n',), None),
        ((b"nonsense",), None),
    ],
)
def test_a_part_beyond_the_limits_is_refused(parts: tuple[bytes, ...], field: str | None) -> None:
    assert refusal(*parts).param == field


def test_a_form_that_was_cut_names_the_field() -> None:
    cut = refusal(part("model", b"m"), part("file", b"RIFF", filename="a.wav"), last=b"")
    assert cut.param == "file"
    assert cut.message == "The form ends before its last boundary, within the field file."
    assert refusal(last=b"").message == "The form ends before its last boundary."


@pytest.mark.parametrize(
    "type_", ["multipart/form-data", 'multipart/form-data; boundary=""', f"{TYPE[:-6]}{'b' * 71}"]
)
def test_a_form_without_a_boundary_is_refused(type_: str) -> None:
    assert "boundary" in refusal(type_=type_).message


def test_the_largest_parts_pass() -> None:
    form = parsed(*(part(f"f{each}", b"x") for each in range(PARTS_MAX - 1)), part("n", b"y"))
    assert len(form.values()) == PARTS_MAX
    longest = parsed(part("n" * NAME_LENGTH_MAX, b"x" * TEXT_BYTES_MAX))
    assert longest.values() == {"n" * NAME_LENGTH_MAX: "x" * TEXT_BYTES_MAX}


class Fields(Wire):
    """Fields of each type that forms have."""

    n: Annotated[int, Field(ge=1)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    stream: bool | None = None
    provider: ProviderPreferences | None = None


def test_texts_are_read_as_the_types_of_their_fields() -> None:
    form = parsed(
        part("n", b"2"),
        part("temperature", b"0.5"),
        part("stream", b"true"),
        part("provider[allow_fallbacks]", b"false"),
    )
    fields = validate_texts(Fields, form.values())
    assert (fields.n, fields.temperature, fields.stream) == (2, 0.5, True)
    assert fields.provider is not None
    assert fields.provider.allow_fallbacks is False


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("n", "two", "n must be an integer."),
        ("n", "0", "n must be at least 1."),
        ("temperature", "warm", "temperature must be a number."),
        ("temperature", "nan", "temperature must be at most 2.0."),
        ("stream", "maybe", "stream must be true or false."),
        ("stream[a]", "b", "stream must be true or false."),
        ("provider", "groq", "provider must be an object."),
    ],
)
def test_a_text_of_another_type_names_its_field(name: str, text: str, message: str) -> None:
    with pytest.raises(RequestError) as caught:
        validate_texts(Fields, parsed(part(name, text.encode())).values())
    assert caught.value.message == message
    assert caught.value.param == name.partition("[")[0]


@given(st.binary(max_size=300))
def test_any_bytes_are_a_form_or_refused(body: bytes) -> None:
    with contextlib.suppress(RequestError):
        parse_form(b"--edge\r\n" + body, TYPE)


@pytest.mark.parametrize("length", [1, 70])
def test_a_boundary_has_as_many_characters_as_mail_allows(length: int) -> None:
    body, type_ = encode_multipart_formdata({"a": "x"}, boundary="b" * length)
    assert parse_form(body, type_).values() == {"a": "x"}


def test_a_name_has_three_keys_at_most() -> None:
    assert parsed(part("a[b][c][d]", b"x")).values() == {"a": {"b": {"c": {"d": "x"}}}}
    with pytest.raises(RequestError, match="is not a valid field name"):
        parsed(part("a[b][c][d][e]", b"x")).values()


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ("multipart/form-data; boundary=x", True),
        ("Multipart/Form-Data ;boundary=x", True),
        ("multipart/form-data", True),
        ("multipart/form-dataX; boundary=x", False),
        ("application/json", False),
        ("", False),
    ],
)
def test_c20_a_body_is_a_form_by_its_whole_type(stated: str, *, expected: bool) -> None:
    assert is_form(stated) is expected
