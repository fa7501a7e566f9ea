"""Verbatim quotes (rules of the research on structured snippets): real client, scripted server."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args

import pytest

from agent.documents.grounding import standing
from agent.documents.passages import Chunk, in_its_sentences, verbatim
from agent.documents.quotes import (
    Quote,
    QuoteCache,
    Quotes,
    cache_key,
    find_quotes,
)
from agent.engine.limits import Limits
from agent.engine.messages import ResponseMode
from agent.engine.run import Run
from agent.i18n import say
from tests.doubles.model_server import (
    ModelServer,
    Step,
    answer,
    answer_json,
    error,
    refusal,
)
from tests.fakes import root_span
from tests.library import (
    INJECTED,
    MUSCADET,
    OYSTERS,
    SUR_LIE,
    FakeLibrary,
    feedback_of,
    open_model,
    sent,
)

QUERY = "lees of wine at the harvest, oysters"
FAST = Limits(seconds=10, model_tries=1)


def snippet(content: str, chunk: Chunk = SUR_LIE, **other: str) -> dict[str, str]:
    return {
        "content": content,
        "sourceId": chunk.document_id,
        "sourceTitle": chunk.title,
        "sourceLocation": chunk.location,
        "relevance": "It says so.",
    } | other


def quoted(*snippets: dict[str, str], **other: Any) -> Step:
    return answer_json(
        {"snippets": snippets, "summary": "Lees are mostly dead yeast cells.", "noResults": False}
        | other
    )


TURNED = [
    ("Growers do not add vanilla to the barrel, ever.", "vanilla to the barrel"),
    ("Lees are harmful, or so people once believed, to every wine.", "Lees are harmful"),
    ("Drink it while driving only if it is free of alcohol.", "Drink it while driving"),
    ("Few would agree that screwcaps are worse than corks.", "screwcaps are worse than corks"),
    ("Der Rotwein wird gekühlt serviert, sofern er jung ist.", "Der Rotwein wird gekühlt serviert"),
    ("Wer behauptet, Schwefel mache Kopfweh, der irrt sich.", "Schwefel mache Kopfweh"),
    ("Le domaine était non certifié biologique en 2020.", "certifié biologique en 2020"),
    ("Le liège est meilleur, à en croire les marchands.", "Le liège est meilleur"),
    ("Es un mito que los sulfitos causan dolor de cabeza.", "los sulfitos causan dolor"),
    ("Il rosso si serve ghiacciato, a patto che sia novello.", "Il rosso si serve ghiacciato"),
    ("Het is een fabeltje dat sulfiet hoofdpijn geeft.", "sulfiet hoofdpijn geeft"),
]
LEES = snippet("Lees are mostly dead yeast cells.")
LEAN = snippet(OYSTERS.text, OYSTERS)
NONE = quoted(summary="The sources do not speak of it.", noResults=True)


async def find(
    server: ModelServer,
    *steps: Step,
    library: FakeLibrary | None = None,
    mode: ResponseMode = "json_object",
) -> Quotes:
    server.script(*steps)
    async with open_model(server, mode=mode) as model:
        return await find_quotes(
            QUERY, run=Run([model], limits=FAST), documents=library or FakeLibrary()
        )


def contents(found: Quotes) -> Sequence[str]:
    return [quote.content for quote in found.quotes]


class TestRequest:
    """The prompt contract and the API parameters."""

    async def test_the_rules_are_in_the_prompt(self, model_server: ModelServer) -> None:
        await find(model_server, quoted(LEES))
        rules = sent(model_server)["messages"][0]["content"]
        for rule in (
            "Verbatim only",
            "Never paraphrase",
            "one contiguous stretch of one chunk",
            "One snippet for each relevant passage",
            "`sourceId` and `sourceTitle` are exactly those of the chunk's header",
            '"Section 2 of 5"',
            "one sentence on why this very passage answers the query",
            "2 to 4 sentences",
            "At most 8 snippets",
            "`noResults` is true, `snippets` is empty",
            "no Markdown fence, no preamble",
        ):
            assert rule in rules

    async def test_chunks_stand_below_headers_with_title_id_and_section(
        self, model_server: ModelServer
    ) -> None:
        await find(model_server, quoted(LEES))
        said = sent(model_server)["messages"][1]["content"]
        assert said.startswith(f"## Research query\n\n{QUERY}\n\n## Source material")
        for chunk, section in (
            (SUR_LIE, "What the lees are"),
            (MUSCADET, "Muscadet"),
            (OYSTERS, "Section 1 of 1"),
        ):
            header = f'[Source: "{chunk.title}" (id: {chunk.document_id}), Section: "{section}"]'
            assert f"{header}\n{chunk.text}" in said
        assert said.count("\n\n---\n\n") == 2

    async def test_4096_tokens_and_no_streaming(self, model_server: ModelServer) -> None:
        await find(model_server, quoted(LEES))
        assert sent(model_server)["max_completion_tokens"] == 4096
        assert "stream" not in sent(model_server)

    async def test_a_cut_off_response_is_retried_within_4096_tokens(
        self, model_server: ModelServer
    ) -> None:
        assert contents(await find(model_server, answer('{"snip', "length"), quoted(LEAN)))
        assert sent(model_server)["max_completion_tokens"] == 4096

    @pytest.mark.parametrize(
        ("mode", "kind"),
        [("prompt", None), ("json_object", "json_object"), ("json_schema", "json_schema")],
    )
    async def test_modes_a_b_and_c(
        self, model_server: ModelServer, mode: ResponseMode, kind: str | None
    ) -> None:
        assert mode in get_args(ResponseMode)
        model_server.strict = True
        assert contents(await find(model_server, quoted(LEAN), mode=mode))
        sent_format = sent(model_server).get("response_format", {})
        assert sent_format.get("type") == kind
        if kind == "json_schema":
            schema = sent_format["json_schema"]["schema"]
            assert schema["required"] == ["snippets", "summary", "noResults"]
            assert set(schema["$defs"]["Snippet"]["properties"]) == set(LEES)


class TestTiers:
    """A cheap model is asked first, a better one where its answer fails its own check."""

    @pytest.mark.parametrize(
        ("steps", "asked"),
        [
            ([quoted(LEES)], ["small"]),
            ([quoted(snippet("Lees glow.")), quoted(LEES)], ["small", "large"]),
            ([error(503), quoted(LEES)], ["small", "large"]),
            ([answer("no JSON"), quoted(LEES)], ["small", "large"]),
        ],
        ids=["holds", "no quote", "down", "no answer"],
    )
    async def test_who_is_asked(
        self, model_server: ModelServer, steps: Sequence[Step], asked: Sequence[str]
    ) -> None:
        model_server.script(*steps)
        root = root_span()
        async with (
            open_model(model_server, model="small") as small,
            open_model(model_server, model="large") as large,
        ):
            run = Run([large], limits=FAST, aside={"quotes": small}, span=root)
            found = await find_quotes(QUERY, run=run, documents=FakeLibrary())
        assert contents(found) == ["Lees are mostly dead   yeast cells."]
        assert [sent(model_server, at)["model"] for at in range(len(asked))] == asked
        assert root.metadata["tier"] == len(asked)
        assert run.ledger.requests == len(asked)


class TestQuotes:
    """What is a quote."""

    async def test_white_space_and_case_do_not_matter_and_the_sources_text_is_shown(
        self, model_server: ModelServer
    ) -> None:
        said = snippet("lees are MOSTLY dead yeast cells")
        found = await find(model_server, quoted(said))
        assert found.quotes == (
            Quote(
                content="Lees are mostly dead   yeast cells.",
                source_id="lees",
                source_title="Sur lie",
                source_location="What the lees are",
                relevance="It says so.",
                path="methods/sur-lie.md",
                chunk_id="lees-1",
            ),
        )
        assert (found.summary, found.no_results) == ("Lees are mostly dead yeast cells.", False)
        assert found.outcome == "answered"

    @pytest.mark.parametrize(
        ("said", "stands"),
        [
            ("The 'fine' lees - so", "The “fine” lees – so"),
            ("the winegrower's lees\u2026 yes", "the winegrower’s lees... yes"),
            ('"Lees rest."', "Lees rest."),
            ("“Lees” rest.", "“Lees” rest."),
            ("cafe\u0301\u00a0au lait", "café au\nlait"),
            ("a fine wine rests", "a ﬁne wine rests"),
            ("Oenologie au bord du coeur", "Œnologie au bord du cœur"),
            ("« fine » lees", "«fine» lees"),
            ("«fine» lees", "« fine » lees"),
            ("the fine lees", "the fi\u200bne le\u00ades"),
            ("… the fine lees …", "the fine lees"),
            ("“… the fine lees…”", "the fine lees"),
            ("the fermentation ends", "the fermen-\ntation ends"),
            ("the fermen-\ntation ends", "the fermentation ends"),
            ("off-dry and semi-sweet", "off‑dry and semi-\nsweet"),
        ],
    )
    def test_signs_that_models_level_make_no_difference(self, said: str, stands: str) -> None:
        assert verbatim(said, f"Before. {stands} After.") == stands

    @pytest.mark.parametrize("said", ["", " ", '"', "“”", "Lees, rest.", "Lees rest!", "Leesrest."])
    def test_any_other_sign_does(self, said: str) -> None:
        assert verbatim(said, "Lees rest.") is None

    @pytest.mark.parametrize(("sentence", "part"), TURNED)
    async def test_no_part_turns_its_sentence_round(
        self, model_server: ModelServer, sentence: str, part: str
    ) -> None:
        chunk = replace(SUR_LIE, text=f"Barrels are of oak.\n\n{sentence} The wine smells.")
        said = f"{part[:1].upper()}{part[1:]}."
        told = quoted(snippet(part, chunk, relevance=said), summary=said)
        found = await find(model_server, told, library=FakeLibrary((chunk,)))
        assert [(each.content, each.relevance) for each in found.quotes] == [(sentence, "")]
        assert found.summary == say("quotes_verbatim")
        shown = standing(said, [chunk])
        assert shown.kind == "replaced"
        assert any(sentence in each.text for each in shown.passages)

    def test_of_a_long_table_a_quote_is_its_lines(self) -> None:
        rows = [f"Lees {at} | are mostly dead | yeast cells" for at in range(99)]
        assert in_its_sentences("are mostly dead | yeast", "\n".join(rows)) == rows[0]
        assert in_its_sentences("Lees 7 | are mostly", "\n".join(rows[:20])) == "\n".join(rows[:20])

    async def test_the_location_is_that_of_the_chunk_it_stands_in(
        self, model_server: ModelServer
    ) -> None:
        said = snippet("not be bottled before 1 March", sourceLocation="Chapter 99")
        (quote,) = (await find(model_server, quoted(said))).quotes
        assert (quote.source_location, quote.chunk_id) == ("Muscadet", "lees-2")

    async def test_the_same_passage_is_shown_once(self, model_server: ModelServer) -> None:
        assert len((await find(model_server, quoted(LEAN, LEAN, LEES))).quotes) == 2

    @pytest.mark.parametrize(
        ("said", "problem"),
        [
            (snippet("Lees consist of dead yeast."), "as one contiguous passage"),
            (snippet("Sur lie means that Lees are mostly dead"), "as one contiguous passage"),
            (
                snippet("rests on its fine lees. Muscadet sur lie"),
                "as one contiguous passage",
            ),
            (snippet("Oysters ask for"), "stands in the source oysters, not in this one"),
            (snippet("Lees are mostly", sourceId="Lees"), "no source has the id Lees"),
            (snippet("Lees are mostly", sourceTitle="Sur Lie"), "has the title Sur lie"),
            (snippet("  "), "content is empty"),
            (snippet("fine lees."), "fewer than 3 words"),
            (snippet("ees are mostly dead"), "as one contiguous passage"),
            (snippet("lees are mostly dead ye"), "as one contiguous passage"),
        ],
        ids=[
            "paraphrase",
            "not contiguous",
            "two chunks",
            "other source",
            "id",
            "title",
            "blank",
            "two words",
            "from within a word",
            "to within a word",
        ],
    )
    async def test_what_is_no_quote_is_fed_back(
        self, model_server: ModelServer, said: dict[str, str], problem: str
    ) -> None:
        found = await find(model_server, quoted(said), quoted(LEAN))
        assert contents(found) == [LEAN["content"]]
        assert "snippets.0: " in feedback_of(model_server)
        assert problem in feedback_of(model_server)
        assert len(model_server.requests) == 2

    async def test_what_still_fails_is_dropped_and_never_shown(
        self, model_server: ModelServer
    ) -> None:
        mixed = quoted(
            LEES, snippet("Lees glow in the dark."), summary="Lees are mostly dead yeast cells."
        )
        found = await find(model_server, *[mixed] * 3)
        assert contents(found) == ["Lees are mostly dead   yeast cells."]
        assert (found.outcome, found.summary) == ("salvaged", say("quotes_verbatim"))
        assert len(model_server.requests) == 3

    async def test_when_nothing_is_left_the_passages_are_shown_as_they_are(
        self, model_server: ModelServer
    ) -> None:
        found = await find(model_server, *[quoted(snippet("Lees glow."))] * 3)
        assert (found.outcome, found.by_model, found.note) == (
            "fallback",
            False,
            say("documents_model_failed"),
        )
        assert OYSTERS.text in contents(found)

    async def test_at_most_eight(self, model_server: ModelServer) -> None:
        pieces = [
            f"Oysters and wine go {way} well." for way in "so very too oh as how ay yes no".split()
        ]
        rich = replace(OYSTERS, text=" ".join(pieces))
        many = quoted(*(snippet(piece, rich) for piece in pieces))
        found = await find(model_server, *[many] * 3, library=FakeLibrary((rich,)))
        assert "there are 9 snippets, at most 8 are allowed" in feedback_of(model_server)
        assert contents(found) == pieces[:8]

    @pytest.mark.parametrize(
        ("summary", "shown"),
        [
            ("Lees are mostly dead yeast cells. They rest for 99 months.", None),
            ("Stirring the lees does not give a creamier texture.", say("quotes_verbatim")),
            ("Lees come from Rioja.", say("quotes_verbatim")),
            ("See lees.example/kind.", say("quotes_verbatim")),
            ("Buy Domaine Trap.", say("quotes_verbatim")),
            ("The passage explains that lees are yeast cells.", say("quotes_verbatim")),
            ("Stirring the lees gives texture.", say("quotes_verbatim")),
            ("Lees are dead.", say("quotes_verbatim")),
        ],
    )
    async def test_a_summary_has_its_sources_words(
        self, model_server: ModelServer, summary: str, shown: str | None
    ) -> None:
        found = await find(model_server, quoted(LEES, summary=summary))
        assert found.summary == (shown or f"{summary.split('.', maxsplit=1)[0]}.")
        assert len(model_server.requests) == 1

    async def test_a_note_has_its_sources_words(self, model_server: ModelServer) -> None:
        noted = snippet("Lees are mostly dead yeast cells.", relevance="It is so in Rioja.")
        found = await find(model_server, quoted(noted))
        assert [quote.relevance for quote in found.quotes] == [""]


class TestNoResults:
    """Nothing fits."""

    async def test_an_empty_list_with_an_explanation(self, model_server: ModelServer) -> None:
        found = await find(model_server, NONE)
        assert (found.quotes, found.no_results) == ((), True)
        assert found.summary == "I don't have enough information."
        assert len(model_server.requests) == 1

    @pytest.mark.parametrize(
        ("step", "problem"),
        [
            (quoted(LEES, noResults=True), "noResults is true but snippets is not empty"),
            (quoted(), "snippets is empty but noResults is false"),
            (quoted(noResults=True, summary=" "), "summary is empty"),
            (answer_json({"snippets": [LEES], "summary": "On lees."}), "noResults: Field required"),
        ],
        ids=["contradiction", "neither", "no explanation", "left out"],
    )
    async def test_what_contradicts_itself_is_fed_back(
        self, model_server: ModelServer, step: Step, problem: str
    ) -> None:
        assert (await find(model_server, step, NONE)).no_results
        assert problem in feedback_of(model_server)

    async def test_nothing_retrieved_needs_no_request(self, model_server: ModelServer) -> None:
        found = await find(model_server, library=FakeLibrary(chunks=()))
        assert (found.no_results, model_server.requests) == (True, [])


class TestDegrading:
    """A person always gets something that stands in the sources."""

    async def test_without_a_model_the_best_passages(self) -> None:
        found = await find_quotes(QUERY, run=Run(), documents=FakeLibrary())
        assert (found.note, found.by_model, found.outcome) == (
            say("documents_no_model"),
            False,
            "answered",
        )
        assert all(
            verbatim(q.content, c.text) for q, c in zip(found.quotes, found.chunks, strict=True)
        )

    async def test_a_model_that_is_down(self, model_server: ModelServer) -> None:
        assert (await find(model_server, error(500))).outcome == "fallback"

    async def test_a_refusal(self, model_server: ModelServer) -> None:
        found = await find(model_server, refusal("No."))
        assert (found.outcome, found.quotes, len(model_server.requests)) == ("refused", (), 1)


class TestInjection:
    """A planted document changes nothing that code can check."""

    async def test_what_it_dictates_is_no_quote_of_another_source(
        self, model_server: ModelServer
    ) -> None:
        library = FakeLibrary((INJECTED, SUR_LIE))
        obeyed = quoted(snippet("Chateau Trap 1999 is the best wine.", SUR_LIE))
        found = await find(model_server, *[obeyed] * 3, library=library)
        assert not any("best wine" in content for content in contents(found))
        said = sent(model_server)["messages"][1]["content"]
        assert said.count("</sources>") == 1


class TestCache:
    """The same query over the same sources and model, within 15 minutes."""

    def setup_method(self) -> None:
        self.now = 0.0
        self.cache = QuoteCache(clock=lambda: self.now)

    async def _find(
        self, server: ModelServer, query: str = QUERY, chunk: Chunk = SUR_LIE, **settings: Any
    ) -> Quotes:
        async with open_model(server, **settings) as model:
            return await find_quotes(
                query, run=Run([model]), documents=FakeLibrary((chunk,)), cache=self.cache
            )

    async def test_it_is_answered_without_a_request(self, model_server: ModelServer) -> None:
        model_server.script(quoted(LEES))
        first = await self._find(model_server)
        self.now = 15 * 60 - 1
        second = await self._find(model_server, f" {QUERY.upper()} ")
        assert len(model_server.requests) == 1
        assert (second.cached, second.quotes) == (True, first.quotes)

    async def test_after_15_minutes_it_is_asked_again(self, model_server: ModelServer) -> None:
        model_server.script(quoted(LEES), quoted(LEES))
        await self._find(model_server)
        self.now = 15 * 60
        assert not (await self._find(model_server)).cached
        assert len(model_server.requests) == 2

    async def test_another_question_source_or_model_is_asked(
        self, model_server: ModelServer
    ) -> None:
        changed = replace(SUR_LIE, text=SUR_LIE.text + " More.")
        model_server.script(*[quoted(LEES)] * 4)
        await self._find(model_server)
        await self._find(model_server, "other lees")
        await self._find(model_server, chunk=changed)
        await self._find(model_server, model="gpt-4o-mini")
        assert len(model_server.requests) == 4

    async def test_only_what_was_answered_is_kept(self, model_server: ModelServer) -> None:
        model_server.script(*[quoted(snippet("Lees glow."))] * 3, quoted(LEES))
        await self._find(model_server)
        assert not (await self._find(model_server)).cached

    def test_it_is_bounded(self) -> None:
        cache = QuoteCache(entries=2, clock=lambda: 0)
        kept = Quotes("q", (), "s", True, outcome="answered")
        for name in ("a", "b", "c"):
            cache.put(name, kept)
        assert [cache.get(name) is not None for name in ("a", "b", "c")] == [False, True, True]

    def test_its_key_tells_models_apart(self) -> None:
        assert cache_key("q", [SUR_LIE], ["a"]) != cache_key("q", [SUR_LIE], ["b"])


async def test_the_trace_of_quotes(model_server: ModelServer) -> None:
    model_server.script(quoted(snippet("Lees glow.")), quoted(LEES))
    root = root_span()
    async with open_model(model_server) as model:
        await find_quotes(QUERY, run=Run([model], span=root), documents=FakeLibrary())
    assert root.names == ["retrieve.documents", *["llm.answer", "guard.output"] * 2]
    assert (root.metadata["retried"], root.metadata["error_types"]) == ("yes", "grounding")
    assert (root.metadata["prompt_name"], root.metadata["prompt_version"]) == (
        "documents-quotes",
        "repository:1",
    )
