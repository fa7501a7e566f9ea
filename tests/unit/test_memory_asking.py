"""What is asked in words of what is remembered."""

import pytest

from agent.memory.service import asked_of_memory

ASKED = {
    "forget": """
        Delete my data | please delete all my data | forget everything you know about me
        Erase all my personal information | forget me | I want you to remove everything about me.
        Lösche bitte alle meine Daten | meine Daten löschen | Vergiss alles, was du über mich weißt
        Supprimez mes données | oublie tout ce que tu sais sur moi | efface mes données personnelles
        borra mis datos | Elimina todo lo que sabes de mí | olvídame
        cancella i miei dati | dimentica tutto quello che sai di me
        je préfère que tu ne gardes rien | speichere bitte nichts über mich
        verwijder mijn gegevens | vergeet alles wat je over mij weet | wis al mijn gegevens
    """,
    "export": "export my data | send me all my data | schick mir meine Daten | envía mis datos",
    "privacy": "what data do you keep about me? | Welche Daten speichert ihr? | Datenschutz",
    "taste": "what do you know about me? | Was weißt du über mich? | que sais-tu de moi ?",
    "cellar": "what's in my cellar? | show me my cellar| zeig mir meinen Keller",
    None: """
        a red for lamb | forget that I hate riesling | forget the last one | what is in your cellar?
        delete the second one | remove the Chardonnay from the list | I forget the name
        what do you know about Barolo? | was weißt du über Riesling? | tell me about your data
        what from my cellar goes with duck? | vergiss den Riesling | forget it
    """,
}


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        (t.strip(), a)
        for a, ts in ASKED.items()
        for t in ts.replace("\n", "|").split("|")
        if t.strip()
    ],
)
def test_what_is_asked_of_memory(text: str, asked: str | None) -> None:
    assert asked_of_memory(text) == asked
