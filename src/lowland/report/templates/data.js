// The points of the page, unpacked from JSON: payload.py describes the format.

const ARRAYS = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, f4: Float32Array, f8: Float64Array };

function unpack(text, kind) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return new ARRAYS[kind](bytes.buffer);
}

function shortNumber(value, digits = 5) {
  if (Number.isNaN(value)) return "missing";
  return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(digits)));
}

/** A label of few values or of names: code 0 is missing, code c has the name names[c - 1]. */
class CategoryColumn {
  constructor(packed) {
    this.name = packed.name;
    this.kind = "category";
    this.names = [packed.missing, ...packed.names];
    this.codes = unpack(packed.codes, "u" + packed.bytes);
  }
  text(point) {
    return this.names[this.codes[point]];
  }
}

/** A label of many numbers, colored from low to high; `isTrust` where 1 is best. */
class NumberColumn {
  constructor(packed, isTrust = false) {
    this.name = packed.name;
    this.kind = "number";
    this.isTrust = isTrust;
    this.values = unpack(packed.values, "f" + packed.bytes);
    this.low = packed.low;
    this.high = packed.high;
    // Differences in the last percent are not worth a color.
    if (isTrust) this.low = Math.min(this.low, this.high - 0.1);
  }
  text(point) {
    return shortNumber(this.values[point]);
  }
}

function makeColumn(packed) {
  return packed.kind === "category" ? new CategoryColumn(packed) : new NumberColumn(packed);
}

/** The same shuffle on every visit: in random order, no category hides the others. */
function shuffledOrder(n) {
  const order = Uint32Array.from({ length: n }, (_, i) => i);
  let state = 12345;
  for (let i = n - 1; i > 0; i--) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const j = Math.floor((state / 4294967296) * (i + 1));
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}

const COPIED = 0.12; // of a side: what a view shows of the copies of a torus

/** One map: x, y, z of each point, centered, the largest coordinate being 1. */
class Cloud {
  constructor(packed, n, order) {
    this.title = packed.title;
    this.n = n;
    this.order = order;
    this.dimensions = packed.dimensions;
    this.positions = this.spread(unpack(packed.coordinates, "f4"));
    this.measures = packed.measures.map((measure) => new NumberColumn(measure, true));
    this.clusters = new CategoryColumn(packed.clusters);
    this.names = packed.names ?? [];
    this.origin = packed.origin;
    this.reach = packed.reach;
    this.torus = packed.torus;
    this.extent = this.measureExtent();
  }

  /** How far the copies of a torus lie from it: in each direction that has a side, both ways. */
  get copies() {
    if (!this.torus) return [];
    const [right, up = 0] = this.torus.sides;
    const steps = [-1, 0, 1].flatMap((x) => (up ? [-1, 0, 1] : [0]).map((y) => [x * right, y * up]));
    return steps.filter(([x, y]) => x || y);
  }

  /** Three coordinates for every point; a map of one dimension gets a height that means nothing. */
  spread(coordinates) {
    const d = this.dimensions;
    const positions = new Float32Array(3 * this.n);
    for (let i = 0; i < this.n; i++) {
      for (let axis = 0; axis < d; axis++) positions[3 * i + axis] = coordinates[d * i + axis];
      if (d === 1) positions[3 * i + 1] = (this.order[i] / this.n) * 2 - 1;
    }
    return positions;
  }

  /** Half the width and height that a view has to show; in three dimensions, the radius. */
  measureExtent() {
    const p = this.positions;
    const reach = [1e-6, 1e-6];
    for (let i = 0; i < 3 * this.n; i += 3) {
      const radius = this.dimensions === 3 ? Math.hypot(p[i], p[i + 1], p[i + 2]) : 0;
      reach[0] = Math.max(reach[0], Math.abs(p[i]), radius);
      reach[1] = Math.max(reach[1], Math.abs(p[i + 1]), radius);
    }
    this.torus?.sides.forEach((side, axis) => {
      const low = this.torus.low[axis];
      reach[axis] = Math.max(-low, low + side) + COPIED * side;
    });
    return reach;
  }
}

/** Everything the page knows about its points. */
class Points {
  constructor(packed) {
    this.n = packed.points;
    this.ids = packed.ids.texts ?? unpack(packed.ids.numbers, "f8");
    this.columns = packed.columns.map(makeColumn);
    this.firstColor = packed.color;
    const order = shuffledOrder(this.n);
    this.clouds = packed.maps.map((map) => new Cloud(map, this.n, order));
  }

  id(point) {
    return String(this.ids[point]);
  }

  /** Name and value of all that is known about a point. */
  describe(point) {
    const facts = this.columns.map((column) => [column.name, column.text(point)]);
    for (const cloud of this.clouds) {
      const where = this.clouds.length > 1 ? `${cloud.title}: ` : "";
      for (const column of [...cloud.measures, cloud.clusters]) {
        facts.push([where + column.name.replaceAll("_", " "), column.text(point)]);
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
    for (let i = 0; i < this.n; i++) {
      const texts = [this.id(i), ...this.columns.map((column) => column.text(i))];
      found[i] = texts.some((entry) => entry.toLowerCase().includes(wanted)) ? 1 : 0;
    }
    return found;
  }
}
