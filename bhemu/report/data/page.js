"use strict";
const DATA = JSON.parse(document.getElementById("data").textContent);
const COLOURS = ["#4f8fba", "#c0504d", "#d9b44a", "#6a9f58", "#8064a2", "#2f8f8b"];
const byId = (id) => document.getElementById(id);
const count = (n) => Math.round(n).toLocaleString("en");
/* The chip that is shown, and its report. */
let chip = DATA.chips[DATA.first], report = {...DATA.shared, ...chip.report};
const several = DATA.chips.length > 1;
let chosenChips = 0;  /* counts choices: what began to draw before the last one ends */
/* The sections as the page came, which are drawn anew for another chip. */
const FORMS = new Map([...document.querySelectorAll("section")].map((section) => [section, section.innerHTML]));
/* What the reader has chosen, which stays for another chip. */
const choices = {metric: 0, noc: "", links: "", tile: null, pictureTile: null, what: "Dst", clock: Infinity, shownPictures: 0};

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

/* Numbers of an array that lies in an element of its own until it is needed. */
async function unpack(name, Kind) {
  const letters = atob(byId(`array-${name}`).textContent), bytes = new Uint8Array(letters.length);
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
  showSystem();
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
  choices.metric = byId("metric").value;
  const name = Object.keys(METRICS)[choices.metric];
  const xs = [1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15, 16], ys = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
  const z = ys.map(() => xs.map(() => null)), text = ys.map(() => xs.map(() => "not recorded"));
  for (const tile of report.tiles) {
    const i = ys.indexOf(tile.y), j = xs.indexOf(tile.x);
    if (i < 0 || j < 0) continue;
    z[i][j] = METRICS[name](tile);
    const waits = Object.entries(tile.waits).slice(0, 3).map(([what, n]) => `${what}: ${count(n)} rounds`);
    text[i][j] = [`tile ${tile.x}-${tile.y}`, `${name}: ${z[i][j].toFixed(1)}`, ...waits].join("<br>");
  }
  const all = DATA.chips.flatMap((one) => one.report.tiles.map(METRICS[name]));  /* so chips have one scale of colours */
  const zmax = all.reduce((most, value) => Math.max(most, value), 1);
  Plotly.react("grid-map", [{type: "heatmap", x: xs.map(String), y: ys.map(String), z, text, hoverinfo: "text",
                             colorscale: "YlGnBu", reversescale: true, zauto: false, zmin: 0, zmax, xgap: 2, ygap: 2}],
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
  byId("which-noc").value = choices.noc;
  byId("which-noc").onchange = showNocLinks;
  showNocLinks();
}

function showLinks() {
  const table = byId("link-table"), select = byId("which-links");
  if (!report.links.length) { table.before(element("p", "none recorded: they are those of several chips", "muted")); return; }
  if (several && !select.options.length) {
    byId("links-choice").hidden = false;
    for (const [value, text] of [["", "links of all chips"], ["one", `links of chip ${chip.number}`]]) {
      const made = element("option", text);
      made.value = value;
      select.append(made);
    }
    select.value = choices.links;
    select.onchange = showLinks;
  }
  choices.links = select.value;
  const isEnd = (end) => end.split(":")[0] === String(chip.number);
  const shown = report.links.filter((one) => !choices.links || isEnd(one.from) || isEnd(one.to));
  table.replaceChildren();
  row(table, ["from", "to", "frames", "bytes", "clocks", "lost", "what happened"], true);
  for (const one of shown)
    row(table, [one.from, one.to, one.frames, one.bytes, one.frames ? `${count(one.begin)} to ${count(one.end)}` : "", one.lost,
                one.events.map((event) => `${event.what} (clock ${count(event.clock)})`).join("; ")]);
  const used = shown.filter((one) => one.frames);
  byId("link-time").replaceChildren();
  if (!used.length) return;
  const bars = used.map((one) => ({type: "bar", name: `${one.from} to ${one.to}`, x: one.sent.map(([clock]) => clock + one.span / 2),
                                   y: one.sent.map(([, bytes]) => bytes), width: one.sent.map(() => one.span)}));
  Plotly.newPlot("link-time", bars, {barmode: "stack", height: 280, margin: {t: 10, b: 40, l: 60},
                                     yaxis: {title: {text: "bytes"}}, xaxis: {title: {text: "clock in which they left"}}},
                 {responsive: true, displayModeBar: false});
}

/* --- timeline ---------------------------------------------------------------------------------------------------- */

const CORES = ["B", "NC", "T0", "T1", "T2"];
/* Clocks of all chips together, and those that are shown: chips have one clock. */
const spans = DATA.chips.map((one) => one.timeline.span).filter((span) => span.length);
const whole = spans.length ? [Math.min(...spans.map(([first]) => first)), Math.max(...spans.map(([, last]) => last))] : [0, 1];
const range = {from: whole[0], to: whole[1]};
let events, tiles, systemTime, chipTime, tileTime;

const numbers = (place) => place.split("-").map(Number);

/* A lane for each core. */
function chipRows() {
  return tiles.map((tile) => {
    const lanes = CORES.map((core) => events.tracks.findIndex(([place, name]) => place === tile && name === core));
    return {name: tile, lanes: lanes.map((track) => track < 0 ? null : track)};
  });
}

function tileRows() {
  const tile = choices.tile = tiles[byId("tile").value];
  return events.tracks.flatMap(([place, name], i) => place === tile && events.firsts[i] < events.firsts[i + 1] ? [{name, lanes: [i]}] : [])
    .sort((a, b) => order(a.name) - order(b.name));
}

function order(name) {
  const core = CORES.indexOf(name.split(" ")[0]);
  if (core >= 0) return 2 * core + (name.includes(" ") ? 1 : 0);
  if (name.startsWith("CB")) return 50 + Number(name.split(" ")[1]);
  if (name.startsWith("semaphore")) return 150 + Number(name.split(" ")[1]);
  return name.startsWith("thread") ? 20 + Number(name[7]) : name.startsWith("unit") ? 30 : 40;
}

/* What a tile's circular buffers and semaphores held. */
function showLevels(tile) {
  const table = byId("level-table"), percent = (part) => `${Math.round(100 * part)} %`;
  const own = report.levels.filter((one) => one.tile.join("-") === tile).sort((a, b) => order(a.name) - order(b.name));
  table.replaceChildren();
  if (own.length) row(table, [`levels in tile ${tile}`, "at most", "mean", "empty for", "full for"], true);
  for (const one of own) row(table, [one.name, one.most, one.mean.toFixed(2), percent(one.empty), percent(one.full)]);
}

function moveTo(from, to) {
  const [first, last] = whole, length = Math.min(Math.max(to - from, SHORTEST), last - first);
  range.from = Math.min(Math.max(from, first), last - length);
  range.to = range.from + length;
  for (const picture of [systemTime, chipTime, tileTime]) if (picture) picture.later();
}

async function showTime() {
  const told = chip.timeline, place = byId("time"), index = DATA.chips.indexOf(chip), choice = chosenChips;
  const common = {zoom: moveTo, all: () => moveTo(...whole)};
  chipTime = tileTime = null;
  systemTime = showSystemTime(common);
  if (!told.tracks.length) { place.append(element("p", "no events were recorded", "muted")); return; }
  const [begin, length, kind, text] = await Promise.all([
    unpack(`${index}-begin`, Float64Array), unpack(`${index}-length`, Float32Array), unpack(`${index}-kind`, Uint8Array),
    unpack(`${index}-text`, Uint32Array)]);
  if (choice !== chosenChips) return;
  events = new Events(told, {begin, length, kind, text});
  tiles = [...new Set(told.tracks.map(([tile]) => tile))]
    .sort((a, b) => numbers(a)[0] - numbers(b)[0] || numbers(a)[1] - numbers(b)[1]);
  told.kinds.forEach((name, i) => {
    const made = element("span", name);
    made.style.setProperty("--colour", COLOURS[i]);
    byId("kinds").append(made);
  });
  options(byId("tile"), tiles);
  const busy = tiles.map((tile) => told.tracks.reduce((sum, [other], track) =>
    sum + (other === tile ? told.firsts[track + 1] - told.firsts[track] : 0), 0));
  byId("tile").value = tiles.includes(choices.tile) ? tiles.indexOf(choices.tile) : busy.indexOf(Math.max(...busy));
  const showTile = () => { tileTime.show(events, range); showLevels(tiles[byId("tile").value]); };
  const choose = (row, clock) => { byId("tile").value = row; showTile(); showClock(clock, tiles[row]); };
  chipTime = new TimePicture(byId("chip-time"), {height: 18, most: 18 * 21, rows: chipRows, choose, ...common});
  tileTime = new TimePicture(byId("tile-time"), {height: 22, most: 22 * 40, rows: tileRows,
                                                choose: (_, clock) => showClock(clock, choices.tile), ...common});
  byId("tile").onchange = showTile;
  chipTime.show(events, range);
  showTile();
  if (Number.isFinite(choices.clock)) for (const picture of [chipTime, tileTime]) picture.mark(choices.clock);
}

/* --- pictures ---------------------------------------------------------------------------------------------------- */

/* Pictures of a tile and register file by clock: each is what was there until the next. */
function series() {
  return chip.pictures.filter((one) => one.tile === choices.pictureTile && one.what === choices.what);
}

/* Number of the picture that shows a clock, or of the first one. */
function pictureAt(clock) {
  return Math.max(series().findLastIndex((one) => one.clock <= clock), 0);
}

async function showPicture() {
  const shown = series(), number = Number(byId("picture-clock").value), one = shown[number];
  const choice = ++choices.shownPictures, of = chosenChips;
  choices.clock = one.clock;
  for (const picture of [chipTime, tileTime]) if (picture) picture.mark(one.clock);
  byId("picture-told").textContent = [`clock ${count(one.clock)}`, `${number + 1} of ${shown.length}`, one.detail].filter(Boolean).join(", ");
  const values = one.rows ? await unpack(one.values, Float32Array) : [];
  if (choice !== choices.shownPictures || of !== chosenChips) return;
  const columns = values.length / one.rows, z = [];
  for (let i = 0; i < one.rows; i++) z.push(Array.from(values.subarray(i * columns, (i + 1) * columns)));
  const most = Math.max(...shown.map((other) => other.rows));
  Plotly.react("picture-map", [{type: "heatmap", z, colorscale: "RdBu", zmid: 0}],
               {height: Math.min(Math.max(300, 2 * most), 800), width: 700, margin: {t: 10, l: 50, b: 30},
                yaxis: {autorange: "reversed", title: {text: "row"}}, xaxis: {title: {text: "column"}},
                annotations: one.rows ? [] : [{text: "it holds nothing", showarrow: false, x: 0.5, y: 0.5, xref: "paper", yref: "paper"}]},
               {displayModeBar: false});
}

/* Show what a tile, if there are pictures of it, had in a clock; null: in the clock that is shown. */
function showClock(clock, tile) {
  if (clock !== null) choices.clock = clock;
  if (chip.pictures.some((one) => one.tile === tile)) choices.pictureTile = tile;
  return byId("picture-clock").onchange ? choosePicture() : null;  /* else the section has not been drawn */
}

/* Lists for the tile that is chosen, and its picture. */
function choosePicture() {
  const tiles = [...new Set(chip.pictures.map((one) => one.tile))], tile = byId("picture-tile"), what = byId("picture-what");
  if (!tiles.includes(choices.pictureTile)) choices.pictureTile = tiles[0];
  const names = [...new Set(chip.pictures.filter((one) => one.tile === choices.pictureTile).map((one) => one.what))];
  if (!names.includes(choices.what)) choices.what = names[0];
  for (const [select, texts, chosen] of [[tile, tiles, choices.pictureTile], [what, names, choices.what]]) {
    select.replaceChildren();
    options(select, texts);
    select.value = texts.indexOf(chosen);
  }
  tile.onchange = () => showClock(null, tiles[tile.value]);
  what.onchange = () => { choices.what = names[what.value]; return choosePicture(); };
  const slider = byId("picture-clock"), last = series().length - 1;
  slider.max = last;
  slider.disabled = !last;
  slider.value = pictureAt(choices.clock);
  return showPicture();
}

function showPictures() {
  if (!chip.pictures.length) {
    byId("picture-choice").hidden = true;
    byId("pictures").append(element("p", "no states were recorded", "muted"));
    return null;
  }
  byId("picture-clock").oninput = byId("picture-clock").onchange = showPicture;
  return choosePicture();
}

function showMetric() {
  options(byId("metric"), Object.keys(METRICS));
  byId("metric").value = choices.metric;
  byId("metric").onchange = showGrid;
  showGrid();
}

/* --- the page: what can be seen first, the rest when it comes near ---------------------------------------------------- */

/* Plotly's script is text until the first of its charts is near: to execute it takes longer than all tables. */
function loadCharts() {
  if (window.Plotly || !byId("charts")) return;
  const script = element("script", byId("charts").textContent);
  document.head.append(script);
  byId("charts").remove();
}

const SECTIONS = {
  work: () => { if (report.operations.some((one) => one.work.intensity)) loadCharts(); showWork(); },
  time: showTime,
  grid: () => { loadCharts(); showMetric(); },
  noc: () => { if (report.traffic.length) loadCharts(); showTraffic(); },
  links: () => { if (report.links.length) loadCharts(); showLinks(); },
  pictures: () => { if (chip.pictures.length) loadCharts(); return showPictures(); },
};
const drawn = new Map();

function failed(error) {
  byId("state").textContent = `failed: ${error}`;
  document.body.dataset.failed = String(error);
}

/* Draw a section once. */
function draw(name) {
  const choice = chosenChips, place = byId(name);
  if (!drawn.has(name))
    drawn.set(name, Promise.resolve().then(SECTIONS[name]).then(() => {
      if (choice !== chosenChips) return;
      place.dataset.drawn = Math.round(performance.now());
      place.style.minHeight = "";
    }).catch(failed));
  return drawn.get(name);
}

/* Draw sections when they come near. */
const near = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) { near.unobserve(entry.target); draw(entry.target.id); }
}, {rootMargin: "200px"});

function show() {
  showSummary();
  showKernels();
  showFailures();
  showHazards();
  for (const section of FORMS.keys()) {
    if (!SECTIONS[section.id]) { section.style.minHeight = ""; continue; }
    near.unobserve(section);  /* what is observed anew is told where it is */
    near.observe(section);
  }
  window.onbeforeprint = () => Object.keys(SECTIONS).forEach(draw);
  byId("chip").value = DATA.chips.indexOf(chip);
  byId("state").textContent = `${count(chip.timeline.firsts.at(-1))} events`;
  document.body.dataset.ready = String(Math.round(performance.now()));
}

options(byId("chip"), several ? DATA.chips.map((one) => one.number) : []);
byId("chip").onchange = () => { try { chooseChip(Number(byId("chip").value)); } catch (error) { failed(error); } };
try { show(); } catch (error) { failed(error); }
