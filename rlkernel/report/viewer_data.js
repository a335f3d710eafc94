// The turns of the page as data, and how their numbers are shown.

const [RUN, LINE, VALIDATION, STEP, PROBLEM, PROMPT, TURNS] = [0, 1, 2, 3, 4, 5, 6];
const [STATUS, SPEEDUP, COVERAGE, REWARD, BEFORE, CODE, AFTER, FEEDBACK, FACTS] = [0, 1, 2, 3, 4, 5, 6, 7, 8];
const ROW = 54; // pixels of a row of the list, as in the style sheet
const KEYS = ["run", "split", "status", "problem", "text", "step", "turn", "speedup", "coverage", "sort"];
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
  let number = 0;
  while (number + 1 < index.firsts.length && index.firsts[number + 1] <= id) number++;
  return (await block(number))[id - index.firsts[number]];
}

// The texts of one block, unpacked once.
async function block(number) {
  await loaded;
  if (!blocks.has(number)) blocks.set(number, unpack(`block-${number}`));
  return blocks.get(number);
}

function order(rows) {
  rows.sort((a, b) => a[RUN] - b[RUN] || (index.benchmark ? 0 : a[STEP] - b[STEP]) || a[LINE] - b[LINE]);
  for (const row of rows) {
    row[TURNS].forEach((turn, k) => turns.push({ row, k, turn, at: `${index.runs[row[RUN]].name}:${row[LINE]}.${k + 1}` }));
  }
  position = new Map(turns.map((item, i) => [item.at, i]));
}

// Of a benchmark, a row's step is the number of the trajectory.
const whose = (run) => (index.benchmark ? run.arm : `${run.arm}, seed ${run.seed}`);
const origin = (row) => (index.benchmark ? `trajectory ${row[STEP]}` : `${row[VALIDATION] ? "validation" : "train"} ${row[STEP]}`);
const statusOf = (item) => index.statuses[item.turn[STATUS]];
const isCorrect = (item) => statusOf(item) === "correct";
const isLazy = (item) => statusOf(item) === "correct" && item.turn[COVERAGE] !== null && item.turn[COVERAGE] < index.lazy;
const kind = (item) =>
  statusOf(item) === "correct" ? (isLazy(item) ? "lazy" : "good") : index.hacks.includes(statusOf(item)) ? "hack" : "bad";
const times = (value) => (value === null ? "" : `${value.toFixed(2)}×`);
const fixed = (value, digits) => (typeof value === "number" ? value.toFixed(digits) : String(value));
const percent = (value) => (value === null ? "" : `${Math.round(100 * value)} %`);
