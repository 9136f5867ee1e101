"use strict";
const DATA = /*DATA*/null;
const COLOURS = ["#4f8fba", "#c0504d", "#d9b44a", "#6a9f58", "#8064a2"];
const MOST_SHOWN = 1000;
const SCALE = COLOURS.flatMap((colour, i) => [[i / COLOURS.length, colour], [(i + 1) / COLOURS.length, colour]]);
const KEY = {orientation: "h", y: 1, yanchor: "bottom", thickness: 8, tickvals: COLOURS.map((_, i) => i), tickfont: {size: 11},
             ticktext: DATA.timeline.kinds};
const byId = (id) => document.getElementById(id);
const count = (n) => Math.round(n).toLocaleString("en");
const report = DATA.report;

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function row(table, cells, head) {
  const made = element("tr");
  for (const cell of cells)
    made.append(element(head ? "th" : "td", typeof cell === "number" ? count(cell) : cell,
                        typeof cell === "number" ? "number" : ""));
  table.append(made);
  return made;
}

function options(select, names) {
  names.forEach((name, i) => { const made = element("option", name); made.value = i; select.append(made); });
}

async function unpack(text, Kind) {
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = letters.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Kind(await new Response(stream).arrayBuffer());
}

/* --- tables ------------------------------------------------------------------------------------------------------ */

function showSummary() {
  byId("title").textContent = DATA.title;
  for (const note of report.notes) byId("notes").append(element("li", note));
  for (const change of report.changes.slice(0, 200)) byId("notes").append(element("li", change));
  const table = byId("operations");
  row(table, ["operation", "begins", "clocks", "tiles", "kernels"], true);
  for (const one of report.operations)
    row(table, [one.name, one.begin, one.end - one.begin, one.tiles.length, one.kernels.join(", ")]);
  showTimed();
}

function showTimed() {
  if (!report.timed.length) return;
  byId("operations").hidden = true;
  const table = byId("timed"), percent = (part) => `${Math.round(100 * part)} %`;
  row(table, ["operation", "begins", "cycles (estimate)", "gap before", "tiles", "bound by", "busy for", "then", "guessed",
              "kernels"], true);
  for (const one of report.timed) {
    const others = Object.entries(one.busy).slice(1, 3).map(([what, n]) => `${what} ${percent(n / one.cycles)}`);
    row(table, [one.name, one.begin, one.cycles, one.gap, one.tiles, one.bound, percent(one.share), others.join(", "),
                percent(one.guessed), one.kernels.join(", ")]);
  }
}

function showKernel(kernel, chosen) {
  document.querySelectorAll("tr.chosen").forEach((one) => one.classList.remove("chosen"));
  chosen.classList.add("chosen");
  const place = byId("kernel-lines");
  place.replaceChildren();
  const about = kernel.source || kernel.path;
  place.append(element("p", `${kernel.name} on core ${kernel.core}${about ? ": " + about : ""}`));
  const table = element("table");
  row(table, ["line", "rounds", "share", "waits there for"], true);
  for (const [line, rounds] of Object.entries(kernel.lines).slice(0, 15)) {
    const waits = Object.entries(kernel.line_waits[line] || {}).slice(0, 2);
    row(table, [line, rounds, `${Math.round(100 * rounds / kernel.rounds)} %`,
                waits.map(([what, n]) => `${what} (${count(n)})`).join(", ")]);
  }
  place.append(table);
  const facts = (name, entries, unit) => {
    const list = Object.entries(entries).slice(0, 6).map(([what, n]) => `${what} ${count(n)}`);
    if (list.length) place.append(element("p", `${name}${unit}: ${list.join(", ")}`));
  };
  facts("waits", kernel.waits, " (rounds)");
  facts("words of the coprocessor by unit", kernel.units, "");
  facts("its thread stalls for", kernel.stalls, " (modelled cycles)");
}

function showKernels() {
  const table = byId("kernel-table");
  row(table, ["kernel", "core", "longest launch, rounds", "all rounds", "blocked", "tiles", "hottest line"], true);
  report.kernels.forEach((kernel, i) => {
    const made = row(table, [kernel.name, kernel.core, kernel.longest, kernel.rounds,
                             `${Math.round(100 * kernel.blocked / Math.max(kernel.rounds, 1))} %`,
                             kernel.tiles.length, kernel.hottest]);
    made.classList.add("choice");
    made.onclick = () => showKernel(kernel, made);
    if (i === 0) showKernel(kernel, made);
  });
}

