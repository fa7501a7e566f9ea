"""Words for vegetables, eggs, snacks and cheese, by food, in six languages.

The format is that of `lexicon`; how a food is called in an answer is said in `foods` and `dutch`,
which are read before.
"""

from typing import Final

VEGETABLES: Final = """
foods vegetables
  en veggies, vegetable, vegan food, vegan dish, vegan meal, roast vegetable, beetroot, broccoli
  en cabbage
  en fennel, leek, onion tart, carrot, chickpea, green asparagus, white asparagus, kale, celeriac
  en parmigiana, meatless, plant based, vegetarian lasagne, onion soup, sprout, potatoes, sweetcorn
  de Gemüsegericht, Gemüsegerichte, vegetarische, vegetarischen, vegetarischem, vegetarisches
  de Zucchini
  de Spargeln, Auberginen, Kartoffel, Blumenkohl, Brokkoli, Spinat, Linsen, Bohnen, Kohl, Rotkohl
  de Paprika, Artischocken, Artischocke, Rote Bete, Lauch, Fenchel, Ofengemüse, Grillgemüse
  de Gemüsepfanne
  de Zwiebelkuchen, Ratatouille, Tofu, Falafel, Kichererbsen, Sellerie gebraten, Möhren, Karotten
  de Kartoffelgratin, Kartoffelpuffer, Rösti, Gemüsesuppe, Kürbissuppe, Spinatknödel, Knödel
  de Avocado
  de gegrilltes Gemüse, gegrilltem Gemüse, Gemüselasagne, Spargelgericht
  fr légume grillé, asperge, courgettes, courgette, aubergines, aubergine, épinards, chou
  fr chou fleur
  fr poireaux, lentilles, ratatouille, végétarienne, plat végétarien, artichauts, artichaut, potiron
  fr brocoli, poivrons, pommes de terre, pomme de terre, haricots, tofu, fenouil, carottes
  fr gratin dauphinois
  fr soupe de légumes, légumes rôtis, tian, potimarron, betterave, falafels, pois chiches, avocat
  fr endives
  fr quiche aux légumes, asperges blanches, asperges vertes, tarte à l oignon, petits pois, navets
  es espárrago, berenjenas, calabacín, calabacines, calabaza, alcachofas, alcachofa, espinacas
  es coliflor
  es brócoli, pimientos, patatas, vegetariana, comida vegetariana, plato vegetariano
  es lentejas estofadas
  es garbanzos, hortalizas, pisto, verduras a la plancha, judías verdes, puerros, guisantes
  es aguacate
  es parrillada de verduras, espárragos blancos, menestra, escalivada, tofu, falafel, zanahoria
  es remolacha
  es patata, crema de calabaza, berenjenas rellenas, habas
  it verdura, melanzana, carciofo, zucchine, zucchina, spinaci, zucca, cavolfiore, broccoli
  it peperoni
  it patate, legumi, lenticchie, fagioli, ceci, vegetariana, piatto vegetariano, asparago, finocchi
  it parmigiana, parmigiana di melanzane, verdure grigliate, cavolo, radicchio, caponata, minestrone
  it verdure alla griglia, peperonata, piselli, fave, porri, cime di rapa, ortaggi, tofu, avocado
  it barbabietola
  it contorno di verdure, torta salata, fiori di zucca
  nl asperge, groentes, groentegerecht, courgette, courgettes, aubergines, broccoli, linzen, bonen
  nl aardappel, paprika, artisjok, artisjokken, witlof, prei, kool, rodekool, venkel, bieten
  nl wortels
  nl groentestoof, ratatouille, vegetarisch gerecht, tofu, falafel, kikkererwten, gegrilde groenten
  nl witte asperges, groene asperges, groentesoep, pompoensoep, stamppot, groenteschotel
  nl groentelasagne
  nl avocado, spruitjes, geroosterde groenten, uientaart, boerenkool, zuurkool, rode biet
foods salad
  en salads, green salad, garden salad, caprese, cobb salad, waldorf, fresh salad, side salad
  en tuna salad
  en mixed salad, bean salad, salad bowl, quinoa salad
  de Salate, Salaten, Blattsalat, gemischter Salat, gemischtem Salat, Feldsalat, grüner Salat
  de Caesar Salad
  de griechischer Salat, griechischem Salat, Salatteller, Nizzasalat, Salatbowl, Kartoffelsalat
  de Sommersalat
  de grünem Salat, Nudelsalat, Rucola, Salatbuffet, Tomatensalat, Salatschüssel
  fr salades, salade verte, salade composée, salade niçoise, salade césar, salade grecque, crudités
  fr salade mixte, taboulé, salade de chèvre, salade d été, céleri rémoulade, mesclun, roquette
  es ensaladas, ensalada mixta, ensalada césar, ensalada griega, ensalada verde, ensaladilla, rúcula
  es ensalada de verano, ensaladilla rusa, ensalada templada, tabulé, ensalada de la huerta, lechuga
  it insalate, insalata mista, insalata verde, insalatona, caprese, insalata greca, insalata caprese
  it insalata nizzarda, rucola, insalata estiva, insalata di riso, caesar salad, insalatina, tabulè
  nl salades, groene salade, gemengde salade, caesarsalade, griekse salade, zomersalade
  nl maaltijdsalade
  nl frisse salade, aardappelsalade, rucola, salade niçoise, caprese, tabouleh, rauwkost
  nl komkommersalade
foods mushrooms
  en mushroom, truffles, shiitake, portobello, button mushroom, morels, ceps, fungi, girolle
  en oyster mushroom
  en mushroom soup, stuffed mushroom, mushroom sauce, chanterelles, black truffle, white truffle
  en enoki
  de Pilz, Pilzen, Pilzgericht, Champignons, Steinpilzen, Pfifferlingen, Trüffeln, Morcheln
  de Waldpilze
  de Waldpilzen, Schwammerl, Pilzragout, Pilzpfanne, Kräuterseitlinge, Pilzrahmsauce, Eierschwammerl
  de Pilzsauce, Austernpilze, Austernpilzen, Shiitake, Pilzsuppe, Morchel, Steinpilz, Pilzgerichte
  de Eierschwämme
  fr champignon, truffes, cèpe, girolle, morilles, morille, champignons de paris, pleurotes
  fr trompettes
  fr poêlée de champignons, chanterelles, bolets, velouté de champignons, champignons des bois
  fr shiitakés
  es champiñón, trufas, hongos, boletus, níscalos, rebozuelos, seta, salteado de setas
  es setas silvestres
  es trufa negra, setas de temporada, colmenillas, shiitake, senderuelas, revuelto de hongos
  es rovellones
  it fungo, tartufi, porcino, funghi porcini, finferli, champignon, tartufo bianco, tartufo nero
  it chiodini, ovoli, funghi trifolati, pleurotus, spugnole, zuppa di funghi, cardoncelli
  it sugo di funghi
  nl paddenstoel, champignon, truffels, cantharel, portobello, boleten, oesterzwammen, morieljes
  nl shiitake
  nl bospaddenstoelen, paddestoelen, gebakken champignons, champignonsoep, paddenstoelensoep
  nl wilde paddenstoelen
foods tomato
  en tomatoes, tomato soup, tomato salad, tomato based, cherry tomato, sun dried tomato, pomodoro
  en ketchup
  en roast tomato, shakshuka, pizzaiola, tomato tart, pasta in tomato, stuffed tomato, tomato ragu
  de Tomate, Tomatensoße, Tomatensuppe, Sugo, Tomatensugo, getrocknete Tomaten, Kirschtomaten
  de Bruschetta
  de Gazpacho, getrockneten Tomaten, gefüllte Tomaten, Strauchtomaten, Tomatenquiche, Paradeiser
  fr tomate, sauce tomate, tomates farcies, gaspacho, coulis de tomate, tarte à la tomate
  fr tomates cerises
  fr soupe de tomate, tomates confites, tomates séchées, bruschetta, pizzaiola
  es tomates, salsa de tomate, gazpacho, salmorejo, pan con tomate, tomate frito, sopa de tomate
  es tomates cherry
  es pa amb tomàquet, tomate seco, tomates secos, ensalada de tomate, tomates rellenos, bruschetta
  it pomodori, sugo di pomodoro, salsa di pomodoro, sugo al pomodoro, al pomodoro
  it pappa al pomodoro, bruschetta
  it bruschette, pomodorini, passata, pomodori secchi, pomodori ripieni, zuppa di pomodoro
  it arrabbiata
  nl tomatensoep, tomatensalade, tomatensoepje, gevulde tomaten, cherrytomaten, gazpacho
  nl bruschetta, tomaatje
  nl zongedroogde tomaten, tomatensausje, trostomaten, saus van tomaten, pomodori
foods eggs
  en fried egg, poached egg, boiled egg, omelettes, egg dish, souffle, egg salad, deviled egg
  en huevos rancheros
  en spanish omelette, egg florentine, quiches, quiche lorraine, cheese souffle, devilled egg
  de Eiern, Spiegelei, Spiegeleier, Spiegeleiern, Omelette, Omeletts, Quiche, Eiergericht, Frittata
  de Eierspeise, Eierspeisen, pochierten Eiern, Rühreiern, Rühreier, pochierte Eier
  de Quiche Lorraine, Brunch
  de Bauernomelett, gefüllte Eier, Soufflé, Eiersalat, Tortilla
  fr omelette, omelettes, œufs brouillés, œufs au plat, quiche, quiche lorraine, œuf poché
  fr œufs mimosa
  fr œufs en meurette, œufs cocotte, œufs bénédicte, soufflé, brunch, œufs à la coque
  fr soufflé au fromage
  fr œufs durs, œufs mayonnaise, tortilla
  es tortilla española, huevos fritos, huevos rotos, revuelto, huevos revueltos, tortilla francesa
  es quiche
  es huevos estrellados, brunch, huevos benedictinos, huevo frito, huevos rellenos, huevo poché
  es suflé, tortillas
  it frittata, omelette, uova strapazzate, uova al tegamino, frittate, uova in camicia, quiche
  it uova sode
  it uova alla benedict, uovo al tartufo, brunch, uova fritte, frittata di zucchine, soufflé
  it uova ripiene
  nl omeletten, gebakken ei, gebakken eieren, gepocheerd ei, gekookt ei, spiegelei, spiegeleieren
  nl quiche
  nl gepocheerde eieren, brunch, eiersalade, eigerecht, frittata, tortilla, uitsmijter, soufflé
  nl roereieren, gevulde eieren
foods tapas
  en tapa, small bites, pintxos, croquette, patatas bravas, olives, mezze platter, tapenade
  en sharing plate
  en padron pepper, antipasti platter, empanada, shared plate, small plates
  de Tapa, Antipasti, Mezze, Oliven, Kroketten, Tapasteller, Fingerfood, Olive, kleine Häppchen
  de Vorspeisenteller
  de Pintxos, Tapenade, Antipastiteller, Patatas bravas, Tapasabend
  fr tapa, olives, tapenade, planche apéro, antipasti, mezzés, croquettes, pintxos, bouchées
  fr planche mixte
  fr patatas bravas, mezze, houmous, anchoïade
  es tapa, tapeo, pinchos, pintxos, croquetas, aceituna, patatas bravas, montaditos, banderillas
  es picoteo, raciones, empanada, empanadas, gildas, encurtidos, para picar, tapear
  it antipasto, tapas, stuzzichini, olive, crostini, tagliere misto, finger food, cicchetto
  it antipasto misto, olive ascolane
  it antipasti misti, crocchette, crostino, tartine
  nl tapa's, tapasschotel, olijf, tapenade, kroketten, kroketjes, mezze, antipasti, borrelhapje
  nl vingerhapjes
  nl patatas bravas, bitterballen, tapasplank, hummus, borrelhap, antipasto, pintxos
foods hard_cheese
  en hard cheeses, aged cheese, mature cheddar, grana padano, aged gouda, beaufort
  en pecorino romano, mature cheese
  en old cheese, asiago, edam, raclettes, tete de moine, red leicester
  de Gouda, alter Gouda, Cheddar, Gruyère, Emmentaler, Manchego, Pecorino, Raclette, Fondue
  de Appenzeller, Comté
  de reifer Käse, reifem Käse, altem Gouda, Parmigiano, Schnittkäse, Alpkäse, Hartkäsen, Greyerzer
  fr parmesan, emmental, beaufort, cantal, mimolette, raclette, fondue, fondue savoyarde, manchego
  fr tomme, cheddar
  fr ossau iraty, fromage affiné, fromages affinés, pecorino, gouda, brebis, fromage de brebis
  fr fromages à pâte dure, vieux comté, morbier
  es queso manchego, manchego, queso viejo, parmesano, queso añejo, cheddar, quesos curados
  es gruyer, queso idiazábal
  es queso de oveja, fondue, raclette, emmental, gouda, comté, pecorino, idiazábal, queso semicurado
  it pecorino, grana, grana padano, parmigiano reggiano, asiago, formaggi stagionati, provolone
  it fontina, cheddar
  it formaggi duri, formaggio duro, montasio, caciocavallo, pecorini, fonduta, raclette
  it castelmagno, bitto, emmental
  nl parmezaan, parmezaanse kaas, cheddar, gruyère, comté, manchego, pecorino, raclette, fondue
  nl oude gouda, goudse kaas
  nl harde kazen, gerijpte kaas, boerenkaas, emmentaler, gouda, beemster, brokkelkaas
foods soft_cheese
  en soft cheeses, creamy cheese, cream cheese, washed rind, taleggio, triple cream, halloumi
  en stracciatella, munster
  en white rind cheese, fresh cheese, mascarpone, robiola, baked camembert, cottage cheese
  de Weichkäsen, weichem Käse, Brie, Camembert, Mozzarella, Burrata, Feta, Frischkäse, Ricotta
  de Münsterkäse, Ofenkäse
  de Rotschmierkäse, gebackener Camembert, Obazda, Reblochon, weicher Käse
  fr brie, camembert, mozzarella, burrata, munster, reblochon, époisses, fromage frais
  fr coulommiers, mont d or
  fr fromages à pâte molle, vacherin, chaource, saint nectaire, feta, ricotta, maroilles
  fr pont l évêque, saint marcellin
  fr tartiflette, camembert rôti
  es queso fresco, brie, camembert, mozzarella, burrata, torta del casar, queso cremoso
  es queso feta, quesos tiernos
  es queso blando, quesos blandos, ricotta, requesón, tetilla, torta extremeña
  it mozzarella, burrata, brie, camembert, stracchino, ricotta, taleggio, formaggi freschi
  it robiola, crescenza, feta
  it formaggi molli, formaggio morbido, stracciatella, squacquerone, mozzarella di bufala
  it formaggio cremoso
  nl brie, camembert, mozzarella, burrata, feta, zachte kazen, roomkaas, ricotta, witschimmelkaas
  nl verse kaas, roodschimmelkaas, reblochon, gebakken camembert, munster
foods goat_cheese
  en goat s cheeses, goats cheese, goat cheeses, grilled goat cheese, chevres, chabichou, valencay
  en goat curd
  en goat cheese salad, warm goat cheese
  de Ziegenfrischkäse, Ziegenkäsen, gebackener Ziegenkäse, Ziege, Ziegencamembert
  de gratinierter Ziegenkäse, Chèvre
  de Ziegenkäse Salat, gebackenem Ziegenkäse, Ziegengouda, Ziegenweichkäse
  fr chèvres, fromages de chèvre, chèvre chaud, crottin, crottin de chavignol, chabichou
  fr sainte maure, bûche de chèvre
  fr rocamadour, chavignol, fromage de chèvre frais, picodon, pélardon, valençay
  es queso de cabra fresco, rulo de cabra, quesos de cabra, queso de cabra a la plancha, majorero
  es ensalada de cabra
  es queso cabra, garrotxa, queso de cabra curado, rulo de queso de cabra
  it formaggi di capra, caprini, caprino fresco, crottin, formaggio caprino, chèvre
  it formaggi caprini, crosta di capra
  it formaggio di capra fresco
  nl geitenkazen, zachte geitenkaas, geitenbrie, chèvre, warme geitenkaas, verse geitenkaas
  nl geitenkaasje
  nl geitenkaassalade, gegratineerde geitenkaas, jonge geitenkaas
foods blue_cheese
  en blue cheeses, blue stilton, bleu d auvergne, dolcelatte, cambozola, gorgonzola sauce
  en cashel blue, fourme
  en blue vein, shropshire blue
  de Blauschimmel, Gorgonzola, Roquefort, Stilton, Edelpilzkäse, Blauschimmelkäsen, blauem Käse
  de Cambozola, Bavaria Blu
  de Edelschimmelkäse, Gorgonzolasauce, Fourme d Ambert, Bleu d Auvergne
  fr fromages bleus, bleu, roquefort, fourme d ambert, bleu d auvergne, gorgonzola, stilton
  fr fromage persillé, persillé
  fr bleu de gex, bleu des causses, sauce au bleu
  es quesos azules, roquefort, gorgonzola, stilton, queso de cabrales, queso roquefort, picón
  es valdeón, salsa roquefort
  es queso gorgonzola, queso de valdeón
  it gorgonzola, formaggi erborinati, erborinato, erborinati, roquefort, stilton, formaggio blu
  it formaggi blu
  it gorgonzola dolce, gorgonzola piccante, salsa al gorgonzola
  nl blauwschimmel, gorgonzola, roquefort, stilton, blauwe kazen, bleu d auvergne, blauwaderkaas
  nl fourme d ambert
  nl gorgonzolasaus, cambozola, blauwgeaderde kaas
foods hard_cheese, soft_cheese
  en cheeses, grilled cheese, cheese toastie, local cheese
  de Käsebrot, Käsen, Käsesorten
  fr fromages
  es quesos
  it formaggio misto
  nl kazen, kaasjes, kaassoorten
foods hard_cheese, soft_cheese, blue_cheese
  en cheese selection, assorted cheese, cheese boards
  de Käsebrett, Käseauswahl, Käseteller, Käsegang
  fr assiette de fromages, plateau fromage, planche de fromages, plateau de fromage
  es tabla de queso, surtido de quesos, plato de quesos
  it selezione di formaggi, formaggi misti, piatto di formaggi
  nl kaasplateau, kaasbord, kaasplanken, kaasgang
"""
