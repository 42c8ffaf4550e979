"""The model of a reference to a picture in requests for images and videos."""

from typing import Annotated

from pydantic import Field

from tollgate.ingress.shared.wire.request_model import Wire


class PictureReference(Wire):
    """An image: a URL, a data URL or a file id."""

    image_url: str | None = Field(default=None, description="An http(s) URL, or a data URL.")
    file_id: Annotated[str, Field(min_length=1, max_length=256)] | None = Field(
        default=None, description="The id of an uploaded file."
    )
