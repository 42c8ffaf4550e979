"""Renders one choice of a non-streamed answer."""

from collections.abc import Sequence
from typing import assert_never

from pydantic_core import to_json

from tollgate.core.content import MadeImage, Reasoning, Refusal, ServerToolRun, Text, ToolCall
from tollgate.core.documents.known_files import KnownFile
from tollgate.core.events import Citation, LogProbs
from tollgate.core.json_value import JsonValue
from tollgate.core.response import GenerationResponse
from tollgate.ingress.chat_completions import answer_fields
from tollgate.ingress.chat_completions.file_annotations import render_files
from tollgate.ingress.chat_completions.run_frames import render_run


def render_choice(
    index: int,
    response: GenerationResponse,
    *,
    model: str,
    excludes_reasoning: bool,
    files: Sequence[KnownFile] = (),
) -> bytes:
    """Return an entry for `choices` as JSON; `files` are the documents read for the answer."""
    message = _message(response, model, excludes_reasoning=excludes_reasoning)
    if files:
        citations = message.get("annotations")
        annotated: list[JsonValue] = [*render_files(files)]
        message["annotations"] = (
            [*citations, *annotated] if isinstance(citations, list) else annotated
        )
    reasons = {"finish_reason": response.finish, "native_finish_reason": response.raw_finish}
    return b'%b,"logprobs":%b,%b' % (
        to_json({"index": index, "message": message})[:-1],
        _log_probs(response),
        to_json(reasons)[1:],
    )


def _message(
    response: GenerationResponse, model: str, *, excludes_reasoning: bool
) -> dict[str, JsonValue]:
    content = ""
    annotations: list[JsonValue] = []
    refusal = ""
    thoughts: list[Reasoning] = []
    details: list[JsonValue] = []
    calls: list[JsonValue] = []
    images: list[JsonValue] = []
    runs: list[JsonValue] = []
    for index, part in enumerate(response.parts):
        match part:
            case Text(text=text):
                annotations += [
                    answer_fields.render_annotation(note, len(content))
                    for note in response.notes.get(index, ())
                    if isinstance(note, Citation)
                ]
                content += text
            case Refusal(text=text):
                refusal += text
            case Reasoning():
                if not excludes_reasoning:
                    details.append(
                        answer_fields.render_reasoning_detail(
                            len(thoughts),
                            part,
                            model=model,
                            text_length=len(content),
                            calls=len(calls),
                            runs=len(runs),
                        )
                    )
                    thoughts.append(part)
            case ToolCall():
                calls.append(_call(part))
            case MadeImage():
                images.append(answer_fields.render_image(part, len(images)))
            case ServerToolRun():
                runs.append(
                    render_run(
                        len(runs),
                        part,
                        response.notes.get(index, ()),
                        text_length=len(content),
                    )
                )
            case _:
                assert_never(part)
    message: dict[str, JsonValue] = {
        "role": "assistant",
        "content": None if not content and (calls or refusal) else content,
        "refusal": refusal or None,
        **_reasoning(thoughts, details),
    }
    if annotations:
        message["annotations"] = annotations
    if calls:
        message["tool_calls"] = calls
    if images:
        message["images"] = images
    if runs:
        message["server_tool_calls"] = runs
    return message


def _reasoning(thoughts: list[Reasoning], details: list[JsonValue]) -> dict[str, JsonValue]:
    text = "".join(thought.text for thought in thoughts)
    fields: dict[str, JsonValue] = {}
    if text:
        fields["reasoning"] = fields["reasoning_content"] = text
    if details:
        fields["reasoning_details"] = details
    return fields


def _call(call: ToolCall) -> dict[str, JsonValue]:
    # Arguments must be valid JSON, so missing arguments become an empty object.
    blank = not call.is_text and not call.arguments.strip()
    rendered = answer_fields.render_call(call, call.arguments + "{}" if blank else call.arguments)
    return rendered | answer_fields.render_extra_content(call.provenance)


def _log_probs(response: GenerationResponse) -> bytes:
    notes, refusal_notes = (
        [
            note
            for index, part in enumerate(response.parts)
            if isinstance(part, kind)
            for note in response.notes.get(index, ())
            if isinstance(note, LogProbs)
        ]
        for kind in (Text, Refusal)
    )
    has_notes = notes or refusal_notes
    return answer_fields.encode_log_probs(notes, refusal_notes) if has_notes else b"null"
