// The neighbors in the data of the pinned point: lines to them in each map, and a table.

class Neighbors {
  constructor(app, packed) {
    this.app = app;
    this.packed = packed;
    this.links = [];
    if (!packed) return;
    this.lists = unpack(packed.lists, "u" + packed.bytes);
    this.none = 2 ** (8 * packed.bytes) - 1;
    app.layers.push(this);
  }

  /** Points and their ranks in the data, of those that are on the page. */
  of(point) {
    const found = [];
    for (let place = 0; place < this.packed.k; place++) {
      const other = this.lists[this.packed.k * point + place];
      if (other !== this.none) found.push({ point: other, rank: place + 1 });
    }
    return found;
  }

  show(point) {
    if (!this.packed) return;
    this.point = point;
    this.links = point < 0 ? [] : this.of(point);
    for (const cloud of this.app.points.clouds) this.addMapRanks(cloud);
    byId("neighbors").replaceChildren(...(this.links.length ? this.table() : []));
  }

  /** The rank in a map is the number of points that are nearer than the neighbor, plus one. */
  addMapRanks(cloud) {
    const far = this.links.map((link) => squaredDistance(cloud, this.point, link.point));
    const ranks = far.map(() => 1);
    for (let i = 0; i < cloud.n && far.length; i++) {
      if (i === this.point) continue;
      const squared = squaredDistance(cloud, this.point, i);
      for (let k = 0; k < far.length; k++) if (squared < far[k]) ranks[k]++;
    }
    this.links.forEach((link, k) => {
      link.ranks ??= new Map();
      link.ranks.set(cloud, ranks[k]);
    });
  }

  isNear(link, cloud) {
    return link.ranks.get(cloud) <= this.packed.reach;
  }

  /** Torn lines are dashed, too: some people cannot distinguish red from green. */
  paint(context, panel) {
    if (!this.links[0]?.ranks.has(panel.cloud)) return; // nothing pinned, or no map of all points
    const style = getComputedStyle(document.documentElement);
    for (const isNear of [true, false]) {
      context.strokeStyle = style.getPropertyValue(isNear ? "--near" : "--torn");
      context.lineWidth = 1.8;
      context.setLineDash(isNear ? [] : [6, 4]);
      context.beginPath();
      for (const link of this.links) {
        if (this.isNear(link, panel.cloud) !== isNear || !this.app.isVisible(link.point)) continue;
        const [from, to] = lineBetween(panel, this.point, link.point);
        context.moveTo(...from);
        context.lineTo(...to);
      }
      context.stroke();
    }
  }

  table() {
    const { clouds } = this.app.points;
    const head = element("h3", "", "Nearest in the data");
    const said = clouds.map((cloud) => {
      const torn = this.links.filter((link) => !this.isNear(link, cloud)).length;
      const near = this.links.length - torn;
      const line = element("p", "said");
      if (clouds.length > 1) line.append(`${cloud.title}: `);
      line.append(element("b", "near", `${near} near`), " in the map");
      if (torn) line.append(", ", element("b", "torn", `${torn} torn away`));
      line.title = `near: among the ${this.packed.reach} nearest in the map`;
      return line;
    });
    const box = element("div", "wide");
    box.append(this.rows(clouds));
    return [head, ...said, box];
  }

  rows(clouds) {
    const { points, thumbnails } = this.app;
    const table = element("table", "near-rows");
    const heading = element("tr");
    for (const name of ["", ...(thumbnails.any ? [""] : []), "id"]) heading.append(element("th", "", name));
    for (const cloud of clouds) {
      const cell = element("th", "number", clouds.length > 1 ? cloud.title : "in the map");
      cell.title = "rank in the map";
      heading.append(cell);
    }
    for (const column of points.columns) heading.append(element("th", "", column.name));
    heading.firstChild.title = "rank in the data";
    const body = element("tbody");
    for (const link of this.links) body.append(this.row(link, clouds));
    const top = element("thead");
    top.append(heading);
    table.append(top, body);
    return table;
  }

  row(link, clouds) {
    const { points, thumbnails } = this.app;
    const row = element("tr", "pick");
    row.append(element("td", "number", `${link.rank}`));
    if (thumbnails.any) {
      const cell = element("td");
      cell.append(thumbnails.picture(link.point, points.id(link.point), 24) ?? "");
      row.append(cell);
    }
    const id = element("td");
    const button = element("button", "plain", points.id(link.point));
    button.type = "button";
    button.title = "Show this point and its neighbors";
    id.append(button);
    row.append(id);
    for (const cloud of clouds) {
      const isNear = this.isNear(link, cloud);
      const cell = element("td", `number ${isNear ? "near" : "torn"}`, `${link.ranks.get(cloud)}`);
      cell.title = isNear ? "near in the map" : "torn away in the map";
      row.append(cell);
    }
    row.append(...points.columns.map((column) => element("td", "", column.text(link.point))));
    row.addEventListener("click", () => this.app.pin(link.point));
    row.addEventListener("pointerenter", () => this.app.hover(link.point));
    row.addEventListener("pointerleave", () => this.app.hover(-1));
    return row;
  }
}

/** How far one point of a map lies from another along an axis; a torus has two ways. */
function alongAxis(cloud, axis, from, to) {
  const straight = cloud.positions[3 * to + axis] - cloud.positions[3 * from + axis];
  const side = cloud.torus?.sides[axis];
  return side ? straight - side * Math.round(straight / side) : straight;
}

function squaredDistance(cloud, from, to) {
  let sum = 0;
  for (let axis = 0; axis < Math.min(cloud.dimensions, 3); axis++) sum += alongAxis(cloud, axis, from, to) ** 2;
  return sum;
}

/** Both ends on the screen; over the edge of a torus, the line leads to the copy of the point. */
function lineBetween(panel, from, to) {
  const { view, cloud } = panel;
  const { flat } = view;
  const start = [flat[2 * from], flat[2 * from + 1]];
  const end = [flat[2 * to], flat[2 * to + 1]];
  cloud.torus?.sides.forEach((_, axis) => (end[axis] = start[axis] + alongAxis(cloud, axis, from, to)));
  return [view.toScreen(...start), view.toScreen(...end)];
}
