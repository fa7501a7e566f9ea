"""Talk to the sommelier in a terminal or through a pipe, one line at a time.

At a terminal there is a prompt, and the answer is shown while it is written. A pipe gets only the
plain answers.
"""

import asyncio
import contextlib
import io
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final, get_args

from rich.console import Console
from rich.live import Live
from rich.prompt import Confirm
from rich.text import Text

from agent.engine.current_draft import CurrentDraft
from agent.engine.run import Run
from agent.i18n import current_language, set_app_language, translate, use_language
from agent.mcp import Proposal
from agent.query_reading.turn_language import settle_language
from agent.turn import Reply, ReplyFunction, describe_progress
from bot import look_ups
from bot.core import Core, open_core
from bot.resources import delete_old_data, open_resources
from bot.tasks import in_background, run_shutdown_step
from bot.telegram.render import parse
from bot.turn import Delivery, Question, RunningTurns, Turn
from config import Settings
from db.changes.forgetting import ForgetMemory

QUIT_COMMANDS: Final = ("/quit", "/exit")
LOOK_UPS: Final = {f"/{name}": name for name in get_args(look_ups.CommandName)}
"""The names of look-ups by their commands, such as "/ask"."""
MESSAGE_NAMES: Final = {
    "/start": "greeting",
    "/stop": "nothing_to_stop",
    "/taste": "only_in_telegram",
    "/cellar": "only_in_telegram",
    "/settings": "only_in_telegram",
    "/privacy": "only_in_telegram",
    "/export": "only_in_telegram",
    "/forget": "only_in_telegram",
    "/shop": "only_in_telegram",
}
"""The names of the sentences that answer some commands."""
STYLES: Final = {
    "b": "bold",
    "i": "italic",
    "code": "cyan",
    "pre": "cyan",
    "blockquote": "dim",
}
"""The styles of a terminal for the tags of Telegram's HTML."""
DRAFT_INTERVAL_SECONDS: Final = 0.1
"""The time between two checks for a new draft."""
DRAFT_MARGIN_LINES: Final = 4
"""How many lines of the terminal a draft leaves free."""


def is_terminal() -> bool:
    """Return whether standard input and output are a terminal."""
    if sys.stdin is None:
        return False
    return sys.stdin.isatty() and sys.stdout.isatty()


def chat(settings: Settings) -> None:
    """Talk until the input ends or the user leaves with /quit, Ctrl-C or Ctrl-D."""
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    language = _read_language()
    # The encoding behind the dot is no part of the language.
    language_code, _, _ = language.partition(".")
    set_app_language(language_code)
    console: Console | None = None
    if is_terminal():
        console = Console(highlight=False)
    exits = (KeyboardInterrupt, asyncio.CancelledError, EOFError)
    with use_language(language), contextlib.suppress(*exits):
        asyncio.run(_run_chat(settings, console))


