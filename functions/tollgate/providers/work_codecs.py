"""Loaders of the codecs of work on inputs, for the rows of `formats.WIRE_FORMATS`."""

from typing import Any

from tollgate.providers.base import BatchCodec, StreamedWorkCodec


def load_openai_embeddings() -> BatchCodec[Any]:
    """Return the codec of embeddings in OpenAI's format."""
    from tollgate.providers.openai_embeddings.codec import decode, encode
    from tollgate.providers.shared.openai_errors import parse_openai_reply_error
    from tollgate.providers.shared.vectors import split_inputs

    return BatchCodec(
        split=split_inputs, encode=encode, decode=decode, error=parse_openai_reply_error
    )


def load_cohere_embeddings() -> BatchCodec[Any]:
    """Return the codec of Cohere's embeddings."""
    from tollgate.providers.cohere.codec import decode, encode, split_for_cohere
    from tollgate.providers.shared.openai_errors import parse_openai_reply_error

    return BatchCodec(
        split=split_for_cohere, encode=encode, decode=decode, error=parse_openai_reply_error
    )


def load_bedrock_embeddings() -> BatchCodec[Any]:
    """Return the codec of embeddings behind Bedrock's InvokeModel."""
    from tollgate.providers.bedrock.errors import error_of_reply
    from tollgate.providers.bedrock_embeddings.codec import decode, encode, split_by_family

    return BatchCodec(split=split_by_family, encode=encode, decode=decode, error=error_of_reply)


def load_gemini_embeddings() -> BatchCodec[Any]:
    """Return the codec of Gemini's embeddings."""
    from tollgate.providers.gemini.errors import error_of_reply
    from tollgate.providers.gemini.vectors import decode_vectors, encode_inputs
    from tollgate.providers.shared.vectors import split_inputs

    return BatchCodec(
        split=split_inputs, encode=encode_inputs, decode=decode_vectors, error=error_of_reply
    )


def load_jina_rerank() -> BatchCodec[Any]:
    """Return the codec of rerankers of Jina's shape."""
    from tollgate.providers.rerank.codec import decode_ranking, encode_jina, whole_work
    from tollgate.providers.shared.openai_errors import parse_openai_reply_error

    return BatchCodec(
        split=whole_work,
        encode=encode_jina,
        decode=decode_ranking,
        error=parse_openai_reply_error,
    )


def load_cohere_rerank() -> BatchCodec[Any]:
    """Return the codec of Cohere's rerankers."""
    from tollgate.providers.rerank.codec import decode_ranking, encode_cohere, whole_work
    from tollgate.providers.shared.openai_errors import parse_openai_reply_error

    return BatchCodec(
        split=whole_work,
        encode=encode_cohere,
        decode=decode_ranking,
        error=parse_openai_reply_error,
    )


def load_bedrock_rerank() -> BatchCodec[Any]:
    """Return the codec of rerankers behind Bedrock's InvokeModel."""
    from tollgate.providers.bedrock.errors import error_of_reply
    from tollgate.providers.rerank.codec import decode_ranking, encode_bedrock, whole_work

    return BatchCodec(
        split=whole_work, encode=encode_bedrock, decode=decode_ranking, error=error_of_reply
    )


def load_guardrails() -> BatchCodec[Any]:
    """Return the codec of Bedrock Guardrails."""
    from tollgate.providers.bedrock.errors import error_of_reply
    from tollgate.providers.bedrock_guardrails.codec import decode, encode, split_by_input

    return BatchCodec(split=split_by_input, encode=encode, decode=decode, error=error_of_reply)


def load_openai_moderations() -> BatchCodec[Any]:
    """Return the codec of OpenAI's moderations."""
    from tollgate.providers.openai_moderations.codec import decode, encode, split_by_form
    from tollgate.providers.shared.openai_errors import parse_openai_reply_error

    return BatchCodec(
        split=split_by_form, encode=encode, decode=decode, error=parse_openai_reply_error
    )


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


def load_openai_speech() -> StreamedWorkCodec[Any]:
    """Return the codec of OpenAI's speech."""
    from tollgate.providers.openai_speech.codec import encode, make_speech_decoder
    from tollgate.providers.shared.openai_errors import parse_openai_reply_error

    return StreamedWorkCodec(
        encode=encode, decoder=make_speech_decoder, error=parse_openai_reply_error
    )


def load_gemini_speech() -> StreamedWorkCodec[Any]:
    """Return the codec of Gemini's speech."""
    from tollgate.providers.gemini.errors import error_of_reply
    from tollgate.providers.gemini.speech import SpeechDecoder, encode_speech

    return StreamedWorkCodec(encode=encode_speech, decoder=SpeechDecoder, error=error_of_reply)


def load_hyperbolic_speech() -> StreamedWorkCodec[Any]:
    """Return the codec of Hyperbolic's speech."""
    from tollgate.providers.hyperbolic.speech import SpeechDecoder, encode
    from tollgate.providers.shared.openai_errors import parse_openai_reply_error

    return StreamedWorkCodec(encode=encode, decoder=SpeechDecoder, error=parse_openai_reply_error)


def load_openai_transcription() -> StreamedWorkCodec[Any]:
    """Import and return the codec of transcripts in OpenAI's shape."""
    from tollgate.providers.openai_transcription.decode import TranscriptDecoder
    from tollgate.providers.openai_transcription.encode import encode
    from tollgate.providers.shared.openai_errors import parse_openai_reply_error

    return StreamedWorkCodec(
        encode=encode, decoder=TranscriptDecoder, error=parse_openai_reply_error
    )
