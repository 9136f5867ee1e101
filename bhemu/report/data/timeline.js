"use strict";
/* Timelines on canvases: only rows that can be seen are drawn, however many events there are.

   A column of pixels shows the event that takes most of it, so a picture of all costs as much as one of a few clocks.
   Events of a track are sorted by their begin; they lie one after the other, but for a few short ones within a longer. */

const LABELS = 190, AXIS = 26, RIGHT = 14;
const SHORTEST = 0.002;  /* clocks that can be shown: rounds that share a clock are parts of it */
const OVERLAP = 4;       /* events that begin before a time and are looked at */
const LOOKED_AT = 16;    /* events of a column that are compared */
const NAMED = 56;        /* pixels from which on an event is named in its row */

class Events {
  constructor(told, columns) {
    this.tracks = told.tracks;
    this.firsts = told.firsts;
    this.texts = told.texts;
    this.most = told.most;
    Object.assign(this, columns);
  }

  /* Number of the first event of a track that begins after a time. */
  after(track, time, low = this.firsts[track]) {
    let high = this.firsts[track + 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.begin[middle] <= time) low = middle + 1; else high = middle;
    }
    return low;
  }

  end(event) { return this.begin[event] + this.length[event]; }

  /* For each of `width` columns between two times the event that takes most of it; -1: none. */
  columns(track, from, to, width) {
    const chosen = new Int32Array(width).fill(-1), pixel = (to - from) / width;
    const start = this.firsts[track], stop = this.firsts[track + 1];
    let next = this.after(track, from);
    for (let x = 0, same; x < width; x = same) {
      const left = from + x * pixel, right = left + pixel;
      let best = -1, most = 0;
      const weigh = (event) => {
        const share = Math.min(this.end(event), right) - Math.max(this.begin[event], left);
        if (share > most || (best < 0 && this.begin[event] >= left)) { most = share; best = event; }
      };
      for (let event = next - 1; event >= Math.max(start, next - OVERLAP); event--) weigh(event);
      if (next < stop && this.begin[next] < right) {
        const later = this.after(track, right, next), step = Math.max(1, Math.floor((later - next) / LOOKED_AT));
        for (let event = next; event < later; event += step) weigh(event);
        next = later;
        same = x + 1;
      } else {  /* Nothing begins here: up to the next event, or the end of this one, columns are the same. */
        const until = Math.min(next < stop ? this.begin[next] : Infinity, best < 0 ? Infinity : this.end(best));
        same = Math.min(Math.max(Math.floor((until - from) / pixel), x + 1), width);
      }
      chosen.fill(best, x, same);
    }
    return chosen;
  }
}

/* A step of 1, 2 or 5 times a power of ten, so that about `most` of them lie between two times. */
function stepOf(length, most) {
  const rough = length / most, ten = 10 ** Math.floor(Math.log10(rough));
  return ten * [1, 2, 5, 10].find((times) => times * ten >= rough);
}

/* Rows of lanes by time. `rows()` gives [{name, lanes: [track or null]}]; `zoom(from, to)` is called when the reader asks for
   other times, `choose(row, time)` when a row is clicked; without a time at its name. */
class TimePicture {
  constructor(place, {height, most, rows, zoom, all, choose}) {
    Object.assign(this, {place, height, most, rows, zoom, all, choose, dragged: null, marked: null});
    this.canvas = document.createElement("canvas");
    this.canvas.tabIndex = 0;
    this.tip = document.createElement("div");
    this.tip.className = "tip";
    this.tip.hidden = true;
    this.space = document.createElement("div");
    place.classList.add("time-picture");
    place.replaceChildren(this.canvas, this.space, this.tip);
    place.onscroll = () => this.later();
    this.canvas.onpointerdown = (e) => this.press(e);
    this.canvas.onpointermove = (e) => this.move(e);
    this.canvas.onpointerup = (e) => this.release(e);
    this.canvas.onpointerleave = () => { this.tip.hidden = true; };
    this.canvas.ondblclick = () => this.all();
    this.canvas.onkeydown = (e) => this.key(e);
    this.canvas.addEventListener("wheel", (e) => this.wheel(e), {passive: false});
    new ResizeObserver(() => this.later()).observe(place);
  }

  show(events, range) {
    Object.assign(this, {events, range, shown: this.rows()});
    this.later();
  }

  /* Draw a line at a time. */
  mark(time) {
    this.marked = time;
    this.later();
  }

