// Notes that a reader leaves at turns. They stay in this browser, under the names of the page's runs, and go out as JSON.

let notes = {}; // at -> {note, when}

const shelf = () => `rlkernel notes: ${index.runs.map((run) => run.name).join(" ")}`;
const noteOf = (at) => notes[at]?.note || "";

function readNotes() {
  try {
    notes = JSON.parse(localStorage.getItem(shelf()) || "{}");
  } catch {
    notes = {}; // a browser that keeps nothing for files; saving says so
  }
}

// Whether the note was kept.
function saveNote(at, note) {
  if (note.trim()) notes[at] = { note, when: new Date().toISOString() };
  else delete notes[at];
  showNoteCount();
  try {
    localStorage.setItem(shelf(), JSON.stringify(notes));
    return true;
  } catch {
    return false;
  }
}

function showNoteCount() {
  const count = Object.keys(notes).length;
  const button = byId("export-notes");
  button.hidden = count === 0;
  button.textContent = `Export ${count} note${count === 1 ? "" : "s"}`;
}

function exportNotes() {
  const rows = Object.entries(notes).map(([at, { note, when }]) => {
    const item = turns[position.get(at)];
    if (!item) return { at, note, when };
    const run = index.runs[item.row[RUN]];
    const about = { run: run.name, arm: run.arm, seed: run.seed, problem: index.problems[item.row[PROBLEM]], step: item.row[STEP] };
    return { at, ...about, turn: item.k + 1, status: statusOf(item), note, when };
  });
  const content = JSON.stringify({ title: document.title, notes: rows }, null, 1);
  const address = URL.createObjectURL(new Blob([content], { type: "application/json" }));
  make("a", { href: address, download: "notes.json" }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

function noteField(at) {
  const field = make("textarea", { id: "note", rows: "2", placeholder: "A note on this turn, kept in this browser", "aria-label": "Note" });
  field.value = noteOf(at);
  const said = make("span", { class: "soft", id: "note-said" });
  field.addEventListener("input", () => {
    said.textContent = saveNote(at, field.value) ? "" : "This browser keeps no notes for this page: export them before you leave.";
    drawList(false);
  });
  return make("div", { class: "note" }, field, said);
}
