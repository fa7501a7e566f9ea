"""The scripted model and trace receiver, in a process of its own: as little HTTP as it takes.

What it replies follows from the request alone (how many answers and tool results it holds), so the
candidates need no script in order.
"""

import asyncio
import json
from typing import Any, Final

from benchmarks.scenario import KINDS, MODEL, VALID, Kind

HEAD_END: Final = b"\r\n\r\n"
VALID_JSON: Final = VALID.model_dump_json()
INVALID_JSON: Final = json.dumps(
    {"intro": "Here is what I would open tonight.", "closing": "Enjoy."}
)
CALLS: Final = ({"style": "red", "max_price": 20}, {"style": "white", "max_price": 20})

JsonObject = dict[str, Any]


class Connection(asyncio.Protocol):
    """One connection that is kept alive."""

    def __init__(self) -> None:
        self.buffer = b""
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(HEAD_END)) >= 0:
            end += len(HEAD_END)
            size = end + content_length(self.buffer[:end])
            if len(self.buffer) < size:
                return
            head, body = self.buffer[:end], self.buffer[end:size]
            self.buffer = self.buffer[size:]
            self.transport.write(respond(head, body))


def content_length(head: bytes) -> int:
    """Return the length of the body that a head announces, in bytes."""
    _, found, rest = head.lower().partition(b"\r\ncontent-length:")
    return int(rest.split(b"\r\n", 1)[0]) if found else 0


def respond(head: bytes, body: bytes) -> bytes:
    """Return the whole response to one request."""
    path = head.split(b" ", 2)[1]
    if path.startswith(b"/v1/chat/completions"):
        return http(json.dumps(completion(json.loads(body), body)).encode())
    if path.startswith(b"/api/public/scores"):
        return http(b'{"message": "Accepted"}', "202 Accepted")
    return http(b"")


def http(body: bytes, status: str = "200 OK") -> bytes:
    """Return an HTTP response with a JSON body."""
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
    return head.encode() + HEAD_END + body


def completion(request: JsonObject, body: bytes) -> JsonObject:
    """Return a chat completion with the message that the script foresees."""
    kind = next(kind for kind in KINDS if kind.question.encode() in body)
    message = reply(kind, [message["role"] for message in request["messages"]])
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_760_000_000,
        "model": MODEL,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": None, "refusal": None}
                | message,
                "logprobs": None,
                "finish_reason": "tool_calls" if "tool_calls" in message else "stop",
            }
        ],
        "usage": {"prompt_tokens": 420, "completion_tokens": 80, "total_tokens": 500},
    }


def reply(kind: Kind, roles: list[str]) -> JsonObject:
    """Return the message that follows on messages of these roles."""
    if kind.tool_calls and "tool" not in roles:
        return calls_message(kind.tool_calls)
    if kind.name == "invalid once" and "assistant" not in roles:
        return {"content": INVALID_JSON}
    return {"content": VALID_JSON}


def calls_message(count: int) -> JsonObject:
    """Return so many calls of the tool at once."""
    calls = [
        call(f"call_{i}", "find_wines", json.dumps(given))
        for i, given in enumerate(CALLS[:count])
    ]
    return {"tool_calls": calls}


def call(id: str, name: str, arguments: str) -> JsonObject:
    """Return one tool call."""
    return {
        "id": id,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


async def serve() -> None:
    """Serve on a free port of 127.0.0.1, which is printed, until stopped."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve())