  later() {
    if (this.waiting || !this.events) return;
    this.waiting = requestAnimationFrame(() => { this.waiting = 0; this.draw(); });
  }

  get width() { return Math.max(this.place.clientWidth - LABELS - RIGHT, 100); }
  timeAt(x) { return this.range.from + (x - LABELS) / this.width * (this.range.to - this.range.from); }
  rowAt(y) { return Math.floor((y - AXIS + this.place.scrollTop) / this.height); }

  draw() {
    const whole = this.shown.length * this.height, seen = Math.min(whole, this.most) + AXIS;
    const width = this.place.clientWidth, dense = window.devicePixelRatio || 1;
    this.place.style.height = `${seen + 2}px`;
    this.place.style.minHeight = 0;
    this.space.style.height = `${whole + AXIS - seen}px`;
    if (this.canvas.width !== Math.round(width * dense) || this.canvas.height !== Math.round(seen * dense)) {
      this.canvas.width = Math.round(width * dense);
      this.canvas.height = Math.round(seen * dense);
      this.canvas.style.width = `${width}px`;
      this.canvas.style.height = `${seen}px`;
    }
    const on = this.canvas.getContext("2d");
    on.setTransform(dense, 0, 0, dense, 0, 0);
    on.clearRect(0, 0, width, seen);
    on.font = "11px system-ui, sans-serif";
    on.textBaseline = "middle";
    this.drawAxis(on, seen);
    on.save();
    on.beginPath();
    on.rect(0, AXIS, width, seen - AXIS);
    on.clip();
    const first = Math.floor(this.place.scrollTop / this.height);
    for (let i = first; i < this.shown.length; i++) {
      const y = AXIS + i * this.height - this.place.scrollTop;
      if (y > seen) break;
      this.drawRow(on, this.shown[i], y);
    }
    on.restore();
    if (this.marked >= this.range.from && this.marked <= this.range.to && this.marked !== null) {
      on.fillStyle = "#111";
      on.fillRect(Math.round(LABELS + (this.marked - this.range.from) / (this.range.to - this.range.from) * this.width), AXIS - 5, 1, seen);
    }
    if (this.dragged) {
      on.fillStyle = "#37474f33";
      on.fillRect(Math.min(this.dragged.x, this.dragged.to), AXIS, Math.abs(this.dragged.to - this.dragged.x), seen);
    }
  }

  drawAxis(on, bottom) {
    const {from, to} = this.range, step = stepOf(to - from, this.width / 110);
    const places = Math.max(0, -Math.floor(Math.log10(step)));
    on.textAlign = "center";
    for (let time = Math.ceil(from / step) * step; time <= to; time += step) {
      const x = LABELS + (time - from) / (to - from) * this.width;
      on.fillStyle = "#e4e8ea";
      on.fillRect(Math.round(x), AXIS - 5, 1, bottom);
      on.fillStyle = "#5b6b74";
      on.fillText(time.toLocaleString("en", {minimumFractionDigits: places, maximumFractionDigits: places}), x, AXIS / 2 - 2);
    }
  }

  drawRow(on, row, y) {
    on.textAlign = "right";
    on.fillStyle = "#1c2730";
    on.fillText(row.name, LABELS - 8, y + this.height / 2);
    const gap = row.lanes.length > 1 ? 0 : 3, lane = (this.height - 2 * (row.lanes.length > 1) - gap) / row.lanes.length;
    row.lanes.forEach((track, i) => {
      if (track !== null) this.drawLane(on, track, y + i * lane + gap / 2, lane - (row.lanes.length > 1 ? 0 : 1));
    });
  }

  drawLane(on, track, y, height) {
    const events = this.events, chosen = events.columns(track, this.range.from, this.range.to, Math.floor(this.width));
    on.textAlign = "left";
    for (let x = 0, same; x < chosen.length; x = same) {
      const event = chosen[x];
      for (same = x + 1; same < chosen.length && chosen[same] === event; same++);
      if (event < 0) continue;
      const wide = same - x;
      if (events.most[track]) { this.drawLevel(on, track, event, LABELS + x, wide, y, height); continue; }
      if (wide < 4)  /* short events of a kind are one bar */
        while (same < chosen.length && chosen[same] >= 0 && events.kind[chosen[same]] === events.kind[event] &&
               chosen[same] !== chosen[same + 3]) same++;
      on.fillStyle = COLOURS[events.kind[event]];
      on.fillRect(LABELS + x, y, same - x, height);
      if (wide < 4) continue;
      on.fillStyle = "#ffffffaa";
      on.fillRect(LABELS + x, y, 1, height);
      if (wide < NAMED || height < 14) continue;
      on.save();
      on.beginPath();
      on.rect(LABELS + x, y, wide - 3, height);
      on.clip();
      on.fillStyle = "#111";
      on.fillText(events.texts[events.text[event]].replace(" | ", ", "), LABELS + x + 4, y + height / 2);
      on.restore();
    }
  }

