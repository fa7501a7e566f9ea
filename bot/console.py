"""The conversation in a terminal, through the same handlers as in Telegram.

In a terminal there is a prompt, colour and a spinner; in a pipe only the text of the answers. The
real `Application` runs unchanged on a Telegram inside this process: the Bot API as far as the
handlers use it, and one person's chat.
"""

import asyncio
import contextlib
import io
import itertools
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any, Final

from telegram import Bot, Update
from telegram.request import BaseRequest, RequestData

from agent.i18n import say, speaking, spoken
from agent.text import pattern
from bot.telegram.answer_buttons import NEXT
from bot.telegram.render import Piece, from_html, utf16_units, visible_text

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.spinner import Spinner
    from rich.text import Text

    from bot.app import App

TOKEN: Final = "0:terminal"  # noqa: S105 - no server ever sees it
BOT: Final = {"id": 0, "is_bot": True, "first_name": "Sommelier", "username": "sommelier_bot"}
COMMAND: Final = pattern(r"/\w{1,32}(?!\S)")
KEYS: Final = {"👍": "+", "👎": "-"}
"""What is typed to press a button whose label begins so; other buttons have numbers."""

JsonObject = dict[str, Any]


class LocalTelegram(BaseRequest):
    """Answers Bot API requests and keeps what the bot sends until it is taken.

    The chat's id lies above every id that Telegram gives (52 bits), so that a conversation here
    never mixes with one there. Without `shows_follow_ups` the buttons that go on
    from an answer are not listed.
    """

    def __init__(self, *, shows_follow_ups: bool = True) -> None:
        self._shows_follow_ups = shows_follow_ups
        self.chat_id = (1 << 52) + os.getpid()
        self.draft = ""
        """The HTML of what is shown of an answer that forms; it goes when anything is sent."""
        # Ids go on where the last conversation's ended: what is kept of turns is kept under them.
        # Two conversations at a time share none, however many messages they have.
        self._ids = itertools.count(time.time_ns() // 1_000)
        self._sent: dict[int, str] = {}
        self._messages: dict[int, JsonObject] = {}
        self._choices: dict[str, tuple[JsonObject, JsonObject]] = {}
        self._asked: JsonObject | None = None
        self._methods: dict[str, Callable[[JsonObject], object]] = {
            "getMe": lambda _: BOT,
            "sendMessage": self._send_message,
            "sendMessageDraft": self._send_draft,
            "sendDocument": self._send_file,
            "sendPhoto": self._send_file,
            "editMessageText": self._edit_text,
            "editMessageReplyMarkup": self._edit_reply_markup,
            "answerCallbackQuery": self._answer_callback_query,
        }

    @property
    def read_timeout(self) -> float | None:
        """None: nothing here takes time."""
        return None

    async def initialize(self) -> None:
        """Nothing is needed."""

    async def shutdown(self) -> None:
        """Nothing is held."""

    async def do_request(
        self,
        url: str,
        method: str,
        request_data: RequestData | None = None,
        *_: object,
        **__: object,
    ) -> tuple[int, bytes]:
        """Do what a Bot API request asks; methods that change nothing here return true."""
        name = url.rpartition("/")[2]
        params = dict(request_data.parameters) if request_data else {}
        if request_data and request_data.contains_files:
            params["files"] = request_data.multipart_data
        result = self._methods[name](params) if name in self._methods else True
        return 200, json.dumps({"ok": True, "result": result}).encode()

    def take(self) -> list[str]:
        """The HTML of the messages sent since the last call, oldest first."""
        taken = list(self._sent.values())
        self._sent.clear()
        return taken

    @property
    def hint(self) -> str:
        """How what was said last is rated; empty if it is not, or if a reply is asked for."""
        keys = [key for key in KEYS.values() if key in self._choices and not self._asked]
        return "   ".join(f"{self._choices[key][1]['text']} type {key}" for key in keys)

    def typed(self, line: str, bot: Bot) -> Update:
        """The update of a line that the person typed.

        The key or the number of a button under the last answer presses it; after a message that
        asks for a reply, the line is the reply.
        """
        person = {"id": self.chat_id, "is_bot": False, "first_name": ""}
        person["language_code"] = spoken()
        asked, self._asked = self._asked, None
        choice = None if asked else self._choices.get(line.strip())
        self._choices.clear()
        self._messages.clear()
        if choice is not None:
            pressed, button = choice
            self._messages[pressed["message_id"]] = pressed
            return self._pressed(pressed, button["callback_data"], person, bot)
        message = self._message(next(self._ids), line) | {"from": person}
        if command := COMMAND.match(line):
            entity = {"type": "bot_command", "offset": 0, "length": command.end()}
            message["entities"] = [entity]
        elif asked is not None:
            message["reply_to_message"] = asked
        return Update.de_json({"update_id": message["message_id"], "message": message}, bot)

    def _pressed(self, message: JsonObject, data: str, person: JsonObject, bot: Bot) -> Update:
        number = next(self._ids)
        query = {"id": str(number), "from": person, "chat_instance": "terminal", "data": data}
        update = {"update_id": number, "callback_query": query | {"message": message}}
        return Update.de_json(update, bot)

    def _message(self, message_id: int, text: str) -> JsonObject:
        chat = {"id": self.chat_id, "type": "private"}
        return {"message_id": message_id, "date": int(time.time()), "chat": chat, "text": text}

    def _send_draft(self, params: JsonObject) -> bool:
        self.draft = params["text"]
        return True

    def _send_message(self, params: JsonObject) -> JsonObject:
        self.draft = ""
        html, markup = params["text"], params.get("reply_markup", {})
        message = self._message(next(self._ids), visible_text(html))
        message |= {"entities": entities(html), "from": BOT}
        if markup.get("force_reply"):
            self._asked = message
        self._sent[message["message_id"]] = html
        self._offer(message, markup)
        return message

    def _edit_text(self, params: JsonObject) -> JsonObject | bool:
        if params["message_id"] in self._messages:
            self._sent[params["message_id"]] = params["text"]
        return self._edit_reply_markup(params)

    def _edit_reply_markup(self, params: JsonObject) -> JsonObject | bool:
        message = self._messages.get(params["message_id"])
        if message is None:
            return True
        for key in [key for key, (of, _) in self._choices.items() if of is message]:
            del self._choices[key]
        self._offer(message, params.get("reply_markup", {}))
        return message

    def _offer(self, message: JsonObject, markup: JsonObject) -> None:
        """Let the buttons of a message be pressed; those with numbers are shown, one a line."""
        message_id, rows = message["message_id"], markup.get("inline_keyboard", [])
        self._messages[message_id] = message
        message["reply_markup"] = {"inline_keyboard": rows}
        lines = []
        for button in itertools.chain.from_iterable(rows):
            key = KEYS.get(button["text"][:1]) or self._free_number()
            self._choices[key] = message, button
            is_shown = self._shows_follow_ups or not button["callback_data"].startswith(NEXT)
            if key.isdigit() and is_shown:
                lines.append(f"<b>{key}</b> › {escape(button['text'], quote=False)}")
        if lines:
            before = [f"{self._sent[message_id]}\n"] if message_id in self._sent else []
            self._sent[message_id] = "\n".join(before + lines)

    def _free_number(self) -> str:
        return next(key for key in map(str, itertools.count(1)) if key not in self._choices)

    def _answer_callback_query(self, params: JsonObject) -> bool:
        if words := params.get("text"):
            self._sent[next(self._ids)] = f"<i>{escape(words, quote=False)}</i>"
        return True

    def _send_file(self, params: JsonObject) -> JsonObject:
        """A file is shown, as far as it is text; a picture is named."""
        ((kind, (name, content, *_)),) = params["files"].items()
        shown = f"<i>[picture: {escape(name, quote=False)}]</i>"
        if kind == "document":
            text = escape(content.decode(errors="replace").rstrip(), quote=False)
            shown = f"<b>{escape(name, quote=False)}</b>\n<pre>{text}</pre>"
        message = self._message(next(self._ids), name)
        self._sent[message["message_id"]] = shown
        return message


ENTITIES: Final = {"a": "text_link", "b": "bold", "i": "italic", "code": "code", "pre": "pre"}


def entities(html: str) -> list[JsonObject]:
    """What Telegram makes of a message's marks."""
    found, offset = [], 0
    for run in from_html(html):
        length = utf16_units(run.text)
        for mark in run.marks:
            quote = "expandable_blockquote" if mark.value else "blockquote"
            entity = {"type": ENTITIES.get(mark.tag, quote), "offset": offset, "length": length}
            found.append(entity | ({"url": mark.value} if mark.tag == "a" else {}))
        offset += length
    return found


QUIT: Final = frozenset({"/quit", "/exit"})
LOCALE: Final = ("LC_ALL", "LC_MESSAGES", "LANG")
"""What the language of a terminal is set by."""
STYLES: Final = {"b": "bold", "i": "italic", "code": "cyan", "pre": "cyan", "blockquote": "dim"}


OpenApp = Callable[[LocalTelegram], AbstractAsyncContextManager["App"]]


class Pipe:
    """Where the conversation is typed and shown: standard input, and bare text on the output."""

    def lines(self) -> Iterator[str]:
        """Every line of standard input."""
        yield from sys.stdin or ()

    def show(self, html: str) -> None:
        """Print a message and an empty line after it."""
        print(plain_text(html), end="\n\n", flush=True)

    def hint(self, text: str) -> None:
        """Say what can be typed now: nothing here."""

    def waiting(self) -> AbstractContextManager[object]:
        """Say that something is going on until the block ends: nothing here."""
        return contextlib.nullcontext()


class Terminal(Pipe):
    """A prompt, answers in colour, and above a spinner the draft of the one that forms."""

    def __init__(self, console: "Console", telegram: LocalTelegram) -> None:
        self._console, self._telegram = console, telegram

    def lines(self) -> Iterator[str]:
        """Lines typed at the prompt, with editing and history; until Ctrl-D."""
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401, PLC0415 - importing it is what turns editing on
        while True:
            try:
                yield input(say("terminal_prompt"))
            except EOFError:
                self._console.print()
                return

    def show(self, html: str) -> None:
        """Print a message between empty lines."""
        self._console.print()
        self._console.print(rich_text(html))
        self._console.print()

    def hint(self, text: str) -> None:
        """Print it dim, and an empty line after it."""
        self._console.print(text, style="dim", end="\n\n")

    def waiting(self) -> AbstractContextManager[object]:
        """What there is of the answer, and a spinner; gone when the block ends."""
        from rich.live import Live  # noqa: PLC0415
        from rich.spinner import Spinner  # noqa: PLC0415

        forming = partial(self._forming, Spinner("dots", f"[dim]{say('terminal_thinking')}"))
        return Live(
            console=self._console, get_renderable=forming, transient=True, refresh_per_second=10
        )

    def _forming(self, spinner: "Spinner") -> "Group":
        """The last lines of the draft, as many as there is room for."""
        from rich.console import Group  # noqa: PLC0415

        if not (draft := self._telegram.draft):
            return Group(spinner)
        lines = rich_text(draft).wrap(self._console, self._console.width)
        return Group("", *lines[-max(1, self._console.height - 4) :], "", spinner)


def is_terminal() -> bool:
    """Whether somebody types here, and reads."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


def chat(open_app: OpenApp, *, has_model: bool) -> None:
    """Talk until the input ends, /quit, Ctrl-C or Ctrl-D; the conversation is forgotten then."""
    interactive = is_terminal()
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        with (
            speaking(next(filter(None, map(os.environ.get, LOCALE)), None)),
            contextlib.suppress(KeyboardInterrupt, asyncio.CancelledError),
        ):
            if not has_model and not interactive:
                print(say("terminal_no_model"), file=sys.stderr)
            telegram = LocalTelegram(shows_follow_ups=interactive)
            screen = _terminal(telegram, has_model=has_model) if interactive else Pipe()
            _run(open_app, telegram, screen, greet=interactive)
    except BrokenPipeError:
        # The reader has gone; the interpreter must not flush into the pipe again when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _terminal(telegram: LocalTelegram, *, has_model: bool) -> Terminal:
    from rich.console import Console  # noqa: PLC0415

    console = Console(highlight=False)
    console.print(f"[bold]Sommelier[/] [dim]· {say('terminal_leave')}[/]")
    if not has_model:
        console.print(f"[dim]{say('terminal_no_model')}[/]")
    return Terminal(console, telegram)


def _run(open_app: OpenApp, telegram: LocalTelegram, screen: Pipe, *, greet: bool) -> None:
    # The loop runs only while there is something to do: at the prompt Ctrl-C and line editing
    # then work as in any program.
    with asyncio.Runner() as runner:
        opened = AsyncExitStack()
        try:
            with screen.waiting():
                app = runner.run(_open(open_app(telegram), telegram, opened))
            for line in itertools.chain(["/start"] if greet else [], screen.lines()):
                if line.strip() in QUIT:
                    break
                if not line.strip("\ufeff\r\n\t "):
                    continue
                with screen.waiting():
                    runner.run(_answered(app, telegram, line.strip("\ufeff\r\n")))
                for html in telegram.take():
                    screen.show(html)
                if telegram.hint:
                    screen.hint(telegram.hint)
        finally:
            # Nothing cuts the leaving off in the middle, nor what comes after it.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            runner.run(opened.aclose())


async def _open(
    opening: AbstractAsyncContextManager["App"], telegram: LocalTelegram, opened: AsyncExitStack
) -> "App":
    app = await opened.enter_async_context(opening)
    await app.application.initialize()
    opened.push_async_callback(app.talk.repositories.messages.forget, telegram.chat_id)
    return app


async def _answered(app: "App", telegram: LocalTelegram, line: str) -> None:
    """Have a line answered. The first Ctrl-C stops the answer that forms, the next one leaves.

    Raises:
        CancelledError: the person leaves.
    """
    loop, answering, presses = asyncio.get_running_loop(), asyncio.current_task(), itertools.count()

    def pressed() -> None:
        is_first = next(presses) == 0
        is_stopped = is_first and app.talk.turns.stop(chat_id=telegram.chat_id)
        if not is_stopped and answering is not None:
            answering.cancel()

    loop.add_signal_handler(signal.SIGINT, pressed)
    try:
        update = telegram.typed(line, app.application.bot)
        await app.application.process_update(update)
    finally:
        loop.remove_signal_handler(signal.SIGINT)


def plain_text(html: str) -> str:
    """A message as plain text; a link is followed by its address in brackets."""
    return "".join(piece.text for piece in with_addresses(from_html(html)))


def rich_text(html: str) -> "Text":
    """A message as text for a terminal."""
    from rich.text import Text  # noqa: PLC0415

    text = Text()
    for piece in with_addresses(from_html(html)):
        styles = [STYLES[mark.tag] for mark in piece.marks if mark.tag in STYLES]
        text.append(piece.text, " ".join(styles))
    return text


def with_addresses(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """The pieces, each link followed by its address, unless the link says just that."""
    said = ""
    following = [*pieces[1:], Piece("")]
    for piece, after in zip(pieces, following, strict=True):
        yield piece
        link = next((mark for mark in piece.marks if mark.tag == "a"), None)
        said = said + piece.text if link else ""
        if link and link not in after.marks:
            if said.strip() != link.value:
                yield Piece(f" ({link.value})", piece.marks[: piece.marks.index(link)])
            said = ""
