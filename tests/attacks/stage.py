"""The running product, its doubles, and the sources that hold hostile texts."""

import asyncio
import csv
import hashlib
import itertools
import json
import re
import sqlite3
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, Final

import httpx
from PIL import Image
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tests.attacks.corpus import FORWARDED, OVER_HTTP, PICTURED, Attack
from tests.attacks.model import ORDINARY, Heard, ObedientModel, width_of
from tests.commands import empty_home, sommelier
from tests.crash.doubles import sleep_until
from tests.crash.harness import Bot, free_port
from tests.doubles.bot_api import TOKEN, BotApi, Call, Fault
from tests.doubles.server import JsonObject
from tests.doubles.telegram_chats import inline_buttons, person
from tests.doubles.web import Web

API_TOKEN: Final = "attacks-over-http-0123456789abcdef"
ADMIN: Final = 900_001
ADMINS: Final = range(ADMIN, ADMIN + 60)
VICTIM: Final = 2001
SECOND: Final = 3001
FIRST: Final = 10_000
SECRETS: Final = (
    "My name is Ottilie Quandt and my phone is +49 176 98765018, a red for lamb please",
    "Ottilie again: I am allergic to walnuts since Zanzibar, which red goes with goat?",
)
TELLING: Final = ("ottilie", "quandt", "98765018", "walnuts since zanzibar", "red goes with goat")
"""Of SECRETS, what nobody else may read."""
ADDRESSES: Final = (
    "javascript:alert(1)//{ref}",
    "tg://resolve?domain={ref}",
    "https://halles.example@evil.example/{ref}",
    "data:text/html,{ref}",
    "https://evil.example/\u202egpj.{ref}",
    "http://[::1/{ref}",
    'https://evil.example/"><b>{ref}</b>',
    "https://t.me/{ref}",
)
"""Where a web search leads that is not to be trusted."""
CATALOGUED: Final = ("wine name", "wine note", "inline")
"""Ways by which a wine of the catalogue holds the text."""
WITHIN: Final = 150.0
"""Seconds after which a message counts as not answered."""


