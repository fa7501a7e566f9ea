"""Words for style, colour, taste and limits, and words that refer back.

The format is explained in `agent.house_sommelier.lexicon`. Pseudo-fields: `hue` is a colour word
that becomes a style or a colour once the whole request is known;
`cap` is a price limit in euros; `cue` says how a request relates to the one before;
`name` is a name that holds a known word.
"""

from typing import Final

STYLES: Final = """
hue red
  en red, reds, red wine
  de Rotwein, rot, rote, roten, roter, rotes, rotem, Rotweine, Rotweinen, Roten, Roter
  fr vin rouge, rouge
  es vino tinto, tinto
  it vino rosso, rosso, rossi
hue white
  en white, whites, white wine
  de Weißwein, weiß, weiße, weißen, weißer, weißes, Weißweine, Weißweinen
  fr vin blanc, blanc
  es vino blanco, blanco, blanca
  it vino bianco, bianco, bianchi
hue rose
  en rosé, rose wine, blush, pink
  de Rosé, Roséwein
  fr vin rosé, vins rosés
  es vino rosado, rosado, rosada
  it vino rosato, rosato, rosati
hue orange
  en orange, orange wine, skin contact, amber wine
  de Orangewein
  fr vin orange
  es vino naranja
  it vino arancione, vino orange
styles sparkling
  en sparkling, bubbly, bubble, fizz, fizzy, sparkler, sparkling wine, to celebrate, celebration
  en new year s eve
  de Schaumwein, Sekt, prickelnd, prickelndes, Perlwein
  fr vin effervescent, bulles, effervescent, pétillant, mousseux, vin pétillant, vin mousseux
  es vino espumoso, espumoso, burbujas
  it spumante, bollicine, frizzante, spumanti, frizzanti, brindare
  fr trinquer
  es brindar, espumante
  de anstoßen
styles sparkling; hue white
  en blanc de blanc, blanc de noir
styles sparkling; sweetness bone_dry, dry
  en brut
styles sparkling; sweetness bone_dry
  en extra brut, brut nature, zero dosage
styles sparkling; regions Champagne
  en champagne, champers, Champagner
styles sparkling; regions Prosecco
  en prosecco
styles sparkling; regions Cava
  en cava
styles sparkling; regions Franciacorta
  en franciacorta
styles sparkling; text Crémant
  en cremant
styles sparkling; grapes Lambrusco
  en lambrusco
styles sweet, fortified; sweetness sweet, luscious
  en dessert wine, pudding wine
  de Dessertwein, Süßwein
  fr vin de dessert, vin liquoreux
  es vino de postre
  it vino da dessert, vino passito
styles fortified
  en fortified, fortified wine, vin doux naturel
  de Likörwein, Likörweine, aufgespritet, aufgespriteter, aufgespritete, gespritete Weine
  fr vin muté, vins mutés, muté, fortifié, vin fortifié
  es vino generoso, generoso, vinos generosos, fortificado, vino fortificado
  it vino liquoroso, vini liquorosi, liquoroso, liquorosi, fortificato, vini fortificati
styles fortified; regions Port
  en port, port wine, porto, tawny, tawny port, ruby port, vintage port, lbv, Portwein
styles fortified; regions Port; hue white
  en white port
styles fortified; regions Sherry
  en sherry, jerez, xeres, fino, manzanilla, amontillado, oloroso, palo cortado, cream sherry
styles fortified; regions Madeira
  en madeira
styles fortified; regions Marsala
  en marsala
styles alcohol_free
  en alcohol free, non alcoholic, nonalcoholic, no alcohol, without alcohol, dealcoholised
  en dealcoholized, zero alcohol, alcohol removed, 0 alcohol, not contain alcohol
  en without any alcohol
  de alkoholfreier Wein, alkoholfrei, alkoholfreien, alkoholfreier, alkoholfreies, ohne Alkohol
  fr vin sans alcool, sans alcool, désalcoolisé
  es vino sin alcohol, sin alcohol, desalcoholizado
  it vino analcolico, analcolico, senza alcol, dealcolato
max_abv 11.5
  en low alcohol, low in alcohol, lower alcohol, low abv, light in alcohol, less alcohol
  de wenig Alkohol, alkoholarm
  fr peu d alcool
  es poco alcohol, bajo en alcohol
  it poco alcol, basso grado alcolico
sweetness bone_dry
  en bone-dry, bone dry, very dry, super dry
  de knochentrocken, sehr trocken
  fr très sec, extra sec
  es muy seco
  it molto secco
sweetness bone_dry, dry
  en dry, quite dry, fairly dry
  de trocken, trockene, trockenen, trockener, trockenes, trockenem
  fr sec, sèche
  es seco, seca
  it secco, secca, secchi
sweetness bone_dry, dry, off_dry
  en not too sweet, not overly sweet, not very sweet, less sweet
  de nicht zu süß, nicht so süß
  fr pas trop doux, pas trop sucré
  es no muy dulce, no demasiado dulce
  it non troppo dolce
sweetness off_dry
  en off-dry, off dry, half dry, semi dry
  de halbtrocken, feinherb
  fr demi sec
  es semiseco
  it abboccato
sweetness off_dry, medium
  en medium sweet, semi sweet, slightly sweet, a little sweet, a bit sweet, lightly sweet
  en not too dry
  de lieblich, lieblicher, lieblichen
  fr moelleux
  es semidulce
  it amabile
sweetness sweet, luscious
  en sweet, sugary, sweet wine
  de süß, süße, süßen, süßer, süßes
  fr doux, douce, sucré, liquoreux
  es dulce
  it dolce
bodies light, medium_light
  en light, light-bodied, light bodied, light body, easy drinking, delicate
  de leicht, leichte, leichten, leichter, leichtes
  fr léger, légère
  es ligero, ligera
  it leggero, leggera
bodies light, medium_light, medium
  en not too heavy, not too full bodied, not too strong, not too big
  de nicht zu schwer
  fr pas trop lourd, pas trop corsé
bodies medium
  en medium-bodied, medium bodied, medium body
  de mittelkräftig
  fr mi corsé
  es de cuerpo medio, cuerpo medio
  it di medio corpo, medio corpo
bodies medium_full, full
  en full-bodied, full bodied, full body, bold, powerful, heavy, robust, big red, rich red
  en rich white
  de kräftig, kräftige, kräftigen, kräftiger, kräftiges, vollmundig, schwer, schwerer
  fr puissant, charpenté, vin corsé, rouge corsé
  es con cuerpo, potente
  it corposo, strutturato, robusto
name Vega Sicilia
  en vega sicilia
text smoky
  en smoky
text crisp
  en crisp
text mineral
  en mineral, minerally
text fruity
  en fruity, fruchtig, fruité, afrutado, fruttato
text oaky
  en oaky, oaked
text earthy
  en earthy
text floral
  en floral
text buttery
  en buttery
text peppery
  en peppery
text juicy
  en juicy
text organic
  en organic, biodynamic, organically grown
  de Biowein, bio, Bio-Wein, biologisch, biodynamisch, biologischer, biologischen
  fr vin bio, biologique, biodynamique, vins bio
  es ecológico, ecológicos, biológico, biodinámico
  it biologico, biologici, biodinamico
  nl biologisch, biologische, biowijn, biodynamisch, biodynamische
text natural
  en natural, natural wine
text spice
  en spicy note, spicy wine
hue red; text spice
  en spicy red
bodies light, medium_light; cue refine
  en lighter
  de leichter als
  fr plus léger
  es más ligero
  it più leggero
bodies medium_full, full; cue refine
  en fuller, heavier, bolder, stronger, more powerful, more full bodied
  de kräftigerer, vollmundiger
  fr plus corsé
  es con más cuerpo
  it più corposo
sweetness bone_dry, dry; cue refine
  en drier, dryer
  de trockenerer
  fr plus sec
  es más seco
  it più secco
sweetness off_dry, medium, sweet; cue refine
  en sweeter
  de süßerer
  fr plus doux
  es más dulce
  it più dolce
cue cheaper
  en cheaper, less expensive, lower price, more affordable, less pricey, not as expensive
  en less costly, easier on the wallet, for less, lower priced, too expensive, too pricey
  en too much money, too dear, over my budget, out of my budget, can not afford
  de günstiger, günstigere, günstigeres, günstigeren, billiger, billigere, billigeres, preiswerter
  de preiswertere, preiswerteres, nicht so teuer, weniger teuer, zu teuer, viel zu teuer
  fr moins cher, moins chère, moins coûteux, plus abordable, meilleur marché, trop cher, trop chère
  es más barato, más económico, más barata, menos caro, menos cara, más económica
  es demasiado caro, demasiado cara, muy caro, muy cara
  it meno caro, più economico, meno cara, più economica, meno costoso, più conveniente
  it troppo caro, troppo cara, troppo costoso, troppo cari
cue dearer
  en more expensive, dearer, costlier, pricier, fancier, more premium
  de teurer, teurere, teureres
  fr plus cher
  es más caro
  it più caro
cue other
  en another, something else, anything else, something different, more option, other option
  en any other
  en other suggestion, more suggestion, show me more, different one, other one, what else
  en other wine, none of these, none of them, do not like any, do not like these, do not like them
  en do not like any of these, do not like any of them, do not like it
  de etwas anderes, andere, anderen, noch einer, noch einen, anderer, anderes, was anderes
  de keiner davon, keiner von denen, keinen davon, mir gefällt keiner, gefällt mir keiner
  de gefällt mir nicht, gefallen mir nicht, sagt mir nicht zu, überzeugt mich nicht
  fr autre, autre chose, d autres, encore un
  fr aucun ne me plaît, aucun de ceux, ne me plaît pas, ne me plaisent pas, aucun me plaît
  es otro, otra, algo diferente, otros, algo distinto, alguno más
  es no me gusta ninguno, ninguno me gusta, ninguno de estos, no me convence, no me convencen
  it altro, altri, qualcos altro, un altra, qualcosa di diverso
  it non mi piace nessuno, nessuno di questi, nessuno mi piace, non mi convince, non mi convincono
cap 12
  en cheap, inexpensive, affordable, on a budget, bargain, low cost, cheapish
  de günstig, günstige, günstigen, günstiger Wein, billig, billigen, preiswert
  fr pas cher, pas chère, bon marché
  es barato, barata, económico, económica, baratito
  it economico, economica, poco costoso
cap 20
  en not too expensive, not expensive, nothing too expensive, nothing expensive, not too pricey
  de nicht zu teuer, nicht teuer, nicht allzu teuer
  fr pas trop cher, pas trop chère
  es no muy caro, no demasiado caro, no sea muy caro, no sea demasiado caro
  it non troppo caro, non troppo costoso, non molto caro
"""
