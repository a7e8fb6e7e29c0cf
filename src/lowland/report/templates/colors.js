// From a column to a color for each point, and to the entries of a legend.

const MOST_ENTRIES = 20;

function parseColor(text) {
  const value = parseInt(text.trim().slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

/** The colors of the style sheet, which knows whether the page is light or dark. */
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
  }
}

function cssColor([red, green, blue]) {
  return `rgb(${red}, ${green}, ${blue})`;
}

/** A slot (entry of the legend) for each point; the rarest of many categories share one. */
class CategoryColoring {
  constructor(column, theme) {
    this.column = column;
    const counts = new Uint32Array(column.names.length);
    for (const code of column.codes) counts[code]++;
    let codes = [...counts.keys()].filter((code) => code > 0 && counts[code] > 0);
    if (codes.length > MOST_ENTRIES) {
      const largest = codes.sort((a, b) => counts[b] - counts[a]).slice(0, MOST_ENTRIES - 1);
      codes = largest.sort((a, b) => a - b);
    }
    this.entries = codes.map((code, slot) => ({
      label: column.names[code],
      color: theme[column.palette]?.[code - 1] ?? theme.categories[slot % theme.categories.length],
    }));
    const slotOfCode = new Uint8Array(column.names.length).fill(255);
    codes.forEach((code, slot) => (slotOfCode[code] = slot));
    this.addRest(slotOfCode, counts, theme);
    this.slots = Uint8Array.from(column.codes, (code) => slotOfCode[code]);
  }

  /** Grey entries at the end: other categories, and missing ones. */
  addRest(slotOfCode, counts, theme) {
    const others = [...counts.keys()].filter((code) => code > 0 && counts[code] && slotOfCode[code] === 255);
    if (others.length) {
      others.forEach((code) => (slotOfCode[code] = this.entries.length));
      this.entries.push({ label: `${others.length} others`, color: theme.missing });
    }
    if (counts[0]) {
      slotOfCode[0] = this.entries.length;
      this.entries.push({ label: this.column.names[0], color: theme.missing });
    }
  }

  colorOf(point) {
    return this.entries[this.slots[point]].color;
  }

  /** How many points each entry has, of those that are chosen (all if null). */
  counts(chosen) {
    const counts = this.entries.map(() => 0);
    for (let i = 0; i < this.slots.length; i++) if (!chosen || chosen[i]) counts[this.slots[i]]++;
    return counts;
  }
}

/** A color between low and high; beyond them, the last. */
class NumberColoring {
  constructor(column, theme) {
    this.column = column;
    this.entries = [];
    this.missing = theme.missing;
    this.stops = column.isTrust ? theme.trust : theme.ramp;
    const steps = 256;
    this.table = Array.from({ length: steps }, (_, step) => this.between(step / (steps - 1)));
    this.width = column.high - column.low || 1;
  }

  between(share) {
    const place = share * (this.stops.length - 1);
    const left = Math.min(Math.floor(place), this.stops.length - 2);
    return this.stops[left].map((value, channel) =>
      Math.round(value + (this.stops[left + 1][channel] - value) * (place - left)),
    );
  }

  colorOf(point) {
    const value = this.column.values[point];
    if (Number.isNaN(value)) return this.missing;
    const share = Math.min(Math.max((value - this.column.low) / this.width, 0), 1);
    return this.table[Math.round(share * 255)];
  }
}

class PlainColoring {
  constructor(theme) {
    this.entries = [];
    this.color = theme.plain;
  }
  colorOf() {
    return this.color;
  }
}

function makeColoring(column, theme) {
  if (!column) return new PlainColoring(theme);
  if (column.makeColoring) return column.makeColoring(theme);
  return column.kind === "category" ? new CategoryColoring(column, theme) : new NumberColoring(column, theme);
}
