// Which point is under the cursor, and which points are inside a lasso.

const BANDS = 1024; // of the height of a lasso

/** A grid over the flat positions: each cell lists its points. */
class GridIndex {
  constructor(flat) {
    this.flat = flat;
    const n = flat.length / 2;
    const side = (this.side = Math.max(1, Math.min(1024, Math.ceil(Math.sqrt(n)))));
    let [lowX, highX, lowY, highY] = [Infinity, -Infinity, Infinity, -Infinity];
    for (let i = 0; i < 2 * n; i += 2) {
      const [x, y] = [flat[i], flat[i + 1]];
      if (x < lowX) lowX = x;
      if (x > highX) highX = x;
      if (y < lowY) lowY = y;
      if (y > highY) highY = y;
    }
    [this.lowX, this.lowY] = [lowX, lowY];
    this.perX = highX > lowX ? side / (highX - lowX) : 0;
    this.perY = highY > lowY ? side / (highY - lowY) : 0;
    const cells = new Uint32Array(n);
    const starts = (this.starts = new Uint32Array(side * side + 1));
    for (let i = 0; i < n; i++) {
      const column = Math.min(((flat[2 * i] - lowX) * this.perX) | 0, side - 1);
      const row = Math.min(((flat[2 * i + 1] - lowY) * this.perY) | 0, side - 1);
      cells[i] = row * side + column;
      starts[cells[i] + 1]++;
    }
    for (let cell = 0; cell < side * side; cell++) starts[cell + 1] += starts[cell];
    const next = starts.slice();
    this.members = new Uint32Array(n);
    for (let i = 0; i < n; i++) this.members[next[cells[i]]++] = i;
  }

  along(value, low, per) {
    return Math.min(Math.max(Math.floor((value - low) * per), 0), this.side - 1);
  }

  /** The nearest visible point at most `reach` pixels away, or -1. */
  nearest(x, y, [scaleX, scaleY], reach, visible) {
    const [reachX, reachY] = [reach / scaleX, reach / scaleY];
    const [left, right] = [x - reachX, x + reachX].map((value) => this.along(value, this.lowX, this.perX));
    const [bottom, top] = [y - reachY, y + reachY].map((value) => this.along(value, this.lowY, this.perY));
    let [best, shortest] = [-1, reach * reach];
    for (let row = bottom; row <= top; row++) {
      const last = this.starts[row * this.side + right + 1];
      for (let k = this.starts[row * this.side + left]; k < last; k++) {
        const i = this.members[k];
        const [dx, dy] = [(this.flat[2 * i] - x) * scaleX, (this.flat[2 * i + 1] - y) * scaleY];
        const squared = dx * dx + dy * dy;
        if (squared < shortest && visible[i]) [best, shortest] = [i, squared];
      }
    }
    return best;
  }
}

/** The edges of a polygon by band of height, so that a point is compared with few of them. */
function bandedEdges(polygon, bottom, perBand) {
  const bands = Array.from({ length: BANDS }, () => []);
  for (let i = 0, j = polygon.length - 1; i < polygon.length; j = i++) {
    const [[x1, y1], [x2, y2]] = [polygon[j], polygon[i]];
    const [first, last] = [Math.min(y1, y2), Math.max(y1, y2)].map((y) =>
      Math.min(Math.floor((y - bottom) * perBand), BANDS - 1),
    );
    for (let band = first; band <= last; band++) bands[band].push(x1, y1, x2, y2);
  }
  return bands.map((edges) => Float64Array.from(edges));
}

/** Even-odd rule: a ray from an inside point crosses the outline an odd number of times. */
function isInside(edges, x, y) {
  let inside = false;
  for (let k = 0; k < edges.length; k += 4) {
    const [y1, y2] = [edges[k + 1], edges[k + 3]];
    if (y1 > y !== y2 > y && x < ((edges[k] - edges[k + 2]) * (y - y2)) / (y1 - y2) + edges[k + 2]) inside = !inside;
  }
  return inside;
}

/** 1 for each visible point inside the polygon, given in map coordinates. */
function pointsInside(flat, polygon, visible) {
  const xs = polygon.map(([x]) => x);
  const ys = polygon.map(([, y]) => y);
  const [left, right, bottom, top] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const perBand = top > bottom ? BANDS / (top - bottom) : 0;
  const bands = bandedEdges(polygon, bottom, perBand);
  const chosen = new Uint8Array(flat.length / 2);
  for (let i = 0; i < chosen.length; i++) {
    const [x, y] = [flat[2 * i], flat[2 * i + 1]];
    if (x < left || x > right || y < bottom || y > top || !visible[i]) continue;
    const band = Math.min(Math.floor((y - bottom) * perBand), BANDS - 1);
    chosen[i] = isInside(bands[band], x, y) ? 1 : 0;
  }
  return chosen;
}
