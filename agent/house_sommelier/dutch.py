"""Dutch words for dishes, styles, taste and wishes, in the format of `lexicon`.

The first phrase of a meaning is also how the house sommelier names it in Dutch.
"""

from typing import Final

DUTCH: Final = """
foods lamb
  nl lam, lamsvlees, lamsbout, lamsrack, lamskotelet, lamsschouder, schapenvlees
foods beef
  nl rundvlees, biefstuk, entrecote, ossenhaas, rosbief, rood vlees, tartaar, bavette
  nl kogelbiefstuk, ribstuk
foods pork
  nl varkensvlees, varken, varkenshaas, speklap, spek, procureur, karbonade
foods veal
  nl kalfsvlees, kalf, kalfsoester, schnitzel, kalfsschnitzel
foods poultry
  nl gevogelte, kip, kipfilet, kippenpoot, kalkoen, parelhoen, gebraden kip, kippetje
foods duck
  nl eend, eendenborst, eendenbout, gans
foods game
  nl wildbraad, bij wild, hert, ree, reerug, hertenbiefstuk, wildzwijn, haas, konijn
  nl fazant, everzwijn
  nl wildgerecht
foods charcuterie
  nl vleeswaren, ham, rookworst, droge worst, salami, paté, borrelplank, worstjes, rauwe ham
foods barbecue
  nl barbecue, bbq, gegrild vlees, grillen, van de grill
foods stew
  nl stoofvlees, stoofpot, stoofschotel, hachee, goulash, draadjesvlees, sudderlapjes
foods burgers
  nl hamburgers, hamburger
foods fish
  nl vis, witvis, kabeljauw, zeebaars, tong, schol, forel, heilbot, dorade, snoekbaars, zeetong
  nl gebakken vis, gegrilde vis
foods oily_fish
  nl vette vis, zalm, tonijn, makreel, haring, sardientjes, gerookte zalm, paling
foods shellfish
  nl schaaldieren, mosselen, mossel, garnalen, garnaal, kreeft, krab, zeevruchten, schelpdieren
  nl coquilles, gambas, inktvis
foods oysters
  nl oesters, oester
foods pasta
  nl pasta, spaghetti, noedels
foods vegetables
  nl groenten, groente, asperges, vegetarisch, vegetarische, pompoen, aubergine, aardappelen
  nl bloemkool, spinazie
foods salad
  nl salade, slaatje
foods mushrooms
  nl paddenstoelen, champignons, truffel, eekhoorntjesbrood, cantharellen
foods tomato
  nl tomaten, tomaat, tomatensaus
foods eggs
  nl eieren, ei, omelet, roerei
foods spicy
  nl pittig eten, pittig, pittige, scherp, scherpe, gekruid
foods curry
  nl curry, kerrie, currygerecht
foods asian
  nl Aziatisch eten, aziatisch, aziatische, Chinees eten, Indonesisch eten, rijsttafel
foods tapas
  nl tapas, borrelhapjes, olijven
foods hard_cheese
  nl harde kaas, oude kaas, belegen kaas, kaasfondue
foods soft_cheese
  nl zachte kaas
foods goat_cheese
  nl geitenkaas
foods blue_cheese
  nl blauwe kaas, blauwschimmelkaas
foods hard_cheese, soft_cheese
  nl kaas
foods hard_cheese, soft_cheese, blue_cheese
  nl kaasplank, kaasplankje
foods fruit_dessert
  nl fruitdessert, appeltaart, vruchtentaart, aardbeien, fruitsalade
foods creamy_dessert
  nl romig dessert, ijs, kwarktaart, vanille ijs, pudding
foods fruit_dessert, creamy_dessert
  nl nagerecht, toetje, taart, gebak
foods chocolate
  nl chocolade, chocoladetaart, chocolademousse, pure chocolade
foods nuts
  nl noten, walnoten, amandelen, hazelnoten
foods aperitif
  nl aperitief, borrel, voorgerecht, hapjes
hue red
  nl rode wijn, rood, rode, rode wijnen
hue white
  nl witte wijn, wit, witte, witte wijnen
hue rose
  nl roséwijn, rosé
hue orange
  nl oranje wijn
styles sparkling
  nl mousserende wijn, bubbels, mousserend, mousserende, bruisend, bruisende, bubbeltjes
styles sweet, fortified; sweetness sweet, luscious
  nl dessertwijn, zoete dessertwijn
styles fortified
  nl versterkte wijn, versterkte, versterkt
styles fortified; regions Port
  nl port, portwijn
styles alcohol_free
  nl alcoholvrije wijn, alcoholvrij, alcoholvrije, zonder alcohol, nul procent
max_abv 11.5
  nl weinig alcohol, laag in alcohol, alcoholarm
sweetness bone_dry
  nl kurkdroog, heel droog, zeer droog
sweetness bone_dry, dry
  nl droog, droge
sweetness bone_dry, dry, off_dry
  nl niet te zoet, niet zo zoet
sweetness off_dry
  nl halfdroog, halfdroge
sweetness off_dry, medium
  nl halfzoet, halfzoete, lichtzoet, lichtzoete
sweetness sweet, luscious
  nl zoet, zoete
bodies light, medium_light
  nl licht, lichte
bodies light, medium_light, medium
  nl niet te zwaar, niet te vol
bodies medium
  nl middelzwaar, middelzware
bodies medium_full, full
  nl krachtig, volle, krachtige, stevig, stevige, zwaar, zware
text fruity
  nl fruitig, fruitige
text crisp
  nl fris, frisse
bodies light, medium_light; cue refine
  nl lichter, lichtere
bodies medium_full, full; cue refine
  nl voller, vollere, krachtiger, krachtigere
sweetness bone_dry, dry; cue refine
  nl droger, drogere
sweetness off_dry, medium, sweet; cue refine
  nl zoeter, zoetere
cue cheaper
  nl goedkoper, goedkopere, goedkopers, minder duur, voordeliger, te duur, veel te duur
cue dearer
  nl duurder, duurdere, duurders
cue other
  nl iets anders, een andere, nog een, andere, geen van deze, geen van die, bevalt me niet
  nl bevallen me niet
cap 12
  nl goedkoop, goedkope, voordelig, voordelige, betaalbaar, betaalbare
cap 20
  nl niet te duur, niet duur, niet al te duur
without_allergens egg, milk, fish
  nl veganistisch, veganistische, vegan
allergen sulphites
  nl sulfiet
allergen egg
  nl ei
allergen milk
  nl melk
allergen fish
  nl vis
"""