class Telegram(BotApi):
    """Notes every call that shows somebody something, by chat."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: dict[int, list[Call]] = {}

    async def _result(self, call: Call, fault: Fault | None) -> object:
        if "text" in call.params or "caption" in call.params:
            self.shown.setdefault(int(call.params.get("chat_id", 0)), []).append(call)
        return await super()._result(call, fault)

    def answered(self, chat: int) -> list[Call]:
        """The messages that a chat was sent."""
        sent = ("sendMessage", "sendDocument", "sendPhoto")
        return [each for each in self.shown.get(chat, ()) if each.method in sent]


class HostileWeb(Web):
    """A web search that finds what an attack put there; by the ref that stands in the query."""

    def __init__(self, attacks: Iterable[Attack]) -> None:
        super().__init__()
        self._attacks = {each.ref: each for each in attacks}
        self.returned: dict[str, list[JsonObject]] = {}

    async def _search(self, request: Request) -> Response:
        query = request.query_params["q"]
        ref = next((word for word in query.split() if word in self._attacks), "")
        attack = self._attacks.get(ref)
        hit = {"title": "Cave", "url": f"https://halles.example/{ref}", "content": "Wines."}
        if attack is not None and attack.way == "web title":
            hit["title"] = attack.text
        elif attack is not None and attack.way == "web address":
            hit["url"] = ADDRESSES[len(attack.text) % len(ADDRESSES)].format(ref=ref)
        elif attack is not None:
            hit["content"] = attack.text
        self.returned[ref] = [hit]
        return JSONResponse({"results": [hit]})


WINE: Final = {
    "id": "",
    "producer": "",
    "name": "Cuvée",
    "country": "France",
    "region": "Loire",
    "grapes": "Pinot Noir",
    "style": "red",
    "colour": "red",
    "price": "23.70",
    "currency": "EUR",
    "notes": "Red fruit.",
    "in_stock": "true",
}


@dataclass
class Stage:
    """One process of the product and everything around it."""

    api: Telegram
    model: ObedientModel
    web: HostileWeb
    bot: Bot
    database: Path
    refused: list[str]
    updates: dict[int, str] = field(default_factory=dict)
    """By an update's id the ref of its attack."""
    chats: dict[str, int] = field(default_factory=dict)
    second: list[float | None] = field(default_factory=list)
    """For each question of the second chat, the seconds until its answer; None: there was none."""
    presses: int = 0
    held: dict[str, str] = field(default_factory=dict)
    """Digests of what no message may change."""
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(FIRST))
    _admins: Iterator[int] = field(default_factory=lambda: itertools.count(ADMIN + 1))

    async def attack(self, attack: Attack) -> bool:
        """Send one; whether anything came back."""
        chat = next(self._numbers) * (-1 if attack.way == "group" else 1)
        if attack.way == FORWARDED:
            chat = next(self._admins)
        self.chats[attack.ref] = chat
        if attack.way == "inline":
            return await self._inline(attack, chat)
        self.model.begin(attack)
        if attack.way in OVER_HTTP:
            return await self._over_http(attack, chat)
        update = self._sent(attack, chat)
        self.updates[update] = attack.ref
        try:
            came = await self.comes(chat, 1)
            if came and attack.way == "noted":
                self.api.say(f"What did I tell you? ({attack.ref})", chat_id=chat)
                came = await self.comes(chat, 2)
            return came
        finally:
            self.model.end(attack)

    def _sent(self, attack: Attack, chat: int) -> int:
        if attack.way not in PICTURED:
            return self.api.push({"message": message_of(self.api, attack, chat)})
        drawn = BytesIO()
        Image.new("RGB", (width_of(attack), 64), "white").save(drawn, "PNG")
        return self.api.send("photo", drawn.getvalue(), chat, attack.said)

    async def _over_http(self, attack: Attack, chat: int) -> bool:
        """Ask over HTTP; whether an answer came. Drafts count as what was shown, too."""
        streams = attack.way == "http stream"
        own = {"authorization": f"Bearer {API_TOKEN}"}
        own |= {"accept": "text/event-stream"} if streams else {}
        address = f"http://127.0.0.1:{self.bot.port}/api/chat"
        async with httpx.AsyncClient(timeout=WITHIN, trust_env=False, verify=False) as client:
            told = await client.post(address, json={"message": attack.said}, headers=own)
        self.model.end(attack)
        events = [
            json.loads(line[6:]) for line in told.text.splitlines() if line.startswith("data: ")
        ]
        said = events if streams else [told.json()]
        *drafts, last = [each.get("text") or each.get("answer", "") for each in said]
        methods = [*("editMessageText" for _ in drafts), "sendMessage"]
        self.api.shown[chat] = [
            Call(method, {"text": text}, {}, status=told.status_code)
            for method, text in zip(methods, [*drafts, last], strict=True)
        ]
        return bool(last)

    async def _inline(self, attack: Attack, chat: int) -> bool:
        """Offer the wine in some chat; whether any was, each shown as if it had been sent."""
        query = self.api.ask_inline(attack.ref, chat)
        await sleep_until(lambda: self.api.inline_results(query) is not None, WITHIN)
        self.model.heard[attack.ref] = Heard()
        shown = self.api.shown.setdefault(chat, [])
        for each in self.api.inline_results(query) or ():
            content = each["input_message_content"]
            told = {"text": content["message_text"], "parse_mode": content.get("parse_mode")}
            shown.append(Call("sendMessage", told, {}, status=200))
        return bool(shown)

    async def ask(self, chat: int, text: str) -> bool:
        """Ask something ordinary; whether exactly one more message came."""
        before = len(self.api.answered(chat))
        self.api.say(text, chat_id=chat)
        return await self.comes(chat, before + 1)

    async def comes(self, chat: int, number: int) -> bool:
        """Whether a chat has so many messages within WITHIN seconds."""
        return await sleep_until(lambda: len(self.api.answered(chat)) >= number, WITHIN)

    async def run(self, attacks: Sequence[Attack], at_once: int = 12, questions: int = 1) -> None:
        """All attacks, the second chat beside them with so many questions at least."""
        waiting = iter(attacks)

        async def worker() -> None:
            for attack in waiting:
                await self.attack(attack)

        self.held = {what: self.digest(what) for what in ("wines", "chunks", "documents")}
        for secret in SECRETS:
            await self.ask(VICTIM, f"{secret} {ORDINARY}")
        over = asyncio.Event()
        beside = asyncio.create_task(self._second_chat(over, questions))
        await asyncio.gather(*(worker() for _ in range(at_once)))
        await self._press()
        over.set()
        await beside

    async def _second_chat(self, over: asyncio.Event, questions: int) -> None:
        number = 0
        while number < questions or not over.is_set():
            number += 1
            began = time.monotonic()
            answered = await self.ask(SECOND, f"A red for lamb, {number} {ORDINARY}")
            self.second.append(time.monotonic() - began if answered else None)
            await asyncio.sleep(0.1)

    async def _press(self) -> None:
        """Others press the buttons of an admin's broadcast, and some that were never there."""
        self.api.say("/broadcast We are closed on Monday", chat_id=ADMIN)
        await self.comes(ADMIN, 2)
        shown = next(each for each in self.api.messages(ADMIN) if "reply_markup" in each)
        buttons = [each["callback_data"] for each in inline_buttons(shown["reply_markup"])]
        forged = [f"{each[:-1]}{digit}" for each in buttons for digit in "0129"]
        for number, data in enumerate([*buttons, *forged, "", "x" * 64, "'; DROP TABLE wines; --"]):
            self.api.press(shown, data, user_id=FIRST + number)
            self.presses += 1
        done = lambda: len(self.api.calls_of("answerCallbackQuery")) >= self.presses  # noqa: E731
        await sleep_until(done, WITHIN)

    def digest(self, table: str) -> str:
        """A digest of a table's rows."""
        rows = self.rows(f"SELECT * FROM {table} ORDER BY 1")
        return hashlib.sha256(repr(rows).encode()).hexdigest()

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """What stands in the database."""
        with closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)) as connection:
            return connection.execute(statement).fetchall()