  /* A step: a bar as high as the level, and a line where it is 0. */
  drawLevel(on, track, event, x, wide, y, height) {
    const text = this.events.texts[this.events.text[event]], level = parseInt(text, 10);
    const high = Math.max(Math.min(level / this.events.most[track], 1) * height, 1);
    on.fillStyle = COLOURS[this.events.kind[event]];
    on.fillRect(x, y + height - high, wide, high);
    if (wide < 12 || !level) return;
    on.fillStyle = high > 0.7 * height ? "#fff" : "#111";
    on.fillText(level, x + 3, y + height / 2);
  }

  /* What is at a place: text for the reader, or nothing. */
  told(x, y) {
    const row = this.shown[this.rowAt(y)];
    if (!row || x < LABELS || y < AXIS) return null;
    const inside = (y - AXIS + this.place.scrollTop) % this.height;
    const track = row.lanes[Math.min(Math.floor(inside / this.height * row.lanes.length), row.lanes.length - 1)];
    if (track === null) return null;
    const pixel = (this.range.to - this.range.from) / this.width, from = this.timeAt(x) - pixel / 2;
    const [event] = this.events.columns(track, from, from + pixel, 1);
    if (event < 0) return null;
    const [tile, name] = this.events.tracks[track], begun = this.events.after(track, from + pixel) - this.events.after(track, from);
    const lines = [tile ? `tile ${tile}, ${name}` : name, ...this.events.texts[this.events.text[event]].split(" | ")];
    lines.push(`clock ${this.events.begin[event].toFixed(3)}, ${this.events.length[event].toFixed(3)} long`);
    if (begun > 1) lines.push(`the longest of ${begun} events in this column`);
    return lines;
  }

  press(e) {
    if (e.offsetX < LABELS || e.button) { this.dragged = null; return; }
    this.dragged = {x: e.offsetX, to: e.offsetX};
    this.canvas.setPointerCapture(e.pointerId);
  }

  move(e) {
    if (this.dragged) { this.dragged.to = Math.max(e.offsetX, LABELS); this.later(); }
    const lines = this.dragged ? null : this.told(e.offsetX, e.offsetY);
    this.tip.hidden = lines === null;
    if (lines === null) return;
    this.tip.textContent = lines.join("\n");
    this.tip.style.left = `${Math.min(e.clientX + 14, window.innerWidth - this.tip.offsetWidth - 8)}px`;
    this.tip.style.top = `${Math.min(e.clientY + 14, window.innerHeight - this.tip.offsetHeight - 8)}px`;
  }

  release(e) {
    const dragged = this.dragged;
    this.dragged = null;
    if (dragged && Math.abs(dragged.to - dragged.x) > 3)
      this.zoom(this.timeAt(Math.min(dragged.x, dragged.to)), this.timeAt(Math.max(dragged.x, dragged.to)));
    else if (this.choose && this.shown[this.rowAt(e.offsetY)]) this.choose(this.rowAt(e.offsetY), dragged ? this.timeAt(dragged.to) : null);
    this.later();
  }

  /* Show `times` as much around a place, or move by a part of what is shown. */
  around(x, times) {
    const centre = this.timeAt(x), {from, to} = this.range;
    this.zoom(centre - (centre - from) * times, centre + (to - centre) * times);
  }

  by(part) {
    const move = part * (this.range.to - this.range.from);
    this.zoom(this.range.from + move, this.range.to + move);
  }

  wheel(e) {
    if (!e.ctrlKey && !e.shiftKey) return;  /* the page scrolls */
    e.preventDefault();
    if (e.ctrlKey) this.around(e.offsetX, 1.2 ** Math.sign(e.deltaY)); else this.by(0.1 * Math.sign(e.deltaY || e.deltaX));
  }

  key(e) {
    const centre = LABELS + this.width / 2;
    const does = {ArrowLeft: () => this.by(-0.2), ArrowRight: () => this.by(0.2), "+": () => this.around(centre, 0.5),
                  "-": () => this.around(centre, 2), Home: this.all}[e.key];
    if (does) { e.preventDefault(); does(); }
  }
}
