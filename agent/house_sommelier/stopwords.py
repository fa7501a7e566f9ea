"""Words that say nothing about a wine, by language: no search term, but a sign of a language."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

from agent.house_sommelier.lexicon import Language, fold, stem

_WORDS: Final[Mapping[Language, str]] = {
    "en": """
    a an the and or but for with without from of to in on at by is are was be been am i me my we us
    our you your it its this that these those they them he she some any something anything someone
    what which who when where why how do does did have has had can could will would should may
    might must please thanks thank hello hi hey want wants need like love looking look find get got
    give show recommend suggest suggestion recommendation wine wines bottle glass good great nice
    best better really very quite pretty too so not no yes ok okay maybe perhaps just only also
    more most less least than then there here about around under over below above up down out off
    into one two three four five six drink drinking drinks serve serving served buy try tell go
    goes going pair pairs pairing match matches suit suits well eat eating cook cooking cooked
    having make making made made dinner lunch meal dish dishes food foods evening tonight today
    tomorrow weekend party friend friends family guest guests people person wife husband mother
    father mom dad mum girlfriend boyfriend boss gift present birthday anniversary wedding date
    summer winter spring autumn christmas easter price priced cost costs money euro euros dollar
    dollars pound pounds budget spend spending something else other another different same kind
    type sort style option options choice idea ideas help let lets know think sure tasty delicious
    fancy special expensive perfect ideal lovely much many few lot bit little big small new old
    first second third last next again ever never always all every each both grilled roast roasted
    fried baked smoked braised sauce side piece plate monday tuesday wednesday thursday friday
    saturday sunday january february march april june july august september october november
    december if as because while during am pm im ill id ive dont sir madam bot sommelier cellar
    list range available stock drinkable allergic allergy contain contains containing surprise
    choose pick grape region country vintage year years colour color taste tastes tasting dear
    wonderful goodbye bye cheers happy celebrating enjoy feel mood maximum minimum max min per
    between at least alcohol celebrate fresh quality goes
    mean means meaning difference law object half""",
    "de": """
    ein eine einen einem einer der die das den dem des und oder aber mit ohne für zu zum zur von
    vom im in bei aus auf unter über bis ich wir du sie er es mir uns mich bitte danke hallo guten
    tag abend wein weine flasche rotwein weißwein rot weiß was wie wo wer welche welcher welchen
    ist sind war kann können möchte hätte gern gerne suche brauche will empfiehl empfehlen passt
    passend etwas nicht kein keine keinen auch noch nur sehr ganz gut guter gutes guten höchstens
    maximal etwa zwischen dazu essen heute morgen zeig gib ja nein schönen kräftigen trockenen
    leichten lieber stattdessen meine meinen meiner mein meinem unsere unser frau mann freund
    freundin mutter vater kind tochter sohn gast gibt hast habt ersten erste erster zweiten zweite
    zweiter dritten dritte dritter letzten letzte statt habe hat haben trinken wollen will anderes
    irgendwas geschenk
    bedeutet bedeuten heißt heisst warum wieso weshalb unterschied kostet kosten nehme nehmen
    gefällt davon beste besten bester bestes viel wieviel wie lange lang hält halten mag rebsorte
    trinkt trinke kaufen kaufe welchem denn mal eigentlich erkläre erklär servieren
    trinkbar alkohol gegen""",
    "fr": """
    un une des du de la le les et ou mais avec sans pour au aux en dans sur sous moins plus entre
    je nous tu vous il elle moi mon ma mes votre vin vins bouteille rouge blanc est sont que qui
    quoi quel quelle quels cherche voudrais aimerais veux faut merci bonjour salut bonsoir oui non
    très bien bon bonne avez recommandez recommander conseillez svp plaît pas quelque chose
    accompagner repas soir ce cette d l s qu c mari femme fille fils ami amie notre nos premier
    première deuxième troisième dernier ai avons suis boire manger cadeau
    comment combien coûte coûtent pourquoi signifie veut dire différence entre lequel laquelle
    lesquels meilleur meilleure prends prendre plaît ne aucun trop cher température servir garder
    longtemps ouverte ouvert acheter achète peux peut pouvez où comme j ai m t n y
    est-ce c'est ça qu'est mieux""",
    "es": """
    un una unos unas el la los las y o pero con sin para por de del al en entre menos más hasta yo
    nosotros tú usted me mi vino vinos botella tinto blanco es son qué que quién cuál quiero busco
    necesito quisiera gracias hola buenas buenos días tardes sí no muy bien bueno buena algo
    recomienda recomiendas recomiéndame favor tiene tienes cena comida esta noche tengo tenemos soy
    somos marido mujer hija hijo amigo amiga nuestra nuestro beber comer regalo puedo primero
    primera segundo segunda tercero tercera último hay hoy mañana responde puedes quieres este
    esta
    cuánto cuánta cuánto cuesta cuestan cuál cuáles cómo cuándo significa diferencia mejor tomo
    llevo comprar compro dónde
    marido porqué ninguno quiere decir servir temperatura dura abierta abierto se puede poner
    pongo botella este esta estos para""",
    "it": """
    un una uno il lo la i gli le e o ma con senza per di del della dei da al alla in tra fra meno
    più fino io noi tu lei mi mio mia vino vini bottiglia rosso bianco è sono che chi quale vorrei
    cerco voglio serve grazie ciao buongiorno buonasera sì no molto bene buono buona qualcosa
    consigli consiglia consigliami favore avete hai cena stasera sotto sui ho abbiamo moglie marito
    figlio figlia amico amica nostro nostra bere mangiare regalo posso primo prima secondo seconda
    terzo terza ultimo oggi domani d l rispondi scrivi posso vuoi puoi questo questa
    quanto quanta costa costano quale quali come quando perché significa cosa differenza migliore
    meglio prendo vuol dire servire temperatura dura aperta aperto si può nessuno piace allora
    comprare compro dove sul sulla sui sulle scrivimi dimmi""",
    "nl": """
    een het de der den en of maar met zonder voor van in op aan bij uit onder over tot om te ik wij
    we ons u je jij jouw uw hij zij ze mij me mijn is zijn ben bent heb hebt heeft hebben kan
    kunnen kunt kun wil willen zou graag alstublieft alsjeblieft bedankt dank hallo hoi goedemorgen
    goedenavond goedemiddag wijn wijnen fles flessen wat welke wie hoe waar waarom wanneer dat dit
    die deze daarbij erbij daar er iets niets niet geen ook nog maar zeer heel erg goed goede
    lekker lekkere mooi mooie zoek zoeken raad raden aan past passen drinken eten vanavond vandaag
    morgen verjaardag cadeau maximaal hoogstens ongeveer rond tussen per ja nee liever eens meer
    minder dan als want omdat alleen elke alle naar door vertel twee drie vier beide eentje hoor
    feest etentje vrienden gasten vrouw man moeder vader combineren aanraden advies adviseren
    eerste tweede derde vierde laatste
    kost kosten hoeveel waarom betekent verschil beste neem nemen geen lang houdbaar open
    bewaren kopen koop serveren temperatuur welk leg uit hoelang geopend van""",
}


@cache
def _telling(language: Language) -> frozenset[str]:
    return frozenset(stem(fold(word)) for word in _WORDS[language].split())


@cache
def stop_words() -> frozenset[str]:
    """The stems of all these words."""
    return frozenset().union(*(_telling(language) for language in _WORDS))


@cache
def house_words() -> frozenset[str]:
    """The stems of words that stand before many a wine's name and tell none from another."""
    words = """chateau château domaine weingut bodega bodegas tenuta castello quinta clos cantina
    fattoria podere cascina schloss casa maison cave cuvée reserva riserva réserve grand cru vintage
    estate winery vineyard vineyards cellars the le la les di de du del della"""
    return frozenset(stem(fold(word)) for word in words.split())


@cache
def _weight(word: str) -> float:
    """How much a word tells: one that several languages have tells less."""
    shared = sum(word in _telling(language) for language in _WORDS)
    return 1 / shared if shared else 0.0


def likely_languages(stems: Sequence[str], spoken: Sequence[str] = ()) -> tuple[Language, ...]:
    """The languages most of these stems belong to, equals in a fixed order; `spoken` also vote."""
    votes: dict[Language, float] = {
        language: round(
            sum(_weight(word) for word in stems if word in _telling(language))
            + spoken.count(language),
            6,
        )
        for language in _WORDS
    }
    most = max(votes.values())
    return tuple(language for language in votes if most and votes[language] == most)
