"""The rows of the client formats of pictures."""

from typing import Final

from tollgate.core.ids import IdSource
from tollgate.ingress.base import Ingress
from tollgate.ingress.format_row import FormatModels, IngressFormat


def _make_image_generations(ids: IdSource) -> Ingress:
    from tollgate.ingress.images import ImageGenerations

    return ImageGenerations(ids)


def _load_image_generation_models() -> FormatModels:
    from tollgate.ingress.images.wire.image_reply import ImageEvent, ImageFailure, ImagesReply
    from tollgate.ingress.images.wire.image_request import GenerationBody
    from tollgate.ingress.shared.wire.reply_models import ErrorEnvelope

    return FormatModels(
        request=GenerationBody,
        reply=ImagesReply,
        event=ImageEvent,
        failure=ImageFailure,
        error=ErrorEnvelope,
    )


IMAGE_GENERATIONS: Final = IngressFormat(
    name="image_generations",
    path="/v1/images/generations",
    make=_make_image_generations,
    load_models=_load_image_generation_models,
    tag="images",
    summary="Create Images",
    description="Make pictures of a text, in OpenAI's format, whole or streamed; billed to the "
    "key.",
    operation_id="create_images",
)


def _make_image_edits(ids: IdSource) -> Ingress:
    from tollgate.ingress.images import ImageEdits

    return ImageEdits(ids)


def _load_image_edit_models() -> FormatModels:
    from tollgate.ingress.images.wire.image_reply import ImageEvent, ImageFailure, ImagesReply
    from tollgate.ingress.images.wire.image_request import EditBody, EditForm
    from tollgate.ingress.shared.wire.reply_models import ErrorEnvelope

    return FormatModels(
        request=EditBody,
        form=EditForm,
        reply=ImagesReply,
        event=ImageEvent,
        failure=ImageFailure,
        error=ErrorEnvelope,
    )


IMAGE_EDITS: Final = IngressFormat(
    name="image_edits",
    path="/v1/images/edits",
    make=_make_image_edits,
    load_models=_load_image_edit_models,
    tag="images",
    summary="Edit Images",
    description="Make pictures of other pictures and a text, in OpenAI's format, whole or "
    "streamed; billed to the key.",
    operation_id="edit_images",
)
