// The turns of a report: a list that is filtered, one turn at a time beside it, and its difference to the turn before.
// Everything that a model wrote becomes text nodes; nothing here parses markup. The address after # is the whole state.
// `viewer.py` joins the files of the page's script, this one last, into one function.

// --- state and address ------------------------------------------------------------------------------------------------------

let state = {};
let shown = []; // the turns that pass the filters
let drawn = 0; // counts renderings of the turn: an older one that comes late is dropped

// What the address says, or will say: browsers refuse to write it as often as a key repeats.
let current = location.hash;
let waiting = 0;

function readAddress() {
  const given = new URLSearchParams(current.slice(1));
  state = { view: given.get("view") || "summary", at: given.get("at") || "", diff: given.get("diff") === "1", beside: given.get("beside") || "" };
  for (const key of KEYS) state[key] = given.get(key) || "";
}

function address(changes) {
  const next = { ...state, ...changes };
  const query = new URLSearchParams();
  query.set("view", next.view);
  for (const key of KEYS) if (next[key]) query.set(key, next[key]);
  if (next.at) query.set("at", next.at);
  if (next.diff) query.set("diff", "1");
  if (next.beside) query.set("beside", next.beside);
  return `#${query}`;
}

function go(changes, keep) {
  const hash = address(changes);
  if (hash === current) return;
  if (keep) {
    if (waiting) write();
    history.pushState(null, "", hash);
  } else if (!waiting) waiting = setTimeout(write, 200);
  current = hash;
  show();
}

function write() {
  clearTimeout(waiting);
  waiting = 0;
  history.replaceState(null, "", current);
}

function moved() {
  clearTimeout(waiting);
  waiting = 0;
  current = location.hash;
  show();
}

// "1.2-" at least, "-0.3" at most, "1-2" between; null: unlimited
function range(value) {
  const [low, high] = value.includes("-") ? value.split("-") : [value, ""];
  const number = (part) => (part.trim() === "" || Number.isNaN(Number(part)) ? null : Number(part));
  return [number(low), number(high)];
}

// Whether a reader's range can be understood: numbers without a sign, at most two, the lower one first.
function isRange(value) {
  const parts = value.split("-").map((part) => part.trim());
  if (parts.length > 2 || parts.some((part) => !/^(\d+\.?\d*|\.\d+)?$/.test(part))) return false;
  return value.trim() === "" || (parts.some(Boolean) && (parts.length < 2 || !parts.every(Boolean) || Number(parts[0]) <= Number(parts[1])));
}

const RANGES = ["step", "speedup", "coverage"];

function within(value, [low, high]) {
  if (low === null && high === null) return true;
  return value !== null && (low === null || value >= low) && (high === null || value <= high);
}

const ORDERS = {
  // A wrong kernel's speed comes after every right one's.
  speedup: (a, b) => isCorrect(b) - isCorrect(a) || (b.turn[SPEEDUP] ?? -1) - (a.turn[SPEEDUP] ?? -1),
  reward: (a, b) => b.turn[REWARD] - a.turn[REWARD],
  coverage: (a, b) => (b.turn[COVERAGE] ?? -1) - (a.turn[COVERAGE] ?? -1),
  step: (a, b) => b.row[STEP] - a.row[STEP],
};

function select(except) {
  const wanted = { ...state, [except]: "" };
  for (const key of RANGES) if (!isRange(wanted[key])) wanted[key] = "";
  const speedup = range(wanted.speedup);
  const coverage = range(wanted.coverage).map((value) => (value === null ? null : value / 100));
  const step = range(wanted.step.includes("-") || !wanted.step ? wanted.step : `${wanted.step}-${wanted.step}`);
  const statuses = wanted.status ? wanted.status.split(",") : null;
  const [what, name] = [wanted.run.slice(0, wanted.run.indexOf(":")), wanted.run.slice(wanted.run.indexOf(":") + 1)];
  const problem = wanted.problem.toLowerCase();
  const found = wanted.text ? textsWith(wanted.text) : null;
  // In quotes: the whole name.
  const named = (name) => (/^".*"$/.test(problem) ? `"${name}"` === problem : name.includes(problem));
  return turns.filter((item) => {
    const run = index.runs[item.row[RUN]];
    return (
      (!wanted.run || run[what === "arm" ? "arm" : "name"] === name) &&
      (!wanted.split || (wanted.split === "validation") === Boolean(item.row[VALIDATION])) &&
      (!wanted.turn || (wanted.turn === "last" ? item.k + 1 === item.row[TURNS].length : String(item.k + 1) === wanted.turn)) &&
      (statuses === null || statuses.includes(statusOf(item)) || (statuses.includes("lazy") && isLazy(item)) || (statuses.includes("noted") && noteOf(item.at))) &&
      (found === null || hasWords(item, found)) &&
      (!problem || named(index.problems[item.row[PROBLEM]].toLowerCase())) &&
      within(item.row[STEP], step) &&
      within(item.turn[SPEEDUP], speedup) &&
      within(item.turn[COVERAGE], coverage)
    );
  });
}


// --- keys -------------------------------------------------------------------------------------------------------------------

const HELP = [
  ["j k", "next and previous turn of the list"], ["h l", "previous and next turn of the trajectory"], ["d", "difference to the turn before"],
  ["/", "filter by problem"], ["s", "search in answers"], ["n", "write a note"], ["b", "the next arm's answer beside this one"], ["Esc", "leave a field, the keys, the turn"], ["1 2 3", "summary, problems, turns"], ["?", "these keys"],
];

