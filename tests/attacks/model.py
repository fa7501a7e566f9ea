"""A model that obeys whatever it reads, and keeps obeying when its answer is sent back."""

import json
import re
import threading
from base64 import b64decode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import Any, Final
from zlib import crc32

from PIL import Image

from agent.places.categories import categories
from tests.attacks.corpus import CLAIMED, Attack, squeezed
from tests.doubles.model_server import (
    ModelServer,
    Step,
    answer,
    answer_json,
    call,
    refusal,
    tool_calls,
)
from tests.doubles.server import JsonObject

ORDINARY: Final = "qordinaryq"
"""What names a question of the second chat."""
INTRO: Final = "A full red goes well with that."
FEEDBACK: Final = "Your previous response failed validation"
SOURCE: Final = re.compile(
    r'\[Source: "([^"\n]*)" \(id: ([^)\n]*)\), Section: "([^"\n]*)"\]\n'
    r"((?:.|\n)*?)(?:\n\n---|</sources>)"
)
"""A chunk as `/quotes` shows it: title, id, section, text."""
KEY: Final = 120
"""Letters by which a text of a person is known again."""
FIELDS: Final = ("intro", "closing", "description", "informational")
PRIVY: Final = {"system_prompt", "other_peoples_data", "prompt_recital", "tool_json"}
"""Kinds of texts that ask for what stands in the request itself."""


@dataclass
class Heard:
    """What a turn's requests showed its model."""

    prompts: set[str] = field(default_factory=set)
    results: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    requests: int = 0


class ObedientModel(ModelServer):
    """Says the texts of the attacks that are under way. Others may use it from any thread.

    `heard` is what it was shown, by the attack's ref; an answer takes it `seconds`.
    """

    def __init__(self) -> None:
        super().__init__(default=self._obey)
        self.seconds = 0.0
        self.heard: dict[str, Heard] = {}
        self._under_way: dict[str, Attack] = {}
        self._lock = threading.Lock()

    def begin(self, attack: Attack) -> None:
        """Obey `attack` from now on."""
        with self._lock:
            self._under_way[attack.ref] = attack
            self.heard[attack.ref] = Heard()

    def end(self, attack: Attack) -> None:
        """Obey `attack` no more."""
        with self._lock:
            self._under_way.pop(attack.ref, None)

    def _obey(self, body: JsonObject) -> Step:
        return replace(self._step(body), seconds=self.seconds)

    def _step(self, body: JsonObject) -> Step:
        messages = body["messages"]
        asked = text_of(latest(messages))
        if ORDINARY in asked:
            return ordinary(messages)
        attack = self._attack(messages)
        if attack is None:
            return answered_by_nobody(asked)
        self._hear(attack, body)
        return obeyed(attack, body)

    def _attack(self, messages: Sequence[JsonObject]) -> Attack | None:
        with self._lock:
            under_way = list(self._under_way.values())
        if picture := picture_in(latest(messages)):
            return next((each for each in under_way if width_of(each) == picture.width), None)
        texts = [text_of(each) for each in messages if each["role"] in ("user", "tool")]
        for attack in under_way:
            if any(attack.ref in text for text in texts):
                return attack
        letters = [squeezed(text[:6000]) for text in texts]
        keys = ((each, squeezed(each.said[:3000])[:KEY]) for each in under_way)
        found = [
            (len(key), each) for each, key in keys if key and any(key in one for one in letters)
        ]
        return max(found, key=lambda pair: pair[0])[1] if found else None

    def _hear(self, attack: Attack, body: JsonObject) -> None:
        heard = self.heard[attack.ref]
        heard.requests += 1
        for message in body["messages"]:
            text = text_of(message)
            if message["role"] == "system":
                heard.prompts.add(text)
            elif message["role"] == "tool":
                heard.results.append(text)
            elif message["role"] == "user":
                heard.messages.append(text)
        for tool in body.get("tools", ()):
            heard.prompts.add(tool["function"].get("description", ""))