def _read_language() -> str:
    """Return the language of the environment, such as "de_AT.UTF-8", or "" if none is set."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if os.environ.get(name):
            return os.environ[name]
    return ""


async def _run_chat(settings: Settings, console: Console | None) -> None:
    """Answer every line. Then delete the conversation: the next user may be another person."""
    if console:
        console.print(f"[bold]Sommelier[/] [dim]· {translate('terminal_leave')}[/]")
    if settings.server is None:
        shown_on = console or Console(stderr=True)
        shown_on.print(translate("terminal_no_model"), style="dim", soft_wrap=True)
    async with (
        open_resources(settings) as resources,
        open_core(settings, resources, RunningTurns()) as core,
    ):
        conversation = TerminalConversation(core, console)
        await delete_old_data(settings, core.stores.retention)
        # While a line is read, the event loop stands still. So the servers must connect before.
        for server in core.servers.connections:
            await server.first_attempt_ended.wait()
        # For the same reason, Ctrl-C must raise KeyboardInterrupt by itself.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            for line in _greet_and_read_lines(console):
                settle_language(line, current_language())
                await conversation.answer(line)
        finally:
            # A second Ctrl-C must not interrupt the clean-up.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            await run_shutdown_step("forgetting the user", conversation.forget)


def _greet_and_read_lines(console: Console | None) -> Iterator[str]:
    """Yield the lines of standard input until /quit. At a terminal, greet first, and prompt."""
    lines = iter(sys.stdin or ())
    if console:
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401, PLC0415 - the import makes `input` editable
        console.print("", to_rich_text(translate("greeting")), "", sep="\n")
        lines = _prompt_for_lines()
    for text in lines:
        # A file may begin with a byte order mark.
        line = text.strip("\ufeff\r\n\t ")
        if line in QUIT_COMMANDS:
            return
        if line:
            yield line


def _prompt_for_lines() -> Iterator[str]:
    """Yield the lines that the user types at a terminal. After Ctrl-D, raise EOFError."""
    while True:
        yield input(translate("terminal_prompt"))


class TerminalConversation:
    """The conversation of one user. Without a `console`, only plain answers are printed."""

    def __init__(self, core: Core, console: Console | None) -> None:
        # Ids in Telegram have at most 52 bits, so this one is never that of a conversation there.
        self.id = (1 << 52) + os.getpid()
        """The id of both the user and the chat."""
        self.console = console
        self.core = core
        self.resources = core.resources
        self.repositories = core.resources.repositories
        self.commits = core.stores.commits
        # The person at the machine has no budget.
        self.runner = replace(core.runner, budgets=None)

    async def answer(self, line: str) -> None:
        """Answer a command, or a message to the sommelier."""
        command, _, arguments = line.partition(" ")
        if not command.startswith("/"):
            await self._answer_message(line)
            return
        if command in LOOK_UPS:
            name = LOOK_UPS[command]
            look_up_or_usage = look_ups.parse_look_up(name, arguments, self.resources)
            if isinstance(look_up_or_usage, look_ups.LookUp):
                look_up = look_up_or_usage
                question = Question(text=look_up.history_text, kind=name)
                await self._run_turn(question, look_up.make_reply)
                return
            text = look_up_or_usage
        elif command == "/new":
            text = await self._forget_conversation()
        elif command == "/help":
            text = self._describe_help()
        else:
            text = translate(MESSAGE_NAMES.get(command, "unknown_command"))
        # The text of a command may be about a crisis, too. Help is offered after the command has
        # run, because /new would forget the stored crisis.
        help_reply = await self._offer_help(line)
        if help_reply is not None:
            text = help_reply.full_text
        self._print(text)

    def _describe_help(self) -> str:
        """Return the answer to /help: the commands that work here, and numbers to call."""
        lines = []
        for line in translate("help").splitlines():
            command, _, _ = line.partition(" ")
            if MESSAGE_NAMES.get(command) != "only_in_telegram":
                lines.append(line)
        commands = "\n".join(lines)
        numbers = self.resources.help.write_first_numbers()
        numbers_text = translate("help_numbers", numbers=numbers)
        return f"{commands}\n\n{numbers_text}"

    async def _offer_help(self, line: str) -> Reply | None:
        """Return a reply with help if a line is about a crisis, or None. Store its turn."""
        turn = self._open_turn()
        reply = await self.runner.offer_help(turn, Question(text=line))
        # Nothing will be sent, so the turn runs no more.
        turn.on_delivery(Delivery())
        await self.commits.save(turn.complete_commit())
        return reply

    async def _forget_conversation(self) -> str:
        """Delete the conversation, and return the sentence that confirms it."""
        last_turn = await self.repositories.messages.find_last_turn(self.id)
        turn = self._open_turn()
        turn.forget_conversation()
        turn.change(self.runner.safety.forget(self.id, self.id))
        await self.commits.save(turn.complete_commit())
        if last_turn is None:
            return translate("nothing_to_forget")
        return translate("forgotten")

    async def _answer_message(self, message: str) -> None:
        """Print the answer to a message. Then make the proposed tool calls that the user accepts.

        The answer itself lists the proposed calls.
        """
        history = await self.repositories.messages.list_recent(self.id)

        async def answer(run: Run) -> Reply:
            return await self.core.answerer.answer(message, run, history=history)

        proposals = await self._run_turn(Question(text=message), answer)
        if self.console is None:
            # Behind a pipe there is nobody to ask.
            return
        for proposal in proposals:
            title = f"▶ {proposal.tool_name}"
            if Confirm.ask(title, console=self.console, default=False):
                await self._run_proposal(title, proposal)

    async def _run_proposal(self, title: str, proposal: Proposal) -> None:
        """Make a tool call to which the user has agreed, and print its result."""

        async def run_tool(run: Run) -> Reply:
            return await look_ups.run_proposal(proposal, run, servers=self.core.servers)

        await self._run_turn(Question(text=title), run_tool)

    def _open_turn(self) -> Turn:
        trace_name = f"terminal {self.id}"
        return Turn(
            chat_id=self.id,
            user_id=self.id,
            trace_session=trace_name,
            trace_user=trace_name,
        )

    async def _run_turn(
        self, question: Question, make_reply: ReplyFunction
    ) -> Sequence[Proposal]:
        """Run a turn, print its reply, and return the tool calls that it proposes.

        The first Ctrl-C stops the answer, the second one cancels the conversation.
        """
        turn = self._open_turn()
        draft = CurrentDraft(describe_progress)

        async def show_draft() -> None:
            if self.console:
                await _show_draft(draft, self.console)

        async def reply_with_draft(run: Run) -> Reply:
            return await make_reply(replace(run, draft=draft))

        with _stop_at_ctrl_c(turn):
            async with in_background(show_draft):
                reply = await self.runner.run_and_commit(
                    turn, question, reply_with_draft
                )
        self._print(reply.full_text)
        return reply.proposals

    def _print(self, markdown: str) -> None:
        text = to_rich_text(markdown)
        if self.console:
            self.console.print("", text, "", sep="\n")
        else:
            print(text.plain, end="\n\n", flush=True)

    async def forget(self) -> None:
        """Delete the messages, and also the user's facts, which /new keeps."""
        turn = self._open_turn()
        turn.forget_conversation()
        turn.change(ForgetMemory(self.id))
        await self.commits.save(turn.complete_commit())


