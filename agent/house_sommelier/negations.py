"""Words that exclude, allergens, and what only looks like a wish, in the format of `lexicon`.

Pseudo-fields: `not` excludes what follows and `not_before` what stands before it; `allergy` tells
of an intolerance to what is around it; `allergen` is something a wine may contain; `elsewhere` is
an allergen that no wine declares; `ignore` is consumed without meaning anything.
"""

from typing import Final

NEGATIONS: Final = """
not yes
  en no, not, without, except, avoid, hate, dislike, never, nothing, neither, nor, free of
  en free from, anything but, everything but, other than, instead of, rather than, exclude
  en excluding, apart from, except for, but not, can not stand, aside from, under no circumstances
  en do not want, do not like, any but, all but, minus, hates, detest, leave out, skip the, but no
  de ohne, kein, keine, keinen, keinem, keiner, keines, nicht, nichts, außer, statt, anstatt
  de auf keinen Fall, keinesfalls, bloß nicht, bloß kein, niemals, nie, hasse, weder, noch nie
  de ausgenommen, alles außer, abgesehen von, mit Ausnahme von
  fr sans, pas, sauf, ni, plutôt que, rien, aucun, aucune, jamais, surtout pas, hormis, excepté
  fr ne contient pas, qui n a pas, en aucun cas, tout sauf, à part, n importe quoi sauf, déteste
  fr au lieu de, à l exception de
  es sin, nada, excepto, no, ni, tampoco, salvo, ningún, ninguno, ninguna, nunca, jamás, odio
  es que no tenga, que no contenga, no contiene, en ningún caso, todo menos, cualquier cosa menos
  es que no sea, que no sean, no me gusta, evitar
  es no me gustan, en lugar de, cualquiera menos, a excepción de
  it senza, non, tranne, niente, nessun, nessuno, nessuna, eccetto, a parte, salvo
  it che non contenga, che non abbia, non contiene, in nessun caso, tutto tranne
  it qualsiasi cosa tranne, che non sia, odio, non mi piace, escluso
  it al posto di, invece di, esclusi, non mi piacciono, ad eccezione di
  nl geen, niet, zonder, behalve, niets, nooit, in plaats van, in geen geval, alles behalve
  nl uitgezonderd, liever geen, hou niet van, houd niet van, haat, absoluut geen, niks, beslist geen
not_before yes
  de mag ich nicht, mag er nicht, mag sie nicht, mögen wir nicht, trinke ich nicht, gar nicht
  de trinken wir nicht, vertrage ich nicht, will ich nicht, kommt nicht in Frage
  nl lust ik niet, lusten we niet, drink ik niet, wil ik niet, vind ik niet lekker
  nl hou ik niet van, houd ik niet van, verdraag ik niet
  en is out, is not an option
allergy yes
  en allergic, allergic to, allergy to, allergy, intolerant, intolerance to, intolerance
  en intolerant to, intolerant of, react badly to, can not tolerate, sensitive to, sensitivity to
  en makes me ill, make me ill, give me hives, gives me hives, anaphylactic to
  en make me sick, makes me sick, upset my stomach, upsets my stomach, do not agree with me
  en does not agree with me, give me a headache, gives me a headache, give me headaches
  en gives me headaches, give me migraines, gives me migraines
  de allergisch, allergisch gegen, allergisch auf, Allergie, Allergie gegen, Unverträglichkeit
  de Unverträglichkeit gegen, Intoleranz, intolerant, Allergiker, Allergikerin, vertrage kein
  de vertrage keine, vertrage keinen, reagiere auf, verträgt keine, verträgt kein
  de bekommt mir nicht, bekommen mir nicht, machen mich krank, macht mich krank
  de machen mir Kopfweh, machen mir Kopfschmerzen, macht mir Kopfschmerzen
  fr allergique, allergique à, allergique aux, allergie, allergie à, allergie aux, intolérant
  fr intolérante, intolérance, intolérance à, intolérance au, intolérant au, intolérant à
  fr ne supporte pas, supporte pas, ne tolère pas, me rend malade, me rendent malade
  fr me donne mal à la tête, me donnent mal à la tête
  es alérgico, alérgica, alérgicos, alérgicas, alergia, alergia a, alérgico a, alérgica a
  es intolerante, intolerante a, intolerancia, intolerancia a, me sienta mal, no tolero
  es me sientan mal, me caen mal, me cae mal, me dan dolor de cabeza, me da dolor de cabeza
  it allergico, allergica, allergici, allergia, allergia a, allergico a, allergica a
  it intollerante, intollerante a, intolleranza, intolleranza a, non tollero
  it mi fa male, mi fanno male, mi danno mal di testa, mi fa stare male, mi fanno stare male
  nl allergisch, allergisch voor, allergie, allergie voor, intolerant, intolerant voor
  nl intolerantie, intolerantie voor, allergisch aan, kan niet tegen, verdraag geen, overgevoelig
  nl overgevoelig voor, word ik ziek van, krijg ik hoofdpijn van, maakt me ziek, maken me ziek
without_allergens sulphites
  en sulphite free, sulfite free, no added sulphite, no added sulfite, sulfur free, unsulphured
  de schwefelfrei, sulfitfrei, ohne Schwefel, ungeschwefelt
  nl sulfietvrij, zwavelvrij
allergen sulphites
  en sulphites, sulfites, sulphur, sulfur, sulphur dioxide, sulfite
  de Sulfite, Schwefel, Sulfit, Sulfiten
  fr sulfites, soufre
  es sulfitos, azufre, sulfito
  it solfiti, anidride solforosa, zolfo
  nl sulfiet, sulfieten, zwavel
without_allergens egg
  en egg free
  de eifrei
  nl eivrij
allergen egg
  en egg, egg white, albumin, lysozyme, egg protein, albumen, ovalbumin, hen egg, egg yolk
  de Ei, Eier, Eiern, Eiweiß, Hühnerei, Hühnereier, Hühnereiweiß, Eiklar, Albumin, Lysozym
  fr œuf, œufs, blanc d œuf, blancs d œufs, albumine, protéine d œuf
  es huevo, huevos, clara de huevo, albúmina, proteína del huevo
  it uova, uovo, albume, albumina, bianco d uovo, chiara d uovo
  nl ei, eieren, eiwit, eiwitten, kippenei, kippeneiwit, albumine
allergen milk
  en milk, dairy, lactose, casein, milk protein, cow milk, whey, cow s milk
  de Milch, Laktose, Milcheiweiß, Kasein, Casein, Kuhmilch, Milchprodukte, Milchprotein, Lactose
  fr lait, lactose, caséine, produits laitiers, protéines de lait, lait de vache, laitages
  es leche, lactosa, caseína, lácteos, proteína de la leche, leche de vaca
  it latte, lattosio, caseina, latticini, proteine del latte
  nl melk, lactose, caseïne, zuivel, koemelk, melkeiwit, koemelkeiwit
without_allergens milk
  en milk free, dairy free, lactose free
  de laktosefrei, milchfrei, lactosefrei
  nl lactosevrij, melkvrij
allergen fish
  en fish, isinglass, fish protein, fish bladder, fish glue, fish gelatine, sturgeon
  de Fisch, Fischblase, Hausenblase, Fischeiweiß, Fischgelatine
  fr poisson, colle de poisson, ichtyocolle, poissons
  es pescado, cola de pescado, ictiocola, pescados
  it pesce, colla di pesce, ittiocolla
  nl vis, vislijm, viseiwit, visgelatine
without_allergens fish
  en fish free
  de fischfrei
without_allergens egg, milk, fish
  en vegan, vegan friendly
  de vegan, vegane, veganer, veganen, veganes
  fr végane, végétalien, végan, végétalienne
  es vegano, vegana, veganos
  it vegano, vegana, vegani
elsewhere other
  en nut, tree nut, peanut, shellfish, crustacean, gluten, wheat, soy, soya, sesame, mustard
  en celiac, coeliac, celery, lupin, mollusc, histamine, gluten free
  de Nuss, Nüsse, Nüssen, Erdnuss, Erdnüsse, Haselnuss, Gluten, Weizen, Soja, Sesam, Senf
  de Zöliakie, Sellerie, Krebstiere, Schalentiere, Histamin, glutenfrei
  fr noix, arachide, cacahuète, gluten, blé, soja, sésame, moutarde, céleri, crustacé, histamine
  fr cœliaque, fruit à coque, noisette, sans gluten
  es nuez, nueces, frutos secos, cacahuete, maní, gluten, trigo, soja, sésamo, mostaza, apio
  es celíaco, celíaca, celiaco, crustáceos, marisco, histamina, sin gluten
  it noci, frutta secca, arachidi, glutine, grano, soia, sesamo, senape, sedano, crostacei
  it celiaco, celiaca, istamina, nocciole, senza glutine
  nl noten, pinda, gluten, tarwe, soja, sesam, mosterd, selderij, schaaldieren, histamine
  nl coeliakie, notenallergie, glutenvrij, schelpdieren
text oaky
  en oak, oakiness, wood, woody, barrique, barrel aged, new oak, vanilla, barrel
  de Holz, holzig, holzige, Barrique, Eiche, Holzfass, Barriquefass
  fr boisé, boisée, fût, barrique, chêne, fût de chêne
  es madera, barrica, roble
  it legno, barrique, rovere, barricato, barricata
  nl hout, eikenhout, houtgelagerd, houtgerijpt, houtachtig, eiken, vanille
text buttery
  en butter, creamy wine
  de buttrig, buttrige, Butter
  fr beurré, beurrée, beurre
  es mantecoso, mantequilla
  it burroso, burro
  nl boterig, boterige, boter
ignore yes
  en why not, not mind, not sure, not only, no idea, no problem, no preference, not bad, no worry
  en game night, the game, french fry, nothing fancy, no rush, not know, rose petal
  en orange juice, rotten, new world, old world, port of, no matter, the wine list, wine glass
  en wine bar, white sauce, nothing else, no doubt, no particular, no hurry, not a clue, no clue
  de nicht wahr, keine Ahnung, nicht schlecht, weiß nicht, weiß ich nicht, nicht sicher, nicht nur
  de kein Problem, keine Eile, egal welche, nicht so sicher, kann nicht entscheiden
  fr pas mal, ne sais pas, sais pas, pas sûr, pas de problème, pas seulement, pourquoi pas
  fr n est ce pas, pas d idée, aucune idée, pas grave
  es no sé, no lo sé, no sabes, no tienes, no tiene, no tenéis, no importa, no estoy seguro
  es no pasa nada, ni idea, no solo, de nada, no hay, no tendrás
  it non so, non importa, non male, non solo, non sono sicuro, perché no, non avete, non hai
  it nessun problema, non saprei, di niente
  nl niet zeker, geen idee, weet niet, weet ik niet, niet alleen, geen probleem, waarom niet
  nl niet slecht, maakt niet uit, geen haast, niet waar
  en in english, in italian, in french, in german, in spanish, in dutch, in portuguese
  de auf Deutsch, auf Englisch, auf Italienisch, auf Französisch, auf Spanisch
  de auf Niederländisch, ins Englische, ins Italienische, ins Deutsche
  fr en français, en anglais, en italien, en espagnol, en allemand, en néerlandais
  es en español, en inglés, en italiano, en francés, en alemán, al español, al italiano, al inglés
  it in italiano, in inglese, in francese, in tedesco, in spagnolo, in olandese
  nl in het Nederlands, in het Engels, in het Italiaans, in het Frans, in het Duits, in het Spaans
"""

NOTE_WORDS: Final = {
    "oaky": frozenset(
        "oak oaky oaked barrel barrels barrique barriques vanilla toast toasty wood cedar "
        "coconut cask casks".split()
    ),
    "buttery": frozenset("butter buttery butterscotch brioche creamy cream".split()),
}
"""The words of an English tasting note by which a taste is told; others by their own name."""
