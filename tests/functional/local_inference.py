"""Inference servers on this machine, as far as `tollgate dev` uses them: a list and one answer.

The lists have the shapes of the programs' documentation: docs.ollama.com/api, LM Studio's REST API
v0, llama.cpp's tools/server/README.md, vLLM's OpenAI-compatible server (all 2026-11-27).
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

OLLAMA_MODELS: Mapping[str, Mapping[str, Any]] = {
    "gpt-oss:20b": {
        "capabilities": ["completion", "tools", "thinking"],
        "model_info": {"general.architecture": "gptoss", "gptoss.context_length": 131072},
    },
    "hf.co/bartowski/Llama-3.2-3B-Instruct-GGUF:Q4_K_M": {
        "capabilities": ["completion"],
        "model_info": {"llama.context_length": 4096},
    },
    "gemma3:latest": {
        "capabilities": ["completion", "vision"],
        "model_info": {"gemma3.context_length": 8192},
    },
    "nomic-embed-text:latest": {
        "capabilities": ["embedding"],
        "model_info": {"nomic-bert.context_length": 2048},
    },
    "gpt-oss:120b-cloud": {
        "capabilities": ["completion", "tools"],
        "model_info": {},
        "remote_host": "https://ollama.com:443",
    },
}
LM_STUDIO = [
    {"id": "qwen/qwen3-4b", "type": "llm", "max_context_length": 32768, "state": "not-loaded"},
    {"id": "qwen2-vl-7b-instruct", "type": "vlm", "max_context_length": 16384},
    {"id": "text-embedding-nomic-embed-text-v1.5", "type": "embeddings"},
]
LLAMA_CPP = [
    {
        "id": "../models/Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf",
        "object": "model",
        "owned_by": "llamacpp",
        "meta": {"n_ctx": 8192, "n_ctx_train": 131072},
    }
]
VLLM = [{"id": "Qwen/Qwen3-8B", "object": "model", "owned_by": "vllm", "max_model_len": 40960}]

ANSWER = "Hello from this machine"


def replies_of_ollama() -> dict[str, object]:
    """What Ollama answers, by path."""
    return {"/api/tags": {"models": [{"name": id_, "model": id_} for id_ in OLLAMA_MODELS]}}


class Inference(ThreadingHTTPServer):
    """A server on 127.0.0.1, and the paths of the requests that reached it."""

    daemon_threads = True

    def __init__(self, port: int, replies: Mapping[str, object]) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.replies = replies
        self.asked: list[str] = []


class _Handler(BaseHTTPRequestHandler):
    server: Inference
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self._reply(self.server.replies.get(self.path))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked.append(self.path)
        if self.path == "/api/show":
            self._reply(OLLAMA_MODELS.get(body["model"]))
        elif self.path == "/v1/chat/completions":
            self._stream(body["model"])

    def _reply(self, content: object) -> None:
        octets = b"<html>" if content is None else json.dumps(content).encode()
        self.send_response(404 if content is None else 200)
        self.send_header("content-length", str(len(octets)))
        self.end_headers()
        self.wfile.write(octets)

    def _stream(self, model: str) -> None:
        delta = {"role": "assistant", "content": ANSWER}
        first = {"index": 0, "delta": delta, "finish_reason": None}
        last = {"index": 0, "delta": {}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
        chunks = [{"choices": [first]}, {"choices": [last]}, {"choices": [], "usage": usage}]
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for chunk in chunks:
            self.wfile.write(
                f"data: {json.dumps({'id': 'c', 'model': model, **chunk})}\n\n".encode()
            )
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the base class's name
        """Print nothing."""


@contextmanager
def inference(replies: Mapping[str, object], port: int = 0) -> Iterator[Inference]:
    """Serve on 127.0.0.1 while the context lasts; raise OSError if the port is taken."""
    with Inference(port, replies) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