function showFailures() {
  const table = byId("failure-table");
  if (!report.failures.length) { table.before(element("p", "none", "muted")); return; }
  row(table, ["tile", "core", "code", "line", "calls", "kernel", "operation", "waypoint", ""], true);
  for (const one of report.failures)
    row(table, [one.place.join("-"), one.core, one.code, one.line || "unknown", one.calls.join(", "), one.kernel,
                one.operation, one.waypoint, one.detail]);
}

function showHazards() {
  const place = byId("hazard-list");
  if (!report.hazards.length) place.append(element("p", "none", "muted"));
  for (const one of report.hazards) {
    place.append(element("p", `tile ${one.tile.join("-")}: ${one.severity}: ${one.message} [${one.rule}]`, one.severity));
    place.append(element("pre", `first:   ${one.first.text} (${one.first.place})\nthen:    ${one.then.text} ` +
                                `(${one.then.place})\nmissing: ${one.missing}`));
  }
}

/* --- grid and NoC ------------------------------------------------------------------------------------------------ */

const METRICS = {
  "running, % of rounds of five cores": (tile) => 100 * tile.running / Math.max(5 * tile.rounds, 1),
  "blocked, % of rounds of five cores": (tile) => 100 * tile.blocked / Math.max(5 * tile.rounds, 1),
  "polling, % of rounds of five cores": (tile) => 100 * tile.polling / Math.max(5 * tile.rounds, 1),
  "words of the coprocessor": (tile) => tile.words,
  "NoC bytes read": (tile) => tile.read,
  "NoC bytes written": (tile) => tile.written,
};

function showGrid() {
  const name = Object.keys(METRICS)[byId("metric").value];
  const xs = [1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15, 16], ys = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
  const z = ys.map(() => xs.map(() => null)), text = ys.map(() => xs.map(() => "not recorded"));
  for (const tile of report.tiles) {
    const i = ys.indexOf(tile.y), j = xs.indexOf(tile.x);
    if (i < 0 || j < 0) continue;
    z[i][j] = METRICS[name](tile);
    const waits = Object.entries(tile.waits).slice(0, 3).map(([what, n]) => `${what}: ${count(n)} rounds`);
    text[i][j] = [`tile ${tile.x}-${tile.y}`, `${name}: ${z[i][j].toFixed(1)}`, ...waits].join("<br>");
  }
  Plotly.react("grid-map", [{type: "heatmap", x: xs.map(String), y: ys.map(String), z, text, hoverinfo: "text",
                             colorscale: "YlGnBu", reversescale: true, zmin: 0, xgap: 2, ygap: 2}],
               {height: 380, margin: {t: 10, l: 40, b: 30}, yaxis: {autorange: "reversed", type: "category"},
                xaxis: {type: "category"}}, {responsive: true, displayModeBar: false});
}

function showTraffic() {
  const ends = new Map();
  for (const one of report.traffic) {
    const key = one.kind;
    if (!ends.has(key)) ends.set(key, new Map());
    ends.get(key).set(one.other, (ends.get(key).get(one.other) || 0) + one.bytes);
  }
  if (!ends.size) { byId("traffic").append(element("p", "none recorded: they are known from single instructions", "muted")); return; }
  const bars = [...ends].map(([kind, sums]) => ({type: "bar", name: kind, x: [...sums.keys()], y: [...sums.values()]}));
  Plotly.newPlot("traffic", bars, {barmode: "stack", height: 280, margin: {t: 10, b: 70, l: 60},
                                   yaxis: {title: {text: "bytes"}}, xaxis: {type: "category"}},
                 {responsive: true, displayModeBar: false});
}

function showLinks() {
  const table = byId("link-table");
  if (!report.links.length) { table.before(element("p", "none recorded: they are those of several chips", "muted")); return; }
  row(table, ["from", "to", "frames", "bytes", "clocks", "lost", "what happened"], true);
  for (const one of report.links)
    row(table, [one.from, one.to, one.frames, one.bytes, one.frames ? `${count(one.begin)} to ${count(one.end)}` : "", one.lost,
                one.events.map((event) => `${event.what} (clock ${count(event.clock)})`).join("; ")]);
  const used = report.links.filter((one) => one.frames);
  if (!used.length) return;
  const bars = used.map((one) => ({type: "bar", name: `${one.from} to ${one.to}`, x: one.sent.map(([clock]) => clock + one.span / 2),
                                   y: one.sent.map(([, bytes]) => bytes), width: one.sent.map(() => one.span)}));
  Plotly.newPlot("link-time", bars, {barmode: "stack", height: 280, margin: {t: 10, b: 40, l: 60},
                                     yaxis: {title: {text: "bytes"}}, xaxis: {title: {text: "clock in which they left"}}},
                 {responsive: true, displayModeBar: false});
}

