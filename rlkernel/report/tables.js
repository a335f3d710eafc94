// Tables that sort by a click on a heading. A cell sorts by its data-sort, or by its text; numbers before words, both ways.

function sortKey(row, column) {
  const cell = row.cells[column];
  const given = (cell && (cell.dataset.sort ?? cell.textContent).trim()) || "";
  const number = Number.parseFloat(given.replace(/[,\s]/g, "").replace("−", "-"));
  return [Number.isNaN(number) ? null : number, given];
}

function compareKeys([a, textA], [b, textB]) {
  if (a !== null && b !== null) return a - b;
  return textA.localeCompare(textB, "en", { numeric: true });
}

function sortBy(table, column, heading) {
  const descending = heading.getAttribute("aria-sort") === "ascending";
  for (const other of table.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
  const keyed = [...table.tBodies[0].rows].map((row) => [sortKey(row, column), row]);
  keyed.sort(([a], [b]) => {
    // What has no value stays below, and what is no number below the numbers.
    if ((a[1] === "") !== (b[1] === "")) return a[1] === "" ? 1 : -1;
    if ((a[0] === null) !== (b[0] === null)) return a[0] === null ? 1 : -1;
    return descending ? compareKeys(b, a) : compareKeys(a, b);
  });
  table.tBodies[0].append(...keyed.map(([, row]) => row));
}

function makeSortable(table) {
  [...table.tHead.rows].at(-1).querySelectorAll("th").forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.title = "sort";
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sortBy(table, column, heading));
    heading.append(button);
  });
}

for (const table of document.querySelectorAll("table.sortable")) makeSortable(table);
