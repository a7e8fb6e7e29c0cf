// Columns of the table without the labels, and how they differ between two groups of points.

/** Numbers of one column: as they are, or as codes of a list of levels whose last one is missing. */
class ValueColumn {
  constructor(packed) {
    this.name = packed.name;
    this.kind = "number";
    this.low = packed.low;
    this.high = packed.high;
    this.levels = packed.levels ? unpack(packed.levels, "f8") : null;
    if (this.levels) this.codes = unpack(packed.codes, "u1");
    else this.numbers = unpackNumbers(packed);
  }

  /** All numbers; those of codes are made when they are asked for first. */
  get values() {
    this.numbers ??= Float64Array.from(this.codes, (code) => this.levels[code]);
    return this.numbers;
  }

  at(point) {
    return this.levels ? this.levels[this.codes[point]] : this.numbers[point];
  }

  text(point) {
    return shortNumber(this.at(point));
  }
}

/** Count, mean and variance of the values inside and outside of a selection, in units of the column. */
class TwoSums {
  constructor(column, chosen) {
    this.unit = TwoSums.unitOf(column);
    this.count = [0, 0];
    this.sum = [0, 0];
    this.square = [0, 0];
    if (column.levels) this.addLevels(column, chosen);
    else this.addValues(column.values, chosen);
  }

  /** Scale and shift: neither huge numbers nor a large mean may spoil a difference. */
  static unitOf(column) {
    if (column.unit) return column.unit;
    const listed = column.levels ?? column.values;
    let [scale, sum, count] = [0, 0, 0];
    for (const value of listed) if (Number.isFinite(value)) scale = Math.max(scale, Math.abs(value));
    scale ||= 1;
    for (const value of listed) {
      if (!Number.isFinite(value)) continue;
      sum += value / scale;
      count++;
    }
    column.unit = { scale, shift: count ? sum / count : 0 };
    return column.unit;
  }

  /** Points of one level are counted first, which is several times faster than adding them. */
  addLevels({ codes, levels }, chosen) {
    const counts = new Uint32Array(512);
    for (let i = 0; i < codes.length; i++) counts[(chosen[i] << 8) | codes[i]]++;
    for (let code = 0; code < levels.length; code++) {
      this.add(0, levels[code], counts[256 | code]);
      this.add(1, levels[code], counts[code]);
    }
  }

  addValues(values, chosen) {
    for (let i = 0; i < values.length; i++) this.add(chosen[i] ? 0 : 1, values[i], 1);
  }

  add(side, value, times) {
    if (!times || !Number.isFinite(value)) return;
    const inUnits = value / this.unit.scale - this.unit.shift;
    this.count[side] += times;
    this.sum[side] += times * inUnits;
    this.square[side] += times * inUnits * inUnits;
  }

  /** In the numbers of the table. */
  mean(side) {
    return (this.sum[side] / this.count[side] + this.unit.shift) * this.unit.scale;
  }

  /** (mean inside - mean outside) / pooled standard deviation; null if there is nothing to compare. */
  get difference() {
    const [inside, outside] = this.count;
    if (!inside || !outside) return null;
    const [one, other] = [this.sum[0] / inside, this.sum[1] / outside];
    const within = this.square[0] - inside * one * one + this.square[1] - outside * other * other;
    return standardized(one - other, within, inside + outside);
  }
}

const EXACT = 1e-9; // below it, a difference or a deviation of numbers up to 2 is rounding

/** A difference in standard deviations; infinite if all values within each group are equal. */
function standardized(difference, within, count) {
  if (Math.abs(difference) < EXACT) return null;
  const deviation = count > 2 ? Math.sqrt(Math.max(within, 0) / (count - 2)) : 0;
  return deviation < EXACT ? Math.sign(difference) * Infinity : difference / deviation;
}

const FEWEST_PER_CATEGORY = 2; // mean number of points: a label with fewer is an id or a text
const MOST_PER_LABEL = 3;

/** The categories of a label whose shares differ most between the selection and the rest. */
function categoryDifferences(column, chosen) {
  const counts = [new Uint32Array(column.names.length), new Uint32Array(column.names.length)];
  for (let i = 0; i < chosen.length; i++) counts[chosen[i] ? 0 : 1][column.codes[i]]++;
  const totals = counts.map((some) => some.reduce((sum, value, code) => (code ? sum + value : sum), 0));
  const present = column.names.filter((_, code) => code && counts[0][code] + counts[1][code]).length;
  if (!totals[0] || !totals[1] || present * FEWEST_PER_CATEGORY > totals[0] + totals[1]) return [];
  const found = [];
  for (let code = 1; code < column.names.length; code++) {
    const [inside, outside] = [counts[0][code] / totals[0], counts[1][code] / totals[1]];
    const within = totals[0] * inside * (1 - inside) + totals[1] * outside * (1 - outside);
    const difference = standardized(inside - outside, within, totals[0] + totals[1]);
    if (difference === null) continue;
    const share = (value) => `${shortNumber(100 * value, 3)} %`;
    const name = `${column.name}: ${column.names[code]}`;
    found.push({ name, difference, inside: share(inside), outside: share(outside) });
  }
  // The second of two categories only mirrors the first.
  return largestFirst(found).slice(0, present === 2 ? 1 : MOST_PER_LABEL);
}

function numberDifference(name, column, chosen) {
  const sums = new TwoSums(column, chosen);
  const { difference } = sums;
  if (difference === null) return [];
  const means = (digits) => [0, 1].map((side) => formatValue(column, sums.mean(side), digits));
  let [inside, outside] = means(4);
  for (let digits = 5; inside === outside && digits < 10; digits++) [inside, outside] = means(digits);
  return [{ name, column, difference, inside, outside }];
}

function largestFirst(found) {
  return found.sort((a, b) => Math.abs(b.difference) - Math.abs(a.difference) || (a.difference < 0) - (b.difference < 0));
}

/** Everything that differs between the chosen points and the rest, largest difference first. */
function differencesOf(app, chosen) {
  const found = [];
  for (const column of app.points.columns) {
    if (column.kind === "category") found.push(...categoryDifferences(column, chosen));
    else found.push(...numberDifference(column.name, column, chosen));
  }
  for (const column of app.values) found.push(...numberDifference(column.name, column, chosen));
  for (const cloud of app.points.clouds) {
    const where = app.points.clouds.length > 1 ? `${cloud.title}: ` : "";
    for (const column of cloud.measures) {
      found.push(...numberDifference(where + column.name.replaceAll("_", " "), column, chosen));
    }
  }
  return largestFirst(found);
}