// A turn that is gone to by a key that repeats has no place of its own in the history: Back leads to where the key was pressed.
function walk(by, repeats) {
  if (!shown.length) return;
  const current = shown.findIndex((item) => item.at === state.at);
  const next = current < 0 ? 0 : Math.max(0, Math.min(shown.length - 1, current + by));
  go({ at: shown[next].at, beside: "" }, !repeats);
}

function along(by, repeats) {
  const item = turns[position.get(state.at)];
  const next = item && turns[position.get(state.at) + by];
  if (next && next.row === item.row) go({ at: next.at, beside: "" }, !repeats);
}

function nextBeside() {
  const item = turns[position.get(state.at)];
  if (!item) return;
  const others = ["", ...[...peersOf(item).values()].map((other) => other.at)];
  go({ beside: others[(others.indexOf(state.beside) + 1) % others.length], diff: false }, true);
}

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const help = byId("keys");
  if (event.key === "Escape") {
    if (help.open) help.close();
    else if (event.target.matches("input, select, textarea")) event.target.blur();
    else if (state.at) go({ at: "", diff: false, beside: "" }, true);
    return;
  }
  if (event.target.matches("input, select, textarea")) return;
  const actions = {
    j: () => walk(1, event.repeat), k: () => walk(-1, event.repeat), h: () => along(-1, event.repeat), l: () => along(1, event.repeat),
    ArrowDown: () => walk(1, event.repeat), ArrowUp: () => walk(-1, event.repeat),
    ArrowLeft: () => along(-1, event.repeat), ArrowRight: () => along(1, event.repeat),
    d: () => go({ diff: !state.diff }, true), b: nextBeside, n: () => byId("note")?.focus(),
    "/": () => byId("filter-problem").focus(), s: () => byId("filter-text").focus(),
    1: () => go({ view: "summary" }, true), 2: () => go({ view: "problems" }, true), 3: () => go({ view: "turns" }, true),
    "?": () => (help.open ? help.close() : help.showModal()),
  };
  const anywhere = ["1", "2", "3", "?"].includes(event.key);
  // Arrows scroll where the reader is in the text.
  const arrows = event.key.startsWith("Arrow") && byId("turn").contains(document.activeElement);
  if (!(event.key in actions) || arrows || !(anywhere || state.view === "turns")) return;
  event.preventDefault();
  actions[event.key]();
}

// --- all of it --------------------------------------------------------------------------------------------------------------

function show() {
  readAddress();
  const view = ["problems", "turns"].includes(state.view) ? state.view : "summary";
  document.body.dataset.view = view;
  for (const link of byId("views").querySelectorAll("a")) link.setAttribute("aria-current", String(link.dataset.view === view));
  if (view === "problems" && !byId("problems").hasChildNodes()) drawProblems();
  if (view !== "turns") return;
  if (!byId("filters").hasChildNodes()) drawFilters();
  for (const key of KEYS) {
    const control = byId(`filter-${key}`);
    if (control && control !== document.activeElement && control.value !== state[key]) control.value = state[key];
    if (RANGES.includes(key)) control?.setAttribute("aria-invalid", String(!isRange(state[key])));
  }
  shown = select();
  if (state.sort in ORDERS) shown = [...shown].sort(ORDERS[state.sort]);
  byId("count").textContent = countLine();
  drawChips();
  drawList(true);
  drawTurn().catch((error) => byId("turn").replaceChildren(make("p", {}, `This turn cannot be shown: ${error.message}`)));
}

function countLine() {
  const wrong = RANGES.find((key) => !isRange(state[key]));
  const count = `${shown.length.toLocaleString("en")} of ${turns.length.toLocaleString("en")} turns`;
  if (wrong) return `${count}; "${state[wrong]}" is no range and filters nothing: write 1.2- or 0.5-1`;
  return state.text && answers === null ? "reading the answers to search them" : count;
}

async function start() {
  const views = byId("views");
  const link = (view, label) => make("a", { href: `#view=${view}`, "data-view": view, onclick: (event) => (event.preventDefault(), go({ view }, true)) }, label);
  if (typeof DecompressionStream === "undefined") {
    views.append(make("span", { class: "soft" }, "This browser cannot unpack the turns: use one of 2023 or later."));
    return;
  }
  try {
    index = await unpack("index");
  } catch (error) {
    views.append(make("span", { class: "soft" }, `The turns cannot be read: ${error.message}`));
    return;
  }
  order(index.trajectories);
  readNotes();
  views.append(link("summary", "Summary"), link("problems", "Problems"), link("turns", `Turns (${turns.length.toLocaleString("en")})`));
  views.append(make("button", { id: "export-notes", class: "toggle", title: "Save the notes as JSON", onclick: exportNotes }));
  showNoteCount();
  views.append(make("button", { class: "keys", title: "Keys", "aria-label": "Keys", onclick: () => byId("keys").showModal() }, "?"));
  byId("keys").append(make("h3", {}, "Keys"), make("dl", {}, ...HELP.flatMap(([key, what]) => [make("dt", {}, key), make("dd", {}, what)])), make("form", { method: "dialog" }, make("button", {}, "close")));
  byId("list").addEventListener("scroll", () => drawList(false), { passive: true });
  byId("list").addEventListener("click", (event) => {
    const row = event.target.closest("a.row");
    if (!row || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go({ at: row.dataset.at, diff: false, beside: "" }, true);
  });
  addEventListener("hashchange", moved);
  addEventListener("popstate", moved);
  addEventListener("resize", () => state.view === "turns" && drawList(false));
  addEventListener("keydown", press);
  document.body.classList.add("ready");
  show();
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

start();
