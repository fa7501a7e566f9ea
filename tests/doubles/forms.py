"""Request bodies as clients of the Bot API send them: JSON, URL-encoded forms, multipart."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from urllib.parse import parse_qsl

from tests.doubles.server import JsonObject

TEXTS = {"text", "caption", "parse_mode", "url", "callback_query_id", "secret_token", "action"}
"""Parameters that stay text even if they look like JSON."""


@dataclass(frozen=True)
class Upload:
    """A file that came in a multipart body."""

    filename: str
    content_type: str
    data: bytes


def parse_body(content_type: str, body: bytes) -> tuple[JsonObject, dict[str, Upload]]:
    """Parameters, each decoded from JSON where it is JSON, and files, both by name."""
    kind = content_type.partition(";")[0].strip().lower()
    if not body:
        return {}, {}
    if kind == "application/json":
        return json.loads(body), {}
    if kind == "multipart/form-data":
        return _multipart(content_type, body)
    return form(body.decode()), {}


def form(source: str) -> JsonObject:
    """The parameters of a URL-encoded form or query."""
    return {name: _decoded(name, value) for name, value in parse_qsl(source, True)}


def _decoded(name: str, value: str) -> object:
    if name in TEXTS:
        return value
    try:
        decoded: object = json.loads(value)
    except ValueError:
        return value
    return decoded


def _multipart(content_type: str, body: bytes) -> tuple[JsonObject, dict[str, Upload]]:
    params: JsonObject = {}
    files: dict[str, Upload] = {}
    for headers, data in _parts(content_type, body):
        name = str(headers.get_param("name", "", "content-disposition"))
        filename = headers.get_filename()
        if filename is None:
            params[name] = _decoded(name, data.decode())
        else:
            files[name] = Upload(filename, headers.get_content_type(), data)
    return params, files


def _parts(content_type: str, body: bytes) -> Iterator[tuple[Message, bytes]]:
    boundary = b"\r\n--" + str(_headers(f"Content-Type: {content_type}").get_boundary()).encode()
    for part in (b"\r\n" + body).split(boundary)[1:-1]:
        head, _, data = part.partition(b"\r\n\r\n")
        yield _headers(head.decode().strip()), data


def _headers(source: str) -> Message:
    message = Message()
    for line in source.split("\r\n"):
        name, _, value = line.partition(":")
        message[name] = value.strip()
    return message
