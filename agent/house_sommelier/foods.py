"""Words for dishes, in five languages; Dutch has a table of its own.

The format is explained in `agent.house_sommelier.lexicon`.

The first phrase of a language is also how the house sommelier names that food.
"""

from typing import Final

FOODS: Final = """
foods lamb
  en lamb, lamb chop, lamb shank, leg of lamb, rack of lamb, lamb shoulder, mutton, kofta
  en shawarma, shepherd pie, gyros
  de Lamm, Lammkeule, Lammkotelett, Lammrücken, Lammfleisch, Hammel
  fr agneau, gigot, gigot d agneau, carré d agneau, mouton
  es cordero, chuletillas, lechazo
  it agnello, abbacchio, arrosticini
foods beef
  en beef, steak, ribeye, rib eye, sirloin, fillet steak, filet mignon, entrecote, t bone, brisket
  en roast beef, beef wellington, tartare, steak tartare, red meat, prime rib, short rib, bavette
  en steak frites, dry aged beef, carpaccio
  de Rind, Rindfleisch, Rindersteak, Rinderfilet, Rinderbraten, Roastbeef, Tafelspitz
  fr bœuf, entrecôte, côte de bœuf, faux filet, viande rouge, onglet
  es ternera, buey, vaca, solomillo, chuletón, carne roja, entrecot
  it manzo, bistecca, fiorentina, tagliata, carne rossa
foods pork
  en pork, pork chop, pork belly, pork loin, roast pork, pulled pork, suckling pig, gammon, bacon
  en white meat, porchetta
  de Schwein, Schweinebraten, Schweinefleisch, Kassler, Speck, Haxe
  fr porc, rôti de porc, lard, cochon
  es cerdo, cochinillo, panceta
  it maiale, arista
foods veal
  en veal, schnitzel, wiener schnitzel, osso buco, ossobuco, saltimbocca, vitello tonnato
  en cordon bleu
  de Kalb, Kalbfleisch, Kalbsbraten
  fr veau, blanquette, blanquette de veau
  es carne de ternera blanca
  it vitello, cotoletta, cotoletta alla milanese
foods poultry
  en poultry, chicken, roast chicken, fried chicken, chicken wing, turkey, christmas turkey, capon
  en guinea fowl, chicken breast, thanksgiving, chicken salad, chicken pie
  de Geflügel, Hähnchen, Huhn, Hühnchen, Pute, Truthahn, Backhendl
  fr volaille, poulet, dinde, pintade, chapon, poulet rôti
  es pollo, ave, pavo
  it pollame, pollo, tacchino, faraona
foods duck
  en duck, duck breast, duck confit, confit de canard, peking duck, goose, foie gras
  en duck a l orange, duck with orange
  de Ente, Entenbrust, Gans, Gänsebraten
  fr canard, magret, magret de canard, oie
  es pato
  it anatra, oca
foods game
  en game, venison, wild boar, boar, pheasant, partridge, hare, rabbit, quail, pigeon, deer
  en grouse
  de Wildgerichte, Hirsch, Reh, Rehrücken, Wildschwein, Hase, Kaninchen
  fr gibier, chevreuil, sanglier, lapin, cerf, faisan, perdrix
  es caza, venado, jabalí, conejo, ciervo
  it selvaggina, cinghiale, cervo, lepre, coniglio
foods charcuterie
  en charcuterie, salami, ham, prosciutto, cold cut, cured meat, chorizo, pate, sausage, terrine
  en bresaola, serrano, jamon, pancetta, mortadella, spanish ham, german sausage, parma ham
  de Wurst, Aufschnitt, Schinken, Bratwurst, Wurstplatte
  fr charcuterie, jambon, saucisson, saucisse, pâté, rillettes
  es embutido, jamón ibérico, salchichón
  it salumi, prosciutto crudo, affettati, salsiccia
foods barbecue
  en barbecue, bbq, barbeque, grill, grilled meat, rib, spare rib, kebab, braai, asado, cookout
  en mixed grill, grilling
  de Grillfleisch, Grillen, Gegrilltes, Grillabend
  fr grillades, grillade
  es barbacoa, parrillada, parrilla
  it grigliata, griglia
foods stew
  en stew, beef stew, casserole, goulash, boeuf bourguignon, beef bourguignon, coq au vin
  en pot roast, cassoulet, tagine, braised beef, ragout, chili con carne, hotpot, braise, pot au feu
  en lamb stew
  de Eintopf, Gulasch, Schmorbraten, Sauerbraten, Ragout
  fr ragoût, daube, pot au feu, bœuf bourguignon
  es estofado, guiso, cocido
  it stufato, brasato, spezzatino
foods burgers
  de Burger
  fr burgers
  es hamburguesas
  it hamburger
  nl hamburgers
  * burgers
  en hamburger, cheeseburger
  es hamburguesa
  it hamburger
foods fish
  en fish, cod, sea bass, seabass, sea bream, sole, halibut, turbot, monkfish, white fish, trout
  en hake
  en grilled fish, fish and chips, haddock, red snapper, red mullet, pike, plaice, snapper, bass
  de Fisch, Forelle, Kabeljau, Zander, Seezunge, Dorade, Wolfsbarsch
  fr poisson, cabillaud, sole meunière, bar grillé, daurade, truite, lotte
  es pescado, merluza, bacalao, lubina, dorada
  it pesce, branzino, orata, baccalà
foods oily_fish
  en oily fish, salmon, tuna, mackerel, sardine, smoked salmon, herring, anchovy, eel
  en grilled salmon, tuna steak
  de Lachs, Thunfisch, Makrele, Hering, Räucherlachs
  fr saumon, thon, maquereau, hareng, saumon fumé
  es salmón, atún, caballa, sardina
  it salmone, tonno, sgombro, acciughe
foods shellfish
  en shellfish, seafood, prawn, shrimp, lobster, crab, mussel, clam, scallop, crayfish
  en langoustine
  en seafood platter, squid, calamari, octopus, moule frite, paella, bouillabaisse, fruit de mer
  de Meeresfrüchte, Garnele, Garnelen, Muscheln, Hummer, Krabben, Scampi
  fr fruits de mer, crevette, homard, crabe, moule, saint jacques, langouste
  es marisco, gamba, langosta, cangrejo, mejillones, pulpo
  it frutti di mare, gamberi, aragosta, cozze, vongole, crostacei, polpo
foods oysters
  en oysters
  de Austern, Auster
  fr huîtres
  es ostras
  it ostriche
foods sushi
  de Sushi
  * sushi
  en sashimi, maki, nigiri, poke, poke bowl, ceviche
foods pasta
  en pasta, spaghetti, lasagne, lasagna, carbonara, tagliatelle, ravioli, gnocchi, linguine, penne
  en spaghetti bolognese, mac and cheese, macaroni, noodle, creamy pasta
  de Nudeln, Spätzle
  fr pâtes
  es fideos
  it pasta, tortellini
foods pasta, tomato
  en Italian food, bolognese, ragu, italian dish, italian dinner, italian cuisine, arrabbiata
foods pizza
  de Pizza
  * pizza
  en margherita, calzone, pizza night
  de Flammkuchen
foods risotto
  de Risotto
  * risotto
  es arroz
foods risotto, mushrooms
  en mushroom risotto, risotto ai funghi, truffle risotto
foods vegetables
  en vegetables, veggie, vegetarian, asparagus, aubergine, eggplant, courgette, zucchini
  en ratatouille
  en pepper, artichoke, pumpkin, squash, spinach, cauliflower, lentil, falafel, hummus, tofu
  en vegetarian dish, vegetable curry, sweet potato, potato, bean, red cabbage, pulse, veg
  en avocado
  de Gemüse, Spargel, vegetarisch, Kürbis, Aubergine, Kartoffeln
  fr légumes, asperges, légume, végétarien, courge
  es verduras, espárragos, vegetariano, verdura, berenjena
  it verdure, asparagi, vegetariano, melanzane, carciofi
foods salad
  en salad, greek salad, caesar salad, nicoise, salad nicoise, light lunch, tabbouleh, coleslaw
  de Salat
  fr salade
  es ensalada
  it insalata
foods mushrooms
  en mushrooms, truffle, porcini, chanterelle, morel, wild mushroom, cep
  de Pilze, Steinpilze, Trüffel, Pfifferlinge
  fr champignons, truffe, cèpes, girolles
  es setas, champiñones, trufa
  it funghi, tartufo, porcini
foods tomato
  en tomato, tomato sauce, gazpacho, bruschetta, marinara
  de Tomaten, Tomatensauce
  fr tomates
  es tomate
  it pomodoro
foods eggs
  en eggs
  de Eier, Ei
  fr œufs, œuf
  es huevos, huevo
  it uova, uovo
foods eggs
  en omelette, omelet, frittata, quiche, brunch, english breakfast, scrambled egg, egg benedict
  de Omelett, Rührei
  es tortilla, tortilla de patatas
foods spicy
  en spicy food, spicy, hot and spicy, chilli, chili, mexican, taco, burrito, fajita, jerk chicken
  en cajun, mexican food, enchilada, nacho
  de scharfes Essen, scharf, scharfe, scharfes
  fr plats épicés, épicé, pimenté
  es picante, comida picante
  it piccante, cibo piccante
foods spicy, asian
  en Thai food, thai, szechuan, sichuan, green curry, red curry, thai curry, pad thai, korean
  en kimchi, laksa, tom yum
foods curry
  en curry, indian, indian food, tikka masala, vindaloo, korma, daal, butter chicken, biryani
  en tandoori, chicken curry, madras, chicken tikka, tandoori chicken, naan, katsu
  de Curry
  fr curry
  es curri
  it curry
foods asian
  en asian food, asian, chinese, chinese food, vietnamese, japanese, stir fry, dim sum, dumpling
  en pho, ramen, spring roll, sweet and sour, sweet and sour pork, teriyaki, wok, satay, gyoza
  en fried rice, japanese food, teriyaki chicken, bibimbap, chow mein
  de asiatisches Essen, asiatisch, asiatische, asiatischen
  fr cuisine asiatique, asiatique
  es comida asiática, asiática
  it cucina asiatica, asiatica
foods tapas
  en tapas, mezze, meze, antipasti, antipasto, finger food, pintxo, small plate, olive
  de Tapas
  fr tapas
  es tapas, pincho, aceitunas
  it antipasti, cicchetti
foods hard_cheese
  en hard cheese, parmesan, cheddar, comte, gruyere, manchego, pecorino, gouda, fondue, raclette
  en swiss cheese, parmigiano, emmental, cheese fondue
  de Hartkäse, Bergkäse, Käsefondue, Parmesan
  fr fromage à pâte dure, comté, gruyère
  es queso curado
  it formaggio stagionato, parmigiano
foods soft_cheese
  en soft cheese, brie, camembert, mozzarella, burrata, epoisses, vacherin, reblochon, ricotta
  en feta
  de Weichkäse
  fr fromage à pâte molle
  es queso tierno
  it formaggio fresco
foods goat_cheese
  en goat cheese, goat s cheese, goat, chevre, crottin
  de Ziegenkäse
  fr fromage de chèvre, chèvre
  es queso de cabra
  it formaggio di capra, caprino
foods blue_cheese
  en blue cheese, roquefort, stilton, gorgonzola, danish blue, bleu
  de Blauschimmelkäse
  fr fromage bleu
  es queso azul, cabrales
  it formaggio erborinato
foods hard_cheese, soft_cheese
  en cheese
  de Käse
  fr fromage
  es queso
  it formaggio, formaggi
foods hard_cheese, soft_cheese, blue_cheese
  en cheese board, cheeseboard, cheese platter, cheese plate, cheese course
  de Käseplatte
  fr plateau de fromages
  es tabla de quesos
  it tagliere di formaggi
foods fruit_dessert
  en fruit desserts, fruit dessert, apple pie, fruit tart, tarte tatin, apple tart, peach
  en strawberry
  en lemon tart, fruit salad, sorbet, strudel, crumble, apple crumble, pavlova, panettone
  en fruit cake
  en cherry pie, lemon meringue
  de Obstdessert, Apfelstrudel, Obstkuchen, Apfelkuchen, Erdbeeren
  fr dessert aux fruits, tarte aux pommes, tarte aux fruits, fraises
  es postre de frutas, tarta de manzana, fresas
  it dolce alla frutta, crostata, fragole
foods creamy_dessert
  en creamy desserts, creamy dessert, tiramisu, creme brulee, panna cotta, cheesecake, custard
  en ice cream, pudding, sticky toffee pudding, trifle, meringue, cream, vanilla ice cream
  de Cremedessert, Eis, Vanilleeis, Käsekuchen
  fr dessert crémeux, crème brûlée, glace
  es postre cremoso, flan, helado
  it dolce cremoso, gelato, tiramisù
foods fruit_dessert, creamy_dessert
  en dessert, cake, birthday cake, pastry, wedding cake
  de Nachtisch, Nachspeise, Kuchen, Dessert
  fr gâteau, pâtisserie
  es postre, pastel, tarta
  it dolci, torta
foods chocolate
  en chocolate, dark chocolate, brownie, brownies, white chocolate, milk chocolate
  en black forest gateau
  en chocolate cake, chocolate mousse, chocolate tart, chocolate dessert, chocolate fondant
  en sachertorte
  de Schokolade, Schokoladenkuchen
  fr chocolat, gâteau au chocolat, mousse au chocolat
  es chocolate
  it cioccolato, torta al cioccolato
foods nuts
  en nuts, nut, almond, walnut, hazelnut, pecan pie, pistachio, cashew
  de Nüsse, Mandeln
  fr noix, amandes
  es frutos secos, almendras
  it noci, mandorle, nocciole
foods aperitif
  en an aperitif, aperitif, aperitivo, apero, appetizer, appetiser, canape, pre dinner
  en before dinner, starter, nibble, reception drink, hors d oeuvre
  de Aperitif, Vorspeise, Häppchen
  fr apéritif, amuse bouche
  es aperitivo
  it aperitivo
"""