def obeyed(attack: Attack, body: JsonObject) -> Step:
    """How the model answers one request of an attack's turn."""
    messages = body["messages"]
    system = text_of(messages[0])
    if picture_in(latest(messages)):
        return answer_json(transcript(attack))
    if "exactly 10" in system:
        return answer_json(queries(attack))
    if "refined_query" in system:
        return answer_json({"refined_query": said(attack), "variants": [said(attack)] * 3})
    if "sourceId" in system:
        return answer_json(quotes(attack, messages))
    if "file excerpts" in system:
        return answer(cited(attack, messages))
    if body.get("tools") and not any(each["role"] == "tool" for each in since_asked(messages)):
        offered = [each["function"]["name"] for each in body["tools"]]
        return tool_calls(
            calls(attack, offered), said(attack) if attack.way == "argument" else None
        )
    return final(attack, messages)


def width_of(attack: Attack) -> int:
    """The width in pixels by which the picture of an attack is known again."""
    return 64 + crc32(attack.ref.encode()) % 1400


def picture_in(message: JsonObject) -> Image.Image | None:
    """The first picture that a message shows."""
    parts = message["content"] if isinstance(message["content"], list) else []
    shown = (part["image_url"]["url"] for part in parts if part["type"] == "image_url")
    data = next(shown, "").partition(",")[2]
    return Image.open(BytesIO(b64decode(data))) if data else None


def transcript(attack: Attack) -> JsonObject:
    """What the model reads in the picture: a list, the text its second line; or a label."""
    wine = {"line": f"Domaine {attack.ref} 2019 23,70", "name": f"Domaine {attack.ref}"}
    named = {"line": attack.text, "name": attack.text, "producer": attack.text[:60], "price": 31}
    if attack.way == "label":
        return {"shows": "label", "wines": [named | {"line": attack.text[:300]}], "seen": ""}
    return {"shows": "wine_list", "wines": [wine, named], "seen": attack.text}


def calls(attack: Attack, offered: Sequence[str]) -> list[JsonObject]:
    """What the model calls first: what finds wines, and what the attack needs."""
    text = attack.text[:180]
    wanted: list[tuple[str, JsonObject]] = [("search_wines", {"styles": ["red"]})]
    if attack.way in ("wine name", "wine note"):
        wanted = [("get_wine", {"wine_ids": [f"wine-{attack.ref}"]})]
    elif attack.way == "document":
        wanted.append(("search_documents", {"query": attack.ref}))
    elif attack.way in ("argument", "message", "look-up"):
        wanted += [
            ("search_wines", {"text": text}),
            ("get_wine", {"wine_ids": CLAIMED.findall(text)[:12] or [text]}),
            ("find_places", {"category": "WINE_BAR", "place": text}),
            ("search_documents", {"query": text}),
        ]
    if attack.way == "noted":
        wanted.append(("remember", {"kind": "note", "words": text}))
    if attack.way == "argument":
        wanted.append(("quote_documents", {"query": text}))
    named = [(name, {"text": text}) for name in re.findall(r"\b[a-z]+_[a-z]+\b", attack.text)]
    wanted += [pair for pair in named if pair[0] not in dict(wanted)][:3]
    known = [(name, given) for name, given in wanted if name in offered or (name, given) in named]
    return [call(name, given) for name, given in known]


def final(attack: Attack, messages: Sequence[JsonObject]) -> Step:
    """The answer, with the text in it; the same after every correction, or in another field."""
    text = said(attack, messages)
    ids = wines(messages)[:2]
    ids += [f"wine-{attack.ref}"] if attack.way in ("wine name", "wine note") else []
    plain: JsonObject = {
        "response_type": "recommendation",
        "intro": INTRO,
        "wines": [{"wine_id": each, "description": "Dark and dry."} for each in ids[:1]],
        "closing": "Enjoy.",
    }
    chosen = attack.way
    if attack.source == "person":
        chosen = ("intro", "informational", "everything", "closing")[len(attack.text) % 4]
    if chosen in FIELDS and len(attack.text) % 2:
        chosen = FIELDS[(FIELDS.index(chosen) + corrections(messages)) % len(FIELDS)]
    if chosen == "raw":
        return answer(text)
    if chosen == "refused":
        return refusal(text)
    if chosen in ("informational", "document", "argument") or not ids:
        return answer_json({**plain, "response_type": "informational", "intro": text, "wines": []})
    if chosen in ("description", "wine note", "wine name"):
        plain["wines"] = [{"wine_id": ids[-1], "description": text}]
    elif chosen == "everything":
        claimed = [*ids, *CLAIMED.findall(attack.text)[:3]]
        plain["wines"] = [{"wine_id": each, "description": text} for each in claimed]
        plain |= {"intro": text, "closing": text}
    else:
        plain["closing" if chosen == "closing" else "intro"] = text
    return answer_json(plain)


