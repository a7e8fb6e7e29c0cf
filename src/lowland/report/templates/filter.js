// Filters: the points outside of a range of a column, or of some categories, are hidden.

const MOST_BINS = 48;
const HISTOGRAM_HEIGHT = 56; // pixels
const GRIP = 6; // pixels from the edge of a range, within which the edge is meant

/** Bins of a range of numbers: whole numbers of a small range have one each. */
class Bins {
  constructor(column) {
    const { low, high, isWhole } = column.range;
    const step = column.kind === "time" ? column.step : 1;
    const values = (high - low) / step + 1;
    const hasOneEach = isWhole && values <= MOST_BINS;
    this.count = hasOneEach ? Math.round(values) : MOST_BINS;
    [this.low, this.high] = hasOneEach ? [low - step / 2, high + step / 2] : [low, high];
    if (!(this.high > this.low)) [this.low, this.high] = [low - 0.5, high + 0.5];
    this.ofPoints = this.assign(column.values);
    this.all = this.fill(null);
  }

  /** The bin of each point, 255 if its value is missing. */
  assign(values) {
    const bins = new Uint8Array(values.length);
    const factor = this.count / (this.high - this.low);
    for (let i = 0; i < bins.length; i++) {
      const place = (values[i] - this.low) * factor;
      bins[i] = place !== place ? 255 : place < 0 ? 0 : place >= this.count ? this.count - 1 : place;
    }
    return bins;
  }

  fill(chosen) {
    const counts = new Uint32Array(256);
    const { ofPoints } = this;
    for (let i = 0; i < ofPoints.length; i++) if (!chosen || chosen[i]) counts[ofPoints[i]]++;
    return counts;
  }
}

/** Numbers or times from one value to another, chosen in a histogram or typed. */
class RangeFilter {
  constructor(column, name, onChange) {
    Object.assign(this, { column, name, onChange });
    this.bins = new Bins(column);
    this.keepsMissing = true;
    this.body = element("div");
    this.canvas = element("canvas", "histogram");
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", `Histogram of ${name}; drag to choose a range`);
    this.canvas.title = "Drag to choose a range, click to choose all";
    this.body.append(this.canvas, this.makeEnds(), this.makeInputs(), ...this.makeMissing());
    this.clear();
    this.listen();
  }

  makeEnds() {
    const ends = element("div", "ends");
    const { low, high } = this.column.range;
    const shown = low === high ? [low] : [low, (low + high) / 2, high];
    for (const value of shown) ends.append(element("span", "", this.column.format(value, 3)));
    return ends;
  }

  makeInputs() {
    const place = element("div", "bounds");
    this.inputs = ["from", "to"].map((side) => {
      const input = element("input");
      const isDay = this.column.step >= DAY;
      input.type = this.column.kind !== "time" ? "number" : isDay ? "date" : "datetime-local";
      input.step = input.type === "datetime-local" ? Math.min(this.column.step / 1000, 1) : isDay ? 1 : "any";
      input.setAttribute("aria-label", `${this.name}, ${side}`);
      input.addEventListener("change", () => this.type(side, input.valueAsNumber));
      const label = element("label", "", side);
      label.append(input);
      place.append(label);
      return input;
    });
    return place;
  }

  makeMissing() {
    const { missing } = this.column.range;
    if (!missing) return [];
    this.missingBox = element("input");
    this.missingBox.type = "checkbox";
    this.missingBox.addEventListener("change", () => {
      this.keepsMissing = this.missingBox.checked;
      this.onChange();
    });
    const label = element("label", "missing");
    label.append(this.missingBox, `and ${missing} missing`);
    return [label];
  }

  get isActive() {
    const { low, high } = this.column.range;
    return this.from > low || this.to < high || !this.keepsMissing;
  }

  clear() {
    ({ low: this.from, high: this.to } = this.column.range);
    this.keepsMissing = true;
  }

  /** An empty field is no bound; bounds in the wrong order are exchanged. */
  type(side, value) {
    const { low, high } = this.column.range;
    if (side === "from") this.from = Number.isNaN(value) ? low : value;
    else this.to = Number.isNaN(value) ? high : value;
    if (this.from > this.to) [this.from, this.to] = [this.to, this.from];
    this.noteMissing();
    this.onChange();
  }

  /** A range asks for known values; the box brings the missing ones back. */
  noteMissing() {
    const { low, high } = this.column.range;
    const isWhole = this.from <= low && this.to >= high;
    if (!this.wasRange || isWhole) this.keepsMissing = isWhole;
    this.wasRange = !isWhole;
  }

  /** Leave in the mask only what passes. */
  pass(mask) {
    const { values, range } = this.column;
    const from = this.from <= range.low ? -Infinity : this.from;
    const to = this.to >= range.high ? Infinity : this.to;
    const missing = this.keepsMissing ? 1 : 0;
    for (let i = 0; i < mask.length; i++) {
      const value = values[i];
      if (!(value >= from && value <= to)) mask[i] &= value !== value ? missing : 0;
    }
  }

