// Columns of the page, unpacked from base64: payload.py describes the format.

const ARRAYS = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, f4: Float32Array, f8: Float64Array };
const WHOLE_FLOAT32 = 2 ** 24; // whole numbers up to here are exact in a Float32Array
const PLACE_STEPS = 2 ** 24 - 1; // of a coordinate

/** Bytes of a base64 text; recent browsers have a decoder for it. */
function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

/** A long array has a separate element; #3 refers to the one with number 3. */
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
  /** As many digits as distinguish the ends of the range. */
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
