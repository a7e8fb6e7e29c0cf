// Colors of missing x strangers, and the square legend that selects.

/** A slot for each cell of the square; the last one is for points that are not measured. */
class SquareColoring extends Coloring {
  constructor(column, theme) {
    const [fine, misplaced, torn, pressed] = theme.kinds;
    const side = SquareColumn.SIDE;
    const mix = (one, other, share) => one.map((value, k) => value + (other[k] - value) * share);
    const colors = Array.from({ length: side * side }, (_, cell) => {
      const [missing, strangers] = [Math.floor(cell / side) / (side - 1), (cell % side) / (side - 1)];
      return mix(mix(fine, pressed, strangers), mix(torn, misplaced, strangers), missing).map(Math.round);
    });
    super([], [...colors, theme.missing], () => column.cells);
    this.column = column;
  }

  fillLegend(place, app) {
    place.append(squareLegend(this, place, app));
  }
}

/** Points in the background of what is drawn over them. */
const MUTED = {
  makeColoring(theme, n) {
    return new Coloring([], [theme.missing], () => new Uint8Array(n));
  },
};

/** The column of a panel's own color; undefined if the panel shares the chosen color. */
function ownColumn({ measure, trust, part }, cloud) {
  if (measure !== undefined) return cloud.measures[Number(measure)];
  if (trust === "square") return cloud.trust.square;
  if (trust === "islands") return MUTED;
  return part === "null" ? null : undefined;
}

/** A coloring for the points of a part. */
function coloringOfPart({ colors, slots }, { points, n }) {
  return new Coloring([], colors, () => (points ? Uint8Array.from(points, (at) => slots[at]) : new Uint8Array(n)));
}

const isPicked = (app, key) => app.picked?.key === key && app.picked.chosen === app.selection;

/** Select the points of a button; a second click on it shows all points again. */
function pickPoints(app, key, choose) {
  const isSecond = isPicked(app, key);
  app.picked = isSecond ? null : { key, chosen: choose() };
  app.select(app.picked?.chosen ?? null);
}

const percentOf = (step) => `${(100 * step) / SquareColumn.SIDE}`;

/** Rows from many missing to none, columns from no strangers to many; a cell selects its points. */
function squareLegend(coloring, place, app) {
  const side = SquareColumn.SIDE;
  const counts = coloring.counts();
  const grid = element("div", "cells");
  grid.setAttribute("role", "group");
  grid.setAttribute("aria-label", "Missing upwards, strangers to the right; each cell selects its points");
  for (let down = side - 1; down >= 0; down--) {
    for (let across = 0; across < side; across++) {
      const cell = side * down + across;
      const button = element("button", "cell");
      button.type = "button";
      button.disabled = !counts[cell];
      button.style.background = cssColor(coloring.colors[cell]);
      const range = (step) => `${percentOf(step)} to ${percentOf(step + 1)} %`;
      button.title = `${range(down)} missing, ${range(across)} strangers: ${counts[cell]} points`;
      button.setAttribute("aria-label", button.title);
      const key = `cell ${coloring.column.map} ${cell}`;
      button.setAttribute("aria-pressed", String(isPicked(app, key)));
      button.addEventListener("click", () => {
        pickPoints(app, key, () => coloring.slots.map((other) => Number(other === cell)));
        // The legend was made anew.
        const position = [...grid.children].indexOf(button);
        place.querySelectorAll(".cell")[position]?.focus();
      });
      grid.append(button);
    }
  }
  const square = element("div", "square");
  square.append(
    element("span", "up", "missing, 0 to 100 % →"),
    grid,
    element("span", "along", "strangers, 0 to 100 % →"),
  );
  return square;
}