/* --- timeline ---------------------------------------------------------------------------------------------------- */

let events, tiles, end = 1;

function firstAfter(track, time) {
  let low = DATA.timeline.firsts[track], high = DATA.timeline.firsts[track + 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (events.begin[middle] <= time) low = middle + 1; else high = middle;
  }
  return low;
}

/* Events of a track between two times; those that would share a pixel are drawn as one. */
function visible(track, from, to, pixel) {
  const found = [];
  let last = null;
  const first = DATA.timeline.firsts[track];
  for (let i = Math.max(firstAfter(track, from) - 1, first); i < DATA.timeline.firsts[track + 1]; i++) {
    const begin = events.begin[i], stop = begin + events.length[i];
    if (begin > to) break;
    if (stop < from) continue;
    if (last && begin - last.begin < pixel && stop - last.begin < 2 * pixel) {
      last.stop = Math.max(last.stop, stop);
      last.many++;
      continue;
    }
    last = {begin, stop, kind: events.kind[i], text: events.text[i], many: 1};
    found.push(last);
  }
  return found;
}

/* A picture with a row for each of `rows` and a column for each pixel: Plotly draws it at once, however many events. */
function picture(rows, from, to, width) {
  const pixel = (to - from) / width, labels = [];
  const z = [], text = [];
  for (const {tracks, name} of rows) {
    const kinds = new Array(width).fill(null), texts = new Array(width).fill("");
    for (const track of tracks)
      for (const event of visible(track, from, to, pixel)) {
        const told = event.many > 1 ? `${name}: ${event.many} events` : `${name}: ` +
          DATA.timeline.texts[event.text].replace(" | ", "<br>") + `<br>clock ${event.begin.toFixed(2)}, ` +
          `${(event.stop - event.begin).toFixed(2)} long`;
        const first = Math.min(Math.max(Math.floor((event.begin - from) / pixel), 0), width - 1);
        const last = Math.min(Math.max(Math.ceil((event.stop - from) / pixel) - 1, first), width - 1);
        kinds.fill(event.kind, first, last + 1);
        texts.fill(told, first, last + 1);
        if (event.many === 1 && last - first > 60 && labels.length < 150)
          labels.push({x: from + first * pixel, y: name, xanchor: "left", showarrow: false, font: {size: 10, color: "#111"},
                       text: DATA.timeline.texts[event.text].split(" | ")[0].slice(0, Math.floor((last - first) / 6))});
      }
    z.push(kinds);
    text.push(texts);
  }
  return {z, text, labels, pixel};
}

const range = {from: 0, to: 1};
let drawing = false;

function chipRows() {
  return tiles.map((tile) => ({
    name: tile, tracks: DATA.timeline.tracks.flatMap(([place, name], i) =>
      place === tile && ["B", "NC", "T0", "T1", "T2"].includes(name) ? [i] : []),
  }));
}

function tileRows() {
  const tile = tiles[byId("tile").value];
  return DATA.timeline.tracks.flatMap(([place, name], i) => place === tile ? [{name, tracks: [i]}] : [])
    .sort((a, b) => order(a.name) - order(b.name));
}

function order(name) {
  const known = ["B", "NC", "T0", "T1", "T2"];
  const core = known.indexOf(name.split(" ")[0]);
  if (core >= 0) return 2 * core + (name.includes(" ") ? 1 : 0);
  return name.startsWith("thread") ? 20 + Number(name[7]) : name.startsWith("unit") ? 30 : 40;
}