  listen() {
    const { canvas } = this;
    const along = (event) => event.clientX - canvas.getBoundingClientRect().left;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      canvas.setPointerCapture(event.pointerId);
      const x = along(event);
      const [left, right] = [this.from, this.to].map((value) => this.toPixel(value));
      const isLeft = Math.abs(x - left) <= Math.abs(x - right);
      this.drag = { start: x, left, right, mode: "new" };
      if (!this.isActive) return;
      if (Math.min(Math.abs(x - left), Math.abs(x - right)) <= GRIP) this.drag.mode = isLeft ? "left" : "right";
      else if (x > left && x < right) this.drag.mode = "move";
    });
    canvas.addEventListener("pointermove", (event) => this.drag && this.brush(along(event)));
    canvas.addEventListener("pointerup", (event) => {
      if (this.drag && !this.drag.hasMoved && this.drag.mode === "new") this.clear();
      this.drag = null;
      this.noteMissing();
      this.onChange();
      event.preventDefault();
    });
    canvas.addEventListener("pointercancel", () => (this.drag = null));
  }

  brush(x) {
    const { start, left, right, mode } = this.drag;
    if (Math.abs(x - start) > 2) this.drag.hasMoved = true;
    if (!this.drag.hasMoved) return;
    const ends = { new: [start, x], left: [x, right], right: [left, x], move: [left + x - start, right + x - start] };
    const [one, other] = ends[mode];
    this.from = this.toValue(Math.min(one, other), Math.ceil);
    this.to = this.toValue(Math.max(one, other), Math.floor);
    if (this.from > this.to) [this.from, this.to] = [this.to, this.from];
    this.noteMissing();
    this.onChange();
  }

  toPixel(value) {
    const share = (value - this.bins.low) / (this.bins.high - this.bins.low);
    return Math.min(Math.max(share, 0), 1) * this.canvas.clientWidth;
  }

  /** Whole numbers and days stay whole; other numbers get no more digits than a pixel is worth. */
  toValue(x, round) {
    const { low, high, isWhole } = this.column.range;
    const span = this.bins.high - this.bins.low;
    const value = this.bins.low + (x / this.canvas.clientWidth) * span;
    const step = this.column.kind === "time" ? this.column.step : isWhole ? 1 : 10 ** Math.floor(Math.log10(span / 500));
    const rounded = Number((round(value / step) * step).toPrecision(15));
    return Math.min(Math.max(rounded, low), high);
  }

  show(visible, theme) {
    this.shown = this.bins.fill(visible);
    const context = fitCanvas(this.canvas);
    const [width, height] = [this.canvas.clientWidth, HISTOGRAM_HEIGHT];
    const each = width / this.bins.count;
    const tallest = this.bins.all.subarray(0, this.bins.count).reduce((most, count) => Math.max(most, count), 1);
    const paintBars = (counts, color) => {
      context.fillStyle = color;
      for (let bin = 0; bin < this.bins.count; bin++) {
        if (!counts[bin]) continue;
        const tall = Math.max((counts[bin] / tallest) * (height - 2), 1);
        context.fillRect(bin * each + 0.5, height - tall, Math.max(each - 1, 1), tall);
      }
    };
    paintBars(this.bins.all, cssColor(theme.missing));
    paintBars(this.shown, cssColor(theme.plain));
    if (this.isActive) this.showRange(context, theme, height);
    this.showInputs();
  }

  showRange(context, theme, height) {
    const { low, high } = this.column.range;
    const left = this.from <= low ? 0 : this.toPixel(this.from);
    const right = this.to >= high ? this.canvas.clientWidth : this.toPixel(this.to);
    context.globalAlpha = 0.12;
    context.fillStyle = theme.ink;
    context.fillRect(left, 0, right - left, height);
    context.globalAlpha = 1;
    for (const x of [left, right]) context.fillRect(Math.min(Math.max(x - 1, 0), this.canvas.clientWidth - 2), 0, 2, height);
  }

  showInputs() {
    const text = (value) => {
      if (this.column.kind !== "time") return shortNumber(value, 6);
      return this.column.exact(value).replace(" ", "T");
    };
    [this.inputs[0].value, this.inputs[1].value] = [text(this.from), text(this.to)];
    if (this.missingBox) this.missingBox.checked = this.keepsMissing;
  }
}

/** A bar for each category of the legend; clicking hides and shows, dragging over several chooses them. */
class CategoryFilter {
  constructor(column, name, onChange, coloring) {
    Object.assign(this, { column, name, onChange, coloring });
    this.off = new Set();
    this.all = coloring.counts(null);
    this.body = element("div", "bars");
    this.rows = coloring.entries.map((entry, slot) => this.makeRow(entry, slot));
    this.body.append(...this.rows.map((row) => row.button));
  }

