"""A model on a server like llama.cpp or Ollama, for a turn without history."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from tests.doubles.model_server import Step, answer, answer_json, error, raw, tool_call
from tests.doubles.server import JsonObject

WINE_ID = re.compile(r'"wine_id":\s*"([^"]+)"')
NO_CALL = {
    "error": {
        "code": 500,
        "message": "The model produced output that does not match the expected peg-native format",
        "type": "server_error",
    }
}


@dataclass(frozen=True)
class LocalModel:
    """Calls `tool` once, then answers with a wine that it found, in JSON.

    A response format wins over tools, silently: no tool is called. With `parses_calls` the server
    reads calls out of what the model writes; without, they come as text. With `fails_on_json` an
    answer in JSON beside tools is an error of the server, in a stream one after a status of 200.
    """

    tool: str
    arguments: JsonObject
    parses_calls: bool = True
    fails_on_json: bool = False

    def __call__(self, request: JsonObject) -> Step:
        results = [said for said in request["messages"] if said["role"] == "tool"]
        has_format = "response_format" in request
        if request.get("tools") and not has_format and not results:
            return self._call()
        if request.get("tools") and not has_format and self.fails_on_json:
            return no_call(request)
        found = WINE_ID.findall(
            json.dumps([result["content"] for result in results]).replace("\\", "")
        )
        return answer_json(recommendation(found[0] if found else "chateau-nowhere-2019"))

    def _call(self) -> Step:
        if self.parses_calls:
            return tool_call(self.tool, self.arguments)
        written = json.dumps({"name": self.tool, "arguments": self.arguments})
        return answer(f"```json\n{written}\n```")


def recommendation(wine_id: str) -> JsonObject:
    wines = [{"wine_id": wine_id, "description": "Fresh, with fine tannin for the meat."}]
    return {"response_type": "recommendation", "intro": "For your lamb:", "wines": wines}


def no_call(request: JsonObject) -> Step:
    """Fail as llama.cpp does when an answer is no call of the tools that were offered."""
    if not request.get("stream"):
        return error(500, NO_CALL)
    begun = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": None}}]}
    events = "".join(f"data: {json.dumps(event)}\n\n" for event in (begun, NO_CALL))
    return raw(events.encode(), 200, "text/event-stream")


SERVERS: dict[str, Callable[[str, JsonObject], LocalModel]] = {
    "Ollama": LocalModel,
    "llama.cpp": lambda tool, given: LocalModel(tool, given, fails_on_json=True),
    "llama.cpp with another template": lambda tool, given: LocalModel(
        tool, given, parses_calls=False
    ),
}
