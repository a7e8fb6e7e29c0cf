// Lines of equal density over a map of two dimensions.

const CONTOUR_CELLS = 256; // along the longer side of the map
const ENCLOSED = [0.1, 0.25, 0.5, 0.75, 0.95]; // shares of the points inside of the lines
const KERNEL_SHARE = 0.01; // of the points, under the smoothing kernel of the median point ...
const KERNEL_FEWEST = 2; // ... but at least so many times the root of their number, or lines are ragged
const FRAME_SAMPLE = 20000; // points, of which the frame of the density is found
const DENSITY_STEPS = 4096; // for finding the height of a line
const DENSITY_DEPTH = 12; // natural logarithms below the highest density; the rest counts as 0

/** Counts in a grid of square cells, with room for the kernel around it. */
class DensityGrid {
  constructor(cloud, chosen) {
    this.cloud = cloud;
    const [[lowX, highX], [lowY, highY]] = [0, 1].map((axis) => sideOf(cloud, chosen, axis));
    this.cell = Math.max(highX - lowX, highY - lowY, 1e-9) / CONTOUR_CELLS;
    this.inner = [highX - lowX, highY - lowY].map((side) => Math.max(1, Math.ceil(side / this.cell - 1e-6)));
    const [columns, rows] = this.inner;
    const [p, perUnit] = [cloud.coordinates, 1 / this.cell];
    this.counts = new Float32Array(columns * rows);
    this.total = this.outside = 0;
    for (let i = 0; i < cloud.n; i++) {
      if (!chosen[i]) continue;
      this.total++;
      const [x, y] = [(p[2 * i] - lowX) * perUnit, (p[2 * i + 1] - lowY) * perUnit];
      if (x < 0 || y < 0 || x > columns || y > rows) this.outside++;
      else this.counts[Math.min(y | 0, rows - 1) * columns + Math.min(x | 0, columns - 1)]++;
    }
    this.sigma = this.kernelWidth();
    this.margin = Math.ceil(3 * this.sigma) + 1;
    this.low = [lowX - this.margin * this.cell, lowY - this.margin * this.cell];
    [this.columns, this.rows] = this.inner.map((cells) => cells + 2 * this.margin);
  }

  /**
   * Standard deviation in cells: the kernel of the median point covers 1 % of the points, as for the
   * clusters, or more of few points. They are counted in boxes of 1, 2, 4, ... cells; between these, the count is a power law.
   */
  kernelWidth() {
    const wanted = Math.max(KERNEL_SHARE * this.total, KERNEL_FEWEST * Math.sqrt(this.total));
    let [columns, rows] = this.inner;
    let counts = this.counts;
    let [side, median] = [1, medianOfPoints(counts, this.total)];
    let [beforeSide, beforeMedian] = [side, median];
    while (median < wanted && (columns > 1 || rows > 1)) {
      const [half, halfRows] = [(columns + 1) >> 1, (rows + 1) >> 1];
      const coarser = new Float32Array(half * halfRows);
      for (let row = 0; row < rows; row++) {
        for (let column = 0; column < columns; column++) {
          coarser[(row >> 1) * half + (column >> 1)] += counts[row * columns + column];
        }
      }
      [counts, columns, rows] = [coarser, half, halfRows];
      [beforeSide, beforeMedian] = [side, median];
      [side, median] = [2 * side, medianOfPoints(counts, this.total)];
    }
    const rise = Math.log(median / beforeMedian);
    const share = rise > 0 ? Math.min(Math.max(Math.log(wanted / beforeMedian) / rise, 0), 1) : 1;
    // A Gaussian covers as many points as a box whose side is sqrt(4 pi) standard deviations.
    return Math.max((beforeSide * (side / beforeSide) ** share) / Math.sqrt(4 * Math.PI), 1);
  }

  /** The smoothed counts; beyond the edges of a torus lies its opposite side. */
  get density() {
    const { columns, rows, margin, counts } = this;
    const [inside, insideRows] = this.inner;
    const grid = new Float32Array(columns * rows);
    const wrap = (place, size) => (((place - margin) % size) + size) % size;
    for (let row = 0; row < rows; row++) {
      const isOut = row < margin || row >= margin + insideRows;
      if (isOut && !this.cloud.torus) continue;
      const from = wrap(row, insideRows) * inside;
      for (let column = 0; column < columns; column++) {
        if (!this.cloud.torus && (column < margin || column >= margin + inside)) continue;
        grid[row * columns + column] = counts[from + wrap(column, inside)];
      }
    }
    const weights = gaussianWeights(this.sigma);
    return smoothed(smoothed(grid, columns, rows, 1, columns, weights), rows, columns, columns, 1, weights);
  }
}