  makeRow(entry, slot) {
    const button = element("button", "bar");
    button.type = "button";
    button.title = "Click to hide or show; drag over several to see only these";
    const [whole, shown] = [element("i", "whole"), element("i", "shown")];
    const count = element("span", "count");
    button.append(whole, shown, element("span", "label", entry.label), count);
    button.addEventListener("click", () => {
      if (!this.off.delete(slot)) this.off.add(slot);
      this.onChange();
    });
    button.addEventListener("pointerdown", () => (this.pressed = slot));
    button.addEventListener("pointerup", () => this.choose(this.pressed, slot));
    return { button, whole, shown, count };
  }

  /** Only the categories from one row to another; a click on one row is not meant. */
  choose(one, other) {
    this.pressed = undefined;
    if (one === undefined || one === other) return;
    const [first, last] = [Math.min(one, other), Math.max(one, other)];
    this.off = new Set(this.rows.map((_, slot) => slot).filter((slot) => slot < first || slot > last));
    this.onChange();
  }

  get isActive() {
    return this.off.size > 0;
  }

  clear() {
    this.off.clear();
  }

  pass(mask) {
    if (!this.off.size) return;
    const { slots } = this.coloring;
    const isOn = Uint8Array.from({ length: 256 }, (_, slot) => (this.off.has(slot) ? 0 : 1));
    for (let i = 0; i < mask.length; i++) mask[i] &= isOn[slots[i]];
  }

  show(visible) {
    const shown = this.coloring.counts(visible);
    const most = this.all.reduce((sum, count) => Math.max(sum, count), 1);
    this.rows.forEach((row, slot) => {
      row.button.setAttribute("aria-pressed", String(!this.off.has(slot)));
      row.whole.style.width = `${(100 * this.all[slot]) / most}%`;
      row.shown.style.width = `${(100 * shown[slot]) / most}%`;
      row.count.textContent = shown[slot];
    });
  }
}

/** A canvas as sharp as the screen, in units of its pixels on the page. */
function fitCanvas(canvas) {
  const ratio = Math.min(window.devicePixelRatio || 1, 3);
  canvas.width = Math.max(1, Math.round(canvas.clientWidth * ratio));
  canvas.height = Math.round(HISTOGRAM_HEIGHT * ratio);
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

/** All filters of the page; a point is shown if it passes each of them. */
class Filters {
  constructor(app) {
    this.app = app;
    this.list = [];
    this.passed = new Uint8Array(app.points.n).fill(1);
    this.choices = app.points.filterColumns();
    const select = byId("filter-column");
    this.choices.forEach(([name], number) => {
      const option = element("option", "", name);
      option.value = number;
      select.append(option);
    });
    select.addEventListener("change", () => {
      if (select.value) this.add(Number(select.value));
      select.value = "";
    });
    byId("filter-clear").addEventListener("click", () => this.clear());
    window.addEventListener("resize", () => this.show());
  }

  /** A second filter of a column would only repeat the first. */
  add(number) {
    const [name, column] = this.choices[number];
    const known = this.list.find((filter) => filter.column === column);
    if (known) {
      known.card.querySelector("input, button.bar")?.focus();
      return;
    }
    const onChange = () => this.ask();
    const { app } = this;
    const filter =
      column.kind === "category"
        ? new CategoryFilter(column, name, onChange, app.coloringOf(column))
        : new RangeFilter(column, name, onChange);
    filter.card = this.makeCard(filter);
    this.list.push(filter);
    byId("filter-list").append(filter.card);
    this.show();
  }

  makeCard(filter) {
    const card = element("section", "filter");
    card.setAttribute("aria-label", `Filter by ${filter.name}`);
    const head = element("div", "head");
    filter.clearButton = element("button", "", "Clear");
    const remove = element("button", "", "×");
    for (const button of [filter.clearButton, remove]) button.type = "button";
    remove.setAttribute("aria-label", `Remove the filter by ${filter.name}`);
    filter.clearButton.addEventListener("click", () => {
      filter.clear();
      this.ask();
    });
    remove.addEventListener("click", () => {
      this.list = this.list.filter((other) => other !== filter);
      card.remove();
      byId("filter-column").focus();
      this.ask();
    });
    head.append(element("strong", "", filter.name), filter.clearButton, remove);
    card.append(head, filter.body);
    return card;
  }

  clear() {
    for (const filter of this.list) filter.clear();
    this.ask();
  }

  /** Apply at the next frame, however fast the pointer moves. */
  ask() {
    if (this.isAsked) return;
    this.isAsked = true;
    requestAnimationFrame(() => {
      this.isAsked = false;
      this.passed.fill(1);
      for (const filter of this.list) if (filter.isActive) filter.pass(this.passed);
      this.app.recolor();
    });
  }

  /** The histograms, and how many points are left. */
  show() {
    const { visible, theme, points } = this.app;
    const isActive = this.list.some((filter) => filter.isActive);
    for (const filter of this.list) {
      filter.show(visible, theme);
      filter.clearButton.hidden = !filter.isActive;
    }
    byId("filter-state").hidden = !isActive;
    if (isActive) byId("filter-count").textContent = `${countOf(visible)} of ${points.n} points shown`;
  }
}

function countOf(mask) {
  let count = 0;
  for (let i = 0; i < mask.length; i++) count += mask[i];
  return count;
}
