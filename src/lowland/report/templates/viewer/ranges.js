// A filter by a range of numbers or times: a histogram to drag over, and two fields.

const MOST_BINS = 48;
const HISTOGRAM_HEIGHT = 56; // pixels
const GRIP = 6; // pixels from the edge of a range, within which the edge is meant

/** A canvas as sharp as the screen, in units of its pixels on the page. */
function fitCanvas(canvas) {
  const ratio = Math.min(window.devicePixelRatio || 1, 3);
  canvas.width = Math.max(1, Math.round(canvas.clientWidth * ratio));
  canvas.height = Math.round(HISTOGRAM_HEIGHT * ratio);
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

/** Bins of a range of numbers: whole numbers of a small range have one each. */
class Bins {
  constructor(column) {
    const { low, high, isWhole } = rangeOf(column);
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
    const { low, high, isWhole } = rangeOf(this.column);
    const middle = isWhole ? Math.round((low + high) / 2) : (low + high) / 2;
    const shown = low === high ? [low] : [low, middle, high];
    for (const value of shown) ends.append(element("span", "", formatValue(this.column, value, 3)));
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
    const { missing } = rangeOf(this.column);
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
    const { low, high } = rangeOf(this.column);
    return this.from > low || this.to < high || !this.keepsMissing;
  }

  clear() {
    ({ low: this.from, high: this.to } = rangeOf(this.column));
    this.keepsMissing = true;
  }

  /** An empty field is not a bound; bounds in the wrong order are exchanged. */
  type(side, value) {
    const { low, high } = rangeOf(this.column);
    if (side === "from") this.from = Number.isNaN(value) ? low : value;
    else this.to = Number.isNaN(value) ? high : value;
    if (this.from > this.to) [this.from, this.to] = [this.to, this.from];
    this.noteMissing();
    this.onChange();
  }

  /** A range asks for known values; the box brings the missing ones back. */
  noteMissing() {
    const { low, high } = rangeOf(this.column);
    const isWhole = this.from <= low && this.to >= high;
    if (!this.wasRange || isWhole) this.keepsMissing = isWhole;
    this.wasRange = !isWhole;
  }

  /** Leave in the mask only what passes. */
  pass(mask) {
    const { values } = this.column;
    const { low, high } = rangeOf(this.column);
    // A typed 2.9 means the value that is shown as 2.9, however many bits it has.
    const asStored = values instanceof Float32Array ? Math.fround : Number;
    const from = this.from <= low ? -Infinity : asStored(this.from);
    const to = this.to >= high ? Infinity : asStored(this.to);
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
    const { low, high, isWhole } = rangeOf(this.column);
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
    const { low, high } = rangeOf(this.column);
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
