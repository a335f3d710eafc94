// One turn beside the list: its verdict, its texts, its code in colours, and the difference to the turn before.

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
  if (facts.kernelbench_close) parts.push(`KernelBench ${facts.kernelbench_close === "no" ? "not close" : `within ${facts.kernelbench_close}`}`);
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