@contextlib.contextmanager
def _stop_at_ctrl_c(turn: Turn) -> Iterator[None]:
    """Stop a turn at the first Ctrl-C in the block. Cancel the current task at the second one."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()

    def handle_ctrl_c() -> None:
        if turn.stop.is_requested and task:
            task.cancel()
        turn.stop.request()

    loop.add_signal_handler(signal.SIGINT, handle_ctrl_c)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)


async def _show_draft(draft: CurrentDraft, console: Console) -> None:
    """Show the draft of an answer until cancelled. Then erase it."""
    thinking = Text(translate("terminal_thinking"), "dim")
    forever = asyncio.get_running_loop().create_future()
    with Live(thinking, console=console, transient=True, auto_refresh=False) as live:
        live.refresh()
        async for text in draft.changes(forever, DRAFT_INTERVAL_SECONDS):
            max_lines = max(1, console.height - DRAFT_MARGIN_LINES)
            lines = to_rich_text(text).wrap(console, console.width)
            last_lines = lines[-max_lines:]
            shown = Text("\n").join([*last_lines, thinking])
            live.update(shown, refresh=True)


def to_rich_text(markdown: str) -> Text:
    """Return Markdown as styled text for a terminal, with the address of a link in brackets."""
    rendered = Text()
    parsed = parse(markdown)
    start = 0
    for marks, characters in groupby(parsed.marks):
        end = start + len(list(characters))
        styles = [STYLES.get(mark.tag, "") for mark in marks]
        rendered.append(parsed.text[start:end], " ".join(styles))
        for mark in marks:
            if mark.tag == "a":
                rendered.append(f" ({mark.attribute})")
        start = end
    return rendered
