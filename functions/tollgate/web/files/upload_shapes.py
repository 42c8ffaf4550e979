"""Bodies of the upload routes, in the format of OpenAI's clients."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tollgate.core.files.stored import FilePurpose, PartialUpload
from tollgate.web.files.file_shapes import FileFields, FileObject, MediaType


class UploadBody(FileFields):
    """A file to upload in parts."""

    filename: Annotated[str, Field(min_length=1, max_length=1_024)]
    bytes: Annotated[int, Field(ge=1)]
    mime_type: MediaType


class CompletionBody(BaseModel):
    """The parts that make up the content of a file, in order."""

    model_config = ConfigDict(extra="forbid")

    part_ids: Annotated[
        list[Annotated[str, Field(max_length=64)]], Field(min_length=1, max_length=1_000)
    ]
    md5: Annotated[str, Field(pattern=r"^[0-9a-fA-F]{32}$")] | None = Field(
        None, description="MD5 of the whole content, hexadecimal"
    )


class UploadObject(BaseModel):
    """An upload in parts, in OpenAI's format."""

    id: str
    object: Literal["upload"] = "upload"
    bytes: int
    created_at: int = Field(description="Unix second")
    expires_at: int = Field(description="Unix second at which the upload expires")
    filename: str
    purpose: FilePurpose
    status: Literal["pending", "completed", "cancelled"]
    file: FileObject | None = Field(description="null until the upload is completed")

    @classmethod
    def of(cls, upload: PartialUpload) -> "UploadObject":
        """Build the object from an upload."""
        file = upload.file
        return cls(
            id=upload.id,
            bytes=file.size_bytes,
            created_at=file.created_s,
            expires_at=upload.expires_s,
            filename=file.filename,
            purpose=file.purpose,
            status=upload.status,
            file=FileObject.of(file) if upload.status == "completed" else None,
        )


class PartObject(BaseModel):
    """A part of an upload."""

    id: str
    object: Literal["upload.part"] = "upload.part"
    created_at: int = Field(description="Unix second")
    upload_id: str


def part_form_description() -> dict[str, Any]:
    """Return OpenAPI's description of the form with a part."""
    data = {"type": "string", "format": "binary"}
    schema = {"type": "object", "properties": {"data": data}, "required": ["data"]}
    return {"required": True, "content": {"multipart/form-data": {"schema": schema}}}
