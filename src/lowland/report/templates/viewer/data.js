// The points of the page: where they lie in each map, and all that is known about them.

/** The same shuffle on every visit: in random order, no category hides the others. */
function shuffledOrder(n) {
  const order = new Uint32Array(n);
  for (let i = 0; i < n; i++) order[i] = i;
  let state = 12345;
  for (let i = n - 1; i > 0; i--) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const j = Math.floor((state / 4294967296) * (i + 1));
    const kept = order[i];
    order[i] = order[j];
    order[j] = kept;
  }
  return order;
}

const COPIED = 0.12; // of a side: what a view shows of the copies of a torus

/** One map: `stride` coordinates of each point, centered, the largest being 1. */
class Cloud {
  constructor(packed, n, order) {
    this.title = packed.title;
    this.n = n;
    this.order = order;
    this.dimensions = packed.dimensions;
    this.stride = Math.max(this.dimensions, 2);
    const places = packed.places ?? unpackPlaces(packed.coordinates);
    this.coordinates = this.dimensions === 1 ? this.spread(places) : places;
    this.measures = packed.measures.map((measure) => new NumberColumn(measure, true));
    this.clusters = new CategoryColumn(packed.clusters);
    this.names = packed.names ?? [];
    this.origin = packed.origin;
    this.reach = packed.reach;
    this.torus = packed.torus;
    this.extent = this.measureExtent();
  }

  /** Three coordinates for each point, whatever the dimensions are; made when a layer asks for them. */
  get positions() {
    if (this.stride === 3) return this.coordinates;
    if (this.threefold) return this.threefold;
    this.threefold = new Float32Array(3 * this.n);
    for (let i = 0; i < this.n; i++) {
      this.threefold[3 * i] = this.coordinates[2 * i];
      this.threefold[3 * i + 1] = this.coordinates[2 * i + 1];
    }
    return this.threefold;
  }

  /** The coordinates in the order of painting. */
  get ordered() {
    if (this.reordered) return this.reordered;
    const { coordinates, stride, order } = this;
    const ordered = new Float32Array(coordinates.length);
    for (let place = 0, at = 0; place < order.length; place++) {
      for (let k = 0, from = stride * order[place]; k < stride; k++) ordered[at++] = coordinates[from++];
    }
    return (this.reordered = ordered);
  }

  /** How far the copies of a torus lie from it: in each direction that has a side, both ways. */
  get copies() {
    if (!this.torus) return [];
    const [right, up = 0] = this.torus.sides;
    const steps = [-1, 0, 1].flatMap((x) => (up ? [-1, 0, 1] : [0]).map((y) => [x * right, y * up]));
    return steps.filter(([x, y]) => x || y);
  }

  /** A map of one dimension gets a height that means nothing. */
  spread(places) {
    const spread = new Float32Array(2 * this.n);
    for (let i = 0; i < this.n; i++) {
      spread[2 * i] = places[i];
      spread[2 * i + 1] = (this.order[i] / this.n) * 2 - 1;
    }
    return spread;
  }

  /** Half the width and height that a view has to show; in three dimensions, the radius. */
  measureExtent() {
    const { coordinates: p, stride } = this;
    let [reachX, reachY] = [1e-6, 1e-6];
    for (let i = 0; i < p.length; i += stride) {
      const radius = stride === 3 ? Math.sqrt(p[i] * p[i] + p[i + 1] * p[i + 1] + p[i + 2] * p[i + 2]) : 0;
      reachX = Math.max(reachX, Math.abs(p[i]), radius);
      reachY = Math.max(reachY, Math.abs(p[i + 1]), radius);
    }
    const reach = [reachX, reachY];
    this.torus?.sides.forEach((side, axis) => {
      const low = this.torus.low[axis];
      reach[axis] = Math.max(-low, low + side) + COPIED * side;
    });
    return reach;
  }
}

/** All data of the page about its points. */
class Points {
  constructor(packed) {
    this.n = packed.points;
    const { texts, numbers, first } = packed.ids;
    if (texts ?? numbers) this.ids = texts ?? unpackNumbers(numbers);
    this.firstId = first;
    this.columns = packed.columns.map(makeColumn);
    this.firstColor = packed.color;
    const order = shuffledOrder(this.n);
    this.clouds = packed.maps.map((map) => new Cloud(map, this.n, order));
  }

  id(point) {
    return String(this.ids ? this.ids[point] : this.firstId + point);
  }

  /** The name of a column of one map, which states the map if there are several. */
  nameIn(cloud, column) {
    const where = this.clouds.length > 1 ? `${cloud.title}: ` : "";
    return where + column.name.replaceAll("_", " ");
  }

  /** Every column by which points can be chosen, labels first: [name, column]. */
  filterColumns() {
    const labels = this.columns.map((column) => [column.name, column]);
    const ofMaps = this.clouds.flatMap((cloud) =>
      [cloud.clusters, ...cloud.measures, ...(cloud.trust?.columns ?? [])].map((column) => [this.nameIn(cloud, column), column]),
    );
    return [...labels, ...ofMaps];
  }

  /** Name and value of all that is known about a point. */
  describe(point) {
    const facts = this.columns.map((column) => [column.name, column.text(point)]);
    for (const cloud of this.clouds) {
      for (const column of [...cloud.measures, ...(cloud.trust?.columns ?? []), cloud.clusters]) {
        facts.push([this.nameIn(cloud, column), column.text(point)]);
      }
    }
    return facts;
  }

  /** The points whose id is the text; if there is none, whose id or label contains it. */
  find(text) {
    const wanted = text.trim().toLowerCase();
    const found = new Uint8Array(this.n);
    let exact = 0;
    for (let i = 0; i < this.n; i++) if (this.id(i).toLowerCase() === wanted) exact += found[i] = 1;
    if (exact) return found;
    const matches = this.columns.map((column) => column.matches(wanted));
    for (let i = 0; i < this.n; i++) {
      found[i] = this.id(i).toLowerCase().includes(wanted) || matches.some((fits) => fits(i)) ? 1 : 0;
    }
    return found;
  }
}
