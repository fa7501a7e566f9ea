"""Words for fish, pasta, rice and the dishes of Asia, by food, in six languages.

The format is that of `lexicon`; how a food is called in an answer is said in `foods` and `dutch`,
which are read before.
"""

from typing import Final

SEAFOOD: Final = """
foods fish
  en fishes, fish dish, fried fish, baked fish, fish pie, fish stew, fish finger, john dory
  en dover sole
  en fillet of fish, battered cod, pollock, perch, grouper, mahi mahi, fish taco, fish soup, carp
  de Fische, Fischen, Fischgericht, Fischgerichte, Fischgerichten, Fischfilet, Forellen, Scholle
  de Heilbutt, Steinbutt, Seeteufel, Karpfen, Seelachs, Rotbarsch, Felchen, Saibling, Barsch
  de Seebarsch
  de Seehecht, Dorsch, Fischsuppe, Backfisch, gebratenem Fisch, Fischstäbchen, Goldbrasse, Hecht
  de Wels
  de Zanderfilet, Pangasius, weißem Fisch, Egli
  fr poissons, sole, bar de ligne, filet de bar, loup de mer, turbot, dorade, morue, colin, merlan
  fr rouget, brochet, sandre, poisson blanc, poisson grillé, soupe de poisson, filet de poisson
  fr rascasse, poisson au four, carrelet, truites
  es pescados, pescado blanco, pescado a la plancha, lenguado, rodaballo, trucha, besugo
  es pescadito frito, sopa de pescado, pescado al horno, bacalao al pil pil, pez espada
  es lubina a la sal
  es doradas, merluza a la romana, boquerones fritos
  it pesci, spigola, orate, merluzzo, rombo, sogliola, trota, pesce spada, rana pescatrice
  it coda di rospo
  it pesce al forno, pesce alla griglia, zuppa di pesce, fritto di pesce, dentice, cernia, persico
  it nasello, triglia, triglie, stoccafisso, pesce bianco, cacciucco, platessa, secondi di pesce
  nl vissen, visgerecht, vissoep, visje, tarbot, griet, zeeduivel, rode mul, poon, wijting, koolvis
  nl roodbaars, zeewolf, tongschar, gestoomde vis, visfilet, kabeljauwfilet, lekkerbekje, kibbeling
  nl snapper, meerval, karper, visschotel, goudbrasem
foods oily_fish
  en fatty fish, sardines, mackerels, herrings, salmon fillet, gravlax, gravadlax, grilled sardine
  en salmon steak, anchovies, tuna tartare, seared tuna, kipper, salmon tartare, arctic char
  en sea trout
  de fetter Fisch, Lachsfilet, Lachssteak, Thunfischsteak, Sardinen, Sardine, Heringe, Matjes, Aal
  de Makrelen, Sardellen, Graved Lachs, gebeizter Lachs, Lachstatar, gegrillter Lachs, Räucheraal
  de Räucherfisch, Bückling, Anchovis, Lachsforelle, Thunfischtatar
  fr poisson gras, poissons gras, sardines, pavé de saumon, maquereaux, harengs, anchois, anguille
  fr saumon grillé, thon rouge, tartare de saumon, thon grillé, gravlax, truite saumonée, sardine
  es pescado azul, sardinas, boquerones, anchoas, atunes, salmón ahumado, caballas, arenque
  es tartar de atún, tataki de atún, ventresca, anguila, salmón a la plancha, atún rojo, jurel
  it pesce azzurro, salmone affumicato, sardine, alici, acciuga, aringa, sgombri, anguilla
  it tartare di tonno, tonno alla griglia, tataki di tonno, trota salmonata, tartare di salmone
  it tonni
  nl vettige vis, zalmfilet, zalmmoot, sardines, makrelen, haringen, ansjovis, tonijnsteak
  nl zalmforel
  nl tonijntartaar, gegrilde zalm, gravad lax, maatjes, bokking, zalmtartaar, gegrilde tonijn, sprot
foods shellfish
  en prawns, shrimps, lobsters, crabs, mussels, clams, scallops, king prawn, moules, cockle
  en cuttlefish
  en shrimp scampi, scampi, crab cake, seafood risotto dish, grilled prawn, cioppino, crawfish
  en whelk
  en grilled octopus, lobster bisque, lobster roll, langoustines, sea urchin, razor clam
  en seafood paella
  de Krabbe, Krebse, Flusskrebse, Miesmuscheln, Muschel, Jakobsmuscheln, Jakobsmuschel, Languste
  de Langusten, Tintenfisch, Calamari, Oktopus, Shrimps, Riesengarnelen, Schalentieren, Krustentiere
  de Krustentieren, Meeresfrüchten, Gambas, Krebs, Venusmuscheln, Vongole, Pulpo, Paella
  de Bouillabaisse
  de Meeresfrüchteplatte, Hummern, Kaisergranat, Langustinen, Muscheltopf, Sepia
  fr crevettes, crevettes grises, gambas, homards, crabes, tourteau, moules, moules frites
  fr langoustines
  fr langoustine, coquillages, coquillage, crustacés, bulots, palourdes, noix de saint jacques
  fr coquilles saint jacques, saint jacques, poulpe, calamars, encornets, seiche
  fr plateau de fruits de mer
  fr écrevisses, bouillabaisse, coques, paella, bisque de homard, bigorneaux, pétoncles, oursins
  es mariscos, gambas, langostinos, cigalas, bogavante, almejas, mejillón, berberechos, navajas
  es percebes
  es vieiras, calamares, sepia, nécoras, centollo, pulpo a la gallega, chipirones, paella de marisco
  es mariscada, gambas al ajillo, zamburiñas, carabineros, zarzuela, buey de mar, paella
  it gambero, gamberoni, scampi, scampo, astice, granchio, capesante, calamari, seppie, polipo
  it moscardini
  it crudo di mare, insalata di mare, fritto misto, ricci di mare, spaghetti alle vongole
  it tartufi di mare
  it calamaro, frutto di mare, mazzancolle, canocchie, aragoste, impepata di cozze, crudi di mare
  it cozza
  nl schaal en schelpdieren, grote garnalen, kreeften, krabben, mosseltjes, coquille, octopus
  nl calamares
  nl pijlinktvis, langoustines, scampi, kokkels, venusschelpen, fruits de mer, zeevruchtenschotel
  nl Sint jakobsschelpen, garnalenkroket, paella, rivierkreeft, inktvisringen, schaaldier, gamba's
foods oysters
  en raw oyster, baked oyster, oyster platter, oyster bar, rockefeller, fresh oyster, native oyster
  de frische Austern, frischen Austern, Austernplatte, Felsenaustern, gratinierte Austern
  de überbackene Austern, rohen Austern
  fr huître, plateau d huîtres, huîtres gratinées, huîtres chaudes, fines de claire
  fr huîtres fraîches
  fr belons, huîtres crues, marennes
  es ostra, ostras frescas, ostiones, ostras gratinadas, ostra francesa, ostras al natural
  es bandeja de ostras, ostrón
  it ostrica, ostriche crude, ostriche gratinate, plateau di ostriche, ostriche fresche
  it crudo di ostriche
  it ostriche gratin, ostrica cruda
  nl verse oesters, zeeuwse oesters, gegratineerde oesters, rauwe oesters, oesterplateau, creuses
  nl wilde oesters, oestertjes, warme oesters
foods sushi
  en sushis, sushi roll, sushi platter, temaki, uramaki, california roll, tuna tataki
  en sashimi platter
  de Sushis, Sashimi, Maki, Nigiri, Ceviche, Poke Bowl, Makis, Sushiplatte, Sushi Abend, Temaki
  fr sushis, sashimi, sashimis, makis, maki, poké bowl, ceviche, nigiri, plateau de sushis, temaki
  es sushis, sashimi, maki, makis, ceviche, poke, nigiri, tiradito, bandeja de sushi, temaki
  it sashimi, maki, nigiri, uramaki, pokè, ceviche, temaki, barca di sushi, tartare di pesce
  nl sushi's, sashimi, maki, nigiri, pokebowl, poké bowl, ceviche, sushiplank, temaki
foods pasta
  en pastas, noodles, pasta dish, fettuccine, cannelloni, rigatoni, pappardelle, orzo, pesto
  en alfredo
  en pasta carbonara, cacio e pepe, amatriciana, vermicelli, fusilli, farfalle, aglio e olio
  en pasta bake
  de Pasta, Nudel, Nudelgericht, Pastagericht, Spaghetti, Lasagne, Tagliatelle, Ravioli, Gnocchi
  de Carbonara, Maultaschen, Käsespätzle, Nudelauflauf, Penne, Pastagerichte, Tortellini, Makkaroni
  de Pesto, Bandnudeln, Schlutzkrapfen, Linguine, Cannelloni
  fr des pâtes, les pâtes, aux pâtes, pâtes au, pâtes aux, pâtes à la, mes pâtes
  fr nos pâtes
  fr plat de pâtes, spaghetti, spaghettis, lasagnes, lasagne, tagliatelles, raviolis, gnocchis
  fr nouilles
  fr carbonara, pâtes carbonara, macaronis, pâtes fraîches, cannellonis, pesto, gratin de macaronis
  fr linguine, penne
  es pastas, espaguetis, espagueti, macarrones, lasaña, tallarines, raviolis, ñoquis, canelones
  es carbonara
  es pesto, fideuá, plato de pasta, pasta fresca, tortellini, espaguetis a la carbonara
  it paste, spaghetti, tagliatelle, lasagne, lasagna, ravioli, gnocchi, carbonara, cacio e pepe
  it penne
  it rigatoni, orecchiette, pappardelle, cannelloni, amatriciana, pasta al forno, fettuccine
  it linguine
  it trofie, pesto, pasta con le sarde, bucatini, agnolotti, primo di pasta, pasta fresca
  it primi piatti, maccheroni
  nl pastagerecht, pasta's, lasagne, tagliatelle, ravioli, macaroni, carbonara, gnocchi, penne
  nl pesto
  nl pastaschotel, cannelloni, noedel, linguine, verse pasta
foods risotto
  en risottos, seafood risotto, saffron risotto, risotto milanese, asparagus risotto, arancini
  en paella rice
  en pumpkin risotto, lemon risotto, rice dish
  de Risottos, Reisgericht, Spargelrisotto, Safranrisotto, Reisgerichte, Kürbisrisotto, Reis
  de Arancini
  de Gemüserisotto, Zitronenrisotto, Reisgerichten
  fr risottos, riz, risotto aux asperges, risotto au safran, plat de riz, arancini, riz pilaf
  fr risotto aux fruits de mer, risotto milanais
  es risottos, arroces, arroz meloso, arroz caldoso, arroz al horno
  es arroz negro, arroz a banda, plato de arroz, arroz con verduras
  it risotti, risotto alla milanese, riso, risotto allo zafferano, arancini, risotto agli asparagi
  it risotto alla zucca, supplì, risotto al radicchio
  nl risotto's, rijst, rijstgerecht, rijstgerechten, aspergerisotto, saffraanrisotto, pompoenrisotto
  nl groenterisotto, arancini
foods risotto, mushrooms
  de Pilzrisotto, Steinpilzrisotto, Trüffelrisotto
  fr risotto aux champignons, risotto aux cèpes, risotto à la truffe
  es risotto de setas, arroz con setas, risotto de hongos
  it risotto ai porcini, risotto al tartufo
  nl paddenstoelenrisotto, truffelrisotto
foods spicy
  en jalapeno, hot wing, buffalo wing, tacos, piri piri, chipotle, quesadilla, jambalaya
  en hot sauce, spicy chicken, spicy dish, spicy pasta, burritos, sriracha, harissa, guacamole
  en tex mex, gumbo
  de scharfem Essen, scharfer, scharfen, scharfem, schärfer, schärfere, pikant, pikante, pikantem
  de pikantes, Chili
  de mexikanisch, mexikanische, mexikanischem, mexikanisches, Tacos, Taco, Burrito, Burritos
  de Fajitas, Chilischoten
  de Peperoncini, Nachos, würzigem Essen, Enchiladas
  fr épicés, épicées, plat épicé, cuisine épicée, pimentée, piment, piments, mexicain, mexicaine
  fr tacos
  fr chili, cuisine mexicaine, plat mexicain, plat relevé, fajitas, burritos, harissa, guacamole
  fr nachos, enchiladas
  es picantes, platos picantes, comida mexicana, mexicana, tacos, guindilla, comida muy picante
  es burritos, fajitas, enchiladas, nachos, guacamole, salsa picante, plato picante
  es jalapeños, totopos
  it piccanti, piatti piccanti, peperoncino, piatto piccante, cucina messicana, messicano
  it messicana, tacos, chili
  it burrito, nduja piccante, fajitas, nachos, cibi piccanti, enchiladas, guacamole
  nl pittig gerecht, pikant, pikante, heet eten, mexicaans, mexicaanse, taco's, chili
  nl spaanse peper, burrito
  nl scherp eten, fajita, fajita's, burrito's, nacho's, sambal, pittige gerechten, enchilada's
foods spicy, asian
  de thailändisch, thailändische, thailändischem, thailändisches, Thai Essen, Thaicurry
  de koreanisch, koreanischem
  de koreanische, koreanisches
  fr thaï, thaïlandais, thaïlandaise, cuisine thaïe, coréen, coréenne, curry thaï, plat thaï, thaïe
  es tailandés, tailandesa, comida tailandesa, coreano, coreana, curry tailandés, comida thai
  es curry thai
  it thailandese, thailandesi, cucina thailandese, coreano, coreana, curry thai
  nl thais eten, thaise, thais, koreaans, koreaanse, thaise curry, indonesisch, indonesische
  nl indisch eten
foods curry
  en curries, lamb curry, fish curry, prawn curry, chickpea curry, dal, samosa, jalfrezi
  en rogan josh, bhuna
  en vegetable korma, balti, masala, saag, paneer, curry sauce, massaman
  de Currys, Currygericht, Currygerichte, Hähnchencurry, indisch, indische, indischem, indisches
  de indischen
  de Gemüsecurry, Tikka Masala, Hühnercurry, Tandoori, Linsencurry, Dal, Currysauce, Garnelencurry
  de Currysoße
  fr currys, cari, poulet au curry, indien, indienne, cuisine indienne, curry de légumes, tandoori
  fr plat indien
  fr tikka masala, poulet tandoori, au curry, dal, curry de poulet, curry de crevettes, biryani
  fr korma
  es curry, pollo al curry, comida india, curry de verduras, tikka masala, al curry, tandoori
  es dal, curry de pollo, curry de gambas, biryani, korma, curris
  it pollo al curry, cucina indiana, indiano, indiana, curry di verdure, tikka masala, al curry
  it tandoori, dal
  it curry di pollo, gamberi al curry, piatto indiano, biryani, korma
  nl curry's, kipcurry, indiaas, indiase, currygerechten, groentecurry, tikka masala, tandoori
  nl kerrieschotel
  nl viscurry, gele curry, rode curry, groene curry, dal, korma, kipkerrie, kip kerrie
foods asian
  en asian dish, dumplings, gyozas, bao, bao bun, tempura, peking style, miso, wonton
  en japanese dish, chinese dish, vietnamese food, chinese takeaway, malaysian, udon, soba
  en korean bbq
  de asiatischem Essen, asiatischem, asiatisches, chinesisch, chinesische, chinesischem
  de chinesisches, japanisch
  de japanische, japanischem, japanisches, vietnamesisch, vietnamesische, vietnamesischem, Ramen
  de Wok, Wokgericht
  de Frühlingsrollen, Dim Sum, Gyoza, Wokgemüse, Pho, Teriyaki, Asia Küche, süß sauer, Bratreis
  de Tempura
  de asiatischer Küche, asiatischer, chinesischer, japanischer, vietnamesischer, vietnamesisches
  de gebratene Nudeln
  fr plat asiatique, chinois, chinoise, cuisine chinoise, japonais, japonaise, vietnamien
  fr vietnamienne, wok, nems
  fr ramen, dim sum, rouleaux de printemps, asiatiques, nem, gyozas, raviolis chinois, bo bun
  fr pho, tempura, nouilles sautées, riz cantonais
  es comida china, comida japonesa, japonés, japonesa, vietnamita, wok, ramen, dim sum, gyozas
  es rollitos de primavera, asiático, asiáticos, cocina asiática, rollitos, fideos chinos, tempura
  es pho, arroz frito
  it asiatico, cibo asiatico, cinese, cucina cinese, giapponese, cucina giapponese, vietnamita
  it wok, ramen, dim sum
  it involtini primavera, ravioli al vapore, cibo cinese, cinesi, giapponesi, gyoza, tempura, pho
  it riso alla cantonese
  nl aziatisch gerecht, chinees, chinese eten, japanse, japans eten, vietnamees
  nl vietnamese, wok, wokgerecht
  nl ramen, loempia, loempia's, dimsum, dim sum, nasi, bami, roerbak, gyoza, aziatische keuken
  nl tempura, pho
foods pizza
  en pizzas, pepperoni, pizza margherita, pizza slice, neapolitan pizza, pizza salami, focaccia
  en flatbread, salami pizza
  de Pizzen, Pizzas, Pizzaabend, Margherita, Salamipizza, Tarte flambée, Flammkuchens, Focaccia
  de Calzone, Pizza Margherita
  de Pizza Salami, Flammkuchen mit Speck
  fr pizzas, soirée pizza, margherita, flammekueche, tarte flambée, calzone, focaccia
  fr pizza maison, pizza margherita, pissaladière
  es pizzas, pizza margarita, noche de pizza, calzone, focaccia, pizza casera, pizza cuatro quesos
  es coca de verduras
  it pizze, pizza margherita, margherita, calzone, focaccia, pizza napoletana, pizzetta
  it pizza bianca, focacce, calzoni, pizza fritta
  nl pizza's, pizzaatje, margherita, calzone, flammkuchen, focaccia, pizza salami
  nl pizza margherita, pizza avond, flamkuchen
"""
