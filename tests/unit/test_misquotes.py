"""Quotes in free text: word for word what a tool returned, or an error that names them."""

import re
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.documents.grounding import in_whole_sentences, misquoted, without_misquotes
from agent.engine.contract import Evidence
from tests.fakes import CHINON
from tests.library import MUSCADET, OYSTERS, SUR_LIE

GUEST = 'My father says "a good red wine needs no food at all". Is that so?'
EVIDENCE = Evidence(
    found={each.id: each for each in (SUR_LIE, MUSCADET, OYSTERS, CHINON)},
    asked=[GUEST, '{"notes": "Ripe plums, \\"a wine of the long evening\\" and\\nfine tannin"}'],
)
LEES = SUR_LIE.path
MARKS = ["“”", "„“", "„”", "””", "«»", "»«", "‹›", "›‹", "「」", "『』", '""', "‘’", "''"]
INVENTED = "Lees must be stirred at every full moon"

RIGHT = {
    "letter for letter": f"“Sur lie means that a wine rests on its fine lees” [{LEES}].",
    "other case and white space": f"“sur lie means that a wine\nrests on its fine lees.” [{LEES}]",
    "over two lines of the source": f"“Lees are mostly dead yeast cells. Stirring the lees gives "
    f"a creamier texture.” [{LEES}]",
    "shortened at both ends": f"“… a wine rests on its fine lees …” [{LEES}]",
    "the citation within the marks": f"“A wine rests on its fine lees [{LEES}].”",
    "the citation first": f"As [{LEES}] says: “a wine rests on its fine lees”.",
    "a block quote": "> Sur lie means that a wine rests on its fine lees.",
    "a folded block quote": "**> Sur lie means that a wine rests on its fine lees.",
    "a block quote of two passages": f"> Lees are mostly dead yeast cells. [{LEES}]\n"
    f"> Stirring the lees gives a creamier texture. [{LEES}]",
    "a block quote with a byline": "> “Lees are mostly dead yeast cells.”\n> — Sur lie, the lees",
    "a byline behind it": f"> Lees are mostly dead yeast cells. — *Sur lie* [{LEES}]",
    "what the guest wrote": f"“A good red wine needs no food at all” is one view [{LEES}].",
    "the notes of a wine": f"It is “a wine of the long evening” and rests on its lees [{LEES}].",
    "the name of a wine": f"The “{CHINON.label}” rested on its lees [{LEES}].",
    "a name of many words": f"“Château de la Grande Ile du Bois” rests on its lees [{LEES}].",
    "the title of a document": f"“Wine with oysters · Section 1 of 1” says so [{LEES}].",
    "a title of a book": f"See “The Complete Companion to Wine and Food” [{LEES}].",
    "a term": f"“Sur lie” and “on the lees” mean the same [{LEES}].",
    "no document is named": f"One could say “{INVENTED}”, but nobody does.",
    "another sentence is cited": f"Nobody says “{INVENTED}.” Lees are yeast [{LEES}].",
    "apostrophes": f"It's the growers' way, and the cellar's too, isn't it [{LEES}]?",
    "inches": f'A 5" cork and a 6" cork hold the wine well for long [{LEES}].',
    "an arrow": f"press -> rest on fine lees -> bottle [{LEES}]",
}
WRONG = {
    "invented": f"“{INVENTED}” [{LEES}].",
    "the citation after the stop": f"They say: “{INVENTED}.” [{LEES}]",
    "the citation before": f"[{LEES}] says “{INVENTED}”.",
    "one word changed": f"“A wine rests on its coarse lees” [{LEES}].",
    "stitched together": f"“Sur lie means stirring the lees for a creamier texture” [{LEES}].",
    "left out in the middle": f"“Lees are … dead yeast cells, a creamier texture” [{LEES}].",
    "several sentences": f"“Lees are mostly dead yeast cells. They glow at night.” [{LEES}]",
    "after a right one": f"“Lees are mostly dead yeast cells”, “{INVENTED}” [{LEES}].",
    "a quote within": f"“He said “fine lees” and {INVENTED}” [{LEES}].",
    "by a number": f"“{INVENTED}” [1].",
    "a block quote": f"The library says:\n> {INVENTED}",
    "one line of a block quote": f"> Lees are mostly dead yeast cells.\n> {INVENTED}",
    "a short line of a block quote": "> Lees are mostly dead yeast cells.\n> They glow.",
    "short lines of a block quote": "> Lees must be\n> stirred at every\n> full moon",
    "a byline that is none": f"> Lees are mostly dead yeast cells — and {INVENTED}",
    "in Chinese": f"「酒泥必须在每个满月的夜晚搅拌一次」 [{LEES}]",
}