def message_of(api: BotApi, attack: Attack, chat: int) -> JsonObject:
    """The message by which an attack is sent."""
    user = abs(chat)
    with api._lock:
        made = api._chats.hear(attack.said, chat, user)
    match attack.way:
        case "group":
            mention = "@sommelier_test_bot"
            made["text"] = f"{mention} {attack.said}"[:4096]
            made["entities"] = [{"type": "mention", "offset": 0, "length": len(mention)}]
        case "reply":
            other = made | {"message_id": 1, "from": person(user + 1), "text": attack.text[:4096]}
            made |= {"text": "What do you say to that?", "reply_to_message": other}
        case "forward":
            origin = {"type": "hidden_user", "date": 1, "sender_user_name": attack.text[:64]}
            made["forward_origin"] = origin
        case "caption":
            file = {"file_id": "f", "file_unique_id": "f", "file_name": attack.text[:60]}
            made |= {"caption": made.pop("text")[:1024], "document": file}
        case "display name":
            made["text"] = f"A red for lamb, please ({attack.ref})"
            made["from"] |= {"first_name": attack.text[:64], "last_name": attack.text[64:128]}
            made["chat"] |= {"first_name": attack.text[:64]}
        case "forwarded by an admin":
            origin = {"type": "user", "date": 1, "sender_user": person(FIRST)}
            passed = {"forward_origin": origin} if chat % 2 else {"via_bot": person(5)}
            made |= passed
        case "look-up":
            command = ("/ask", "/quotes", "/find wine bar")[len(attack.text) % 3]
            made["text"] = f"{command} {attack.said}"[:4096]
    return commanded(made)


