"""C82: requests for pictures in each provider's own format, and its answers.

Bodies are synthetic, after the pages that each codec names.
"""

import json
from typing import Any, get_args

import pytest

from tests.pictures import data_url, png, png_text
from tollgate.core.content import Image, InlineMedia
from tollgate.core.errors import ErrorCode, RequestError, UpstreamError
from tollgate.core.usage import Usage
from tollgate.core.work.images import ImageRequest
from tollgate.providers.ports.base import BatchCodec, Frame, Target
from tollgate.providers.ports.dialect import Dialect
from tollgate.providers.ports.formats import WIRE_FORMATS
from tollgate.providers.ports.work_dialects import ImageFamily, ImagesDialect

DRAWN = png_text(64, 32)
CAT = Image(source=InlineMedia(media_type="image/png", base64=png_text()))


def codec_of(name: str) -> BatchCodec[Any]:
    return WIRE_FORMATS[name].batch_codecs["image"]()  # type: ignore[index]


def target_of(upstream: str = "m-1", **images: Any) -> Target:
    return Target(
        provider="near",
        model="acme/paint",
        upstream_model=upstream,
        dialect=Dialect(images=ImagesDialect(**images)),
    )


def asked(**fields: Any) -> ImageRequest:
    return ImageRequest(model="acme/paint", prompt="two cats", **fields)


def decoded(name: str, body: Any, target: Target, **fields: Any) -> Any:
    return codec_of(name).decode(Frame(data=json.dumps(body).encode()), asked(**fields), target)


def test_nova_canvas_has_a_body_of_its_own() -> None:
    target = target_of("amazon.nova-canvas-v1:0", family="nova", images_max=5)
    wire = codec_of("bedrock").encode(
        asked(count=3, size="1024x768", quality="high", background="opaque"), target
    )
    assert wire.path == "/model/amazon.nova-canvas-v1%3A0/invoke"
    assert wire.adapted == ("background",)
    assert wire.body == {
        "taskType": "TEXT_IMAGE",
        "textToImageParams": {"text": "two cats"},
        "imageGenerationConfig": {
            "numberOfImages": 3,
            "width": 1024,
            "height": 768,
            "quality": "premium",
        },
    }
    edited = codec_of("bedrock").encode(asked(images=(CAT,)), target)
    assert edited.body["taskType"] == "IMAGE_VARIATION"
    assert edited.body["imageVariationParams"] == {"text": "two cats", "images": [png_text()]}


def test_novas_filter_may_withhold_some_pictures_or_all() -> None:
    target = target_of(family="nova", images_max=5)
    some = decoded("bedrock", {"images": [DRAWN], "error": "one was withheld"}, target, count=3)
    assert some.usage == Usage(uncached_input_tokens=0, output_tokens=0, images=1)
    with pytest.raises(UpstreamError) as caught:
        decoded("bedrock", {"images": [], "error": "blocked"}, target, count=3)
    assert caught.value.code is ErrorCode.CONTENT_FILTER


def test_stability_takes_a_ratio_in_place_of_a_size() -> None:
    target = target_of("stability.stable-image-core-v1:1", family="stability")
    wire = codec_of("bedrock").encode(asked(size="1536x1024", output_format="jpeg"), target)
    assert wire.body == {"prompt": "two cats", "aspect_ratio": "3:2", "output_format": "jpeg"}
    assert wire.adapted == ()
    other = codec_of("bedrock").encode(
        asked(size="1792x1024", quality="low", output_format="webp"), target
    )
    assert other.body == {"prompt": "two cats", "aspect_ratio": "16:9"}
    assert sorted(other.adapted) == ["output_format", "quality", "size"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"finish_reasons": ["Filter reason: prompt"]}, ErrorCode.CONTENT_FILTER),
        (
            {"images": [DRAWN], "finish_reasons": ["Filter reason: output image"]},
            ErrorCode.CONTENT_FILTER,
        ),
        ({"finish_reasons": ["Inference error"]}, ErrorCode.PROVIDER_UNAVAILABLE),
        ({"images": ["words"]}, ErrorCode.PROVIDER_UNAVAILABLE),
        ({"images": [DRAWN, DRAWN]}, ErrorCode.PROVIDER_UNAVAILABLE),
        ({"images": "no"}, ErrorCode.PROVIDER_UNAVAILABLE),
    ],
)
def test_an_answer_of_stability_without_its_picture_is_a_failure(
    body: Any, code: ErrorCode
) -> None:
    with pytest.raises(UpstreamError) as caught:
        decoded("bedrock", body, target_of(family="stability"))
    assert caught.value.code is code


