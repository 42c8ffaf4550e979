"""C82: bad requests for pictures, each refused by its field before anything is spent. Keeps C41."""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.cells import cells
from tests.memory.files import shelved
from tests.painters import PICTURE, draw, edit, home_of_painters, upload, whole
from tests.pictures import data_url, png

# A picture of another format that is whole as far as it is checked.
GIF = b"GIF89a" + b"\x01\0" * 20
_HUGE = data_url(png(stated=(60_000, 60_000)))


@cells(
    ("fields", "param"),
    [
        ({"prompt": ""}, "prompt"),
        ({"prompt": None}, "prompt"),
        ({"prompt": 1}, "prompt"),
        ({"prompt": ["a"]}, "prompt"),
        ({"prompt": "a" * 32_001}, "prompt"),
        ({"model": None}, "model"),
        ({"n": 0}, "n"),
        ({"n": 11}, "n"),
        ({"n": 10**12}, "n"),
        ({"n": "2"}, "n"),
        ({"n": 1.5}, "n"),
        ({"n": True}, "n"),
        ({"size": "large"}, "size"),
        ({"size": "0x0"}, "size"),
        ({"size": "1024"}, "size"),
        ({"size": "999999x999999"}, "size"),
        ({"size": 1024}, "size"),
        ({"quality": "best"}, "quality"),
        ({"background": "red"}, "background"),
        ({"background": "transparent", "output_format": "jpeg"}, "background"),
        ({"output_format": "gif"}, "output_format"),
        ({"output_compression": 101}, "output_compression"),
        ({"output_compression": -1}, "output_compression"),
        ({"moderation": "none"}, "moderation"),
        ({"style": "odd"}, "style"),
        ({"response_format": "png"}, "response_format"),
        ({"stream": "yes"}, "stream"),
        ({"stream": True, "partial_images": 4}, "partial_images"),
        ({"partial_images": 1}, "partial_images"),
    ],
)
async def test_c41_c82_bad_input_names_its_field_and_spends_nothing(
    fields: dict[str, Any], param: str
) -> None:
    home = await home_of_painters([whole()])
    reply = await draw(home, **fields)
    assert (reply.status, reply.error["param"]) == (400, param)
    assert (home.stores.books.records, home.near.requests) == ({}, [])


@cells(
    ("fields", "param"),
    [
        ({"images": []}, "images"),
        ({"images": None}, "images"),
        ({"images": None, "mask": PICTURE}, "images"),
        ({"images": PICTURE}, "images"),
        ({"images": [PICTURE] * 17}, "images"),
        ({"images": [data_url(png())]}, "images[0]"),
        ({"images": [{}]}, "images[0].image_url"),
        ({"images": [{"image_url": None}]}, "images[0].image_url"),
        ({"images": [{"image_url": 1}]}, "images[0].image_url"),
        ({"images": [{"file_id": "file-1"}]}, "images[0].file_id"),
        ({"images": [{**PICTURE, "file_id": "file-1"}]}, "images[0]"),
        ({"mask": {"file_id": "file-1"}}, "mask.file_id"),
        ({"images": [{"image_url": "cat.png"}]}, "images[0].image_url"),
        ({"images": [{"image_url": "ftp://a.example/cat"}]}, "images[0].image_url"),
        ({"images": [{"image_url": "data:image/png;base64,"}]}, "images[0].image_url"),
        ({"images": [{"image_url": "data:image/png;base64,!"}]}, "images[0].image_url"),
        ({"images": [PICTURE, {"image_url": data_url(b"words")}]}, "images[1].image_url"),
        ({"images": [{"image_url": data_url(png()[:30])}]}, "images[0].image_url"),
        ({"images": [{"image_url": _HUGE}]}, "images[0].image_url"),
        ({"mask": {"image_url": data_url(b"GIF89a" + b"\x01\0" * 5)}}, "mask.image_url"),
        ({"mask": "x"}, "mask"),
        ({"input_fidelity": "some"}, "input_fidelity"),
        ({"prompt": ""}, "prompt"),
    ],
)
async def test_c41_c82_a_bad_edit_names_its_field_and_spends_nothing(
    fields: dict[str, Any], param: str
) -> None:
    home = await home_of_painters([whole()])
    reply = await edit(home, **fields)
    assert (reply.status, reply.error["param"]) == (400, param)
    assert (home.stores.books.records, home.near.requests) == ({}, [])