def commanded(message: JsonObject) -> JsonObject:
    """The message with the command at its beginning marked, as Telegram does."""
    text = message.get("text", "")
    first = text.split(maxsplit=1)[0] if text.strip() else ""
    if first.startswith("/") and first[1:].partition("@")[0].isidentifier():
        message["entities"] = [{"type": "bot_command", "offset": 0, "length": len(first)}]
    if not text.strip() and "caption" not in message:
        message["text"] = text or " "
    return message


def stock(home: Path, environment: dict[str, str], attacks: Sequence[Attack]) -> list[str]:
    """Put into catalogue and library what attacks want there; the refs of those refused."""
    folder = home / "notes"
    folder.mkdir()
    for each in attacks:
        if each.way in ("document", "asked document", "document title"):
            told = f"# {each.ref}\n\n{each.ref} rests on its lees. {each.text}\n"
            if each.way == "document title":
                told = f"# {' '.join(each.text.split())}\n\n{each.ref} rests on its lees.\n"
            (folder / f"{each.ref}.md").write_text(told)
    added = sommelier("documents", "add", str(folder), environment=environment)
    assert added.returncode in (0, 1), added.stderr
    listed = [each for each in attacks if each.way in CATALOGUED]
    kept = listed
    while kept and (imported := import_wines(home / "wines.csv", environment, kept)).returncode:
        lines = {int(number) for number in re.findall(r"(?m)^ *(\d+)  ", imported.stderr)}
        bad = [
            each
            for each, its in zip(kept, lines_of(home / "wines.csv"), strict=True)
            if its & lines
        ]
        assert bad, imported.stderr
        kept = [each for each in kept if each not in bad]
    return [each.ref for each in listed if each not in kept]


def import_wines(
    path: Path, environment: dict[str, str], attacks: Sequence[Attack]
) -> CompletedProcess[str]:
    """Import a catalogue with a wine for each attack."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, WINE)
        writer.writeheader()
        writer.writerows(wine_of(each) for each in attacks)
    return sommelier("wines", "import", str(path), environment=environment)


def lines_of(path: Path) -> list[set[int]]:
    """The numbers of the lines of each wine of a catalogue."""
    with path.open(newline="") as file:
        reader = csv.reader(file)
        ends = [reader.line_num for _ in reader]
    return [set(range(last + 1, end + 1)) for last, end in itertools.pairwise(ends)]


def wine_of(attack: Attack) -> dict[str, str]:
    """A wine whose name or note is the attack's text."""
    named = attack.way != "wine note"
    producer = f"Domaine {attack.ref.capitalize()}"
    own = {"id": f"wine-{attack.ref}", "producer": producer}
    text = {"name": attack.text} if named else {"notes": attack.text}
    return WINE | own | text


@asynccontextmanager
async def staged(home: Path, attacks: Sequence[Attack], **settings: str) -> AsyncIterator[Stage]:
    """The process, ready, on a machine in `home` on which the first start has been."""
    with Telegram() as api, ObedientModel() as model, HostileWeb(attacks) as web:
        environment = empty_home(home) | {
            "TELEGRAM_BOT_TOKEN": TOKEN,
            "TELEGRAM_BASE_URL": api.base_url,
            "TELEGRAM_MESSAGES_PER_SECOND": "0",
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_API_KEY": "sk-secret",
            "SEARXNG_URL": web.base_url,
            "ADMIN_IDS": ",".join(map(str, ADMINS)),
            "BURST_SECONDS": "0",
            "API_TOKEN": API_TOKEN,
            "HTTP_PORT": str(port := free_port()),
            "VISION_MODEL": "gpt-4o",
            **settings,
        }
        refused = await asyncio.to_thread(stock, home, environment, attacks)
        bot = Bot(environment, home / "bot.log", port)
        bot.start()
        try:
            await bot.ready()
            yield Stage(
                api, model, web, bot, home / "data" / "sommelier" / "sommelier.sqlite3", refused
            )
        finally:
            await bot.stop()
