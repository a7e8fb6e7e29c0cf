// Names of the islands of a map, written over it: the largest first, more where there is room.

const LONGEST_NAME = 34; // characters on the map,
const SHORT_NAME = 20; // and on one that is narrower
const NARROW = 420; // than so many pixels
const NAME_SAMPLE = 400; // points of an island that its middle is found from
const SECOND_LINE = 2.5; // zoom from which the second name is written, too
const LEAST_SEEN = 0.1; // share of an island
const APART = 5; // pixels between names

class Names {
  constructor(app) {
    this.app = app;
    this.islands = new Map();
    this.isOn = true;
    const { clouds } = app.points;
    if (!clouds.some((cloud) => cloud.names.length > 1)) return;
    app.layers.push(this);
    const button = byId("names");
    button.hidden = false;
    button.addEventListener("click", () => this.toggle(button));
  }

  toggle(button) {
    this.isOn = !this.isOn;
    button.setAttribute("aria-pressed", String(this.isOn));
    for (const panel of this.app.panels) if (panel.theme) panel.paintOverlay();
  }

  /** Name, middle and some members of each island, largest first. */
  of(cloud) {
    if (this.islands.has(cloud)) return this.islands.get(cloud);
    const counts = new Uint32Array(cloud.clusters.names.length);
    for (const code of cloud.clusters.codes) counts[code]++;
    const members = Array.from(counts, () => []);
    const seen = new Uint32Array(counts.length);
    cloud.clusters.codes.forEach((code, point) => {
      const every = Math.ceil(counts[code] / NAME_SAMPLE);
      if (code && seen[code]++ % every === 0) members[code].push(point);
    });
    const found = cloud.names.map((names, place) => {
      const code = place + 1;
      return { names, count: counts[code], members: members[code], middle: middleOf(cloud, members[code]) };
    });
    const shown = found.filter((island) => island.count).sort((a, b) => b.count - a.count);
    this.islands.set(cloud, shown);
    return shown;
  }

  paint(context, panel) {
    if (!this.isOn || panel.frame.closest("#map") === null || panel.cloud.names.length < 2) return;
    const { view } = panel;
    const islands = this.of(panel.cloud);
    const taken = [];
    const [largest, longest] = view.width < NARROW ? [1, SHORT_NAME] : [4, LONGEST_NAME];
    for (const island of islands) {
      if (!island.members.some((point) => this.app.isVisible(point))) continue;
      const place = this.placeOf(island, view);
      if (!place) continue;
      const size = 12 + Math.round(largest * Math.sqrt(island.count / islands[0].count));
      const lines = [{ text: cutName(island.names[0], longest), size, weight: 650 }];
      if (view.zoom >= SECOND_LINE && island.names.length > 2) {
        lines.push({ text: cutName(island.names[1], longest), size: 12, weight: 400 });
      }
      const box = this.fit(context, lines, place, view, taken) ?? this.fit(context, lines.slice(0, 1), place, view, taken);
      if (!box) continue;
      taken.push(box);
      writeName(context, box, panel.theme);
    }
    // A canvas has no text that another program could read.
    panel.frame.dataset.names = taken.map((box) => box.lines[0].text).join("|");
  }

  /** The middle of an island on the screen, or of the part of it that is seen; null if hardly any is. */
  placeOf(island, view) {
    const { flat } = view;
    const at = (point) => view.toScreen(flat[2 * point], flat[2 * point + 1]);
    const isSeen = ([left, top]) => left >= 0 && top >= 0 && left <= view.width && top <= view.height;
    const middle = at(island.middle);
    if (isSeen(middle)) return middle;
    const seen = island.members.map(at).filter(isSeen);
    if (seen.length < LEAST_SEEN * island.members.length) return null;
    return [0, 1].map((axis) => seen.map((place) => place[axis]).sort((a, b) => a - b)[Math.floor(seen.length / 2)]);
  }

  /** The box of some lines around a place, moved inside of the frame; null if it would touch another. */
  fit(context, lines, [left, top], view, taken) {
    let [width, height] = [0, 0];
    for (const line of lines) {
      context.font = fontOf(line);
      width = Math.max(width, context.measureText(line.text).width);
      height += line.size * 1.2;
    }
    const x = Math.min(Math.max(left, width / 2 + 4), Math.max(view.width - width / 2 - 4, view.width / 2));
    const y = Math.min(Math.max(top, height / 2 + 4), view.height - height / 2 - 4);
    const box = { lines, x, left: x - width / 2, right: x + width / 2, top: y - height / 2, bottom: y + height / 2 };
    const touches = (other) =>
      box.left < other.right + APART && other.left < box.right + APART &&
      box.top < other.bottom + APART && other.top < box.bottom + APART;
    return taken.some(touches) ? null : box;
  }
}

/** The member that lies nearest to the median of all coordinates. */
function middleOf(cloud, members) {
  const axes = [...Array(Math.min(cloud.dimensions, 3)).keys()];
  const at = (point, axis) => cloud.positions[3 * point + axis];
  const median = axes.map((axis) => {
    const sorted = Float32Array.from(members, (point) => at(point, axis)).sort();
    return sorted[Math.floor(sorted.length / 2)];
  });
  let [best, shortest] = [members[0], Infinity];
  for (const point of members) {
    const squared = axes.reduce((sum, axis) => sum + (at(point, axis) - median[axis]) ** 2, 0);
    if (squared < shortest) [best, shortest] = [point, squared];
  }
  return best;
}

const fontOf = ({ size, weight }) => `${weight} ${size}px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif`;

function cutName(text, most) {
  const letters = [...text];
  return letters.length <= most ? text : letters.slice(0, most - 1).join("") + "…";
}

/** Text with a halo in the color of the paper, readable over points of any color. */
function writeName(context, box, theme) {
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.lineJoin = "round";
  context.strokeStyle = cssColor(theme.paper);
  context.fillStyle = theme.ink;
  context.lineWidth = 4;
  let { top } = box;
  for (const line of box.lines) {
    context.font = fontOf(line);
    const middle = top + line.size * 0.6;
    context.globalAlpha = 0.85;
    context.strokeText(line.text, box.x, middle);
    context.globalAlpha = 1;
    context.fillText(line.text, box.x, middle);
    top += line.size * 1.2;
  }
}
