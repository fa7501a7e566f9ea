"""Parse the request bodies of clients of the Bot API: JSON, URL-encoded and multipart forms."""

import json
from dataclasses import dataclass

from starlette.datastructures import UploadFile
from starlette.requests import Request

from tests.doubles.server import JsonObject

TEXTS = {
    "text",
    "caption",
    "parse_mode",
    "url",
    "callback_query_id",
    "secret_token",
    "action",
}
"""Text parameters: they are not decoded, even if their text is valid JSON."""


@dataclass(frozen=True)
class Upload:
    """A file in a multipart body."""

    filename: str
    content_type: str
    data: bytes


async def parse_parameters(request: Request) -> tuple[JsonObject, dict[str, Upload]]:
    """Return the parameters of a request, decoded if they are JSON, and its files, both by name."""
    params: JsonObject = {
        name: _decoded(name, text) for name, text in request.query_params.items()
    }
    if request.headers.get("content-type", "").startswith("application/json"):
        return params | json.loads(await request.body() or b"{}"), {}
    files = dict[str, Upload]()
    async with request.form() as form:
        for name, value in form.items():
            if isinstance(value, UploadFile):
                kind = value.content_type or ""
                files[name] = Upload(value.filename or "", kind, await value.read())
            else:
                params[name] = _decoded(name, value)
    return params, files


def _decoded(name: str, value: str) -> object:
    if name in TEXTS:
        return value
    try:
        decoded: object = json.loads(value)
    except ValueError:
        return value
    return decoded
