"""Reports: they say what runs amount to, as one line, tables, claims with verdicts, charts and one HTML page.

Start at `summary`, which reads runs, and `columns`, which says what a table may hold. `claims` gives verdicts on differences
between arms, `findings` puts them in words, and `compare` pairs arms problem by problem. `report` makes the page: `curves` and
`chart` draw, `viewer` packs the turns, and the page's scripts and style sheets lie beside, each in a file of its own. Other rooms
give `page.render` a template of theirs. Nothing here trains or evaluates.
"""
