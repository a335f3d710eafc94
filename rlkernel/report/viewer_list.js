// The list of turns with its filters, and the table of problems.

// --- filters ----------------------------------------------------------------------------------------------------------------

const options = (list) => list.map(([value, label]) => make("option", { value }, label));

function drawFilters() {
  const change = (key) => (event) => go({ [key]: event.target.value.trim(), view: "turns" });
  const choice = (key, label, list) =>
    make("label", {}, label, make("select", { id: `filter-${key}`, onchange: change(key) }, ...options(list)));
  const field = (key, label, hint) =>
    make("label", {}, label, make("input", { id: `filter-${key}`, placeholder: hint, autocomplete: "off", spellcheck: "false", oninput: change(key) }));
  const arms = [...new Set(index.runs.map((run) => run.arm))];
  const runs = [["", "all runs"]];
  for (const arm of arms) {
    runs.push([`arm:${arm}`, arm]);
    const own = index.runs.filter((run) => run.arm === arm);
    if (own.length > 1) for (const run of own) runs.push([`run:${run.name}`, `\u00a0\u00a0${arm}, seed ${run.seed}`]);
  }
  const most = turns.reduce((found, item) => Math.max(found, item.k + 1), 1);
  const numbers = Array.from({ length: most }, (_, k) => [String(k + 1), `turn ${k + 1}`]);
  byId("filters").replaceChildren(
    field("problem", "Problem", "part of its name"),
    field("text", "Search in answers", "words of plan or code"),
    ...(index.benchmark
      ? turns.some((item) => item.row[STEP] > 1) ? [field("step", "Trajectory", "3 or 1-4")] : []
      : [choice("run", "Arm or run", runs), choice("split", "Split", [["", "both"], ["validation", "validation"], ["train", "train"]]), field("step", "Step", "10 or 5-20")]),
    choice("turn", "Turn", [["", "every turn"], ...numbers, ["last", "last turn"]]),
    field("speedup", "Speedup", "1.2- or 0.5-1"),
    field("coverage", "Coverage, %", "30- or -30"),
    choice("sort", "Order", [...(index.benchmark ? [["", "problem, trajectory"]] : [["", "run, step"], ["step", "latest step"]]), ["speedup", "speedup"], ["coverage", "coverage"], ["reward", "reward"]]),
    make("div", { id: "chips", role: "group", "aria-label": "Status" }),
  );
}

function drawChips() {
  const counts = new Map();
  const rest = select("status");
  for (const item of rest) {
    counts.set(statusOf(item), (counts.get(statusOf(item)) || 0) + 1);
    if (isLazy(item)) counts.set("lazy", (counts.get("lazy") || 0) + 1);
    if (noteOf(item.at)) counts.set("noted", (counts.get("noted") || 0) + 1);
  }
  const chosen = state.status ? state.status.split(",") : [];
  const chips = [...index.statuses.slice(0, 1), "lazy", ...index.statuses.slice(1), "noted"].filter((s) => counts.get(s) || chosen.includes(s));
  byId("chips").replaceChildren(
    ...chips.map((status) => {
      const on = chosen.includes(status);
      const next = on ? chosen.filter((other) => other !== status) : [...chosen, status];
      const tone = status === "correct" ? "good" : status === "lazy" ? "lazy" : status === "noted" ? "" : index.hacks.includes(status) ? "hack" : "bad";
      const press = () => go({ status: next.join(","), view: "turns" });
      return make("button", { class: `chip ${tone}`, "aria-pressed": String(on), onclick: press }, status, make("b", {}, String(counts.get(status) || 0)));
    }),
  );
  const clear = () => go(Object.fromEntries(KEYS.map((key) => [key, ""])));
  if (KEYS.some((key) => state[key])) byId("chips").append(make("button", { class: "chip clear", onclick: clear }, "clear filters"));
}

// --- the list: only the rows in sight exist ----------------------------------------------------------------------------------

function drawList(follow) {
  const list = byId("list");
  const current = shown.findIndex((item) => item.at === state.at);
  byId("rows").style.height = `${shown.length * ROW}px`;
  if (follow && current >= 0) {
    const [top, bottom] = [current * ROW, (current + 1) * ROW];
    if (top < list.scrollTop || bottom > list.scrollTop + list.clientHeight) list.scrollTop = top - list.clientHeight / 2;
  }
  const first = Math.max(0, Math.floor(list.scrollTop / ROW) - 6);
  const last = Math.min(shown.length, Math.ceil((list.scrollTop + (list.clientHeight || 800)) / ROW) + 6);
  byId("rows").replaceChildren(...shown.slice(first, last).map((item, i) => listRow(item, first + i)));
  if (current >= 0) list.setAttribute("aria-activedescendant", `row-${current}`);
  else list.removeAttribute("aria-activedescendant");
}

function listRow(item, i) {
  const run = index.runs[item.row[RUN]];
  const row = make(
    "a",
    { class: `row ${kind(item)}`, role: "option", id: `row-${i}`, "data-at": item.at, tabindex: "-1", "aria-selected": String(item.at === state.at), href: address({ at: item.at, diff: false }) },
    make("span", { class: "name" }, noteOf(item.at) ? "✎ " : "", index.problems[item.row[PROBLEM]]),
    make("span", { class: "number" }, times(item.turn[SPEEDUP])),
    make("span", { class: "status" }, isLazy(item) ? "correct, lazy" : statusOf(item)),
    make("span", { class: "where" }, `${index.benchmark ? "" : `${whose(run)} · `}${origin(item.row)} · ${index.benchmark ? "turn " : ""}${item.k + 1}/${item.row[TURNS].length}`),
  );
  row.style.top = `${i * ROW}px`;
  return row;
}