async function drawTime() {
  drawing = true;
  for (const [id, rows, size] of [["chip-time", chipRows(), 16], ["tile-time", tileRows(), 22]]) {
    const place = byId(id), width = Math.max(place.clientWidth - 220, 200);
    const {z, text, labels, pixel} = picture(rows, range.from, range.to, Math.min(width, MOST_SHOWN));
    const names = rows.map((one) => one.name);
    const shown = {type: "heatmap", x0: range.from + pixel / 2, dx: pixel, y: names, z, text, hoverinfo: "text", hoverongaps: false,
                   zmin: -0.5, zmax: COLOURS.length - 0.5, colorscale: SCALE, ygap: rows.length < 60 ? 3 : 1,
                   showscale: id === "chip-time", colorbar: KEY};
    await Plotly.react(place, [shown], {
      height: 90 + Math.min(size * rows.length, 640), margin: {t: id === "chip-time" ? 60 : 30, b: 34, l: 150, r: 10},
      hovermode: "closest", dragmode: "zoom", annotations: labels,
      xaxis: {range: [range.from, range.to], title: {text: id === "tile-time" ? "clock" : ""}},
      yaxis: {type: "category", categoryorder: "array", categoryarray: names, range: [names.length - 0.5, -0.5],
              fixedrange: true, tickfont: {size: 11}},
    }, {responsive: true, scrollZoom: true, doubleClick: false, displayModeBar: false});
  }
  drawing = false;
}

function moveTo(from, to) {
  range.from = Math.max(Math.min(from, to), 0);
  range.to = Math.max(from, to, range.from + 2);
  return drawTime();
}

async function showTime() {
  const told = DATA.timeline;
  events = {begin: await unpack(told.begin, Float64Array), length: await unpack(told.length, Float32Array),
            kind: await unpack(told.kind, Uint8Array), text: await unpack(told.text, Uint32Array)};
  tiles = [...new Set(told.tracks.map(([place]) => place))];
  if (!tiles.length) { byId("time").append(element("p", "no events were recorded", "muted")); return; }
  let first = Infinity;
  for (let track = 0; track < told.tracks.length; track++) {
    first = Math.min(first, events.begin[told.firsts[track]]);
    for (let i = told.firsts[track]; i < told.firsts[track + 1]; i++) end = Math.max(end, events.begin[i] + events.length[i]);
  }
  options(byId("tile"), tiles);
  const busy = tiles.map((tile) => told.tracks.reduce((sum, [place], track) =>
    sum + (place === tile ? told.firsts[track + 1] - told.firsts[track] : 0), 0));
  byId("tile").value = busy.indexOf(Math.max(...busy));
  byId("tile").onchange = drawTime;
  await moveTo(first, end);
  for (const id of ["chip-time", "tile-time"]) {
    byId(id).on("plotly_relayout", (change) => {
      if (!drawing && "xaxis.range[0]" in change) moveTo(change["xaxis.range[0]"], change["xaxis.range[1]"]);
    });
    byId(id).on("plotly_doubleclick", () => { moveTo(first, end); });
    byId(id).on("plotly_click", (click) => {
      if (id === "chip-time") { byId("tile").value = tiles.indexOf(click.points[0].y); drawTime(); }
    });
  }
}

/* --- pictures ---------------------------------------------------------------------------------------------------- */

async function showPicture() {
  const one = DATA.pictures[byId("picture").value];
  const values = await unpack(one.values, Float32Array), columns = values.length / one.rows, z = [];
  for (let i = 0; i < one.rows; i++) z.push(Array.from(values.subarray(i * columns, (i + 1) * columns)));
  Plotly.react("picture-map", [{type: "heatmap", z, colorscale: "RdBu", zmid: 0}],
               {height: Math.min(Math.max(300, 2 * one.rows), 800), width: 700, margin: {t: 10, l: 50, b: 30},
                yaxis: {autorange: "reversed", title: {text: "row"}}, xaxis: {title: {text: "column"}}},
               {displayModeBar: false});
}

async function show() {
  showSummary();
  showKernels();
  showFailures(); showHazards();
  options(byId("metric"), Object.keys(METRICS));
  byId("metric").onchange = showGrid;
  showGrid();
  showTraffic();
  showLinks();
  await showTime();
  if (DATA.pictures.length) {
    options(byId("picture"), DATA.pictures.map((one) => `${one.title}: ${one.what}`));
    byId("picture").onchange = showPicture;
    await showPicture();
  } else byId("pictures").append(element("p", "no states were recorded", "muted"));
  byId("state").textContent = `${count(events.begin.length)} events`;
  document.body.dataset.ready = String(Math.round(performance.now()));
}

show().catch((error) => { byId("state").textContent = `failed: ${error}`; document.body.dataset.failed = String(error); });
