// The elements next to the map: legends, the tip at the cursor, the details of a point.

const MOST_FACTS = 14; // in the tip; the details show all

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

/** Categories as buttons that hide and show, or a bar from low to high. */
function fillLegend(place, coloring, app = null) {
  place.replaceChildren();
  if (coloring.fillLegend) {
    coloring.fillLegend(place, app);
    return;
  }
  if (coloring instanceof NumberColoring) {
    place.append(...rampLegend(coloring));
    return;
  }
  const counts = coloring.entries.length ? coloring.counts(app.countedPoints()) : [];
  coloring.entries.forEach((entry, slot) => {
    const button = element("button", "entry");
    button.type = "button";
    button.setAttribute("aria-pressed", String(!app.hidden.has(slot)));
    button.title = "Click to hide or show, double-click to see it alone";
    const swatch = element("i", "swatch");
    swatch.style.background = cssColor(entry.color);
    button.append(swatch, element("span", "label", entry.label), element("span", "count", counts[slot]));
    button.addEventListener("click", (event) => app.clickEntry(slot, event.timeStamp));
    place.append(button);
  });
}

function rampLegend(coloring) {
  const { column, stops } = coloring;
  const bar = element("div", "ramp");
  bar.style.background = `linear-gradient(to right, ${stops.map(cssColor).join(", ")})`;
  const ends = element("div", "ends");
  const middle = (column.low + column.high) / 2;
  for (const value of [column.low, middle, column.high]) ends.append(element("span", "", formatValue(column, value, 3)));
  return [bar, ends];
}

function factRows(points, point, most = Infinity) {
  const facts = points.describe(point);
  const rows = [["id", points.id(point)], ...facts.slice(0, most)];
  if (facts.length > most) rows.push(["", `and ${facts.length - most} more: click the point`]);
  return rows.map(([name, value]) => {
    const row = element("div", "fact");
    row.append(element("span", "name", name), element("span", "value", value));
    return row;
  });
}

/** The picture of a point, all its labels and measures, and its values to unfold. */
function pointDetails(app, point) {
  const picture = app.thumbnails.picture(point, app.points.id(point));
  const parts = [...(picture ? [picture] : []), ...factRows(app.points, point)];
  if (!app.values.length) return parts;
  const more = element("details");
  more.append(element("summary", "", `${app.values.length} columns`));
  for (const column of app.values) {
    const row = element("div", "fact");
    row.append(element("span", "name", column.name), element("span", "value", column.text(point)));
    more.append(row);
  }
  return [...parts, more];
}

/** The tip follows the cursor and stays inside the window. */
function showTip(tip, points, point, left, top, picture = null) {
  tip.hidden = point < 0 || left === undefined;
  if (tip.hidden) return;
  tip.replaceChildren(...(picture ? [picture] : []), ...factRows(points, point, MOST_FACTS));
  const [width, height] = [tip.offsetWidth, tip.offsetHeight];
  const fits = left + 16 + width < window.innerWidth;
  tip.style.left = `${Math.max(4, fits ? left + 16 : left - width - 16)}px`;
  tip.style.top = `${Math.max(4, Math.min(top + 16, window.innerHeight - height - 4))}px`;
}

function downloadParts(name, parts) {
  const link = element("a");
  link.href = URL.createObjectURL(new Blob(parts, { type: "text/csv" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
