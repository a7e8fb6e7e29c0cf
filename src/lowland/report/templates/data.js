// The points of the page, unpacked from base64: payload.py and arrays.py describe the format.

const ARRAYS = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, f4: Float32Array, f8: Float64Array };
const WHOLE_FLOAT32 = 2 ** 24; // whole numbers up to here are exact in a Float32Array
const PLACE_STEPS = 2 ** 24 - 1; // of a coordinate

/** Bytes of a base64 text; recent browsers have a decoder that is ten times as fast as atob. */
function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

/** A long array has an element of its own, and #3 stands for that of number 3. */
function unpack(text, kind) {
  const packed = text[0] === "#" ? document.getElementById(`array-${text.slice(1)}`).textContent : text;
  return new ARRAYS[kind](fromBase64(packed).buffer);
}

/** Numbers as they are, or codes c for offset + (c - 1) step, 0 for missing. */
function unpackNumbers(packed) {
  if (packed.codes === undefined) return unpack(packed.values, "f" + packed.bytes);
  const { offset, step } = packed;
  const codes = unpack(packed.codes, "u" + packed.bytes);
  const largest = Math.abs(offset) + 2 ** (8 * packed.bytes) * step;
  const values = Number.isInteger(step) && largest > WHOLE_FLOAT32 ? new Float64Array(codes.length) : new Float32Array(codes.length);
  for (let i = 0; i < codes.length; i++) values[i] = codes[i] ? offset + (codes[i] - 1) * step : NaN;
  return values;
}

/** Coordinates from -1 to 1, three bytes each. */
function unpackPlaces(text) {
  const bytes = unpack(text, "u1");
  const places = new Float32Array(bytes.length / 3);
  for (let i = 0, at = 0; i < places.length; i++, at += 3) {
    places[i] = ((bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16)) * 2) / PLACE_STEPS - 1;
  }
  return places;
}

function shortNumber(value, digits = 5) {
  if (Number.isNaN(value)) return "missing";
  return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(digits)));
}

/** A label of few values or of names: code 0 is missing, code c has the name names[c - 1]. */
class CategoryColumn {
  constructor(packed) {
    this.packed = packed;
    this.name = packed.name;
    this.kind = "category";
    this.names = [packed.missing, ...packed.names];
  }
  /** Unpacked when they are first asked for: not every column is looked at. */
  get codes() {
    return (this.unpacked ??= unpack(this.packed.codes, "u" + this.packed.bytes));
  }
  text(point) {
    return this.names[this.codes[point]];
  }
  /** For each point, whether its text contains the wanted one, which is in lower case. */
  matches(wanted) {
    const fits = this.names.map((name) => name.toLowerCase().includes(wanted));
    return (point) => fits[this.codes[point]];
  }
}

/** A label of many numbers, colored from low to high; `isTrust` where 1 is best. */
class NumberColumn {
  constructor(packed, isTrust = false) {
    this.packed = packed;
    this.name = packed.name;
    this.kind = "number";
    this.isTrust = isTrust;
    this.low = packed.low;
    this.high = packed.high;
    // Differences in the last percent are not worth a color.
    if (isTrust) this.low = Math.min(this.low, this.high - 0.1);
    // Codes are no more precise than their step.
    this.decimals = packed.step < 1 ? Math.ceil(-Math.log10(packed.step)) : 20;
  }
  get values() {
    return (this.unpacked ??= unpackNumbers(this.packed));
  }
  text(point) {
    const value = this.values[point];
    return shortNumber(this.decimals < 20 ? Number(value.toFixed(this.decimals)) : value);
  }
  /** Texts of numbers are only made if one of them could fit. */
  matches(wanted) {
    if (!/^[-+.:e\d\s]+$/.test(wanted) && !"missing".includes(wanted)) return () => false;
    return (point) => this.text(point).toLowerCase().includes(wanted);
  }
}

/** Least and largest value that is not missing or infinite, how many are missing, and if all are whole. */
function rangeOf(column) {
  if (column.measuredRange) return column.measuredRange;
  let [low, high, missing, isWhole] = [Infinity, -Infinity, 0, true];
  for (const value of column.values) {
    if (value !== value) missing++;
    else if (value - value === 0) {
      if (value < low) low = value;
      if (value > high) high = value;
      if (isWhole && value !== Math.round(value)) isWhole = false;
    }
  }
  if (low > high) [low, high] = [0, 1];
  return (column.measuredRange = { low, high, missing, isWhole });
}

/** A value of a column of numbers or times, in few characters. */
function formatValue(column, value, digits) {
  return column.format ? column.format(value) : shortNumber(value, digits);
}

const DAY = 86400000; // milliseconds

/** Dates and times in milliseconds since 1970; those without a zone are shown as they were given. */
class TimeColumn extends NumberColumn {
  constructor(packed) {
    super(packed);
    this.kind = "time";
    this.step = packed.step;
    this.zone = packed.zone;
    this.decimals = 20;
  }
  text(point) {
    const value = this.values[point];
    return Number.isNaN(value) ? "missing" : this.exact(value) + (this.zone && ` ${this.zone}`);
  }
  /** ISO 8601 with as many digits as the column has: 2024-03-31, 2024-03-31 12:30:05. */
  exact(value) {
    const text = new Date(value).toISOString().replace("T", " ").replace("Z", "");
    return this.step >= DAY ? text.slice(0, -13) : this.step >= 1000 ? text.slice(0, -4) : text;
  }
  /** As much of it as tells the ends of the range apart. */
  format(value) {
    const text = new Date(Math.round(value)).toISOString().replace("T", " ");
    const [day, clock] = text.split(" ");
    const { low, high } = rangeOf(this);
    const span = high - low;
    if (span > 2000 * DAY) return day.slice(0, -6);
    if (span > 90 * DAY) return day.slice(0, -3);
    if (span > 3 * DAY) return day;
    if (new Date(low).getUTCDate() !== new Date(high).getUTCDate()) return `${day.slice(-5)} ${clock.slice(0, 5)}`;
    return span > 600000 ? clock.slice(0, 5) : span > 10000 ? clock.slice(0, 8) : clock.slice(0, 12);
  }
}

function makeColumn(packed) {
  if (packed.kind === "category") return new CategoryColumn(packed);
  return packed.kind === "time" ? new TimeColumn(packed) : new NumberColumn(packed);
}

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

/** Everything the page knows about its points. */
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

  /** The name of a column of one map, which tells the map if there are several. */
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
