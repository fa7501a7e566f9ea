"""What the house sommelier says, in German."""

from collections.abc import Mapping
from typing import Final

from agent.house_sommelier.speech.keys import PhraseKey

SENTENCES: Final[Mapping[PhraseKey, str]] = {
    "hello": (
        "Hallo! Nennen Sie mir ein Gericht, eine Farbe oder einen Preis, und ich suche "
        "eine Flasche aus."
    ),
    "thanks": "Sehr gern. Ich bin da, wenn Sie wieder eine Flasche brauchen.",
    "help": (
        "Ich suche im Keller nach Gericht, Farbe, Rebsorte, Land oder Region, Süße, "
        "Körper, Preis und Allergenen. Zum Beispiel: „ein günstiger, trockener "
        "Weißwein zu Lachs“."
    ),
    "ask": (
        "Wonach darf ich suchen? Eine Farbe, ein Gericht oder ein Preis genügt, etwa "
        "„ein Rotwein zu Lamm, nicht zu teuer“."
    ),
    "knowledge": (
        "Ich kann im Moment nur im Keller suchen und möchte darauf keine Antwort "
        "erfinden. Nennen Sie ein Gericht, eine Farbe, eine Rebsorte oder einen Preis, "
        "und ich finde Weine."
    ),
    "passage": "Das steht dazu in meiner Bibliothek:",
    "off_topic": (
        "Das liegt leider außerhalb meines Kellers: Ich kenne mich nur mit Wein aus. "
        "Verraten Sie mir, was es zu essen gibt, und ich finde eine Flasche dazu."
    ),
    "rude": (
        "Schade, dass ich nicht helfen konnte. Sagen Sie mir, was es zu essen gibt, was Sie mögen "
        "oder was es kosten darf, und ich suche noch einmal."
    ),
    "error": (
        "Es tut mir leid: Ich konnte gerade nicht in den Keller schauen. Bitte fragen "
        "Sie gleich noch einmal."
    ),
    "nothing": "Dazu habe ich nichts gefunden: {criteria}.",
    "nothing_named": (
        "Zu „{name}“ habe ich im Keller nichts gefunden. Eine Farbe, ein Gericht oder "
        "ein Preis hilft mir weiter."
    ),
    "without": "Ohne {limit} wären es {count}",
    "and_without": "ohne {limit} {count}",
    "no_way": (
        "Ein einzelner Wunsch weniger hilft nicht; versuchen Sie eine andere Farbe, "
        "ein anderes Gericht oder einen anderen Preis."
    ),
    "found": "Gesucht: {criteria}. Das passt am besten:",
    "found_any": "Aus dem Keller, und eine Flasche wert:",
    "similar": "Ähnlich, und im Keller vorhanden:",
    "details": "Das weiß ich.",
    "not_named": "„{name}“ sehe ich nicht im Keller.",
    "all_shown": "Mehr habe ich dazu nicht. Ändern wir die Farbe, das Gericht oder den Preis?",
    "gone": (
        "Diesen Wein finde ich im Keller nicht mehr. Was hat Ihnen daran gefallen? "
        "Dann suche ich einen anderen."
    ),
    "look_again": "Ändern Sie das, und ich suche noch einmal.",
    "add_price": "Nennen Sie mir eine Preisgrenze, und ich grenze es ein.",
    "add_food": "Verraten Sie mir, was es zu essen gibt, und ich wähle genauer.",
    "add_place": "Ich kann es auf ein Land oder eine Rebsorte eingrenzen, wenn Sie mögen.",
    "add_taste": "Ich suche auch gern etwas Günstigeres, Leichteres oder Kräftigeres.",
    "suits": "passt zu: {foods}",
    "contains": "Enthält: {allergens}.",
    "sold_out": "Zurzeit nicht auf Lager.",
    "up_to": "bis {price}",
    "around": "um {price}",
    "low_price": "zu niedrigem Preis",
    "high_price": "zu höherem Preis",
    "at_least": "ab {price}",
    "care_pregnant": (
        "Mit einem Baby im Bauch oder an der Brust schenke ich nichts mit Alkohol ein. "
        "Diese Weine sind ohne:"
    ),
    "care_minor": (
        "Wer noch nicht volljährig ist, bekommt von mir keinen Alkohol. Diese Weine sind ohne:"
    ),
    "care_driving": "Wer fährt, bekommt von mir keinen Alkohol. Diese Weine sind ohne:",
    "care_health": "Dann natürlich ohne Alkohol. Diese Weine sind es:",
    "care_none": (
        "Alkohol möchte ich hier nicht empfehlen, und einen passenden alkoholfreien "
        "Wein hat der Keller nicht. Ein guter Traubensaft, ein Tee oder ein Verjus mit "
        "Soda ist auch zum Anstoßen schön."
    ),
    "cheapest": (
        "Etwas Günstigeres habe ich dazu nicht. Ändern wir die Farbe, das Gericht oder "
        "die Herkunft?"
    ),
    "all_excluded": (
        "Alles, was ich dazu gefunden habe, hat etwas, das Sie ausgeschlossen haben. "
        "Ändern wir die Farbe, das Gericht oder den Preis?"
    ),
    "leaving_out": "ohne {names}",
    "unknown_currency": (
        "{currency} kann ich nicht umrechnen, der Preis ist also nicht berücksichtigt; "
        "nennen Sie mir eine Grenze in Euro."
    ),
    "check_label": (
        "Die Liste nennt, was üblich ist: Bitte sehen Sie wegen der Allergene auch auf das Etikett."
    ),
    "other_allergens": (
        "Meine Liste kennt nur Sulfite, Ei, Milch und Fisch: Für alles andere sehen "
        "Sie bitte auf das Etikett."
    ),
    "fits_dish": "Ja, er passt zu: {foods}.",
    "fits_not": (
        "Meine Liste nennt ihn nicht zu: {foods}; dazu würde ich einen anderen Wein suchen."
    ),
    "acidity_high": "mit frischer Säure",
    "tannin_high": "mit festen Tanninen",
    "tannin_low": "mit weichen Tanninen",
    "from_grapes": "aus {grapes}",
    "tasting_notes": "Notiz der Kellerliste (nur auf Englisch): „{notes}“",
    "which": "So viele habe ich Ihnen nicht gezeigt. Welchen meinen Sie, und was soll anders sein?",
    "favourite": "Von diesen würde ich zuerst diesen öffnen:",
    "no_model": (
        "Hier ist kein Sprachmodell eingerichtet; ich antworte nach einfachen Regeln aus der "
        "Kellerliste."
    ),
    "model_down": (
        "Mein Sprachmodell hilft gerade nicht weiter; das hier kommt direkt aus der Kellerliste."
    ),
    "declined": (
        "Darauf möchte ich lieber nicht antworten. Fragen Sie mich nach einem Wein, einem "
        "Gericht oder einem Anlass, und ich bin ganz für Sie da."
    ),
    "failed": (
        "Es tut mir leid: Bei mir ist etwas schiefgegangen, und ich konnte nicht antworten. "
        "Bitte fragen Sie gleich noch einmal."
    ),
    "holds": "Ja: Die Kellerliste nennt {allergens} darin.",
    "holds_not": (
        "Die Kellerliste nennt darin nicht: {allergens}; bitte sehen Sie auch auf das Etikett."
    ),
    "unknown_vegan": "Die Kellerliste sagt nicht, ob er vegan ist.",
    "not_vegan": "Er ist nicht vegan: Die Kellerliste nennt {allergens} darin.",
    "is_alcohol": "Er hat {abv} % vol.",
    "is_price": "Er kostet etwa {price}.",
    "is_grapes": "Er ist aus {grapes}.",
    "is_organic": "Ja, die Kellerliste nennt ihn biologisch.",
    "is_vintage": "Der Jahrgang ist {year}.",
    "is_no_vintage": "Er hat keinen Jahrgang.",
    "is_origin": "Herkunft: {places}.",
    "is_so": "Er ist {trait}.",
    "unknown_organic": "Die Kellerliste sagt nicht, ob er aus Bioanbau ist.",
    "unknown_alcohol": "Die Kellerliste sagt nicht, wie viel Alkohol er hat.",
    "unknown_sweetness": "Die Kellerliste sagt nicht, wie trocken oder süß er ist.",
    "unknown_price": "Die Kellerliste sagt nicht, was er kostet.",
    "unknown_grapes": "Die Kellerliste nennt seine Rebsorten nicht.",
    "unknown_body": "Die Kellerliste sagt nicht, wie leicht oder kräftig er ist.",
    "no_allergens": (
        "Die Kellerliste nennt keine Allergene darin; bitte sehen Sie auch auf das Etikett."
    ),
    "in_order_cheapest": "Das Günstigste zuerst{criteria}:",
    "in_order_dearest": "Das Teuerste zuerst{criteria}:",
    "library_closing": (
        "Meine Bibliothek gibt es nur auf Englisch. Möchten Sie einen Wein dazu, nennen Sie "
        "mir ein Gericht, eine Farbe, eine Rebsorte oder einen Preis, und ich suche etwas für "
        "Sie aus."
    ),
    "is_in_stock": "Er ist auf Lager.",
}
