// The selected points: what sets them apart, their rows in a table, and a file with all columns.

const MOST_BARS = 12;
const ROWS_AT_A_TIME = 60; // more are added when one scrolls to the end
const MOST_TABLE_COLUMNS = 30; // of numbers; the file has all
const LONGEST_BAR = 4; // standard deviations; the numbers tell what is more
const collator = new Intl.Collator(undefined, { numeric: true });

class Selection {
  constructor(app) {
    this.app = app;
    byId("rows").addEventListener("scroll", () => this.addRowsAtEnd());
    byId("select-shown").addEventListener("click", () => this.selectShown());
  }

  /** What neither the legend nor a filter hides, as a selection. */
  selectShown() {
    const chosen = new Uint8Array(this.app.points.n);
    for (let i = 0; i < chosen.length; i++) chosen[i] = this.app.isVisible(i) ? 1 : 0;
    this.app.select(chosen);
  }

  /** Offered only while something is hidden and something is not. */
  offerShown(isSomeHidden) {
    byId("select-shown").hidden = !isSomeHidden;
  }

  /** Nothing is made anew, and the order of the table stays, while the same points are chosen. */
  show(chosen) {
    if (chosen && this.chosen?.every((value, i) => value === chosen[i])) return;
    byId("chosen").hidden = !chosen;
    this.chosen = chosen;
    if (!chosen) {
      byId("apart").replaceChildren();
      byId("rows").replaceChildren();
      return;
    }
    this.points = [];
    for (let i = 0; i < chosen.length; i++) if (chosen[i]) this.points.push(i);
    const differences = differencesOf(this.app, chosen);
    this.showBars(differences);
    this.columns = this.tableColumns(differences);
    this.sorted = null;
    this.showTable();
  }

  /** Of m differences of groups that do not differ, the largest is about sqrt(2 ln 2m) errors. */
  showBars(all) {
    const differences = all.slice(0, MOST_BARS);
    const rest = this.app.points.n - this.points.length;
    const chance = Math.sqrt(2 * Math.log(2 * all.length) * (1 / this.points.length + 1 / rest));
    byId("apart-note").textContent = this.aboutBars(differences, rest, chance);
    const finite = differences.map(({ difference }) => Math.abs(difference)).filter(Number.isFinite);
    const longest = Math.min(Math.max(1, ...finite), LONGEST_BAR);
    byId("apart").replaceChildren(...differences.map((one) => differenceBar(one, longest, chance)));
  }

  aboutBars(differences, rest, chance) {
    if (!rest) return "All points are selected: there is no rest to compare with.";
    if (!differences.length) return "No column differs between the selected points and the rest.";
    const isPale = differences.some(({ difference }) => Math.abs(difference) < chance);
    const pale = isPale ? " Pale: no more than the largest difference that chance gives." : "";
    return `Mean of the selection minus mean of the rest, in standard deviations.${pale}`;
  }

  /** Id and labels, then the columns that differ most, then others while there is room. */
  tableColumns(differences) {
    const { points, values } = this.app;
    const id = { name: "id", text: (i) => points.id(i), key: (i) => points.id(i) };
    const labels = points.columns.map((column) => ({
      name: column.name,
      isNumber: column.kind !== "category",
      text: (i) => column.text(i),
      key: column.kind === "category" ? (i) => (column.codes[i] ? column.text(i) : NaN) : (i) => column.values[i],
    }));
    const differing = differences.map(({ column }) => column).filter((column) => column instanceof ValueColumn);
    const ordered = [...new Set([...differing, ...values])];
    const numbers = ordered.slice(0, MOST_TABLE_COLUMNS).map((column) => ({
      name: column.name,
      isNumber: true,
      text: (i) => column.text(i),
      key: (i) => column.at(i),
    }));
    return [id, ...labels, ...numbers];
  }

  /** Once up, once down; missing values are last both ways. */
  sortBy(column) {
    const down = this.sorted?.column === column && !this.sorted.down;
    this.sorted = { column, down };
    const isMissing = (key) => typeof key === "number" && Number.isNaN(key);
    const keyed = this.points.map((point) => [point, column.key(point)]);
    keyed.sort(([a, one], [b, other]) => {
      if (isMissing(one) || isMissing(other)) return isMissing(one) - isMissing(other) || a - b;
      const bothNumbers = typeof one === "number" && typeof other === "number";
      const order = bothNumbers ? one - other : collator.compare(String(one), String(other));
      return (down ? -order : order) || a - b;
    });
    this.points = keyed.map(([point]) => point);
    this.showTable();
  }

  showTable() {
    const table = element("table", "chosen-rows");
    const heading = element("tr");
    if (this.app.thumbnails.any) heading.append(element("th"));
    for (const column of this.columns) heading.append(this.heading(column));
    const head = element("thead");
    head.append(heading);
    this.body = element("tbody");
    this.shown = 0;
    table.append(head, this.body);
    this.addRows();
    byId("rows").replaceChildren(table);
    byId("rows").scrollTop = 0;
    const all = this.app.values.length;
    byId("rows-note").textContent =
      all > MOST_TABLE_COLUMNS ? `${MOST_TABLE_COLUMNS} of ${all} columns; the exported file has all.` : "";
  }