/** The period of a torus, or where the chosen points lie; far outliers would make the cells too large. */
function sideOf({ torus, coordinates: p, order, n }, chosen, axis) {
  if (torus) return [torus.low[axis], torus.low[axis] + torus.sides[axis]];
  const sample = new Float32Array(Math.min(n, FRAME_SAMPLE));
  let size = 0;
  for (let place = 0; place < n && size < FRAME_SAMPLE; place++) {
    if (chosen[order[place]]) sample[size++] = p[2 * order[place] + axis];
  }
  if (!size) return [-1, 1];
  const sorted = sample.subarray(0, size).sort();
  const [low, high] = [sorted[Math.floor(0.001 * size)], sorted[Math.ceil(0.999 * size) - 1]];
  const margin = 0.1 * (high - low);
  return [Math.max(low - margin, sorted[0]), Math.min(high + margin, sorted[size - 1])];
}

/** How many points share a box with the median point. */
function medianOfPoints(counts, total) {
  const occupied = counts.filter((count) => count > 0).sort();
  let seen = 0;
  for (const count of occupied) if ((seen += count) >= total / 2) return count;
  return 1;
}

function gaussianWeights(sigma) {
  const reach = Math.ceil(3 * sigma);
  const weights = Float32Array.from({ length: reach + 1 }, (_, k) => Math.exp(-0.5 * (k / sigma) ** 2));
  const sum = 2 * weights.reduce((all, weight) => all + weight, 0) - weights[0];
  return weights.map((weight) => weight / sum);
}

/** Along lines of `length` cells that are `step` apart in memory; the lines begin `next` apart. */
function smoothed(grid, length, lines, step, next, weights) {
  const result = new Float32Array(grid.length);
  const reach = weights.length - 1;
  for (let line = 0; line < lines; line++) {
    for (let place = 0; place < length; place++) {
      const value = grid[line * next + place * step];
      if (value === 0) continue;
      const [first, last] = [Math.max(place - reach, 0), Math.min(place + reach, length - 1)];
      for (let k = first; k <= last; k++) result[line * next + k * step] += value * weights[k < place ? place - k : k - place];
    }
  }
  return result;
}

/** Heights above which the given shares of the points lie. */
function enclosingLevels(grid, density) {
  const { columns, margin, counts, total } = grid;
  const [inside, insideRows] = grid.inner;
  let highest = 0;
  for (const value of density) if (value > highest) highest = value;
  const points = new Float64Array(DENSITY_STEPS + 1);
  points[0] = grid.outside;
  const stepOf = (value) => (1 + Math.log(Math.max(value / highest, 1e-30)) / DENSITY_DEPTH) * DENSITY_STEPS;
  for (let row = 0; row < insideRows; row++) {
    for (let column = 0; column < inside; column++) {
      const count = counts[row * inside + column];
      if (!count) continue;
      const value = density[(row + margin) * columns + column + margin];
      points[Math.max(Math.floor(stepOf(value)), 0)] += count;
    }
  }
  return ENCLOSED.map((share) => {
    let [step, above] = [DENSITY_STEPS, points[DENSITY_STEPS]];
    while (step > 0 && above < share * total) above += points[--step];
    return highest * Math.exp(DENSITY_DEPTH * (step / DENSITY_STEPS - 1));
  });
}

// Of a cell with corners 1 (bottom left), 2 (bottom right), 4 (top right) and 8 (top left) above the level,
// the pairs of sides that a line joins: 0 bottom, 1 right, 2 top, 3 left.
const CROSSINGS = [
  [], [3, 0], [0, 1], [3, 1], [1, 2], [3, 0, 1, 2], [0, 2], [3, 2],
  [2, 3], [2, 0], [0, 1, 2, 3], [2, 1], [1, 3], [1, 0], [0, 3], [],
];

