// The cursor of a chart: it goes to the nearest measured step, and a box lists the values of all lines there.

const DRAWING = "http://www.w3.org/2000/svg";

function drawing(tag, attributes) {
  const node = document.createElementNS(DRAWING, tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

const toneOf = (line) => `--tone: var(--arm-${line.colour % 10})`;

function readingBox(readings, i) {
  const box = document.createElement("div");
  box.className = "reading";
  const step = document.createElement("div");
  step.textContent = `step ${readings.steps[i]}`;
  box.append(step);
  for (const line of readings.lines) {
    if (line.values[i] === null) continue;
    const [row, name, dot, value] = ["div", "span", "span", "b"].map((tag) => document.createElement(tag));
    dot.className = "dot";
    dot.style.cssText = toneOf(line);
    name.append(dot, line.label);
    value.textContent = line.values[i];
    row.append(name, value);
    box.append(row);
  }
  return box;
}

function addCursor(svg) {
  const readings = JSON.parse(svg.dataset.readings);
  const cursor = svg.querySelector(".cursor");
  let at = -1;

  function leave() {
    at = -1;
    cursor.replaceChildren();
    svg.parentElement.querySelector(".reading")?.remove();
  }

  function point(i) {
    if (i === at || i < 0 || i >= readings.steps.length) return;
    leave();
    at = i;
    const x = readings.x[i];
    cursor.append(drawing("line", { x1: x, x2: x, y1: 12, y2: 220 }));
    for (const line of readings.lines) {
      if (line.y[i] !== null) cursor.append(drawing("circle", { cx: x, cy: line.y[i], r: 4, style: toneOf(line) }));
    }
    const box = readingBox(readings, i);
    // On the side of the drawing that the cursor is not on.
    box.style[x > svg.viewBox.baseVal.width / 2 ? "left" : "right"] = "12%";
    svg.parentElement.append(box);
  }

  svg.addEventListener("pointermove", (event) => {
    const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const distances = readings.x.map((x) => Math.abs(x - place.x));
    point(distances.indexOf(Math.min(...distances)));
  });
  svg.addEventListener("pointerleave", leave);
  svg.addEventListener("blur", leave);
  svg.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    point(at < 0 ? (by > 0 ? 0 : readings.steps.length - 1) : at + by);
  });
}

for (const svg of document.querySelectorAll("svg[data-readings]")) addCursor(svg);