  heading(column) {
    const cell = element("th", column.isNumber ? "number" : "");
    const button = element("button", "plain", column.name);
    button.type = "button";
    button.title = `Sort by ${column.name}`;
    if (this.sorted?.column === column) {
      cell.setAttribute("aria-sort", this.sorted.down ? "descending" : "ascending");
      button.append(this.sorted.down ? " ▼" : " ▲");
    }
    button.addEventListener("click", () => this.sortBy(column));
    cell.append(button);
    return cell;
  }

  addRowsAtEnd() {
    const box = byId("rows");
    if (this.chosen && box.scrollTop + box.clientHeight > box.scrollHeight - 200) this.addRows();
  }

  addRows() {
    const { points, thumbnails } = this.app;
    const until = Math.min(this.shown + ROWS_AT_A_TIME, this.points.length);
    for (; this.shown < until; this.shown++) {
      const point = this.points[this.shown];
      const row = element("tr", "pick");
      if (thumbnails.any) {
        const cell = element("td");
        cell.append(thumbnails.picture(point, points.id(point), 24) ?? "");
        row.append(cell);
      }
      for (const column of this.columns) row.append(element("td", column.isNumber ? "number" : "", column.text(point)));
      row.addEventListener("click", () => this.app.pin(point));
      this.body.append(row);
    }
  }

  export() {
    downloadParts("selection.csv", csvOf(this.app, this.chosen));
  }
}

/** One difference: its name, a bar to the right (higher) or to the left (lower), and the number. */
function differenceBar({ name, difference, inside, outside }, longest, chance) {
  const row = element("div", Math.abs(difference) < chance ? "bar pale" : "bar");
  row.title = `${name}\nselection: ${inside}\nrest: ${outside}`;
  const track = element("div", "track");
  const fill = element("i", difference > 0 ? "higher" : "lower");
  const share = Math.min(Math.abs(difference) / longest, 1);
  fill.style.width = `${50 * share}%`;
  fill.style.left = difference > 0 ? "50%" : `${50 - 50 * share}%`;
  track.append(fill);
  const sign = difference > 0 ? "+" : "−";
  const size = Math.abs(difference);
  const text = Number.isFinite(size) ? sign + size.toFixed(size < 9.95 ? 2 : 0) : `${sign}∞`;
  row.append(element("span", "name", name), track, element("span", "value", text));
  row.append(element("span", "means", `${inside} against ${outside}`));
  return row;
}

// --- the file -------------------------------------------------------------------------------------

// A spreadsheet runs cells that begin so as formulas; formulas.py has the same rule and undoes it.
const FORMULA = /^'*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]/;
const HARMLESS = /^([+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[=+\-@])$/;

function guarded(text) {
  return FORMULA.test(text) && !HARMLESS.test(text) ? `'${text}` : text;
}

function quoted(text) {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The fewest digits that give the number back; numbers of 4 bytes have at most 9. */
function exactText(value, isShort) {
  if (!Number.isFinite(value)) return "";
  if (!isShort) return String(value);
  for (const digits of [6, 7, 8]) {
    const text = Number(value.toPrecision(digits));
    if (Math.fround(text) === value) return String(text);
  }
  return String(Number(value.toPrecision(9)));
}

/** Every column of the page: [name, point -> text]. */
function exportColumns(app) {
  const { points } = app;
  const several = points.clouds.length > 1;
  const columns = [["id", (i) => guarded(points.id(i))]];
  const taken = new Set(["id"]);
  const add = (name, suffix, text) => {
    let free = taken.has(name) ? name + suffix : name;
    while (taken.has(free)) free += "_";
    taken.add(free);
    columns.push([free, text]);
  };
  for (const cloud of points.clouds) {
    for (let axis = 0; axis < Math.min(cloud.dimensions, 3); axis++) {
      const text = (i) => exactText(cloud.positions[3 * i + axis] * cloud.reach + cloud.origin[axis], true);
      add((several ? `${cloud.title} ` : "") + "xyz"[axis], "_map", text);
    }
  }
  const number = (values) => {
    const isShort = values instanceof Float32Array;
    return (i) => exactText(values[i], isShort);
  };
  for (const column of points.columns) {
    const text = (i) => (column.codes[i] ? guarded(column.text(i)) : "");
    const time = (i) => (Number.isNaN(column.values[i]) ? "" : column.exact(column.values[i]));
    const texts = { category: text, time };
    add(column.name, "_label", texts[column.kind] ?? number(column.values));
  }
  for (const column of app.values) {
    const isShort = column.numbers instanceof Float32Array;
    add(column.name, "_value", (i) => exactText(column.at(i), isShort));
  }
  for (const cloud of points.clouds) {
    const where = several ? `${cloud.title} ` : "";
    const { codes } = cloud.clusters;
    add(`${where}island`, "_map", (i) => (codes[i] ? `island ${codes[i]}` : "sparse"));
    add(`${where}island name`, "_map", (i) => (codes[i] ? guarded(cloud.names[codes[i] - 1][0]) : ""));
    for (const column of cloud.measures) add(where + column.name, "_map", number(column.values));
  }
  return columns;
}

/** The chosen points as parts of a CSV file (RFC 4180). */
function csvOf(app, chosen) {
  const columns = exportColumns(app);
  const line = (cells) => cells.map(quoted).join(",") + "\r\n";
  const parts = [line(columns.map(([name]) => guarded(name)))];
  let some = [];
  for (let i = 0; i < chosen.length; i++) {
    if (!chosen[i]) continue;
    some.push(line(columns.map(([, text]) => text(i))));
    if (some.length < 1000) continue;
    parts.push(some.join(""));
    some = [];
  }
  return [...parts, some.join("")];
}