@pytest.mark.parametrize("text", RIGHT.values(), ids=RIGHT.keys())
def test_what_stands_in_a_source_or_quotes_no_document_is_left_alone(text: str) -> None:
    assert misquoted(text, EVIDENCE) is None
    assert without_misquotes(text, EVIDENCE) == text


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG.keys())
def test_what_stands_in_no_source_is_found_and_can_be_left_out(text: str) -> None:
    problem = misquoted(text, EVIDENCE)
    assert problem is not None
    assert "does not stand word for word" in problem
    left = without_misquotes(f"Good evening.\n\n{text}", EVIDENCE)
    assert left == "Good evening."


def test_a_quote_under_another_documents_name_is_found_and_told_where_it_stands() -> None:
    text = f"“Oysters ask for a lean white wine” [{LEES}]."
    problem = misquoted(text, EVIDENCE)
    assert problem is not None
    assert f"stands in [{OYSTERS.path}], not in [{LEES}]" in problem
    assert misquoted(text.replace(LEES, OYSTERS.path), EVIDENCE) is None
    block = f"> Oysters ask for a lean white wine [{LEES}]"
    assert f"not in [{LEES}]" in str(misquoted(block, EVIDENCE))


def test_the_passage_is_named_on_one_line_and_bounded() -> None:
    passage = "Lees glow.\n" * 400
    problem = misquoted(f"“{passage}” [{LEES}]", EVIDENCE)
    assert problem is not None
    assert problem.startswith("the quote Lees glow. Lees glow.")
    assert "\n" not in problem
    assert len(problem) < 350


def test_only_the_sentence_that_misquotes_is_left_out() -> None:
    text = (
        f"Lees are yeast [{LEES}]. One reads: “{INVENTED}” [{LEES}]. They settle [{LEES}].\n\n"
        f"The library has this:\n> {INVENTED}\n\n- “a wine rests on its fine lees” [{LEES}]\n"
        f"- “{INVENTED}.” [{LEES}]"
    )
    assert without_misquotes(text, EVIDENCE) == (
        f"Lees are yeast [{LEES}]. They settle [{LEES}].\n\n"
        f"The library has this:\n\n- “a wine rests on its fine lees” [{LEES}]"
    )


WORDS = re.findall(r"\S+", f"{SUR_LIE.text}")
STRETCHES = st.tuples(st.integers(0, len(WORDS)), st.integers(7, len(WORDS))).map(
    lambda ends: WORDS[ends[0] : ends[0] + ends[1]]
)
LONG = STRETCHES.filter(lambda words: len(words) >= 7)


def quoted(words: list[str], marks: str) -> str:
    said = " ".join(words)
    return f"It says {marks[0]}{said}{marks[1]} [{LEES}]."


@given(LONG, st.sampled_from(MARKS), st.sampled_from([str.upper, str.lower, str.title, str]))
def test_any_stretch_of_a_chunk_is_a_quote_of_it(words: list[str], marks: str, case: type) -> None:
    assert misquoted(quoted([case(word) for word in words], marks), EVIDENCE) is None


@given(LONG, st.sampled_from(MARKS), st.data())
def test_a_changed_word_is_found_in_any_marks(
    words: list[str], marks: str, data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(words) - 1))
    changed = [*words[:place], "moonlight", *words[place + 1 :]]
    assert misquoted(quoted(changed, marks), EVIDENCE) is not None


