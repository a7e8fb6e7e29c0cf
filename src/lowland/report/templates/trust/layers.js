// What is drawn over the points: arrows to home, and the graph of islands.

const HEAD = 7; // pixels: the head of an arrow

/** A place of the map on the screen; in three dimensions as the view has turned it. */
function screenOf(view, [x, y = 0, z = 0]) {
  const r = view.rotation;
  return view.toScreen(r[0] * x + r[1] * y + r[2] * z, r[3] * x + r[4] * y + r[5] * z);
}

/** Of a torus, the copy of `home` that is nearest to `start`. */
function nearestCopy(cloud, start, home) {
  const copies = [[0, 0], ...cloud.copies].map(([x, y]) => [home[0] + x, (home[1] ?? 0) + y, home[2] ?? 0]);
  const apart = (place) => Math.hypot(place[0] - start[0], place[1] - start[1]);
  return copies.reduce((best, copy) => (apart(copy) < apart(best) ? copy : best));
}

/** Arrows from misplaced points to home, in the panels that show them. */
class ArrowLayer {
  constructor(app) {
    this.app = app;
    this.shown = new Set();
  }

  paint(context, panel) {
    if (!this.shown.has(panel)) return;
    const { selection } = this.app;
    for (const { point, start, home } of panel.cloud.trust.arrows) {
      if (point >= 0 && !this.app.isVisible(point)) continue;
      context.globalAlpha = selection && !selection[point] ? 0.15 : 1;
      this.paintArrow(context, panel, ...this.ends(panel, point, start, home));
    }
  }

  /** In one dimension, the height of a point means nothing, so its arrow keeps it. */
  ends({ cloud, view }, point, start, home) {
    if (cloud.dimensions > 1) return [start, nearestCopy(cloud, start, home)];
    const height = point >= 0 ? view.flat[2 * point + 1] : 0;
    const [x] = nearestCopy(cloud, [start[0], 0], home);
    return [[start[0], height], [x, height]];
  }

  paintArrow(context, panel, start, home) {
    const [fromX, fromY] = screenOf(panel.view, start);
    const [toX, toY] = screenOf(panel.view, home);
    const length = Math.hypot(toX - fromX, toY - fromY);
    if (length < 2) return;
    const [x, y] = [(toX - fromX) / length, (toY - fromY) / length];
    const head = Math.min(HEAD, length);
    const [neckX, neckY] = [toX - head * x, toY - head * y];
    // A halo keeps the line apart from the points below it.
    for (const [color, width] of [[cssColor(panel.theme.paper), 3.5], [panel.theme.ink, 1.3]]) {
      context.strokeStyle = context.fillStyle = color;
      context.lineWidth = width;
      context.beginPath();
      context.moveTo(fromX, fromY);
      context.lineTo(neckX, neckY);
      context.stroke();
      const half = head / 2.4 + (width > 2 ? 1 : 0);
      context.beginPath();
      context.moveTo(toX, toY);
      context.lineTo(neckX - half * y, neckY + half * x);
      context.lineTo(neckX + half * y, neckY - half * x);
      context.fill();
    }
  }
}

// By verdict: width and dashes of a line, and its opacity.
const EDGES = {
  real: [1, [], 0.3],
  bridged: [1.5, [1.5, 4], 0.8],
  unclear: [2.5, [8, 6], 0.9],
  "not in the data": [4.5, [], 1],
};

/** A node at each island, an edge for each gap that was tested. */
class IslandLayer {
  constructor(app) {
    this.app = app;
    this.panels = new Set();
    this.withReal = new Set();
  }

  paint(context, panel) {
    if (!this.panels.has(panel)) return;
    const { islands, gaps } = panel.cloud.trust;
    const at = new Map(islands.map(({ number, center }) => [number, screenOf(panel.view, center)]));
    for (const verdict of Object.keys(EDGES)) {
      if (verdict === "real" && !this.withReal.has(panel)) continue;
      const [width, dashes, opacity] = EDGES[verdict];
      context.lineWidth = width;
      context.setLineDash(dashes);
      context.globalAlpha = opacity;
      context.beginPath();
      for (const gap of gaps) {
        if (gap.verdict !== verdict || !at.has(gap.one) || !at.has(gap.other)) continue;
        this.trace(context, panel, at.get(gap.one), at.get(gap.other));
      }
      context.stroke();
    }
    context.setLineDash([]);
    context.globalAlpha = 1;
    for (const island of islands) this.paintNode(context, panel, island, at.get(island.number));
  }

  /** On a line, edges would lie on each other: they are arcs, the longer the higher. */
  trace(context, { cloud, view }, [fromX, fromY], [toX, toY]) {
    const rise = cloud.dimensions > 1 ? 0 : 2 * Math.min(0.3 * Math.abs(toX - fromX), view.height / 2 - 8);
    context.moveTo(fromX, fromY);
    context.quadraticCurveTo((fromX + toX) / 2, (fromY + toY) / 2 - rise, toX, toY);
  }

  paintNode(context, panel, { number, isDouble }, [x, y]) {
    const radius = panel.cloud.trust.islands.length > 30 ? 8 : 11;
    const paper = cssColor(panel.theme.paper);
    context.lineWidth = 1.5;
    context.fillStyle = paper;
    for (const size of isDouble ? [radius + 3, radius] : [radius]) {
      context.beginPath();
      context.arc(x, y, size, 0, 7);
      context.fill();
      context.stroke();
    }
    context.fillStyle = panel.theme.ink;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.font = `600 ${radius}px system-ui, sans-serif`;
    context.fillText(String(number), x, y + 0.5);
    const name = islandName(panel.cloud, number);
    if (name) this.paintName(context, paper, panel.theme.ink, name, x, y + radius + 10);
  }

  paintName(context, paper, ink, name, x, y) {
    const text = name.length > 24 ? `${name.slice(0, 23)}…` : name;
    context.font = "12px system-ui, sans-serif";
    context.lineWidth = 3;
    context.strokeStyle = paper;
    context.strokeText(text, x, y);
    context.strokeStyle = context.fillStyle = ink;
    context.fillText(text, x, y);
  }
}
