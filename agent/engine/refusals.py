"""The errors of a model's server, and their meaning."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Final

NO_CALL: Final = "does not match the expected"
"""Words of llama.cpp about an answer in JSON that is no call of a tool."""
TOO_LONG: Final = (
    "context length", "context_length", "context size", "context_size", "context window",
    "prompt is too long", "input is too long", "too many tokens", "maximum number of tokens",
    "exceeds the available context", "longer than the maximum",
)  # fmt: skip
"""Words of a refusal because of a request's length, as servers write them."""
PASSING: Final = frozenset({408, 409, 425, 429})
"""Statuses below 500 after which another try may help."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A server's error: its status, its body, and the headers if it came before a stream."""

    status: int
    body: object
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def within(cls, body: object) -> "Refusal":
        """Return the refusal of an error that came with status 200; 502 if it names no status."""
        code = body.get("code") if isinstance(body, Mapping) else None
        return cls(code if isinstance(code, int) and 400 <= code < 600 else 502, body)

    @property
    def text(self) -> str:
        """Return the server's own words: at most 300 characters, not what was sent to it."""
        body = self.body
        if isinstance(body, list) and len(body) == 1:
            body = body[0]
        if isinstance(body, Mapping):
            inner = body.get("error", body)
            body = inner.get("message", inner) if isinstance(inner, Mapping) else inner
        return " ".join(str(_without_input(body) or "").split())[:300]

    @property
    def is_filtered(self) -> bool:
        """Return True if a content filter did not let the question pass."""
        return bool(self._kinds & {"content_filter", "content_policy_violation"})

    @property
    def is_unreadable_answer(self) -> bool:
        """Return True if the server could not read what the model wrote beside tools."""
        return self.status >= 500 and NO_CALL in self.text

    @property
    def is_too_long(self) -> bool:
        """Return True if the request is longer than the model takes in."""
        said = f"{self._kinds} {self.text}".lower()
        is_about_it = self.status in {400, 413, 422} or self.status >= 500
        return is_about_it and any(words in said for words in TOO_LONG)

    @property
    def may_be_of_a_parameter(self) -> bool:
        """Return True if the server may not know a parameter; some call that their own failure."""
        own_failure = self.status in {500, 501} and (
            "grammar" in self.text or "response_format" in self.text
        )
        return self.status in {400, 422} or own_failure

    @property
    def is_rate_limit(self) -> bool:
        """Return True for a 429, unless it is about money, which waiting does not bring."""
        return self.status == 429 and "insufficient_quota" not in self._kinds

    @property
    def is_passing(self) -> bool:
        """Return True if another try may help."""
        return self.status >= 500 or self.status in PASSING - {429}

    @property
    def retry_after(self) -> float | None:
        """Return how many seconds the server asks us to wait, None if it does not say."""
        for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
            try:
                return max(0.0, float(self.headers[name]) / unit)
            except (KeyError, ValueError):
                continue
        try:
            date = parsedate_to_datetime(self.headers.get("retry-after", ""))
        except ValueError:
            return None
        return max(0.0, date.timestamp() - time.time())

    @property
    def _kinds(self) -> set[str]:
        """Return how the server names the kind of its error."""
        body = self.body if isinstance(self.body, Mapping) else {}
        return {str(body[name]) for name in ("code", "type") if body.get(name)}


def _without_input(node: object) -> object:
    """Return the errors of a server that validates, without the input they repeat."""
    if isinstance(node, list):
        return [_without_input(item) for item in node]
    if isinstance(node, Mapping):
        return {key: _without_input(value) for key, value in node.items() if key != "input"}
    return node
