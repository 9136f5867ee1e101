"use strict";
/* Several chips: a table and lanes of all of them, and the choice of the one that the other sections show. */

function showSystem() {
  const table = byId("system"), operations = byId("shared-operations"), percent = (part) => `${Math.round(100 * part)} %`;
  byId("chip-choice").hidden = !several;
  if (!several) return;
  row(table, ["chip", "tiles", "core rounds", "blocked", "polling, of all rounds", "words of the coprocessor", "NoC read", "NoC written", "operations"], true);
  for (const one of DATA.system) {
    const rounds = one.running + one.blocked, part = (n) => percent(n / Math.max(CORES.length * one.rounds, 1));
    const index = DATA.chips.findIndex((other) => other.number === one.chip);
    const made = row(table, [`chip ${one.chip}`, one.tiles, rounds, part(one.blocked), part(one.polling), one.words, one.read,
                             one.written, one.operations.length]);
    if (index < 0) continue;
    made.classList.add("choice");
    made.classList.toggle("shown", DATA.chips[index] === chip);
    made.onclick = () => chooseChip(index);
  }
  if (!DATA.operations.length) return;
  row(operations, ["operation on chips", "begins", "chips", "fewest clocks", "on chip", "most clocks", "on chip"], true);
  for (const one of DATA.operations.slice(0, 50)) {
    const [[fewest, least], [most, longest]] = [one.clocks[0], one.clocks.at(-1)];
    row(operations, [one.name, one.begin, one.clocks.length, least, String(fewest), longest, String(most)]);
  }
  if (DATA.operations.length > 50) operations.after(element("p", `${DATA.operations.length - 50} more`, "muted"));
}

/* Operations of all chips as events, a track for each chip. */
function systemEvents() {
  const texts = [], numbers = new Map(), firsts = [0], begin = [], length = [], text = [];
  const numberOf = (name) => { if (!numbers.has(name)) { numbers.set(name, texts.length); texts.push(name); } return numbers.get(name); };
  for (const one of DATA.system) {
    for (const [name, from, to] of one.operations) { begin.push(from); length.push(to - from); text.push(numberOf(name)); }
    firsts.push(begin.length);
  }
  const tracks = DATA.system.map((one) => ["", `chip ${one.chip}`]);
  return new Events({tracks, firsts, texts, most: tracks.map(() => 0)},
                    {begin, length, text, kind: new Uint8Array(begin.length)});
}

/* Lanes of all chips above those of the chosen one; a click chooses another. */
function showSystemTime(common) {
  const place = byId("system-time");
  if (!several || !DATA.operations.length) { byId("system-lanes").hidden = true; return null; }
  const lanes = () => DATA.system.map((one, track) => ({name: `chip ${one.chip}`, lanes: [track]}));
  const choose = (row) => {
    const index = DATA.chips.findIndex((one) => one.number === DATA.system[row].chip);
    if (index >= 0) chooseChip(index);
  };
  const picture = new TimePicture(place, {height: 18, most: 18 * 16, rows: lanes, choose, ...common});
  picture.show(systemEvents(), range);
  return picture;
}

/* Draw all sections anew for a chip. */
function chooseChip(index) {
  if (window.Plotly && Plotly.purge) document.querySelectorAll(".js-plotly-plot").forEach((one) => Plotly.purge(one));
  chip = DATA.chips[index];
  report = {...DATA.shared, ...chip.report};
  chosenChips += 1;
  drawn.clear();
  for (const [section, form] of FORMS) {
    section.style.minHeight = `${section.offsetHeight}px`;  /* so that what the reader looks at stays where it is */
    section.innerHTML = form;
    delete section.dataset.drawn;
  }
  show();
}
