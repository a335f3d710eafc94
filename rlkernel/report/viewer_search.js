// The search in answers. A page's texts are unpacked all at once when somebody first searches, and searched in lower case.

let answers = null; // every text of the page in lower case, by its number
let reading = false;
const hits = new Map(); // query -> for every text, whether it has it

async function readAnswers() {
  reading = true;
  const read = await Promise.all(index.firsts.map((_, number) => block(number)));
  answers = read.flat().map((found) => found.toLowerCase());
  reading = false;
  show();
}

// For every text, whether it has the words; null while the texts are being read.
function textsWith(words) {
  const query = words.toLowerCase();
  if (answers === null) {
    if (!reading) readAnswers().catch((error) => (byId("count").textContent = `The answers cannot be read: ${error.message}`));
    return null;
  }
  if (!hits.has(query)) hits.set(query, answers.map((found) => found.includes(query)));
  return hits.get(query);
}

const hasWords = (item, found) => [BEFORE, CODE, AFTER].some((part) => item.turn[part] >= 0 && found[item.turn[part]]);

// Marks the words where the browser can do so without touching the text.
function markWords(pane, words) {
  if (typeof Highlight === "undefined") return;
  CSS.highlights.delete("found");
  if (!words) return;
  const query = words.toLowerCase();
  const ranges = [];
  const walker = document.createTreeWalker(pane, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node && ranges.length < 1000; node = walker.nextNode()) {
    const content = node.data.toLowerCase();
    for (let i = content.indexOf(query); i >= 0; i = content.indexOf(query, i + query.length)) {
      const range = new Range();
      range.setStart(node, i);
      range.setEnd(node, Math.min(node.length, i + query.length));
      ranges.push(range);
    }
  }
  CSS.highlights.set("found", new Highlight(...ranges));
}
