"""Imitate a model on a server like llama.cpp or Ollama, in a turn without history."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from tests.doubles.model_server import Step, answer, answer_json, error, raw, tool_call
from tests.doubles.server import JsonObject

WINE_ID = re.compile(r'"wine_id":\s*"([^"]+)"')
PARSER_ERROR = {
    "error": {
        "code": 500,
        "message": "The model produced output that does not match the expected peg-native format",
        "type": "server_error",
    }
}


@dataclass(frozen=True)
class LocalModel:
    """A model that calls `tool` once, then answers with a wine from its result, in JSON.

    With a response format, tools are silently ignored.
    """

    tool: str
    arguments: JsonObject
    parses_calls: bool = True
    """Whether the server parses the calls that the model writes, or sends them as text."""
    fails_on_json: bool = False
    """Whether a JSON answer to a request with tools is a server error, in a stream after a 200."""

    def __call__(self, request: JsonObject) -> Step:
        results = [
            message for message in request["messages"] if message["role"] == "tool"
        ]
        has_format = "response_format" in request
        if request.get("tools") and not has_format and not results:
            return self._call()
        if request.get("tools") and not has_format and self.fails_on_json:
            return parser_error(request)
        contents = json.dumps([result["content"] for result in results])
        wine_ids = WINE_ID.findall(
            contents.replace("\\", "")
        )  # results are JSON in JSON
        return answer_json(
            recommendation(wine_ids[0] if wine_ids else "chateau-nowhere-2019")
        )

    def _call(self) -> Step:
        if self.parses_calls:
            return tool_call(self.tool, self.arguments)
        written = json.dumps({"name": self.tool, "arguments": self.arguments})
        return answer(f"```json\n{written}\n```")


def recommendation(wine_id: str) -> JsonObject:
    wines = [
        {"wine_id": wine_id, "description": "Fresh, with fine tannin for the meat."}
    ]
    return {
        "response_type": "recommendation",
        "intro": "For your lamb:",
        "wines": wines,
    }


def parser_error(request: JsonObject) -> Step:
    """Return the error of llama.cpp for an answer that is not a call of an offered tool."""
    if not request.get("stream"):
        return error(500, PARSER_ERROR)
    first_chunk = {
        "choices": [{"index": 0, "delta": {"role": "assistant", "content": None}}]
    }
    events = "".join(
        f"data: {json.dumps(event)}\n\n" for event in (first_chunk, PARSER_ERROR)
    )
    return raw(events.encode(), 200, "text/event-stream")


SERVERS: dict[str, Callable[[str, JsonObject], LocalModel]] = {
    "Ollama": LocalModel,
    "llama.cpp": lambda tool, arguments: LocalModel(
        tool, arguments, fails_on_json=True
    ),
    "llama.cpp with another template": lambda tool, arguments: LocalModel(
        tool, arguments, parses_calls=False
    ),
}
