// One turn beside the list: its verdict, its texts, its code, and the difference to the turn before or to another arm's answer.

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

async function textsOf(item) {
  const { row, turn } = item;
  const before = item.k > 0 ? row[TURNS][item.k - 1] : null;
  const ids = [row[PROMPT], turn[BEFORE], turn[CODE], turn[AFTER], turn[FEEDBACK], turn[FACTS], before ? before[CODE] : -1, before ? before[FEEDBACK] : -1];
  const [prompt, plan, code, after, feedback, facts, oldCode, told] = await Promise.all(ids.map(text));
  return { prompt, plan, code, after, feedback, facts: JSON.parse(facts), oldCode, told };
}

const titled = (title, content) => make("h4", {}, title, copyButton(content));

// What one turn answered, and what became of it.
function answerParts(item, texts, changed) {
  const { facts, plan, code, after, feedback } = texts;
  const costs = [...(facts.launches || []).map((step) => ({ ...step, name: step.kernel })), ...(facts.ops || []).map((step) => ({ ...step, name: step.op }))].sort((a, b) => b.us - a.us);
  return [
    ...(plan ? [make("section", {}, titled(code === null ? "Answer" : "Plan", plan), prose(plan))] : []),
    ...(code === null ? [] : [make("section", {}, changed ? changed.head : titled("Code", code), changed ? changed.block : codeBlock(item.turn[CODE], code).cloneNode(true))]),
    ...(after ? [section("After the code", prose(after))] : []),
    ...(costs.length ? stepTable("Where the time goes", costs, "name") : []),
    ...((facts.reference_ops || []).length ? stepTable("Where the reference's time goes", facts.reference_ops, "op") : []),
    ...(feedback ? [section("Feedback for the next turn", prose(feedback))] : []),
  ];
}

// The heading of the code, with the switch between code and difference. other: what the difference is to.
function codeHead(code, other, oldCode) {
  const comparable = oldCode !== null && code !== null;
  const comparing = state.diff && comparable;
  const toggle = make("button", { class: "toggle", id: "diff", "aria-pressed": String(comparing), onclick: () => go({ diff: !state.diff }, true) }, `difference to ${other}`);
  const [summary, block] = comparing ? diffBlock(oldCode, code) : ["", null];
  const head = make("h4", {}, "Code", code === null ? null : copyButton(code), comparable ? toggle : null, comparing ? make("span", { class: "soft" }, summary) : null);
  return { head, block };
}

function about(item, facts) {
  const { row } = item;
  const place = index.benchmark ? origin(row) : `${row[VALIDATION] ? "validation" : "training"}, step ${row[STEP]}`;
  const saw = facts.saw ? [`saw ${facts.saw.length ? `turn ${facts.saw.join(", ")}` : "no earlier turn"}`] : [];
  return make("p", { class: "soft" }, [whose(index.runs[row[RUN]]), place, ...saw].join(" · "));
}

function turnTabs(item) {
  const run = index.runs[item.row[RUN]];
  const tabs = item.row[TURNS].map((other, i) => {
    const at = `${run.name}:${item.row[LINE]}.${i + 1}`;
    const peer = turns[position.get(at)];
    const href = address({ at, diff: state.diff && i > 0, beside: "" });
    return make("a", { class: `tab ${kind(peer)}`, href, "aria-current": String(i === item.k) }, `Turn ${i + 1}`, make("small", {}, (isCorrect(peer) && times(other[SPEEDUP])) || statusOf(peer)));
  });
  return make("nav", { class: "tabs", "aria-label": "Turns of this trajectory" }, ...tabs);
}

// Two answers in two columns; their difference, where it is asked for, above them.
function pairParts(item, texts, peer, its) {
  const arm = index.runs[peer.row[RUN]].arm;
  const { head, block } = codeHead(texts.code, arm, its.code);
  const column = (of, own, extra) =>
    make("section", { class: "answer", "data-at": of.at }, about(of, own.facts), verdict(of, own.facts), ...(own.facts.detail ? [prose(own.facts.detail)] : []), ...answerParts(of, own, extra));
  return [
    ...(block ? [make("section", {}, head, block)] : []),
    make("div", { class: "pair" }, column(item, texts, block ? null : { head, block: codeBlock(item.turn[CODE], texts.code || "").cloneNode(true) }), column(peer, its, null)),
  ];
}

function aloneParts(item, texts) {
  const { facts, prompt, told, code, oldCode } = texts;
  const { head, block } = codeHead(code, `turn ${item.k}`, oldCode);
  const shownCode = code === null ? null : { head, block: block || codeBlock(item.turn[CODE], code) };
  return [
    verdict(item, facts),
    ...(facts.detail ? [prose(facts.detail)] : []),
    make("details", { class: "prompt" }, make("summary", {}, "Prompt"), prose(prompt)),
    ...(told ? [make("details", { class: "prompt" }, make("summary", {}, `What turn ${item.k} was told`), prose(told))] : []),
    ...answerParts(item, texts, shownCode),
  ];
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
  const peer = state.beside ? turns[position.get(state.beside)] : null;
  const [texts, its] = await Promise.all([textsOf(item), peer ? textsOf(peer) : null]);
  if (own !== drawn) return;
  pane.replaceChildren(
    make("button", { class: "back", onclick: () => go({ at: "" }, true) }, "← list"),
    make("h3", {}, index.problems[item.row[PROBLEM]]),
    make("div", { class: "topline" }, about(item, texts.facts), besideChoice(item, peersOf(item))),
    turnTabs(item),
    noteField(item.at),
    ...(peer ? pairParts(item, texts, peer, its) : aloneParts(item, texts)),
  );
  pane.scrollTop = 0;
  pane.dataset.at = item.at;
  pane.dataset.beside = peer ? peer.at : "";
  markWords(pane, state.text);
}
