"""What breaks when two things happen at once: each test is named after what broke."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import func, select

from agent.cellar.items import guess_wine, to_cellar_item
from agent.engine.errors import ToolError
from agent.engine.run import Run
from agent.turn import Change, Fact, Person, Reply, StoredMessage, get_person
from agent.writing_calls import WritingCalls
from bot.telegram.sender import ButtonRows
from bot.updates.scheduler import MAX_TURNS, row_of
from db.changes.base import StoredChange, Transaction
from db.changes.broadcasts import DraftBroadcast, SendBroadcast
from db.changes.chats import AskAdmins
from db.changes.forgetting import MEMORY, ForgetConversation, ForgetUser
from db.changes.memory import ChangeMemory, SaveConcerns
from db.commit import Commit, Fence, Press
from db.engine import Sessions
from db.models import ChatRow, MessageRow, OutboxRow, TurnRow, UpdateRow
from db.repositories.commits import Commits
from db.repositories.inbox import Inbox
from db.repositories.outbox import SKIPPED, Broadcasts, Outbox
from db.repositories.people import MemoryRepository, MemoryUpkeep, MessageRepository
from tests.doubles.bot_api import CHAT, BotApi
from tests.doubles.server import eventually
from tests.fakes import CHINON
from tests.integration.test_telegram_bot import FakeAnswerer, answering
from tests.running import RecordingTracer, at_rest, running
from tests.stored import make

ASKED_AT = datetime(2026, 5, 1, 12, tzinfo=UTC)
FORGOTTEN_AT = ASKED_AT + timedelta(seconds=2)
ADA, BEA, GROUP = 7001, 7002, -500
NAME = "@sommelier_test_bot"
MENTION = [{"type": "mention", "offset": 0, "length": len(NAME)}]
HATES_OAK = Fact("hate", "style=oaked", "oak")
BAROLO = to_cellar_item(guess_wine("Barolo 2016"), 6)


def commit_of(chat_id: int, *changes: StoredChange, at: datetime = ASKED_AT) -> Commit:
    """What a turn of Ada has collected that was accepted at a time."""
    record = TurnRow(turn_id=1, chat_id=chat_id, user_id=ADA, at=at)
    said = (StoredMessage("user", "a red"), StoredMessage("assistant", "Chinon"))
    fence = Fence(accepted_at=at, chat_id=chat_id, user="ada")
    return Commit(fence=fence, record=record, history=said, changes=[*changes])


def forgetting(chat_id: int, *changes: StoredChange) -> Commit:
    """What a turn of Ada has collected that forgets."""
    fence = Fence(accepted_at=FORGOTTEN_AT, chat_id=chat_id, user="ada")
    return Commit(fence=fence, changes=[*changes])


async def save_in_order(
    sessions: Sessions, order: str, turn: Commit, forgets: Commit
) -> None:
    commits = Commits(sessions)
    if order == "the turn first":
        await commits.save(turn)
        await commits.save(forgets)
    elif order == "the turn last":
        await commits.save(forgets)
        await commits.save(turn)
    else:
        await asyncio.gather(commits.save(turn), commits.save(forgets))


async def count_rows(sessions: Sessions, *models: Any) -> list[int]:
    async with sessions() as session:
        counts = [
            await session.scalar(select(func.count()).select_from(m)) for m in models
        ]
    return [count or 0 for count in counts]


ORDERS = pytest.mark.parametrize(
    "order", ["the turn first", "the turn last", "both at once"]
)


@ORDERS
async def test_a_question_was_in_the_history_again_after_new(
    sessions: Sessions, order: str
) -> None:
    for _ in range(5 if order == "both at once" else 1):
        turn, forgets = commit_of(CHAT), forgetting(CHAT, ForgetConversation(CHAT))
        await save_in_order(sessions, order, turn, forgets)
        assert await MessageRepository(sessions).list_recent(CHAT) == []
    await Commits(sessions).save(
        commit_of(CHAT, at=FORGOTTEN_AT + timedelta(seconds=1))
    )
    assert len(await MessageRepository(sessions).list_recent(CHAT)) == 2


@ORDERS
async def test_facts_of_a_turn_in_a_group_survived_forget(
    sessions: Sessions, order: str
) -> None:
    for _ in range(5 if order == "both at once" else 1):
        remembered = Change(user_id=ADA, added_facts=(HATES_OAK,), bottles=(BAROLO,))
        concerns = SaveConcerns(GROUP, ADA, {"pregnancy": None})
        turn = commit_of(GROUP, ChangeMemory(remembered), concerns)
        await save_in_order(
            sessions, order, turn, forgetting(ADA, ForgetUser(ADA, "ada"))
        )
        tables = (*MEMORY, TurnRow, MessageRow)
        assert await count_rows(sessions, *tables) == [0] * len(tables)


async def test_presses_and_stop_waited_while_all_slots_were_taken(
    bot_api: BotApi, sqlite_sessions: Sessions
) -> None:
    may_answer = asyncio.Event()

    async def reply(message: str) -> Reply:
        await may_answer.wait()
        return Reply(text="Chinon")

    answerer = FakeAnswerer(reply)
    messages = MessageRepository(sqlite_sessions)
    async with running(bot_api, answerer, messages):
        for chat in range(1, MAX_TURNS + 1):
            bot_api.say("a red", chat)
        await eventually(lambda: len(answerer.asked) == MAX_TURNS, seconds=60)
        bot_api.say("/help", 999)
        await bot_api.wait_for_message(1, 999)
        bot_api.say("/stop", 998)
        await bot_api.wait_for_message(1, 998)
        may_answer.set()


class Broken(StoredChange):
    """A change that the database refuses."""

    async def apply(self, transaction: Transaction) -> None:
        raise ValueError("refused")


async def test_admins_were_never_asked_when_the_process_died_after_the_flag(
    sessions: Sessions,
) -> None:
    def asking() -> AskAdmins:
        return AskAdmins(BEA, [OutboxRow(chat_id=ADA, html="Let in 7002?")])

    with pytest.raises(ValueError, match="refused"):
        await make(sessions, asking(), Broken())
    async with sessions() as session:
        assert await session.get(ChatRow, BEA) is None
    messages = list[int]()
    for _ in range(2):
        commit = Commit(fence=Fence(accepted_at=ASKED_AT), changes=[asking()])
        await Commits(sessions).save(commit)
        messages.append(len(commit.outgoing))
    assert messages == [1, 0], "admins are asked once"


async def recommend(message: str) -> Reply:
    return Reply(text=f"About {message}", wines=(CHINON,), wine_ids=(CHINON.id,))


async def test_a_press_counted_twice_on_postgres(sessions: Sessions) -> None:
    press = Press(CHAT, message_id=1, action="cheaper")
    for turn_id in (1, 2):
        record = TurnRow(turn_id=turn_id, chat_id=CHAT, user_id=ADA, at=ASKED_AT)
        fence = Fence(accepted_at=ASKED_AT, chat_id=CHAT, user="ada")
        await Commits(sessions).save(Commit(fence=fence, record=record, press=press))
    async with sessions() as session:
        assert [*await session.scalars(select(TurnRow.turn_id))] == [1]


async def test_two_replicas_reminded_of_bottles_on_postgres(sessions: Sessions) -> None:
    fence = Fence(accepted_at=ASKED_AT, user="ada")
    queued: list[bool] = []
    for season in ("2026-spring", "2026-spring", "2026-summer", "2026-summer"):
        is_queued = await MemoryUpkeep(sessions).save_reminder(
            ADA, fence, season, keys=(), year=2026, messages=[]
        )
        queued.append(is_queued)
    assert queued == [True, False, True, False]


async def test_two_presses_counted_when_the_buttons_could_not_be_removed(
    bot_api: BotApi, sqlite_sessions: Sessions
) -> None:
    answerer = FakeAnswerer(recommend)
    messages = MessageRepository(sqlite_sessions)
    async with running(bot_api, answerer, messages) as bot:
        bot_api.say("a red")
        await bot_api.wait_for_message(1)
        await at_rest(bot)
        bot_api.fail("editMessageReplyMarkup", 429, retry_after=0, times=2)
        (answer,) = bot_api.messages()
        for _ in range(2):
            bot_api.press(answer, "n:cheaper")
        await bot_api.wait_for_message(2)
        await eventually(lambda: len(bot_api.toasts) == 2)
        await at_rest(bot)
    assert answerer.asked == ["a red", "Cheaper, please."]


async def test_a_forged_press_was_taken_for_one_of_the_user_who_asked(
    bot_api: BotApi, sqlite_sessions: Sessions
) -> None:
    answerer = FakeAnswerer(recommend)
    messages = MessageRepository(sqlite_sessions)
    async with running(bot_api, answerer, messages) as bot:
        bot_api.say(f"{NAME} a red", GROUP, ADA, entities=MENTION)
        await bot_api.wait_for_message(1, GROUP)
        await at_rest(bot)
        (answer,) = bot_api.messages(GROUP)
        for data in (
            "n:cheaper",
            f"n:{BEA}:cheaper",
            f"r:{BEA}:allergy:egg",
            "r:allergy:egg",
        ):
            bot_api.press(answer, data, user_id=BEA)
        await eventually(lambda: len(bot_api.toasts) == 4)
        await at_rest(bot)
    assert len(answerer.asked) == 1
    assert await MemoryRepository(sqlite_sessions).list_facts(BEA) == []


async def test_the_second_part_of_a_broadcast_was_sent_alone(
    sessions: Sessions,
) -> None:
    await make(sessions, *_draft())
    broadcasts, outbox = Broadcasts(sessions), Outbox(sessions)
    parts = await broadcasts.list_unsent(1)
    assert [part.html for part in parts] == ["one"]
    parts[0].error = "rejected"
    await outbox.record_delivery(parts[0], skip_rest=True)
    left = await broadcasts.list_unsent(10)
    assert [(part.chat_id, part.html) for part in left] == [(BEA, "one"), (BEA, "two")]
    async with sessions() as session:
        rows = await session.scalars(select(OutboxRow).order_by(OutboxRow.id))
        assert [(row.error, row.html) for row in rows][:2] == [
            ("rejected", ""),
            (SKIPPED, ""),
        ]


def _draft() -> Sequence[StoredChange]:
    messages = [
        OutboxRow(chat_id=chat, html=text, follows=text == "two")
        for chat in (ADA, BEA)
        for text in ("one", "two")
    ]
    return DraftBroadcast(1, "one two", ADA), SendBroadcast(1, messages)


async def test_an_edited_message_took_its_bottles_twice(
    bot_api: BotApi, sqlite_sessions: Sessions
) -> None:
    async def drink(message: str) -> Reply:
        count = int(message.rsplit(maxsplit=1)[-1])
        change = Change(user_id=ADA, bottles=(replace(BAROLO, count=-count),))
        return Reply(text="Done.", changes=(change,))

    await make(sqlite_sessions, ChangeMemory(Change(user_id=ADA, bottles=(BAROLO,))))
    memory = MemoryRepository(sqlite_sessions)
    messages = MessageRepository(sqlite_sessions)
    async with running(bot_api, FakeAnswerer(drink), messages) as bot:
        bot_api.say("drank 2", ADA, message_id=77)
        await bot_api.wait_for_message(1, ADA)
        await at_rest(bot)
        assert [item.count for item in await memory.list_bottles(ADA)] == [4]
        edited = _edit(bot_api, 77, "drank 3")
        await bot_api.wait_for_message(2, ADA)
        await at_rest(bot)
        assert [item.count for item in await memory.list_bottles(ADA)] == [3]
        bot_api.push(
            edited | {"edited_message": edited["edited_message"] | {"text": "drank 6"}}
        )
        await bot_api.wait_for_message(3, ADA)
        await at_rest(bot)
    assert [item.count for item in await memory.list_bottles(ADA)] == [0]


def _edit(bot_api: BotApi, message_id: int, text: str) -> dict[str, Any]:
    person = {"id": ADA, "is_bot": False, "first_name": "Ada"}
    message = {
        "message_id": message_id,
        "date": 1,
        "edit_date": 2,
        "chat": {"id": ADA, "type": "private", "first_name": "Ada"},
        "from": person,
        "text": text,
    }
    edited = {"edited_message": message}
    bot_api.push(edited)
    return edited


async def test_a_tool_that_may_write_ran_again_in_the_next_try() -> None:
    stored = list[Sequence[str]]()

    async def save(calls: Sequence[str]) -> None:
        stored.append([*calls])

    calls = WritingCalls(save=save)
    await calls.add("desk__book", '{"seats": 3}')
    with pytest.raises(ToolError, match="called it with these arguments"):
        await calls.add("desk__book", '{"seats": 3}')
    calls.begin_try()
    with pytest.raises(
        ToolError, match=r'interrupted try .* desk__book \{"seats": 3\}'
    ):
        await calls.add("desk__book", '{"seats": 4}')
    await calls.add("desk__note", "{}")
    assert stored == [
        ['desk__book {"seats": 3}'],
        ['desk__book {"seats": 3}', "desk__note {}"],
    ]


async def test_new_deleted_the_concerns_of_everybody_in_a_group(
    bot_api: BotApi, sqlite_sessions: Sessions
) -> None:
    concerns = {"pregnancy": None, "egg": None}
    await make(
        sqlite_sessions, *(SaveConcerns(GROUP, user, concerns) for user in (ADA, BEA))
    )
    memory = MemoryRepository(sqlite_sessions)
    messages = MessageRepository(sqlite_sessions)
    async with running(bot_api, answering(), messages) as bot:
        bot_api.say(f"/new{NAME}", GROUP, BEA)
        await bot_api.wait_for_message(1, GROUP)
        await at_rest(bot)
    assert await memory.list_concerns(GROUP, BEA) == frozenset()
    assert await memory.list_concerns(GROUP, ADA) == {"pregnancy", "egg"}


async def test_anonymous_admins_shared_facts_across_groups(
    bot_api: BotApi, sqlite_sessions: Sessions
) -> None:
    anonymous = 1087968824

    async def remember(message: str) -> Reply:
        return Reply(text="Noted.")

    memory = MemoryRepository(sqlite_sessions)
    messages = MessageRepository(sqlite_sessions)
    async with running(bot_api, FakeAnswerer(remember), messages) as bot:
        bot_api.say(f"{NAME} I am allergic to eggs", GROUP, anonymous, entities=MENTION)
        await bot_api.wait_for_message(1, GROUP)
        await at_rest(bot)
    assert await memory.list_facts(anonymous) == []
    assert await memory.list_concerns(None, anonymous) == frozenset()
    async with sqlite_sessions() as session:
        assert [*await session.scalars(select(TurnRow.user_id))] == [GROUP]


async def test_the_model_of_a_group_saw_what_a_user_had_said_in_private(
    bot_api: BotApi, sqlite_sessions: Sessions
) -> None:
    known = (
        HATES_OAK,
        Fact("allergy", "egg", "eggs"),
        Fact("note", "divorced", "divorced"),
    )
    await make(
        sqlite_sessions,
        ChangeMemory(Change(user_id=ADA, added_facts=known, bottles=(BAROLO,))),
    )
    people = list[object]()

    class Watching(FakeAnswerer):
        async def answer(
            self,
            message: str,
            run: Run,
            attachment: object = None,
            *,
            history: Sequence[StoredMessage] = (),
        ) -> Reply:
            people.append(get_person(run))
            return await super().answer(message, run, attachment, history=history)

    messages = MessageRepository(sqlite_sessions)
    async with running(bot_api, Watching(recommend), messages):
        bot_api.say(f"{NAME} a red", GROUP, ADA, entities=MENTION)
        await bot_api.wait_for_message(1, GROUP)
        bot_api.say("a red", ADA)
        await bot_api.wait_for_message(1, ADA)
    in_group, in_private = people
    assert isinstance(in_group, Person)
    assert isinstance(in_private, Person)
    assert {fact.kind for fact in in_group.facts} - {"setting"} == {"allergy"}
    assert in_group.safety.allergies == {"egg"}
    assert in_group.bottles == ()
    assert {"hate", "note"} <= {fact.kind for fact in in_private.facts}


async def test_forget_during_the_sending_of_an_answer_ran_its_turn_again(
    sessions: Sessions,
) -> None:
    inbox, outbox = Inbox(sessions), Outbox(sessions)
    said = {"message": {"message_id": 5, "text": "a red", "chat": {"id": ADA}}}
    await inbox.accept([row_of({"update_id": number} | said) for number in (1, 2)])
    (row, joined) = await inbox.list_unfinished(str(ADA))
    await inbox.begin(row, [joined.update_id], tries=1)
    turn = commit_of(ADA)
    turn.messages = [
        OutboxRow(chat_id=ADA, html=text, turn_id=1) for text in ("one", "two")
    ]
    await inbox.commit(row, turn)
    await Commits(sessions).save(forgetting(ADA, ForgetUser(ADA, "ada")))
    (row,) = await inbox.list_unfinished(str(ADA))
    payloads, unsent, _ = await inbox.begin(row, tries=2)
    assert (len(payloads), [message.html for message in unsent or ()]) == (
        2,
        ["one", "two"],
    )
    for number, message in enumerate(turn.outgoing):
        message.message_id = number
        await outbox.record_delivery(message)
    await inbox.end(row, turn.trace)
    assert await count_rows(sessions, TurnRow, MessageRow, OutboxRow) == [0] * 3
    async with sessions() as session:
        rows = [*await session.scalars(select(UpdateRow))]
    assert [(row.state, row.chat_id, row.payload) for row in rows] == [
        ("done", 0, {})
    ] * 2


async def test_messages_that_a_change_adds_were_sent_twice_after_a_failed_commit(
    sessions: Sessions,
) -> None:
    asking = AskAdmins(BEA, [OutboxRow(chat_id=ADA, html="Let in 7002?")])
    failing = Broken()
    commit = Commit(fence=Fence(accepted_at=ASKED_AT), changes=[asking, failing])
    with pytest.raises(ValueError, match="refused"):
        await Commits(sessions).save(commit)
    commit.changes.remove(failing)
    await Commits(sessions).save(commit)
    assert [message.html for message in commit.outgoing] == ["Let in 7002?"]


async def test_the_words_of_a_user_who_keeps_them_out_were_traced_when_the_turn_failed(
    bot_api: BotApi, sqlite_sessions: Sessions
) -> None:
    setting = Fact("setting", "traces=numbers")
    await make(
        sqlite_sessions, ChangeMemory(Change(user_id=ADA, added_facts=(setting,)))
    )

    def break_down(*_: object) -> ButtonRows:
        raise ValueError

    tracer = RecordingTracer()
    messages = MessageRepository(sqlite_sessions)
    async with running(
        bot_api, answering(), messages, tracer, UPDATE_MAX_TRIES="1", buttons=break_down
    ):
        bot_api.say("my secret wish", ADA)
        await bot_api.wait_for_message(1, ADA)
    assert [trace.is_hidden for trace in tracer.turns] == [True, True]
