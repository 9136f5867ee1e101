"use strict";
/* The grid of a chip with the links of its two NoCs as edges: those of NoC 0 lead right and down, those of NoC 1 left and up. */

const COLUMNS = 17, ROWS = 12;
const STEP_X = 66, STEP_Y = 50, NODE_X = 34, NODE_Y = 22, MARGIN = 34;
const APART = 5;  /* pixels between the two links of a pair of neighbours */
const HEAT = ["#f3d9a4", "#efb45c", "#e5843b", "#cf4d2c", "#8e1c1c"];
const UNUSED = "#e4e8ea", BUSIEST = 12;

function svg(name, attributes, text) {
  const made = document.createElementNS(byId("noc-picture").namespaceURI, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

/* Ends of the line of a link; one that leads round the edge is a stub on both sides. */
function lines(noc, [x, y], [u, v]) {
  const sign = noc ? -1 : 1, along = y === v && x !== u;
  const centre = (i, j) => [MARGIN + i * STEP_X + NODE_X / 2, MARGIN + j * STEP_Y + NODE_Y / 2];
  const [cx, cy] = centre(x, y), shift = noc ? APART / 2 + 1 : -APART / 2 - 1;
  const half = along ? NODE_X / 2 : NODE_Y / 2, gap = (along ? STEP_X : STEP_Y) - 2 * half;
  const line = (ax, ay, from, to) => along ? {x1: ax + sign * from, x2: ax + sign * to, y1: ay + shift, y2: ay + shift}
                                           : {x1: ax - shift, x2: ax - shift, y1: ay + sign * from, y2: ay + sign * to};
  if (along ? u === x + sign : v === y + sign) return [line(cx, cy, half + 1, half + gap - 1)];
  const [fx, fy] = centre(u, v);
  return [line(cx, cy, half + 1, half + gap / 2), line(fx, fy, -half - gap / 2, -half - 1)];
}

function heat(part) { return HEAT[Math.min(Math.floor(part * HEAT.length), HEAT.length - 1)]; }

function showNocLinks() {
  const {links, counted, multicast_bytes: several, unknown_bytes: unknown} = report.noc, chosen = choices.noc = byId("which-noc").value;
  const shown = links.filter((one) => chosen === "" || one.noc === Number(chosen)), most = shown.length ? shown[0].bytes : 0;
  byId("links-counted").textContent = `Counted: ${counted}. Multicasts: ${several.map(count).join(" bytes on NoC 0, ")} bytes on NoC 1` +
    `${unknown ? `; to places that are not on the grid: ${count(unknown)} bytes` : ""}.`;
  const scale = HEAT.map((colour, i) => {
    const made = element("span", `${i ? "" : "1 "}to ${count(most * (i + 1) / HEAT.length)}${i + 1 < HEAT.length ? ", " : " bytes"}`);
    made.style.borderBottom = `4px solid ${colour}`;
    return made;
  });
  byId("link-scale").replaceChildren(...(most ? scale : []));
  const width = 2 * MARGIN + (COLUMNS - 1) * STEP_X + NODE_X, height = 2 * MARGIN + (ROWS - 1) * STEP_Y + NODE_Y;
  const picture = byId("noc-picture"), bytes = new Map(shown.map((one) => [[one.noc, one.from, one.to].join(), one]));
  picture.replaceChildren();
  picture.setAttribute("width", width);
  picture.setAttribute("height", height);
  for (const noc of chosen === "" ? [0, 1] : [Number(chosen)])
    for (const [x, y] of DATA.nodes)
      for (const to of noc ? [[(x + COLUMNS - 1) % COLUMNS, y], [x, (y + ROWS - 1) % ROWS]] : [[(x + 1) % COLUMNS, y], [x, (y + 1) % ROWS]]) {
        const used = bytes.get([noc, [x, y], to].join());
        for (const ends of lines(noc, [x, y], to)) {
          const line = svg("line", {...ends, stroke: used ? heat(used.bytes / most) : UNUSED, "stroke-width": used ? 5 : 1.5});
          if (used) line.append(svg("title", {}, `NoC ${noc}, ${used.name}: ${count(used.bytes)} bytes`));
          picture.append(line);
        }
      }
  const recorded = new Set(report.tiles.map((tile) => `tile ${tile.x}-${tile.y}`));
  for (const [x, y, name] of DATA.nodes) {
    const left = MARGIN + x * STEP_X, top = MARGIN + y * STEP_Y;
    const kind = recorded.has(name) ? "recorded" : name.startsWith("DRAM") ? "dram" : "";
    const node = svg("rect", {x: left, y: top, width: NODE_X, height: NODE_Y, rx: 3, class: kind});
    node.append(svg("title", {}, name));
    const label = name.startsWith("DRAM") ? `DRAM ${name.split(" ")[2].replace(",", "")}` : name.split(" ").at(-1);
    picture.append(node, svg("text", {x: left + NODE_X / 2, y: top + NODE_Y / 2 + 3, "pointer-events": "none"}, label));
  }
  const table = byId("noc-links");
  table.replaceChildren();
  if (!most) return;
  row(table, ["busiest links", "NoC", "bytes", "of the busiest"], true);
  for (const one of shown.slice(0, BUSIEST)) row(table, [one.name, String(one.noc), one.bytes, `${Math.round(100 * one.bytes / most)} %`]);
}