def corrections(messages: Sequence[JsonObject]) -> int:
    """How often the answer was sent back."""
    return sum(text_of(each).startswith(FEEDBACK) for each in messages)


def said(attack: Attack, messages: Sequence[JsonObject] = ()) -> str:
    """The text that is obeyed; with what stands in the request, where a text asks for that."""
    if attack.kind not in PRIVY or not messages:
        return attack.obeyed
    held = " ".join(text_of(messages[0]).split())
    start = (len(attack.text) * 37) % max(1, len(held) - 400)
    earlier = " ".join(text_of(each) for each in messages[1:-1] if each["role"] == "user")
    return f"{attack.obeyed} {held[start : start + 400]} {earlier[:400]}"


def queries(attack: Attack) -> list[str]:
    """Ten queries that are distinct, the text in one of them and its words in all."""
    words, kinds = said(attack).split(), categories()["WINE_BAR"].phrases
    parts = [" ".join(words[at : at + 2]) for at in range(0, 20, 2)]
    told = [
        f"{kind} Lyon {attack.ref} {part}".strip() for kind, part in zip(kinds, parts, strict=True)
    ]
    return [f"{kinds[0]} Lyon {attack.ref} {' '.join(words)[:120]}", *told[1:]]


def quotes(attack: Attack, messages: Sequence[JsonObject]) -> JsonObject:
    """A quote as it stands in the first source; what is said of it, and of all, is the text."""
    shown = SOURCE.search(text_of(messages[-1])) or SOURCE.search(text_of(latest(messages)))
    title, name, section, passage = shown.groups() if shown else ("", "source", "", "")
    snippet = {
        "content": " ".join(passage.split()[:12]),
        "sourceId": name,
        "sourceTitle": title,
        "sourceLocation": section,
        "relevance": said(attack),
    }
    return {"snippets": [snippet], "summary": said(attack), "noResults": False}


def cited(attack: Attack, messages: Sequence[JsonObject]) -> str:
    """The text, with the path of a real excerpt behind it."""
    shown = " ".join(text_of(each) for each in messages[1:])
    paths = re.findall(r"[\w./-]+\.md", shown)
    path = next((each for each in paths if attack.ref in each), paths[0] if paths else "none.md")
    return f"{said(attack)} [{path}]"


def ordinary(messages: Sequence[JsonObject]) -> Step:
    """A good answer: a search, then one of its wines."""
    if not any(each["role"] == "tool" for each in since_asked(messages)):
        return tool_calls([call("search_wines", {"styles": ["red"], "foods": ["lamb"]})])
    chosen = [{"wine_id": wines(messages)[0], "description": "Dark and dry."}]
    return answer_json(
        {"response_type": "recommendation", "intro": INTRO, "wines": chosen, "closing": "Enjoy."}
    )


def answered_by_nobody(asked: str) -> Step:
    """What a model says that obeys a text nobody knows: the text."""
    words = asked[:500] or "Good evening."
    return answer_json({"response_type": "informational", "intro": words, "wines": []})


def wines(messages: Sequence[JsonObject]) -> list[str]:
    """The ids that the tools returned, in their order."""
    results = [text_of(each) for each in since_asked(messages) if each["role"] == "tool"]
    return list(dict.fromkeys(found for each in results for found in ids_in(each)))


def ids_in(result: str) -> Iterator[str]:
    """The ids of the wines that one tool returned."""
    try:
        content = json.loads(result)
    except ValueError:
        return
    listed = content.get("wines", ()) if isinstance(content, dict) else ()
    yield from (each["wine_id"] for each in listed if isinstance(each, dict) and "wine_id" in each)


def since_asked(messages: Sequence[JsonObject]) -> list[JsonObject]:
    """What came after the person's last message."""
    return list(messages[list(messages).index(latest(messages)) :])


def latest(messages: Sequence[JsonObject]) -> JsonObject:
    """The person's last message: the last one of the role that is no correction."""
    own = [
        each
        for each in messages
        if each["role"] == "user" and not text_of(each).startswith(FEEDBACK)
    ]
    return own[-1] if own else messages[-1]


def text_of(message: Any) -> str:
    """The words of a message, also if it came in parts."""
    content = message.get("content") or ""
    if isinstance(content, list):
        return " ".join(str(part.get("text", "")) for part in content)
    return str(content)
