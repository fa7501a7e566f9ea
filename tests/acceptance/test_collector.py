"""A collector's cellar in the running bot: a file of many wines, questions, opened bottles."""

import csv
import io
import json
from collections.abc import Sequence
from datetime import UTC, datetime

from PIL import Image

from tests.acceptance.test_end_to_end import known_to, running_here
from tests.acceptance.test_memory import ADA, HELLO, buttons, labelled, press
from tests.acceptance.test_privacy import last, said
from tests.doubles.bot_api import BotApi
from tests.doubles.model_server import ModelServer, answer_json, tool_call
from tests.doubles.server import eventually

YEAR = datetime.now(UTC).year
TITLES = (
    "Barcode iWine Location Bin Size Price PurchaseDate Note Vintage Wine Locale Type Color "
    "Producer Varietal Country Region Appellation BeginConsume EndConsume"
).split()
TOLD_CHARS = 3_000
PICTURE_WIDTH = 1080


def bottle(
    number: int,
    kind: tuple[str, str, str],
    vintage: int,
    window: tuple[int, int],
    bin_name: str,
) -> list[object]:
    producer, appellation, colour = kind
    name = f"{producer} {appellation}"
    where = (
        ("France", "Burgundy") if appellation == "Chablis" else ("Italy", "Piedmont")
    )
    size = "1.5L" if number == 1 else "750ml"
    facts = [
        "Cellar",
        bin_name,
        size,
        25,
        "5/1/2020",
        "",
        vintage,
        name,
        "",
        colour,
        colour,
    ]
    return [f"b{number}", vintage, *facts, producer, "", *where, appellation, *window]


RIPE = bottle(1, ("Vietti", "Barolo", "Red"), 2008, (2015, YEAR), "G33")
PAST = bottle(2, ("Château Dubois", "Barolo", "Red"), 1999, (2004, 2010), "A1")
YOUNG = bottle(
    3, ("Cavallotto", "Barolo", "Red"), YEAR - 2, (YEAR + 6, YEAR + 20), "A2"
)
WHITE = bottle(4, ("Raveneau", "Chablis", "White"), 2017, (2020, YEAR + 3), "B7")


def export(bottles: Sequence[Sequence[object]]) -> bytes:
    """The bottles as a cellar program exports them: tabs, Windows-1252."""
    file = io.StringIO()
    csv.writer(file, delimiter="\t").writerows([TITLES, *bottles])
    return file.getvalue().encode("cp1252")


def many(count: int) -> list[list[object]]:
    kinds = (("Produttore", "Barolo", "Red"), ("Domaine Éloi", "Chablis", "White"))
    return [
        bottle(
            100 + number,
            kinds[number % 2],
            1900 + number,
            (2015, YEAR + 5),
            f"C{number}",
        )
        for number in range(count)
    ]


