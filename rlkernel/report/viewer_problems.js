// The table of problems by arm: those of the validation, which are measured, and those of the training.

// For every problem and arm, the turns in the page, how many are correct, and the best speedup.
function problemCells() {
  const cells = new Map();
  for (const item of turns) {
    const key = `${item.row[PROBLEM]} ${index.runs[item.row[RUN]].arm}`;
    const cell = cells.get(key) || { turns: 0, correct: 0, best: null };
    cell.turns++;
    if (isCorrect(item)) {
      cell.correct++;
      if (item.turn[SPEEDUP] !== null) cell.best = Math.max(cell.best ?? 0, item.turn[SPEEDUP]);
    }
    cells.set(key, cell);
  }
  return cells;
}

// A problem belongs to the validation where a validation measured or showed it.
function validationProblems() {
  const found = new Set(turns.filter((item) => item.row[VALIDATION]).map((item) => item.row[PROBLEM]));
  for (const shares of Object.values(index.measured)) shares.forEach((share, i) => share && found.add(i));
  return found;
}

function problemRow(i, arms, cells, measured) {
  const name = index.problems[i];
  const turnsOf = (run) => address({ view: "turns", problem: `"${name}"`, run, at: "", beside: "" });
  return make(
    "tr", {},
    make("td", { class: "lead" }, arms.some((arm) => cells.has(`${i} ${arm}`)) ? make("a", { href: turnsOf("") }, name) : name),
    ...arms.flatMap((arm) => {
      const cell = cells.get(`${i} ${arm}`);
      const known = (index.measured[arm] || [])[i];
      const fast = make("td", { class: "num heat", "data-label": `${arm}: Fast@1.2`, "data-sort": known ? known[1] : "" }, known ? percent(known[1]) : "–");
      if (known) fast.style.setProperty("--share", `${Math.round(60 * known[1])}%`);
      const kept = cell ? make("a", { href: turnsOf(`arm:${arm}`) }, `${cell.correct}/${cell.turns}`) : "–";
      return [
        ...(measured ? [fast] : []),
        make("td", { class: "num", "data-label": `${arm}: correct`, "data-sort": cell ? cell.correct / cell.turns : "" }, kept),
        make("td", { class: "num last", "data-label": `${arm}: best`, "data-sort": cell?.best ?? "" }, cell && cell.best !== null ? times(cell.best) : "–"),
      ];
    }),
  );
}

function problemTable(title, about, numbers, arms, cells, measured) {
  const columns = measured ? ["Fast@1.2", "correct", "best"] : ["correct", "best"];
  const sub = arms.flatMap((arm) => columns.map((name) => make("th", { class: name === "best" ? "last" : "", "data-arm": arm }, name)));
  const over = make("tr", { class: "over" }, make("th", {}), ...arms.map((arm) => make("th", { colspan: String(columns.length), class: "arm" }, arm)));
  const table = make("table", { class: "cards" },
    make("thead", {}, ...(arms.length > 1 ? [over] : []), make("tr", {}, make("th", {}, "Problem"), ...sub)),
    make("tbody", {}, ...numbers.map((i) => problemRow(i, arms, cells, measured))));
  makeSortable(table);
  return make("section", { class: measured ? "measured" : "trained" }, make("h2", {}, `${title} (${numbers.length})`), make("p", { class: "soft" }, about), make("div", { class: "scroll" }, table));
}

function drawProblems() {
  const arms = [...new Set(index.runs.map((run) => run.arm))];
  const cells = problemCells();
  const all = index.problems.map((_, i) => i);
  const kept = "Correct and best speedup: of the turns in this page";
  if (index.benchmark) {
    const about = `Fast@1.2: share of the trajectories whose best turn is correct and at least 1.2 times as fast. ${kept}.`;
    byId("problems").replaceChildren(problemTable("Problems", about, all, arms, cells, true));
    return;
  }
  const held = validationProblems();
  const parts = [
    ["Validation problems", `Held out: no arm was trained on them. Fast@1.2: of the last validation, mean over seeds. ${kept}, a sample of all turns.`, all.filter((i) => held.has(i)), true],
    ["Training problems", `What the arms were trained on, so that nothing is compared here. ${kept}, a sample of all turns and steps.`, all.filter((i) => !held.has(i)), false],
  ];
  byId("problems").replaceChildren(...parts.filter(([, , numbers]) => numbers.length).map(([title, about, numbers, measured]) => problemTable(title, about, numbers, arms, cells, measured)));
}
