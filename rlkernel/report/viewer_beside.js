// The answer of another arm to the same problem, beside the turn that is read.

// How far a turn is from being the same one under another arm: split, turn, seed, then step.
function distance(item, other) {
  return [
    Number(item.row[VALIDATION] !== other.row[VALIDATION]),
    Math.abs(item.k - other.k),
    Number(index.runs[item.row[RUN]].seed !== index.runs[other.row[RUN]].seed),
    Math.abs(item.row[STEP] - other.row[STEP]),
  ];
}

function closer(a, b) {
  const i = a.findIndex((part, place) => part !== b[place]);
  return i >= 0 && a[i] < b[i];
}

// For every other arm that answered the same problem, its turn that is nearest to this one.
function peersOf(item) {
  const arm = index.runs[item.row[RUN]].arm;
  const nearest = new Map();
  for (const other of turns) {
    const its = index.runs[other.row[RUN]].arm;
    if (its === arm || other.row[PROBLEM] !== item.row[PROBLEM]) continue;
    const known = nearest.get(its);
    const far = distance(item, other);
    if (!known || closer(far, known.far)) nearest.set(its, { other, far });
  }
  return new Map([...nearest].map(([its, { other }]) => [its, other]));
}

function besideChoice(item, peers) {
  if (!peers.size) return null;
  const chosen = turns[position.get(state.beside)];
  const arm = chosen && index.runs[chosen.row[RUN]].arm;
  const choices = [["", "this answer alone"], ...[...peers.keys()].map((name) => [name, `beside ${name}`])];
  const change = (event) => go({ beside: peers.get(event.target.value)?.at || "", diff: false }, true);
  const select = make("select", { id: "beside", "aria-label": "Answer of another arm", onchange: change }, ...options(choices));
  select.value = peers.has(arm) ? arm : "";
  return select;
}
