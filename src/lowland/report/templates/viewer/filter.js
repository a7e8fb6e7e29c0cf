// Filters: the points outside of a range of a column, or of some categories, are hidden.

/** A bar for each category of the legend; clicking hides and shows, dragging over several chooses them. */
class CategoryFilter {
  constructor(column, name, onChange, coloring) {
    Object.assign(this, { column, name, onChange, coloring });
    this.off = new Set();
    this.all = coloring.counts(null);
    this.body = element("div", "bars");
    this.rows = coloring.entries.map((entry, slot) => this.makeRow(entry, slot));
    this.body.append(...this.rows.map((row) => row.button));
  }

  makeRow(entry, slot) {
    const button = element("button", "bar");
    button.type = "button";
    button.title = "Click to hide or show; drag over several to see only these";
    const [whole, shown] = [element("i", "whole"), element("i", "shown")];
    const count = element("span", "count");
    button.append(whole, shown, element("span", "label", entry.label), count);
    button.addEventListener("click", () => {
      if (!this.off.delete(slot)) this.off.add(slot);
      this.onChange();
    });
    button.addEventListener("pointerdown", () => (this.pressed = slot));
    button.addEventListener("pointerup", () => this.choose(this.pressed, slot));
    return { button, whole, shown, count };
  }

  /** Only the categories from one row to another; a click on one row is not meant. */
  choose(one, other) {
    this.pressed = undefined;
    if (one === undefined || one === other) return;
    const [first, last] = [Math.min(one, other), Math.max(one, other)];
    this.off = new Set(this.rows.map((_, slot) => slot).filter((slot) => slot < first || slot > last));
    this.onChange();
  }

  get isActive() {
    return this.off.size > 0;
  }

  clear() {
    this.off.clear();
  }

  pass(mask) {
    if (!this.off.size) return;
    const { slots } = this.coloring;
    const isOn = Uint8Array.from({ length: 256 }, (_, slot) => (this.off.has(slot) ? 0 : 1));
    for (let i = 0; i < mask.length; i++) mask[i] &= isOn[slots[i]];
  }

  show(visible) {
    const shown = this.coloring.counts(visible);
    const most = this.all.reduce((sum, count) => Math.max(sum, count), 1);
    this.rows.forEach((row, slot) => {
      row.button.setAttribute("aria-pressed", String(!this.off.has(slot)));
      row.whole.style.width = `${(100 * this.all[slot]) / most}%`;
      row.shown.style.width = `${(100 * shown[slot]) / most}%`;
      row.count.textContent = shown[slot];
    });
  }
}

/** All filters of the page; a point is shown if it passes each of them. */
class Filters {
  constructor(app) {
    this.app = app;
    this.list = [];
    this.passed = new Uint8Array(app.points.n).fill(1);
    // Of the table, there may be many columns: they come last.
    const ofTable = (app.values ?? []).map((column) => [column.name, column]);
    this.choices = [...app.points.filterColumns(), ...ofTable];
    const select = byId("filter-column");
    const table = element("optgroup");
    table.label = "columns of the table";
    this.choices.forEach(([name], number) => {
      const option = element("option", "", name);
      option.value = number;
      (number < this.choices.length - ofTable.length ? select : table).append(option);
    });
    if (ofTable.length) select.append(table);
    select.addEventListener("change", () => {
      if (select.value) this.add(Number(select.value));
      select.value = "";
    });
    byId("filter-clear").addEventListener("click", () => this.clear());
    window.addEventListener("resize", () => this.show());
  }

  /** A second filter of a column would only repeat the first. */
  add(number) {
    const [name, column] = this.choices[number];
    const known = this.list.find((filter) => filter.column === column);
    if (known) {
      known.card.querySelector("input, button.bar")?.focus();
      return;
    }
    const onChange = () => this.apply();
    const { app } = this;
    const filter =
      column.kind === "category"
        ? new CategoryFilter(column, name, onChange, app.coloringOf(column))
        : new RangeFilter(column, name, onChange);
    filter.card = this.makeCard(filter);
    this.list.push(filter);
    byId("filter-list").append(filter.card);
    this.show();
  }

  makeCard(filter) {
    const card = element("section", "filter");
    card.setAttribute("aria-label", `Filter by ${filter.name}`);
    const head = element("div", "head");
    filter.clearButton = element("button", "", "Clear");
    const remove = element("button", "", "×");
    for (const button of [filter.clearButton, remove]) button.type = "button";
    remove.setAttribute("aria-label", `Remove the filter by ${filter.name}`);
    filter.clearButton.addEventListener("click", () => {
      filter.clear();
      this.apply();
    });
    remove.addEventListener("click", () => {
      this.list = this.list.filter((other) => other !== filter);
      card.remove();
      byId("filter-column").focus();
      this.apply();
    });
    head.append(element("strong", "", filter.name), filter.clearButton, remove);
    card.append(head, filter.body);
    return card;
  }

  clear() {
    for (const filter of this.list) filter.clear();
    this.apply();
  }

  /** While a range is dragged, fewer points are painted, as in a map that moves. */
  apply() {
    this.passed.fill(1);
    for (const filter of this.list) if (filter.isActive) filter.pass(this.passed);
    this.app.recolor();
    for (const panel of this.app.panels) panel.stir();
  }

  /** The histograms, and how many points are left. */
  show() {
    const { visible, theme, points } = this.app;
    const isActive = this.list.some((filter) => filter.isActive);
    for (const filter of this.list) {
      filter.show(visible, theme);
      filter.clearButton.hidden = !filter.isActive;
    }
    byId("filter-state").hidden = !isActive;
    if (isActive) byId("filter-count").textContent = `${countOf(visible)} of ${points.n} points shown`;
  }
}

function countOf(mask) {
  let count = 0;
  for (let i = 0; i < mask.length; i++) count += mask[i];
  return count;
}