async def test_a_file_sent_three_times_leaves_the_cellar_as_after_the_first(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    listed = export([RIPE, RIPE, PAST, YOUNG, WHITE])  # a row twice is one bottle
    async with running_here(bot_api, environment):
        bot_api.send("document", listed, ADA, file_name="cellar.tsv")
        read = await last(bot_api, 1, ADA)
        assert "4 bottles (4 wines)" in read["text"]
        assert "Château Dubois" in read["text"]
        await press(bot_api, read, labelled(read, "Add"), ADA)
        assert "4 bottles (4 wines)" in (await last(bot_api, 2, ADA))["text"]
        for count in (3, 4):
            bot_api.send("document", listed, ADA, file_name="cellar.tsv")
            assert (
                "already matches this file" in (await last(bot_api, count, ADA))["text"]
            )
        bot_api.send("document", export([RIPE, WHITE]), ADA, file_name="cellar.tab")
        read = await last(bot_api, 5, ADA)
        assert "new: 0; changed: 0; removed: 2" in read["text"]
        await press(bot_api, read, labelled(read, "Replace"), ADA)
        stored = await last(bot_api, 6, ADA)
        assert "2 bottles (2 wines)" in stored["text"]
        assert "no longer works" in await press(
            bot_api, read, labelled(read, "Add"), ADA
        )
        assert "Undone" in await press(bot_api, stored, labelled(stored, "↩"), ADA)
        bot_api.say("/cellar", chat_id=ADA)
        assert "4 bottles" in (await last(bot_api, 8, ADA))["text"]


async def test_questions_about_a_cellar_are_answered_without_a_model(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    questions = (
        ("what should I drink tonight?", "Vietti Barolo 2008", "Cavallotto"),
        ("a red from my cellar for steak", "Vietti Barolo 2008", "Chablis"),
        ("which are past their best?", "Château Dubois Barolo 1999", "Vietti"),
        ("how many Barolos do I have?", "3 bottles (3 wines)", "Chablis"),
        ("anything in bin G33?", "Magnum 1.5 L", "Cavallotto"),
        ("Was kann ich heute aus meinem Keller trinken?", "Vietti", "Cavallotto"),
        ("was aus meinem Keller ist noch zu jung?", "Cavallotto Barolo", "Vietti"),
    )
    async with running_here(bot_api, environment):
        bot_api.send(
            "document", export([RIPE, PAST, YOUNG, WHITE]), ADA, file_name="mine.csv"
        )
        read = await last(bot_api, 1, ADA)
        await press(bot_api, read, labelled(read, "Add"), ADA)
        await last(bot_api, 2, ADA)
        for count, (question, expected, unexpected) in enumerate(questions, start=3):
            bot_api.say(question, chat_id=ADA)
            answer = (await last(bot_api, count, ADA))["text"]
            assert expected in answer, question
            assert unexpected not in answer, question
        bot_api.say("a red for lamb tonight", chat_id=ADA)
        both = await last(bot_api, count + 1, ADA)
        own, _, sold = both["text"].partition("From our list:")
        assert "Vietti" in own
        assert "1. " in sold
        vietti = labelled(both, "🍷 Opened: Vietti")
        await press(bot_api, both, vietti, ADA)
        opened = await last(bot_api, count + 2, ADA)
        assert "none left" in opened["text"]
        assert f"/cellar note {vietti.removeprefix('o:')} 92" in opened["text"]
        bot_api.say("/cellar note 1 94 violets and tar", chat_id=ADA)
        assert "94 · violets and tar" in (await last(bot_api, count + 3, ADA))["text"]
        bot_api.say("what did I think of the 2008?", chat_id=ADA)
        assert "94 · violets and tar" in (await last(bot_api, count + 4, ADA))["text"]
        bot_api.say("what should I drink tonight?", chat_id=-500, user_id=ADA)
        bot_api.say("/export", chat_id=ADA)
        await last(bot_api, count + 5, ADA)
    assert not any("Chablis 2017" in text for text in bot_api.sent(-500))


async def test_a_large_cellar_is_paged_in_one_message(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    async with running_here(bot_api, environment):
        bot_api.send("document", export(many(120)), ADA, file_name="mine.csv")
        read = await last(bot_api, 1, ADA)
        await press(bot_api, read, labelled(read, "Add"), ADA)
        await last(bot_api, 2, ADA)
        bot_api.say("/cellar", chat_id=-500, user_id=ADA)
        bot_api.say("/cellar", chat_id=ADA)
        shown = await last(bot_api, 4, ADA)
        (sent,) = bot_api.calls_of("sendPhoto")
        assert sent.params["chat_id"] == ADA  # a group never sees it
        assert Image.open(io.BytesIO(sent.files["photo"].data)).width == PICTURE_WIDTH
        assert "Ready" in shown["text"]
        assert len(shown["text"].splitlines()) < 25
        assert {label for label, _ in buttons(shown)} > {
            "Red",
            "White",
            "Regions",
            "All",
        }
        await press(bot_api, shown, labelled(shown, "White"), ADA)
        await press(bot_api, shown, "cl:white:1", ADA)
        await press(bot_api, shown, "cl:csv:0", ADA)
        await last(bot_api, 5, ADA)
        pages = [call.params["text"] for call in bot_api.calls_of("editMessageText")]
        assert "1/6" in pages[-2] and "2/6" in pages[-1]  # noqa: PT018 - one statement on both


async def test_a_model_gets_a_large_cellar_in_one_call(
    bot_api: BotApi, model_server: ModelServer, environment: dict[str, str]
) -> None:
    asked = {"styles": ["white"], "readiness": "now"}
    model_server.script(
        tool_call("own_cellar", asked),
        answer_json(HELLO),
        tool_call(
            "change_cellar", {"action": "drink", "wine_id": "own:2", "rating": "92"}
        ),
        answer_json(HELLO),
    )
    async with running_here(bot_api, environment, **known_to(model_server)):
        bot_api.send("document", export(many(120)), ADA, file_name="mine.csv")
        read = await last(bot_api, 1, ADA)
        await press(bot_api, read, labelled(read, "Add"), ADA)
        await last(bot_api, 2, ADA)
        bot_api.say("a ripe white of mine, please", chat_id=ADA)
        await last(bot_api, 3, ADA)
        bot_api.say("we drank the second one, 92 points", chat_id=ADA)
        assert "92" in (await last(bot_api, 4, ADA))["text"]
    told = next(
        str(message["content"])
        for request in model_server.requests
        for message in request.json["messages"]
        if message["role"] == "tool" and "rows" in str(message["content"])
    )
    assert len(told) <= TOLD_CHARS
    found = json.loads(told)
    assert found["rows"]
    assert all("white" in row and "now" in row for row in found["rows"])
    assert found["more"].startswith("and ")


async def test_what_was_drunk_is_exported_and_forgotten_with_the_cellar(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    async with running_here(bot_api, environment):
        bot_api.send("document", export([RIPE, WHITE]), ADA, file_name="mine.csv")
        read = await last(bot_api, 1, ADA)
        await press(bot_api, read, labelled(read, "Add"), ADA)
        await last(bot_api, 2, ADA)
        bot_api.say("/cellar drank 1 94 violets and tar", chat_id=ADA)
        await last(bot_api, 3, ADA)
        bot_api.say("/export", chat_id=ADA)
        await eventually(lambda: bool(bot_api.calls_of("sendDocument")))
        told = json.loads(bot_api.calls_of("sendDocument")[0].files["document"].data)
        assert [row["note"] for row in told["drinks"]] == ["violets and tar"]
        assert {row["wine"]["name"] for row in told["bottles"]} >= {"Raveneau Chablis"}
        bot_api.say("what did I think of the 2008?", chat_id=-500, user_id=ADA)
        bot_api.say("/forget", chat_id=ADA)
        sure = await said(bot_api, "cannot be undone", ADA)
        bot_api.press(sure, labelled(sure, ""), ADA)
        await said(bot_api, "Deleted.", ADA)
        bot_api.say("/cellar", chat_id=ADA)
        await said(bot_api, "nothing in your cellar", ADA)
    assert not any("violets" in text for text in bot_api.sent(-500))
