"""Loaders of the codecs of pictures, for the rows of `formats.WIRE_FORMATS`."""

from typing import Any

from tollgate.providers.base import BatchCodec, StreamedWorkCodec


def load_openai_images() -> BatchCodec[Any]:
    """Return the codec of OpenAI's pictures."""
    from tollgate.providers.openai_images.codec import decode_whole, encode_whole
    from tollgate.providers.shared.openai_errors import parse_openai_reply_error
    from tollgate.providers.shared.pictures import split_images

    return BatchCodec(
        split=split_images,
        encode=encode_whole,
        decode=decode_whole,
        error=parse_openai_reply_error,
    )


def load_openai_streamed_images() -> StreamedWorkCodec[Any]:
    """Return the codec of OpenAI's streamed pictures."""
    from tollgate.providers.openai_images.stream import ImageDecoder, encode_image_stream
    from tollgate.providers.shared.openai_errors import parse_openai_reply_error

    return StreamedWorkCodec(
        encode=encode_image_stream, decoder=ImageDecoder, error=parse_openai_reply_error
    )


def load_bedrock_images() -> BatchCodec[Any]:
    """Return the codec of pictures behind Bedrock's InvokeModel."""
    from tollgate.providers.bedrock.errors import error_of_reply
    from tollgate.providers.bedrock_images.codec import decode, encode
    from tollgate.providers.shared.pictures import split_images

    return BatchCodec(split=split_images, encode=encode, decode=decode, error=error_of_reply)


def load_gemini_images() -> BatchCodec[Any]:
    """Return the codec of pictures of Gemini and Imagen."""
    from tollgate.providers.gemini.errors import error_of_reply
    from tollgate.providers.gemini.pictures import decode_pictures, encode_pictures
    from tollgate.providers.shared.pictures import split_images

    return BatchCodec(
        split=split_images, encode=encode_pictures, decode=decode_pictures, error=error_of_reply
    )