def test_gemini_makes_one_picture_and_reports_its_tokens() -> None:
    target = target_of("gemini-img", sizes_by_name=True)
    work = asked(images=(CAT,), size="2048x1152", quality="high")
    wire = codec_of("gemini").encode(work, target)
    assert wire.path == "/v1beta/models/gemini-img:generateContent"
    assert wire.adapted == ("quality",)
    assert wire.body == {
        "contents": [
            {
                "role": "user",
                "parts": [
                    {"inlineData": {"mimeType": "image/png", "data": png_text()}},
                    {"text": "two cats"},
                ],
            }
        ],
        "generationConfig": {
            "responseModalities": ["IMAGE"],
            "imageConfig": {"aspectRatio": "16:9", "imageSize": "2K"},
        },
    }
    parts = [
        {"thought": True, "inlineData": {"mimeType": "image/png", "data": png_text()}},
        {"text": "Here:"},
        {"inlineData": {"mimeType": "image/png", "data": DRAWN}, "thoughtSignature": "x"},
    ]
    answer = {
        "candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}],
        "usageMetadata": {
            "promptTokenCount": 262,
            "candidatesTokenCount": 1290,
            "promptTokensDetails": [
                {"modality": "TEXT", "tokenCount": 4},
                {"modality": "IMAGE", "tokenCount": 258},
            ],
            "candidatesTokensDetails": [{"modality": "IMAGE", "tokenCount": 1290}],
        },
        "responseId": "r-1",
    }
    result = decoded("gemini", answer, target)
    assert [json.loads(piece)["size"] for piece in result.pieces] == ["64x32"]
    assert result.usage == Usage(
        uncached_input_tokens=262,
        output_tokens=1290,
        image_input_tokens=258,
        image_output_tokens=1290,
        images=1,
    )


@pytest.mark.parametrize(
    "body",
    [
        {"candidates": [{"finishReason": "IMAGE_SAFETY"}]},
        {"promptFeedback": {"blockReason": "SAFETY"}},
        {"candidates": [{"content": {"parts": [{"text": "No."}]}, "finishReason": "NO_IMAGE"}]},
    ],
)
def test_an_answer_of_gemini_without_a_picture_is_a_filters(body: Any) -> None:
    with pytest.raises(UpstreamError) as caught:
        decoded("gemini", body, target_of())
    assert caught.value.code is ErrorCode.CONTENT_FILTER


def test_imagen_makes_several_and_charges_by_the_picture() -> None:
    target = target_of("imagen-x", family="imagen", images_max=4, sizes_by_name=True)
    work = asked(count=4, size="3840x2160", output_format="jpeg", output_compression=80)
    wire = codec_of("gemini").encode(work, target)
    assert wire.path == "/v1beta/models/imagen-x:predict"
    assert wire.body == {
        "instances": [{"prompt": "two cats"}],
        "parameters": {
            "sampleCount": 4,
            "aspectRatio": "16:9",
            "sampleImageSize": "2K",
            "outputOptions": {"mimeType": "image/jpeg", "compressionQuality": 80},
        },
    }
    made = {"bytesBase64Encoded": DRAWN, "mimeType": "image/png", "prompt": "Two cats, asleep"}
    body = {"predictions": [made, {"raiFilteredReason": "People."}]}
    result = decoded("gemini", body, target, count=2)
    assert json.loads(result.pieces[0])["revised_prompt"] == "Two cats, asleep"
    assert (len(result.pieces), result.usage.images) == (1, 1)
    with pytest.raises(UpstreamError, match="filter"):
        decoded("gemini", {}, target)