KEPT = [text for text in RIGHT.values() if INVENTED not in text]
PARTS = st.lists(st.sampled_from([*KEPT, *WRONG.values()]), max_size=4)


@given(PARTS)
@example([WRONG["a block quote"], RIGHT["a block quote"]])
def test_what_is_left_misquotes_nothing_and_keeps_what_is_right(parts: list[str]) -> None:
    left = without_misquotes("\n\n".join(parts), EVIDENCE)
    assert misquoted(left, EVIDENCE) is None
    assert "moon" not in left
    for part in parts:
        if part in KEPT:
            assert " ".join(part.split()) in " ".join(left.split())


SIGNS = "“”„«»‹›「」\"'‘’>[]().!? \nab\ue000\ue001\ue0020123-—*"


@given(st.text(SIGNS, max_size=60))
def test_no_text_whatever_breaks_it(text: str) -> None:
    left = without_misquotes(text, EVIDENCE)
    assert misquoted(left, EVIDENCE) is None


CONTRARY = [
    ("It is a myth that corked wine is poisonous.", "Corked wine is poisonous"),
    ("Do not add vanilla to the must.", "Add vanilla to the must"),
    ("Sulphites cause headaches according to no study.", "Sulphites cause headaches"),
    ("Nie gehört Eis in den Barolo.", "gehört Eis in den Barolo"),
    ("Der Wein hält zehn Jahre, sofern er kühl liegt.", "Der Wein hält zehn Jahre"),
    ("À en croire certains, une cuillère garde les bulles.", "une cuillère garde les bulles"),
    ("N'ajoutez jamais de vanille au moût.", "de vanille au moût"),
    ("Casi ningún tinto se sirve a veinte grados.", "tinto se sirve a veinte grados"),
    ("Nunca se decanta un Borgoña viejo.", "se decanta un Borgoña viejo"),
    ("I solfiti danno mal di testa solo nelle leggende.", "I solfiti danno mal di testa"),
    ("Quasi nessun rosso si serve a venti gradi.", "rosso si serve a venti gradi"),
    ("Decanteer een oude Bourgogne vooral niet.", "Decanteer een oude Bourgogne"),
    ("Voeg nooit vanille toe aan de most.", "vanille toe aan de most"),
    ('Here is a myth. "Add vanilla to the must." Never do.', "Add vanilla to the must"),
    ("They lie: “It is good. Add vanilla to the must. Always.”", "Add vanilla to the must"),
]
FRAMES = ["{} [{}].", "They say: {} [{}].", "“{}” [{}]", "> {}\n> [{}]", "- **{}** [{}]"]


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize(("whole", "part"), CONTRARY)
def test_a_part_of_a_sentence_is_shown_as_all_of_it(whole: str, part: str, frame: str) -> None:
    source = replace(SUR_LIE, text=f"Wine is made in many ways. {whole} Cellars are cool.")
    shown = in_whole_sentences(f"It depends.\n\n{frame.format(part, LEES)}", [source, OYSTERS])
    assert whole.rstrip(".") in shown
    assert shown.startswith("It depends.")
    assert f"[{LEES}]" in shown


@pytest.mark.parametrize(
    "text",
    [
        f"Lees are mostly dead yeast cells [{LEES}].",
        f"“Lees are mostly dead yeast cells.” So it is [{LEES}].",
        f"Such a wine stays with its yeast for a while [{LEES}].",
        f"Dead yeast, that is what lees are, and they are stirred [{LEES}].\n\nGlad to help:",
        "Wine rests on its fine lees, and that is good.",
        "> Lees are mostly dead yeast cells.",
        "Here is one:",
    ],
)
def test_whole_sentences_and_other_words_stay_as_they_are(text: str) -> None:
    assert in_whole_sentences(text, [SUR_LIE, OYSTERS]) == text


@given(st.text(alphabet="ab “”\"'>[].\n-*#:", max_size=80))
def test_any_text_can_be_held_to_whole_sentences(text: str) -> None:
    shown = in_whole_sentences(text, [SUR_LIE])
    assert in_whole_sentences(shown, [SUR_LIE]) == shown