@pytest.mark.parametrize(
    ("files", "texts", "param"),
    [
        ([], {}, "image"),
        ([], {"image": "cat"}, "image"),
        ([("image", png())] * 17, {}, "image"),
        ([("image", b"words")], {}, "image"),
        ([("image", png()[:30])], {}, "image"),
        ([("image", b"")], {}, "image"),
        ([("image", png(stated=(60_000, 60_000)))], {}, "image"),
        ([("image", png()), ("mask", png()), ("mask", png())], {}, "mask"),
        ([("image", png()), ("mask", b"GIF89a" + b"\x01\0" * 5)], {}, "mask"),
        ([("image", png())], {"mask": "x"}, "mask"),
        ([("image", png())], {"n": "0"}, "n"),
        ([("image", png())], {"n": "two"}, "n"),
        ([("image", png())], {"prompt": ""}, "prompt"),
        ([("image", png())], {"size": "big"}, "size"),
        ([("image", png())], {"stream": "maybe"}, "stream"),
    ],
)
async def test_c41_c82_a_bad_form_names_its_field_and_spends_nothing(
    files: list[tuple[str, bytes]], texts: dict[str, str], param: str
) -> None:
    home = await home_of_painters([whole()])
    reply = await upload(home, *files, **texts)
    assert (reply.status, reply.error["param"]) == (400, param)
    assert (home.stores.books.records, home.near.requests) == ({}, [])


async def test_c82_an_edit_has_sixteen_pictures_at_most() -> None:
    home = await home_of_painters([whole()])
    reply = await upload(home, *[("image[]", png())] * 16)
    assert (reply.status, len(home.near.requests)) == (200, 1)


@pytest.mark.parametrize(
    "fields",
    [
        {"background": "transparent"},
        {"background": "transparent", "output_format": "png"},
        {"background": "opaque", "output_format": "jpeg"},
        {"stream": True, "partial_images": 0},
        {"partial_images": 0},
    ],
)
async def test_c82_options_that_go_together_are_taken(fields: dict[str, Any]) -> None:
    home = await home_of_painters([whole()])
    assert (await draw(home, **fields)).status == 200


async def test_c20_c82_files_that_are_not_read_are_named() -> None:
    home = await home_of_painters([whole()])
    reply = await upload(home, ("image", png()), ("photo", png()), ("mask[]", png()))
    assert (reply.status, reply.headers["x-tollgate-adapted"]) == (200, "photo")


async def test_c70_c82_pictures_to_edit_are_named_by_their_ids() -> None:
    home = await home_of_painters(
        [whole()],
    )
    files = shelved(
        "acme", cat=("image/png", png()), words=("text/plain", b"words"), gif=("image/gif", GIF)
    )
    home.gateway = replace(home.gateway, files=files)
    reply = await edit(
        home, images=[{"file_id": "cat"}, {"file_id": "cat"}], mask={"file_id": "cat"}
    )
    assert reply.status == 200, reply.body
    assert files.read_places == ["files/kept/cat"]
    sent = home.near.requests[-1].form
    assert [part.content for part in sent if part.file_name] == [png()] * 3
    for fields, param in (
        ({"images": [PICTURE, {"file_id": "words"}]}, "images[1].file_id"),
        ({"images": [{"file_id": "nothing"}]}, "images[0].file_id"),
        ({"mask": {"file_id": "gif"}}, "mask.file_id"),
    ):
        reply = await edit(home, **fields)
        assert (reply.status, reply.error["param"]) == (400, param)
    assert len(home.near.requests) == 1