def test_together_has_sides_and_a_word_of_its_own_for_base64() -> None:
    target = target_of(
        size="width_height",
        base64="base64",
        urls=True,
        images_max=4,
        takes=("output_format",),
        edits="reference_images",
    )
    wire = codec_of("openai_chat").encode(
        asked(size="1024x768", output_format="png", images=(CAT,), count=2), target
    )
    assert wire.path == "/images/generations"
    assert wire.body == {
        "model": "m-1",
        "prompt": "two cats",
        "width": 1024,
        "height": 768,
        "output_format": "png",
        "n": 2,
        "response_format": "base64",
        "reference_images": [data_url(png())],
    }


def test_a_mask_needs_a_form() -> None:
    target = target_of(takes=("mask",), edits="reference_images")
    with pytest.raises(RequestError) as caught:
        codec_of("openai_chat").encode(asked(images=(CAT,), mask=CAT), target)
    assert caught.value.param == "mask"


def test_xai_takes_a_ratio_and_may_answer_with_a_data_url() -> None:
    target = target_of(size="aspect_ratio", base64="b64_json", urls=True, takes=("quality",))
    wire = codec_of("openai_chat").encode(asked(size="1792x1024", quality="low"), target)
    assert wire.body == {
        "model": "m-1",
        "prompt": "two cats",
        "quality": "low",
        "aspect_ratio": "16:9",
        "response_format": "b64_json",
    }
    assert wire.adapted == ("size",)
    body = {"data": [{"b64_json": data_url(png(64, 32)), "url": None, "revised_prompt": ""}]}
    [piece] = decoded("openai_chat", body, target).pieces
    assert json.loads(piece) == {"b64_json": DRAWN, "size": "64x32", "output_format": "png"}


def test_hyperbolic_has_other_names() -> None:
    target = target_of(path="/image/generation", model_field="model_name", size="width_height")
    wire = codec_of("openai_chat").encode(asked(size="512x512"), target)
    assert wire.path == "/image/generation"
    assert wire.body == {"model_name": "m-1", "prompt": "two cats", "width": 512, "height": 512}
    assert len(decoded("openai_chat", {"images": [{"image": DRAWN}]}, target).pieces) == 1


@pytest.mark.parametrize(("name", "family"), [("bedrock", "stability"), ("openai_chat", "gemini")])
def test_pictures_are_not_edited_where_the_format_has_no_room(name: str, family: str) -> None:
    with pytest.raises(RequestError) as caught:
        codec_of(name).encode(asked(images=(CAT,)), target_of(family=family))
    assert caught.value.param == "images"


@pytest.mark.parametrize("name", ["bedrock", "gemini"])
@pytest.mark.parametrize("family", get_args(ImageFamily))
def test_no_format_drops_a_mask_or_a_url_silently(name: str, family: str) -> None:
    for fields, param in (
        ({"images": (CAT,), "mask": CAT}, "mask"),
        ({"delivery": "url"}, "response_format"),
    ):
        with pytest.raises(RequestError) as caught:
            codec_of(name).encode(asked(**fields), target_of(family=family))
        assert caught.value.param == param


@pytest.mark.parametrize(
    ("count", "mib"),
    # 48 MiB a picture, 160 MiB together, and one for what is beside them.
    [(1, 49), (2, 97), (3, 145), (4, 161), (10, 161)],
)
def test_c82_an_answer_has_a_bound_by_the_pictures_that_were_requested(
    count: int, mib: int
) -> None:
    wire = codec_of("openai_chat").encode(asked(count=count), target_of(images_max=10))
    assert (wire.reply_bytes_max, wire.event_bytes_max) == (mib * 1024 * 1024, mib * 1024 * 1024)
