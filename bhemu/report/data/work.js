"use strict";
/* What operations and kernels did in a clock, against what the units can do. */

const rate = (n) => n === 0 ? "" : n >= 100 ? count(n) : n.toPrecision(3);
const share = (part) => `${(100 * part).toFixed(part < 0.1 ? 1 : 0)} %`;

function showResources(name, work, chosen) {
  byId("work-table").querySelectorAll("tr.chosen").forEach((one) => one.classList.remove("chosen"));
  chosen.classList.add("chosen");
  const peaks = new Map(report.peaks.map((peak) => [peak.name, peak])), table = element("table");
  row(table, ["", "amount", "", "in a clock of a tile", "peak", "at least, clocks", "share", "the peak is from"], true);
  for (const one of work.resources) {
    const {value, unit, source, is_shared: shared} = peaks.get(one.name);
    row(table, [one.name, one.amount, unit.startsWith("datums") ? "bytes" : unit, rate(one.per_clock) + (shared ? " (of all)" : ""),
                `${rate(value)} ${unit}`, one.least_clocks, share(one.share), source]);
  }
  byId("work-chosen").replaceChildren(element("p", `${name}: ${count(work.clocks)} clocks on ${work.tiles} tiles`), table);
}

/* Arithmetic of a tile in a clock by arithmetic for each byte, below what NoC and units allow. */
function showRoofline() {
  const known = report.operations.filter((one) => one.work.intensity);
  if (!known.length) { byId("roofline").append(element("p", "no operation has both arithmetic and NoC requests that were recorded", "muted")); return; }
  const peak = (name) => report.peaks.find((one) => one.name === name).value, bytes = 2 * (peak("NoC 0 in") + peak("NoC 1 in"));
  const at = known.map((one) => one.work.intensity), least = Math.min(...at, 0.1), most = Math.max(...at, 1000);
  const roof = (name, unit) => ({mode: "lines", name, x: [least, unit / bytes, most], y: [least * bytes, unit, unit], hoverinfo: "name"});
  const points = {mode: "markers+text", name: "operations", x: at, y: known.map((one) => one.work.arithmetic_per_clock),
                  text: known.map((one) => one.name.length > 40 ? `${one.name.slice(0, 38)}...` : one.name), textposition: "bottom center",
                  marker: {size: 10, color: "#c0504d"}, hovertemplate: "%{text}<br>%{y:.1f} in a clock<br>%{x:.2f} for each byte<extra></extra>"};
  Plotly.newPlot("roofline", [roof("matrix unit", peak("matrix unit")), roof("vector unit", peak("vector unit")), points],
                 {height: 320, margin: {t: 10, b: 45, l: 60}, legend: {orientation: "h", y: 1.1},
                  xaxis: {type: "log", title: {text: `arithmetic for each NoC byte (slope: ${bytes} bytes a clock, both NoCs, in and out)`}},
                  yaxis: {type: "log", title: {text: "arithmetic of a tile in a clock"}}}, {responsive: true, displayModeBar: false});
}

function showWork() {
  showRoofline();
  const table = byId("work-table");
  row(table, ["", "core", "clocks", "tiles", "arithmetic of a tile in a clock", "for each NoC byte", "nearest bound", "then"], true);
  const shown = [...report.operations.map((one) => [`operation ${one.name}`, "", one.work]),
                 ...report.kernels.map((one) => [one.name, one.core, one.work])].filter(([, , work]) => work.resources.length);
  if (!shown.length) table.replaceChildren();
  shown.forEach(([name, core, work], i) => {
    const [first, ...others] = work.resources;
    const made = row(table, [name.length > 70 ? `${name.slice(0, 68)}...` : name, core, work.clocks, work.tiles,
                             rate(work.arithmetic_per_clock), work.intensity === null ? "" : rate(work.intensity),
                             `${first.name} ${share(first.share)}`,
                             others.slice(0, 2).map((one) => `${one.name} ${share(one.share)}`).join(", ")]);
    made.classList.add("choice");
    made.onclick = () => showResources(`${name} ${core}`, work, made);
    if (i === 0) showResources(name, work, made);
  });
}
