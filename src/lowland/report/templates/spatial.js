// Which point is under the cursor, and which points are inside a lasso.

/** A grid over the flat positions: each cell lists its points. */
class GridIndex {
  constructor(flat) {
    this.flat = flat;
    const n = flat.length / 2;
    this.side = Math.max(1, Math.min(512, Math.ceil(Math.sqrt(n))));
    [this.lowX, this.highX, this.lowY, this.highY] = [Infinity, -Infinity, Infinity, -Infinity];
    for (let i = 0; i < 2 * n; i += 2) {
      this.lowX = Math.min(this.lowX, flat[i]);
      this.highX = Math.max(this.highX, flat[i]);
      this.lowY = Math.min(this.lowY, flat[i + 1]);
      this.highY = Math.max(this.highY, flat[i + 1]);
    }
    this.starts = new Uint32Array(this.side * this.side + 1);
    for (let i = 0; i < n; i++) this.starts[this.cellOf(i) + 1]++;
    for (let cell = 0; cell < this.side * this.side; cell++) this.starts[cell + 1] += this.starts[cell];
    this.members = new Uint32Array(n);
    const next = this.starts.slice();
    for (let i = 0; i < n; i++) this.members[next[this.cellOf(i)]++] = i;
  }

  along(value, low, high) {
    const share = high > low ? (value - low) / (high - low) : 0;
    return Math.min(Math.max(Math.floor(share * this.side), 0), this.side - 1);
  }

  cellOf(point) {
    const column = this.along(this.flat[2 * point], this.lowX, this.highX);
    return this.along(this.flat[2 * point + 1], this.lowY, this.highY) * this.side + column;
  }

  /** The nearest visible point at most `reach` pixels away, or -1. */
  nearest(x, y, [scaleX, scaleY], reach, isVisible) {
    const [reachX, reachY] = [reach / scaleX, reach / scaleY];
    const [left, right] = [x - reachX, x + reachX].map((value) => this.along(value, this.lowX, this.highX));
    const [bottom, top] = [y - reachY, y + reachY].map((value) => this.along(value, this.lowY, this.highY));
    let [best, shortest] = [-1, reach * reach];
    for (let row = bottom; row <= top; row++) {
      const first = this.starts[row * this.side + left];
      const last = this.starts[row * this.side + right + 1];
      for (let k = first; k < last; k++) {
        const i = this.members[k];
        const squared = ((this.flat[2 * i] - x) * scaleX) ** 2 + ((this.flat[2 * i + 1] - y) * scaleY) ** 2;
        if (squared < shortest && isVisible(i)) [best, shortest] = [i, squared];
      }
    }
    return best;
  }
}

/** Even-odd rule: a ray from an inside point crosses the outline an odd number of times. */
function isInside(polygon, x, y) {
  let inside = false;
  for (let i = 0, j = polygon.length - 1; i < polygon.length; j = i++) {
    const [[xi, yi], [xj, yj]] = [polygon[i], polygon[j]];
    if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) inside = !inside;
  }
  return inside;
}

/** 1 for each visible point inside the polygon, given in map coordinates. */
function pointsInside(flat, polygon, isVisible) {
  const xs = polygon.map(([x]) => x);
  const ys = polygon.map(([, y]) => y);
  const [left, right, bottom, top] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const chosen = new Uint8Array(flat.length / 2);
  for (let i = 0; i < chosen.length; i++) {
    const [x, y] = [flat[2 * i], flat[2 * i + 1]];
    if (x < left || x > right || y < bottom || y > top || !isVisible(i)) continue;
    chosen[i] = isInside(polygon, x, y) ? 1 : 0;
  }
  return chosen;
}
