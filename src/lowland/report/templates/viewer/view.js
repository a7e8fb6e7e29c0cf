// How a map is seen: shift, zoom and, in three dimensions, rotation.

const MOST_ZOOM = 2000;
const LEAST_ZOOM = 0.2;
const MARGIN = 0.92; // of the panel, that the map fills at zoom 1

function multiply(a, b) {
  const product = new Float32Array(9);
  for (let row = 0; row < 3; row++)
    for (let column = 0; column < 3; column++)
      for (let k = 0; k < 3; k++) product[3 * row + column] += a[3 * row + k] * b[3 * k + column];
  return product;
}

function turn(aroundX, aroundY) {
  const [cx, sx, cy, sy] = [Math.cos(aroundX), Math.sin(aroundX), Math.cos(aroundY), Math.sin(aroundY)];
  return multiply([1, 0, 0, 0, cx, -sx, 0, sx, cx], [cy, 0, sy, 0, 1, 0, -sy, 0, cy]);
}

class View {
  constructor(cloud) {
    this.cloud = cloud;
    this.width = this.height = 1;
    this.reset();
  }

  reset() {
    this.center = [0, 0];
    this.zoom = 1;
    this.rotation = this.cloud.dimensions === 3 ? turn(0.4, -0.6) : turn(0, 0);
    this.flatRotation = null;
  }

  /** Pixels per unit along x and y; a map of one dimension is only stretched along x. */
  get scale() {
    const [reachX, reachY] = this.cloud.extent;
    const perX = (MARGIN * this.width) / (2 * reachX);
    const perY = (MARGIN * this.height) / (2 * reachY);
    if (this.cloud.dimensions === 1) return [perX * this.zoom, 0.5 * perY];
    const both = Math.min(perX, perY) * this.zoom;
    return [both, both];
  }

  /** x and y of all points, after rotation in three dimensions. */
  get flat() {
    const { coordinates: p, stride, n } = this.cloud;
    if (stride === 2) return p;
    if (this.flatRotation === this.rotation) return this.flatPositions;
    const flat = new Float32Array(2 * n);
    const [a, b, c, d, e, f] = this.rotation;
    for (let i = 0; i < n; i++) {
      const [x, y, z] = [p[3 * i], p[3 * i + 1], p[3 * i + 2]];
      flat[2 * i] = a * x + b * y + c * z;
      flat[2 * i + 1] = d * x + e * y + f * z;
    }
    this.flatPositions = flat;
    this.flatRotation = this.rotation;
    return flat;
  }

  toScreen(x, y) {
    const [scaleX, scaleY] = this.scale;
    return [this.width / 2 + (x - this.center[0]) * scaleX, this.height / 2 - (y - this.center[1]) * scaleY];
  }

  toMap(left, top) {
    const [scaleX, scaleY] = this.scale;
    return [this.center[0] + (left - this.width / 2) / scaleX, this.center[1] - (top - this.height / 2) / scaleY];
  }

  pan(right, down) {
    const [scaleX, scaleY] = this.scale;
    this.center[0] -= right / scaleX;
    if (this.cloud.dimensions > 1) this.center[1] += down / scaleY;
  }

  /** The place under the cursor stays under it. */
  zoomAt(left, top, factor) {
    const before = this.toMap(left, top);
    this.zoom = Math.min(Math.max(this.zoom * factor, LEAST_ZOOM), MOST_ZOOM);
    const after = this.toMap(left, top);
    this.center[0] += before[0] - after[0];
    this.center[1] += before[1] - after[1];
  }

  rotate(right, down) {
    this.rotation = multiply(turn(down * 0.008, right * 0.008), this.rotation);
  }
}
