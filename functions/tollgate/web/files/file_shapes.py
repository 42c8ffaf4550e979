"""Bodies of the file routes, in the format of OpenAI's clients."""

from typing import Annotated, Any, Final, Literal
from urllib.parse import urljoin

from pydantic import BaseModel, ConfigDict, Field

from tollgate.core.files.stored import FilePurpose, NewFile, SignedUpload, StoredFile, UploadPurpose
from tollgate.core.principal import Principal
from tollgate.web.shapes import Unreadable

EXPIRES_MIN_S: Final = 3_600
EXPIRES_MAX_S: Final = 2_592_000


MediaType = Annotated[str, Field(max_length=127, pattern=r"^[a-zA-Z0-9.+-]+/[a-zA-Z0-9.+-]+$")]


class ExpiresAfter(BaseModel):
    """The age at which a file is deleted."""

    model_config = ConfigDict(extra="forbid")

    anchor: Literal["created_at"]
    seconds: Annotated[int, Field(ge=EXPIRES_MIN_S, le=EXPIRES_MAX_S)]


class FileFields(BaseModel):
    """The fields of an upload besides the file's content."""

    model_config = ConfigDict(extra="forbid")

    purpose: UploadPurpose
    expires_after: ExpiresAfter | None = Field(None, description="default: the workspace's setting")

    def new_file(self, principal: Principal, filename: str, media_type: str) -> NewFile:
        """Return the metadata of the caller's file."""
        return NewFile(
            workspace_id=principal.workspace_id,
            key_id=principal.key_id,
            member_id=principal.owner,
            filename=filename,
            purpose=self.purpose,
            media_type=media_type,
            expires_after_s=self.expires_after.seconds if self.expires_after else None,
        )


class PresignedBody(FileFields):
    """A file whose content the uploader sends to the bucket."""

    filename: Annotated[str, Field(min_length=1, max_length=1_024)]
    bytes: Annotated[int, Field(ge=1)]
    media_type: MediaType | None = Field(None, description="default: by the name's extension")


class PresignedObject(BaseModel):
    """A URL to which the content of a file is sent, with exactly these headers."""

    id: str = Field(description="id of the file, which exists once its content has arrived")
    object: Literal["file.presigned"] = "file.presigned"
    method: Literal["PUT"] = "PUT"
    url: str
    headers: dict[str, str]
    expires_at: int = Field(description="Unix second at which the URL expires")

    @classmethod
    def of(cls, file: StoredFile, upload: SignedUpload, *, base_url: str) -> "PresignedObject":
        """Build the object from an announced file; `base_url` completes a relative URL."""
        return cls(
            id=file.id,
            url=urljoin(base_url, upload.url),
            headers=dict(upload.headers),
            expires_at=upload.expires_s,
        )


class FileObject(BaseModel):
    """A file in OpenAI's format."""

    id: str
    object: Literal["file"] = "file"
    bytes: int
    created_at: int = Field(description="Unix second")
    expires_at: int | None = Field(
        None,
        description="Unix second; absent if the file never expires",
        exclude_if=lambda second: second is None,
    )
    filename: str
    purpose: FilePurpose
    status: Literal["processed"] = "processed"
    media_type: str = Field(description="detected from the content; for text, the stated type")

    @classmethod
    def of(cls, file: StoredFile) -> "FileObject":
        """Build the object from a stored file."""
        return cls(
            id=file.id,
            bytes=file.size_bytes,
            created_at=file.created_s,
            expires_at=file.expires_s,
            filename=file.filename,
            purpose=file.purpose,
            media_type=file.media_type,
        )


class FileList(BaseModel):
    """A page of files."""

    object: Literal["list"] = "list"
    data: list[FileObject]
    first_id: str | None
    last_id: str | None
    has_more: bool
    unreadable: Unreadable


class DeletedFile(BaseModel):
    """A file that was deleted."""

    id: str
    object: Literal["file"] = "file"
    deleted: Literal[True] = True


def form_description() -> dict[str, Any]:
    """Return OpenAPI's description of the form that uploads a file."""
    schema = FileFields.model_json_schema(ref_template="#/components/schemas/{model}")
    schema.pop("$defs", None)
    schema["properties"] = {
        "file": {"type": "string", "format": "binary"},
        **schema["properties"],
        "expires_after": ExpiresAfter.model_json_schema(),
    }
    schema["required"] = ["file", *schema["required"]]
    return {"required": True, "content": {"multipart/form-data": {"schema": schema}}}
