"use strict";
// The turns of the report: a list that is filtered, one turn at a time beside it, and its difference to the turn before.
// Everything that a model wrote becomes text nodes; nothing here parses markup. The address after # is the whole state.
(() => {
  const [RUN, LINE, VALIDATION, STEP, PROBLEM, PROMPT, TURNS] = [0, 1, 2, 3, 4, 5, 6];
  const [STATUS, SPEEDUP, COVERAGE, REWARD, BEFORE, CODE, AFTER, FEEDBACK, FACTS] = [0, 1, 2, 3, 4, 5, 6, 7, 8];
  const ROW = 54; // pixels of a row of the list, as in the style sheet
  const KEYS = ["run", "split", "status", "problem", "step", "turn", "speedup", "coverage", "sort"];
  const byId = (id) => document.getElementById(id);

  function make(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else if (key === "class") node.className = value;
      else if (value !== null && value !== false) node.setAttribute(key, value === true ? "" : value);
    }
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
  }

  // --- the data -------------------------------------------------------------------------------------------------------------

  async function unpack(id) {
    const binary = atob(byId(id).textContent.trim());
    const bytes = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  }

  let index = null;
  let turns = []; // {row, k, turn, at}: every turn, in the order of runs and steps
  let position = new Map(); // at -> its place in `turns`
  const blocks = new Map();

  // The list can be used before the browser has read all of the page.
  const loaded = new Promise((resolve) => {
    if (document.readyState === "loading") addEventListener("DOMContentLoaded", resolve, { once: true });
    else resolve();
  });

  async function text(id) {
    if (id < 0) return null;
    await loaded;
    let number = 0;
    while (number + 1 < index.firsts.length && index.firsts[number + 1] <= id) number++;
    if (!blocks.has(number)) blocks.set(number, unpack(`block-${number}`));
    return (await blocks.get(number))[id - index.firsts[number]];
  }

  function order(rows) {
    rows.sort((a, b) => a[RUN] - b[RUN] || (index.attempts ? 0 : a[STEP] - b[STEP]) || a[LINE] - b[LINE]);
    for (const row of rows) {
      row[TURNS].forEach((turn, k) => turns.push({ row, k, turn, at: `${index.runs[row[RUN]].name}:${row[LINE]}.${k + 1}` }));
    }
    position = new Map(turns.map((item, i) => [item.at, i]));
  }

  // Of a benchmark, rows are attempts, whose step is the number of the sample.
  const whose = (run) => (index.attempts ? run.arm : `${run.arm}, seed ${run.seed}`);
  const origin = (row) => (index.attempts ? `sample ${row[STEP]}` : `${row[VALIDATION] ? "validation" : "train"} ${row[STEP]}`);
  const statusOf = (item) => index.statuses[item.turn[STATUS]];
  const isCorrect = (item) => statusOf(item) === "correct";
  const isLazy = (item) => statusOf(item) === "correct" && item.turn[COVERAGE] !== null && item.turn[COVERAGE] < index.lazy;
  const kind = (item) =>
    statusOf(item) === "correct" ? (isLazy(item) ? "lazy" : "good") : index.hacks.includes(statusOf(item)) ? "hack" : "bad";
  const times = (value) => (value === null ? "" : `${value.toFixed(2)}×`);
  const fixed = (value, digits) => (typeof value === "number" ? value.toFixed(digits) : String(value));
  const percent = (value) => (value === null ? "" : `${Math.round(100 * value)} %`);

  // --- state and address ------------------------------------------------------------------------------------------------------

  let state = {};
  let shown = []; // the turns that pass the filters
  let drawn = 0; // counts renderings of the turn: an older one that comes late is dropped

  // What the address says, or will say: browsers refuse to write it as often as a key repeats.
  let current = location.hash;
  let waiting = 0;

  function readAddress() {
    const given = new URLSearchParams(current.slice(1));
    state = { view: given.get("view") || "summary", at: given.get("at") || "", diff: given.get("diff") === "1" };
    for (const key of KEYS) state[key] = given.get(key) || "";
  }

  function address(changes) {
    const next = { ...state, ...changes };
    const query = new URLSearchParams();
    query.set("view", next.view);
    for (const key of KEYS) if (next[key]) query.set(key, next[key]);
    if (next.at) query.set("at", next.at);
    if (next.diff) query.set("diff", "1");
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
    const speedup = range(wanted.speedup);
    const coverage = range(wanted.coverage).map((value) => (value === null ? null : value / 100));
    const step = range(wanted.step.includes("-") || !wanted.step ? wanted.step : `${wanted.step}-${wanted.step}`);
    const statuses = wanted.status ? wanted.status.split(",") : null;
    const [what, name] = [wanted.run.slice(0, wanted.run.indexOf(":")), wanted.run.slice(wanted.run.indexOf(":") + 1)];
    const problem = wanted.problem.toLowerCase();
    // In quotes: the whole name.
    const named = (name) => (/^".*"$/.test(problem) ? `"${name}"` === problem : name.includes(problem));
    return turns.filter((item) => {
      const run = index.runs[item.row[RUN]];
      return (
        (!wanted.run || run[what === "arm" ? "arm" : "name"] === name) &&
        (!wanted.split || (wanted.split === "validation") === Boolean(item.row[VALIDATION])) &&
        (!wanted.turn || (wanted.turn === "last" ? item.k + 1 === item.row[TURNS].length : String(item.k + 1) === wanted.turn)) &&
        (statuses === null || statuses.includes(statusOf(item)) || (statuses.includes("lazy") && isLazy(item))) &&
        (!problem || named(index.problems[item.row[PROBLEM]].toLowerCase())) &&
        within(item.row[STEP], step) &&
        within(item.turn[SPEEDUP], speedup) &&
        within(item.turn[COVERAGE], coverage)
      );
    });
  }

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
      ...(index.attempts
        ? turns.some((item) => item.row[STEP] > 1) ? [field("step", "Sample", "3 or 1-4")] : []
        : [choice("run", "Arm or run", runs), choice("split", "Split", [["", "both"], ["validation", "validation"], ["train", "train"]]), field("step", "Step", "10 or 5-20")]),
      choice("turn", "Turn", [["", "every turn"], ...numbers, ["last", "last turn"]]),
      field("speedup", "Speedup", "1.2- or 0.5-1"),
      field("coverage", "Coverage, %", "30- or -30"),
      choice("sort", "Order", [...(index.attempts ? [["", "problem, sample"]] : [["", "run, step"], ["step", "latest step"]]), ["speedup", "speedup"], ["coverage", "coverage"], ["reward", "reward"]]),
      make("div", { id: "chips", role: "group", "aria-label": "Status" }),
    );
  }

  function drawChips() {
    const counts = new Map();
    const rest = select("status");
    for (const item of rest) {
      counts.set(statusOf(item), (counts.get(statusOf(item)) || 0) + 1);
      if (isLazy(item)) counts.set("lazy", (counts.get("lazy") || 0) + 1);
    }
    const chosen = state.status ? state.status.split(",") : [];
    const chips = [...index.statuses.slice(0, 1), "lazy", ...index.statuses.slice(1)].filter((s) => counts.get(s) || chosen.includes(s));
    byId("chips").replaceChildren(
      ...chips.map((status) => {
        const on = chosen.includes(status);
        const next = on ? chosen.filter((other) => other !== status) : [...chosen, status];
        const tone = status === "correct" ? "good" : status === "lazy" ? "lazy" : index.hacks.includes(status) ? "hack" : "bad";
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
      make("span", { class: "name" }, index.problems[item.row[PROBLEM]]),
      make("span", { class: "number" }, times(item.turn[SPEEDUP])),
      make("span", { class: "status" }, isLazy(item) ? "correct, lazy" : statusOf(item)),
      make("span", { class: "where" }, `${index.attempts ? "" : `${whose(run)} · `}${origin(item.row)} · ${index.attempts ? "turn " : ""}${item.k + 1}/${item.row[TURNS].length}`),
    );
    row.style.top = `${i * ROW}px`;
    return row;
  }

  // --- one turn ---------------------------------------------------------------------------------------------------------------

  const KEYWORDS =
    /^(?:False|None|True|and|as|assert|async|await|break|class|continue|def|del|elif|else|except|finally|for|from|global|if|import|in|is|lambda|nonlocal|not|or|pass|raise|return|try|while|with|yield)$/;
  const TOKENS =
    /(#[^\n]*)|((?:\b[rRbBfFuU]{1,2})?(?:"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?))|(@[\w.]+)|(\b\d[\w.]*)|([A-Za-z_]\w*)/g;

  // Python in colours: a list of nodes, one per run of tokens of the same kind.
  function colour(code) {
    const nodes = [];
    let at = 0;
    let before = "";
    for (const found of code.matchAll(TOKENS)) {
      const [token, comment, string, decorator, number, word] = found;
      let tone = comment ? "c" : string ? "s" : decorator ? "d" : number ? "n" : "";
      if (word) {
        tone = KEYWORDS.test(word) ? "k" : before === "def" || before === "class" ? "f" : "";
        before = word;
      }
      if (!tone) continue;
      nodes.push(code.slice(at, found.index), make("span", { class: tone }, token));
      at = found.index + token.length;
    }
    nodes.push(code.slice(at));
    return nodes;
  }

  const coloured = new Map(); // text id -> nodes, made once
  function codeBlock(id, code) {
    if (!coloured.has(id)) coloured.set(id, make("pre", { class: "py" }, ...colour(code)));
    return coloured.get(id);
  }

  // Lines of two texts: [" ", line], ["-", line] or ["+", line], from a longest common subsequence.
  function difference(old, now) {
    const [a, b] = [old.split("\n"), now.split("\n")];
    let [start, endA, endB] = [0, a.length, b.length];
    while (start < endA && start < endB && a[start] === b[start]) start++;
    while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) endA--, endB--;
    const [n, m] = [endA - start, endB - start];
    const middle = [];
    if (n * m > 4e6) {
      // Too long to compare line by line: all of the one goes, all of the other comes.
      for (let i = start; i < endA; i++) middle.push(["-", a[i]]);
      for (let j = start; j < endB; j++) middle.push(["+", b[j]]);
    } else {
      const lengths = Array.from({ length: n + 1 }, () => new Uint16Array(m + 1));
      for (let i = n - 1; i >= 0; i--)
        for (let j = m - 1; j >= 0; j--)
          lengths[i][j] = a[start + i] === b[start + j] ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
      let [i, j] = [0, 0];
      while (i < n || j < m) {
        if (i < n && j < m && a[start + i] === b[start + j]) middle.push([" ", a[start + i++]]), j++;
        else if (i < n && (j >= m || lengths[i + 1][j] >= lengths[i][j + 1])) middle.push(["-", a[start + i++]]);
        else middle.push(["+", b[start + j++]]);
      }
    }
    return [...a.slice(0, start).map((line) => [" ", line]), ...middle, ...a.slice(endA).map((line) => [" ", line])];
  }

  // A difference with three lines around every change; longer stretches without one are folded.
  function diffBlock(old, now) {
    const lines = difference(old, now);
    const near = lines.map(() => false);
    lines.forEach(([sign], i) => {
      if (sign !== " ") for (let j = Math.max(0, i - 3); j <= Math.min(lines.length - 1, i + 3); j++) near[j] = true;
    });
    const block = make("pre", { class: "diff" });
    for (let i = 0; i < lines.length; ) {
      let end = i;
      while (end < lines.length && !near[end]) end++;
      if (end - i > 1) {
        const hidden = lines.slice(i, end).map(([, line]) => make("span", { class: "same" }, `  ${line}\n`));
        block.append(make("button", { class: "fold", onclick: (event) => event.target.replaceWith(...hidden) }, `${end - i} lines without a change`));
        i = end;
        continue;
      }
      const [sign, line] = lines[i++];
      block.append(make("span", { class: sign === "+" ? "new" : sign === "-" ? "old" : "same" }, `${sign} ${line}\n`));
    }
    const [more, less] = ["+", "-"].map((sign) => lines.filter(([other]) => other === sign).length);
    return [more + less ? `${more} line${more === 1 ? "" : "s"} more, ${less} less` : "no change", block];
  }

  function stepTable(title, steps, name) {
    const rows = steps.map((step) => {
      const bar = make("span", { class: "bar" });
      bar.style.width = `${Math.max(0, Math.min(100, 100 * step.share))}%`;
      const remark = step.live === true ? "Triton" : step.live === false ? "Triton, result unused" : "torch";
      const spills = step.spills ? `, ${step.spills} B spilled` : "";
      const registers = step.registers ? `${step.registers} registers${spills}` : "";
      return make(
        "tr", {},
        make("td", {}, String(step[name] ?? step.op ?? step.kernel)), make("td", { class: "soft" }, remark),
        make("td", { class: "num" }, `${step.calls}×`), make("td", { class: "num" }, `${fixed(step.us, 1)} µs`),
        make("td", {}, make("span", { class: "track" }, bar)), make("td", { class: "num" }, percent(Number(step.share))),
        make("td", { class: "soft" }, registers),
      );
    });
    return [make("h4", {}, title), make("div", { class: "scroll" }, make("table", { class: "steps" }, make("tbody", {}, ...rows)))];
  }

  const section = (title, ...content) => make("section", {}, make("h4", {}, title), ...content);
  const prose = (content) => make("pre", { class: "wrap" }, content);

  function verdict(item, facts) {
    const parts = [make("b", {}, statusOf(item) + (isLazy(item) ? ", lazy" : ""))];
    const [, speedup, coverage, reward] = item.turn;
    if (speedup !== null) {
      const interval = facts.timing === "measured" && facts.speedup_low ? ` [${fixed(facts.speedup_low, 2)}, ${fixed(facts.speedup_high, 2)}]` : "";
      parts.push(`${times(speedup)}${interval} ${facts.timing || ""}`);
    }
    if (facts.reference_us && facts.candidate_us) parts.push(`${fixed(facts.reference_us, 1)} → ${fixed(facts.candidate_us, 1)} µs`);
    if (facts.compiled_us) parts.push(`torch.compile ${fixed(facts.compiled_us, 1)} µs`);
    if (coverage !== null) parts.push(`coverage ${percent(coverage)}`);
    if (facts.max_error !== undefined) parts.push(`error ${typeof facts.max_error === "number" ? facts.max_error.toExponential(1) : facts.max_error}`);
    parts.push(`reward ${reward === null ? "not a number" : reward.toFixed(2)}`);
    if (facts.stop === "length") parts.push("cut off at the length limit");
    if (facts.tokens) parts.push(`${facts.tokens.toLocaleString("en")} tokens`);
    if (facts.cost) parts.push(`cost ${fixed(facts.cost, 4)}`);
    return make("p", { class: `verdict ${kind(item)}` }, ...parts.flatMap((part, i) => (i ? [" · ", part] : [part])));
  }

  async function drawTurn() {
    const own = ++drawn;
    const pane = byId("turn");
    const item = turns[position.get(state.at)];
    document.body.classList.toggle("reading", Boolean(item));
    if (!item) {
      const line = state.at ? `There is no turn ${state.at} in this page.` : "Choose a turn from the list: j and k walk through it, ? shows all keys.";
      pane.replaceChildren(make("p", { class: "soft" }, line));
      return;
    }
    const { row, k, turn } = item;
    const before = k > 0 ? row[TURNS][k - 1] : null;
    const ids = [row[PROMPT], turn[BEFORE], turn[CODE], turn[AFTER], turn[FEEDBACK], turn[FACTS], before ? before[CODE] : -1, before ? before[FEEDBACK] : -1];
    const [prompt, plan, code, after, feedback, json, oldCode, told] = await Promise.all(ids.map(text));
    if (own !== drawn) return;
    const facts = JSON.parse(json);
    const run = index.runs[row[RUN]];
    const tabs = row[TURNS].map((other, i) => {
      const at = `${run.name}:${row[LINE]}.${i + 1}`;
      const peer = turns[position.get(at)];
      return make("a", { class: `tab ${kind(peer)}`, href: address({ at, diff: state.diff && i > 0 }), "aria-current": String(i === k) }, `Turn ${i + 1}`, make("small", {}, (isCorrect(peer) && times(other[SPEEDUP])) || statusOf(peer)));
    });
    const comparable = oldCode !== null && code !== null;
    const comparing = state.diff && comparable;
    const [summary, changed] = comparing ? diffBlock(oldCode, code) : ["", null];
    const toggle = make("button", { class: "toggle", id: "diff", "aria-pressed": String(comparing), onclick: () => go({ diff: !state.diff }, true) }, `difference to turn ${k}`);
    const live = [...(facts.launches || []).map((step) => ({ ...step, name: step.kernel })), ...(facts.ops || []).map((step) => ({ ...step, name: step.op }))].sort((a, b) => b.us - a.us);
    pane.replaceChildren(
      make("button", { class: "back", onclick: () => go({ at: "" }, true) }, "← list"),
      make("h3", {}, index.problems[row[PROBLEM]]),
      make("p", { class: "soft" }, [whose(run), index.attempts ? origin(row) : `${row[VALIDATION] ? "validation" : "training"}, step ${row[STEP]}`, ...(facts.saw ? [`saw ${facts.saw.length ? `turn ${facts.saw.join(", ")}` : "no earlier turn"}`] : [])].join(" · ")),
      make("nav", { class: "tabs", "aria-label": index.attempts ? "Turns of this attempt" : "Turns of this trajectory" }, ...tabs),
      verdict(item, facts),
      ...(facts.detail ? [prose(facts.detail)] : []),
      make("details", { class: "prompt" }, make("summary", {}, "Prompt"), prose(prompt)),
      ...(told ? [make("details", { class: "prompt" }, make("summary", {}, `What turn ${k} was told`), prose(told))] : []),
      ...(plan ? [section(code === null ? "Answer" : "Plan", prose(plan))] : []),
      ...(code === null ? [] : [make("section", {}, make("h4", {}, "Code", comparable ? toggle : null, comparing ? make("span", { class: "soft" }, summary) : null), changed || codeBlock(turn[CODE], code))]),
      ...(after ? [section("After the code", prose(after))] : []),
      ...(live.length ? stepTable("Where the time goes", live, "name") : []),
      ...((facts.reference_ops || []).length ? stepTable("Where the reference's time goes", facts.reference_ops, "op") : []),
      ...(feedback ? [section("Feedback for the next turn", prose(feedback))] : []),
    );
    pane.scrollTop = 0;
    pane.dataset.at = item.at;
  }

  // --- problems ---------------------------------------------------------------------------------------------------------------

  function drawProblems() {
    const arms = [...new Set(index.runs.map((run) => run.arm))];
    const cells = new Map();
    for (const item of turns) {
      const key = `${item.row[PROBLEM]} ${index.runs[item.row[RUN]].arm}`;
      const cell = cells.get(key) || { turns: 0, correct: 0, best: null };
      cell.turns++;
      if (statusOf(item) === "correct") {
        cell.correct++;
        if (item.turn[SPEEDUP] !== null) cell.best = Math.max(cell.best ?? 0, item.turn[SPEEDUP]);
      }
      cells.set(key, cell);
    }
    const rows = index.problems.map((name, i) =>
      make(
        "tr", {},
        make("td", {}, make("a", { href: address({ view: "turns", problem: `"${name}"`, run: "", at: "" }) }, name)),
        ...arms.flatMap((arm) => {
          const cell = cells.get(`${i} ${arm}`);
          const known = (index.measured[arm] || [])[i];
          const fast = make("td", { class: "num heat" }, known ? percent(known[1]) : "–");
          if (known) fast.style.setProperty("--share", `${Math.round(60 * known[1])}%`);
          const kept = cell ? make("a", { href: address({ view: "turns", problem: `"${name}"`, run: `arm:${arm}`, at: "" }) }, `${cell.correct}/${cell.turns}`) : "–";
          return [fast, make("td", { class: "num" }, kept), make("td", { class: "num last" }, cell && cell.best !== null ? times(cell.best) : "–")];
        }),
      ),
    );
    const sub = arms.flatMap(() => [make("th", {}, "Fast@1.2"), make("th", {}, "correct"), make("th", { class: "last" }, "best")]);
    byId("problems").replaceChildren(
      make("h2", {}, "Problems"),
      make("p", { class: "soft" }, index.attempts
        ? "Fast@1.2: share of the attempts whose best turn is correct and at least 1.2 times as fast. Correct and best speedup: of the turns in this page."
        : "Fast@1.2: of the last validation, mean over seeds. Correct and best speedup: of the turns in this page, a sample of all turns."),
      make("div", { class: "scroll" }, make("table", { class: "wide" },
        make("thead", {}, make("tr", {}, make("th", {}), ...arms.map((arm) => make("th", { colspan: "3", class: "arm" }, arm))), make("tr", {}, make("th", {}, "Problem"), ...sub)),
        make("tbody", {}, ...rows))),
    );
  }

  // --- keys -------------------------------------------------------------------------------------------------------------------

  const HELP = [
    ["j k", "next and previous turn of the list"], ["h l", "previous and next turn of the trajectory"], ["d", "difference to the turn before"],
    ["/", "filter by problem"], ["Esc", "leave a field, the keys, the turn"], ["1 2 3", "summary, problems, turns"], ["?", "these keys"],
  ];

  function walk(by) {
    if (!shown.length) return;
    const current = shown.findIndex((item) => item.at === state.at);
    const next = current < 0 ? 0 : Math.max(0, Math.min(shown.length - 1, current + by));
    go({ at: shown[next].at, diff: state.diff });
  }

  function along(by) {
    const item = turns[position.get(state.at)];
    const next = item && turns[position.get(state.at) + by];
    if (next && next.row === item.row) go({ at: next.at });
  }

  function press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const help = byId("keys");
    if (event.key === "Escape") {
      if (help.open) help.close();
      else if (event.target.matches("input, select")) event.target.blur();
      else if (state.at) go({ at: "", diff: false });
      return;
    }
    if (event.target.matches("input, select")) return;
    const actions = {
      j: () => walk(1), k: () => walk(-1), h: () => along(-1), l: () => along(1),
      ArrowDown: () => walk(1), ArrowUp: () => walk(-1), ArrowLeft: () => along(-1), ArrowRight: () => along(1),
      d: () => go({ diff: !state.diff }), "/": () => byId("filter-problem").focus(),
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
    }
    shown = select();
    if (state.sort in ORDERS) shown = [...shown].sort(ORDERS[state.sort]);
    byId("count").textContent = `${shown.length.toLocaleString("en")} of ${turns.length.toLocaleString("en")} turns`;
    drawChips();
    drawList(true);
    drawTurn().catch((error) => byId("turn").replaceChildren(make("p", {}, `This turn cannot be shown: ${error.message}`)));
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
    views.append(link("summary", "Summary"), link("problems", "Problems"), link("turns", `Turns (${turns.length.toLocaleString("en")})`));
    views.append(make("button", { class: "keys", title: "Keys", "aria-label": "Keys", onclick: () => byId("keys").showModal() }, "?"));
    byId("keys").append(make("h3", {}, "Keys"), make("dl", {}, ...HELP.flatMap(([key, what]) => [make("dt", {}, key), make("dd", {}, what)])), make("form", { method: "dialog" }, make("button", {}, "close")));
    byId("list").addEventListener("scroll", () => drawList(false), { passive: true });
    byId("list").addEventListener("click", (event) => {
      const row = event.target.closest("a.row");
      if (!row || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      go({ at: row.dataset.at, diff: false }, !state.at);
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
})();
