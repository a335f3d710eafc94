// Code in colours, and the difference of two pieces of code.

const KEYWORDS =
  /^(?:False|None|True|and|as|assert|async|await|break|class|continue|def|del|elif|else|except|finally|for|from|global|if|import|in|is|lambda|nonlocal|not|or|pass|raise|return|try|while|with|yield)$/;
const TOKENS =
  /(#[^\n]*)|((?:\b[rRbBfFuU]{1,2})?(?:"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?))|(@[\w.]+)|(\b\d[\w.]*)|([A-Za-z_]\w*)/g;

// Python as runs of tokens: [tone, text], the tone empty for plain text.
function tones(code) {
  const found = [];
  let at = 0;
  let before = "";
  for (const match of code.matchAll(TOKENS)) {
    const [token, comment, string, decorator, number, word] = match;
    let tone = comment ? "c" : string ? "s" : decorator ? "d" : number ? "n" : "";
    if (word) {
      tone = KEYWORDS.test(word) ? "k" : before === "def" || before === "class" ? "f" : "";
      before = word;
    }
    if (!tone) continue;
    found.push(["", code.slice(at, match.index)], [tone, token]);
    at = match.index + token.length;
  }
  found.push(["", code.slice(at)]);
  return found;
}

const inTone = ([tone, content]) => (tone ? make("span", { class: tone }, content) : content);

const coloured = new Map(); // text id -> nodes, made once
function codeBlock(id, code) {
  if (!coloured.has(id)) coloured.set(id, make("pre", { class: "py" }, ...tones(code).map(inTone)));
  return coloured.get(id);
}

// The nodes of every line of code. A string that runs over lines keeps its colour on each.
function colouredLines(code) {
  const lines = [[]];
  for (const [tone, content] of tones(code)) {
    content.split("\n").forEach((part, i) => {
      if (i) lines.push([]);
      if (part) lines.at(-1).push(inTone([tone, part]));
    });
  }
  return lines;
}

// Lines of two texts: [" ", place in the old, place in the new], ["-", place, -1] or ["+", -1, place], from a longest common
// subsequence.
function difference(a, b) {
  let [start, endA, endB] = [0, a.length, b.length];
  while (start < endA && start < endB && a[start] === b[start]) start++;
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) endA--, endB--;
  const [n, m] = [endA - start, endB - start];
  const found = Array.from({ length: start }, (_, i) => [" ", i, i]);
  if (n * m > 4e6) {
    // Too long to compare line by line: all of the one goes, all of the other comes.
    for (let i = start; i < endA; i++) found.push(["-", i, -1]);
    for (let j = start; j < endB; j++) found.push(["+", -1, j]);
  } else {
    const lengths = Array.from({ length: n + 1 }, () => new Uint16Array(m + 1));
    for (let i = n - 1; i >= 0; i--)
      for (let j = m - 1; j >= 0; j--)
        lengths[i][j] = a[start + i] === b[start + j] ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
    let [i, j] = [0, 0];
    while (i < n || j < m) {
      if (i < n && j < m && a[start + i] === b[start + j]) found.push([" ", start + i++, start + j++]);
      else if (i < n && (j >= m || lengths[i + 1][j] >= lengths[i][j + 1])) found.push(["-", start + i++, -1]);
      else found.push(["+", -1, start + j++]);
    }
  }
  for (let i = endA; i < a.length; i++) found.push([" ", i, i - endA + endB]);
  return found;
}

// A difference in colours with three lines around every change; longer stretches without one are folded.
function diffBlock(old, now) {
  const lines = difference(old.split("\n"), now.split("\n"));
  const [oldNodes, newNodes] = [colouredLines(old), colouredLines(now)];
  const near = lines.map(() => false);
  lines.forEach(([sign], i) => {
    if (sign !== " ") for (let j = Math.max(0, i - 3); j <= Math.min(lines.length - 1, i + 3); j++) near[j] = true;
  });
  const shownLine = ([sign, i, j]) => {
    const tone = sign === "+" ? "new" : sign === "-" ? "old" : "same";
    return make("span", { class: `line ${tone}` }, `${sign} `, ...(j < 0 ? oldNodes[i] : newNodes[j]), "\n");
  };
  const block = make("pre", { class: "diff py" });
  for (let i = 0; i < lines.length; ) {
    let end = i;
    while (end < lines.length && !near[end]) end++;
    if (end - i > 1) {
      const hidden = lines.slice(i, end);
      const unfold = (event) => event.target.replaceWith(...hidden.map(shownLine));
      block.append(make("button", { class: "fold", onclick: unfold }, `${end - i} lines without a change`));
      i = end;
      continue;
    }
    block.append(shownLine(lines[i++]));
  }
  const [more, less] = ["+", "-"].map((sign) => lines.filter(([other]) => other === sign).length);
  return [more + less ? `${more} line${more === 1 ? "" : "s"} more, ${less} less` : "no change", block];
}

async function copy(content, button) {
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(content);
    button.textContent = "copied";
  } catch {
    button.textContent = "this browser does not let a page copy";
  }
  setTimeout(() => (button.textContent = label), 1500);
}

const copyButton = (content) => make("button", { class: "toggle copy", onclick: (event) => copy(content, event.target) }, "copy");