/** Marching squares between the middles of the cells: one path in map coordinates. */
function isoline(grid, density, level) {
  const { columns, rows, cell, low, margin } = grid;
  const path = new Path2D();
  // The margin of a torus repeats what is inside.
  const edge = grid.cloud.torus ? margin : 0;
  const [lastColumn, lastRow] = [columns - 1 - edge, rows - 1 - edge];
  for (let row = edge; row < lastRow; row++) {
    for (let column = edge; column < lastColumn; column++) {
      const at = row * columns + column;
      const [a, b, c, d] = [density[at], density[at + 1], density[at + columns + 1], density[at + columns]];
      const corners = (a > level) | ((b > level) << 1) | ((c > level) << 2) | ((d > level) << 3);
      if (corners === 0 || corners === 15) continue;
      const [x, y] = [low[0] + (column + 0.5) * cell, low[1] + (row + 0.5) * cell];
      const sides = CROSSINGS[corners];
      for (let k = 0; k < sides.length; k++) {
        let [right, up] = [1, 1];
        if (sides[k] === 0) [right, up] = [(level - a) / (b - a), 0];
        else if (sides[k] === 1) up = (level - b) / (c - b);
        else if (sides[k] === 2) right = (level - d) / (c - d);
        else [right, up] = [0, (level - a) / (d - a)];
        if (k % 2) path.lineTo(x + right * cell, y + up * cell);
        else path.moveTo(x + right * cell, y + up * cell);
      }
    }
  }
  return path;
}

/** Above so many points, the lines wait until a change has come to rest. */
const CONTOURS_AT_ONCE = 200000;

/** A layer of the panels, and the button that shows and hides it. */
class Contours {
  constructor(app) {
    this.app = app;
    this.isOn = false;
    this.paths = new Map();
    app.layers.push(this);
    const button = byId("contours");
    const isFlat = app.points.clouds.some((cloud) => cloud.dimensions === 2);
    button.hidden = !isFlat;
    button.addEventListener("click", () => this.toggle());
  }

  toggle() {
    this.isOn = !this.isOn;
    byId("contours").setAttribute("aria-pressed", String(this.isOn));
    this.renew();
  }

  /** The points that are shown have changed. */
  forget() {
    if (this.app.points.n <= CONTOURS_AT_ONCE) this.renew();
    else {
      clearTimeout(this.waiting);
      this.waiting = setTimeout(() => this.renew(), REST);
    }
  }

  renew() {
    this.paths.clear();
    for (const panel of this.app.panels) if (panel.isReady) panel.paintOverlay();
    this.explain();
  }

  explain() {
    const note = byId("contours-note");
    note.hidden = !this.isOn;
    const shares = ENCLOSED.map((share) => Math.round(100 * share));
    const what = this.app.selection ? "selected points" : "points shown";
    note.textContent = `The lines enclose ${shares.slice(0, -1).join(", ")} and ${shares.at(-1)} % of the ${what}.`;
  }

  pathsOf(cloud) {
    if (!this.paths.has(cloud)) {
      const grid = new DensityGrid(cloud, this.app.shownSelection());
      const { density } = grid;
      const levels = grid.total > 1 ? enclosingLevels(grid, density) : [];
      this.paths.set(cloud, levels.map((level) => isoline(grid, density, level)));
    }
    return this.paths.get(cloud);
  }

  /** Only over the maps at the top of the page; the small ones below have something else to show. */
  paint(context, panel) {
    if (!this.isOn || panel.cloud.dimensions !== 2 || !panel.frame.closest(".stage")) return;
    const [left, top] = panel.view.toScreen(0, 0);
    const [perX, perY] = panel.view.scale;
    const toScreen = new DOMMatrix([perX, 0, 0, -perY, left, top]);
    context.lineCap = "round";
    this.pathsOf(panel.cloud).forEach((path, number) => {
      const line = new Path2D();
      line.addPath(path, toScreen);
      context.globalAlpha = 0.55;
      context.strokeStyle = cssColor(panel.theme.paper);
      context.lineWidth = 3;
      context.stroke(line);
      context.globalAlpha = 0.95 - (0.4 * number) / (ENCLOSED.length - 1);
      context.strokeStyle = panel.theme.ink;
      context.lineWidth = 1.2;
      context.stroke(line);
    });
  }
}
