// From a column to a color for each point, and to the entries of a legend.

const MOST_ENTRIES = 20;
const SHADES = 255; // of a ramp; the slot after them is that of missing values

function parseColor(text) {
  const value = parseInt(text.trim().slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

/** The colors of the style sheet, which depends on whether the page is light or dark. */
class Theme {
  constructor() {
    const style = getComputedStyle(document.documentElement);
    const colors = (name) => style.getPropertyValue(name).split(",").map(parseColor);
    this.categories = colors("--categories");
    this.ramp = colors("--ramp");
    this.trust = colors("--trust");
    this.kinds = ["fine", "misplaced", "torn", "pressed"].map((kind) => colors(`--kind-${kind}`)[0]);
    [this.plain] = colors("--accent");
    [this.missing] = colors("--missing");
    [this.paper] = colors("--paper");
    this.ink = style.getPropertyValue("--ink").trim();
    this.faint = style.getPropertyValue("--faint").trim();
  }
}

function cssColor([red, green, blue]) {
  return `rgb(${red}, ${green}, ${blue})`;
}

/**
 * Every coloring has a slot for each point and a color for each slot, so that a million points are
 * colored by looking up.
 */
class Coloring {
  constructor(entries, colors, makeSlots) {
    this.entries = entries; // of the legend, one for each of the first slots
    this.colors = colors;
    this.makeSlots = makeSlots;
  }

  /** Made when they are first asked for: a panel far down the page may never be looked at. */
  get slots() {
    return (this.made ??= this.makeSlots());
  }

  colorOf(point) {
    return this.colors[this.slots[point]];
  }

  /** How many points each entry has, of those that are chosen (all if null). */
  counts(chosen) {
    const counts = new Uint32Array(256);
    const { slots } = this;
    for (let i = 0; i < slots.length; i++) if (!chosen || chosen[i]) counts[slots[i]]++;
    return counts;
  }
}

/** A slot for each of the largest categories; the rarest of many share one. */
class CategoryColoring extends Coloring {
  constructor(column, theme) {
    const counts = new Uint32Array(column.names.length);
    for (const code of column.codes) counts[code]++;
    let codes = [...counts.keys()].filter((code) => code > 0 && counts[code] > 0);
    if (codes.length > MOST_ENTRIES) {
      const largest = codes.sort((a, b) => counts[b] - counts[a]).slice(0, MOST_ENTRIES - 1);
      codes = largest.sort((a, b) => a - b);
    }
    const entries = codes.map((code, slot) => ({
      label: column.names[code],
      color: theme[column.palette]?.[code - 1] ?? theme.categories[slot % theme.categories.length],
    }));
    const slotOfCode = new Uint8Array(column.names.length).fill(255);
    codes.forEach((code, slot) => (slotOfCode[code] = slot));
    CategoryColoring.addRest(entries, slotOfCode, counts, column, theme);
    super(entries, entries.map((entry) => entry.color), () => {
      const { codes: all } = column;
      const slots = new Uint8Array(all.length);
      for (let i = 0; i < slots.length; i++) slots[i] = slotOfCode[all[i]];
      return slots;
    });
    this.column = column;
  }

  /** Grey entries at the end: other categories, and missing ones. */
  static addRest(entries, slotOfCode, counts, column, theme) {
    const others = [...counts.keys()].filter((code) => code > 0 && counts[code] && slotOfCode[code] === 255);
    if (others.length) {
      others.forEach((code) => (slotOfCode[code] = entries.length));
      entries.push({ label: `${others.length} others`, color: theme.missing });
    }
    if (counts[0]) {
      slotOfCode[0] = entries.length;
      entries.push({ label: column.names[0], color: theme.missing });
    }
  }
}

function between(stops, share) {
  const place = share * (stops.length - 1);
  const left = Math.min(Math.floor(place), stops.length - 2);
  return stops[left].map((value, channel) => Math.round(value + (stops[left + 1][channel] - value) * (place - left)));
}

/** The shade of each value: 0 at low and below, SHADES - 1 at high and above, SHADES if missing. */
function shadesOf(values, low, high) {
  const shades = new Uint8Array(values.length);
  const factor = (SHADES - 1) / (high - low || 1);
  for (let i = 0; i < shades.length; i++) {
    const place = (values[i] - low) * factor;
    shades[i] = place !== place ? SHADES : place <= 0 ? 0 : place >= SHADES - 1 ? SHADES - 1 : place + 0.5;
  }
  return shades;
}

/** A color between low and high; beyond them, the last. */
class NumberColoring extends Coloring {
  constructor(column, theme) {
    const stops = column.isTrust ? theme.trust : theme.ramp;
    const colors = Array.from({ length: SHADES }, (_, shade) => between(stops, shade / (SHADES - 1)));
    super([], [...colors, theme.missing], () => shadesOf(column.values, column.low, column.high));
    this.column = column;
    this.stops = stops;
  }
}

function makeColoring(column, theme, n) {
  if (!column) return new Coloring([], [theme.plain], () => new Uint8Array(n));
  if (column.makeColoring) return column.makeColoring(theme, n);
  return column.kind === "category" ? new CategoryColoring(column, theme) : new NumberColoring(column, theme);
}

/** Red, green, blue and alpha 0 as the bytes of one number. */
function colorBytes([red, green, blue]) {
  return red | (green << 8) | (blue << 16);
}

/** Colors in the order of painting; alpha is 0 for hidden and `dimmed` for unselected points. */
function fillColors(target, order, coloring, visible, selection, dimmed) {
  const { slots } = coloring;
  const table = slots && Uint32Array.from(coloring.colors, colorBytes);
  const [full, pale] = [0xff000000, dimmed << 24];
  for (let place = 0; place < target.length; place++) {
    const point = order[place];
    const alpha = !visible[point] ? 0 : selection && !selection[point] ? pale : full;
    target[place] = (slots ? table[slots[point]] : colorBytes(coloring.colorOf(point))) | alpha;
  }
}
