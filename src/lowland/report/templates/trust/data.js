// The verdicts on a map, unpacked: trust_view.py describes the format.

const NOT_MEASURED = 255;

/** Shares from 0 to 1, one byte each. */
class ShareColumn extends NumberColumn {
  constructor(name, packed, isTrust = false) {
    super({ name, low: 0, high: 1 }, isTrust);
    this.codes = unpack(packed, "u1");
  }
  get values() {
    const share = (code) => (code === NOT_MEASURED ? NaN : code / (NOT_MEASURED - 1));
    return (this.unpacked ??= Float32Array.from(this.codes, share));
  }
  text(point) {
    const code = this.codes[point];
    return code === NOT_MEASURED ? "not measured" : `${Math.round((100 * code) / (NOT_MEASURED - 1))} %`;
  }
}

/** Missing and strangers at once: the cell of each point in a square of SIDE x SIDE cells. */
class SquareColumn {
  static SIDE = 5;
  constructor(missing, strangers, map) {
    this.map = map;
    this.name = "missing × strangers";
    const side = SquareColumn.SIDE;
    const step = (code) => Math.min(Math.floor(((code + 0.5) / (NOT_MEASURED - 1)) * side), side - 1);
    this.cells = new Uint8Array(missing.codes.length);
    for (let i = 0; i < this.cells.length; i++) {
      const [down, across] = [missing.codes[i], strangers.codes[i]];
      const isKnown = down !== NOT_MEASURED && across !== NOT_MEASURED;
      this.cells[i] = isKnown ? side * step(down) + step(across) : side * side;
    }
  }
  makeColoring(theme) {
    return new SquareColoring(this, theme);
  }
}

/** What sets an island apart; the last name of each is its number. */
function islandName(cloud, number) {
  const names = cloud.names?.[number - 1] ?? [];
  return names.length > 1 ? names[0] : "";
}

/** A map of some of the rows; `points` has their numbers, or is null where the rows have no meaning. */
class PartCloud extends Cloud {
  constructor(packed, parent) {
    const steps = unpack(packed.coordinates, "u2");
    const places = Float32Array.from(steps, (step) => (2 * step) / 65535 - 1);
    const n = packed.dimensions ? places.length / packed.dimensions : 0;
    const nothing = { name: "", missing: "", names: [], codes: "", bytes: 1 };
    const rest = { measures: [], clusters: nothing, names: [], torus: null };
    super({ ...packed, ...rest, places }, n, shuffledOrder(n));
    this.parent = parent;
    this.points = packed.points === null ? null : unpack(packed.points, "u4");
    this.placeOf = new Map(Array.from(this.points ?? [], (point, place) => [point, place]));
  }
}

/** Everything about one map; its lists are empty if only a plateau is known. */
class MapTrust {
  constructor(packed, cloud) {
    const { points, arrows, islands } = packed;
    this.parts = new Map(Object.entries(packed.parts).map(([name, part]) => [name, new PartCloud(part, cloud)]));
    this.arrows = (arrows?.points ?? []).map((point, k) => ({
      point,
      start: arrows.starts[k],
      home: arrows.homes[k],
    }));
    this.islands = (islands?.numbers ?? []).map((number, k) => ({
      number,
      center: islands.centers[k],
      isDouble: islands.double[k],
    }));
    this.gaps = islands?.gaps ?? [];
    this.islandOf = islands ? unpack(islands.codes, "u2") : null;
    if (!points) return;
    this.missing = new ShareColumn("missing", points.missing);
    this.strangers = new ShareColumn("strangers", points.strangers);
    this.square = new SquareColumn(this.missing, this.strangers, cloud.title);
    this.kind = new CategoryColumn(points.kind);
    this.kind.palette = "kinds";
    this.stability = points.stability === null ? null : new ShareColumn("stability", points.stability, true);
  }

  /** For the tip and the details of a point. */
  get columns() {
    return [this.missing, this.strangers, this.kind, this.stability].filter(Boolean);
  }

  /** For the menu of colors. */
  get choices() {
    return [this.square, this.kind, this.stability].filter(Boolean);
  }
}

function addTrust(clouds, packed) {
  clouds.forEach((cloud, number) => {
    const known = packed.trust?.[number];
    cloud.trust = known ? new MapTrust(known, cloud) : null;
  });
}

/**
 * The page as a panel of a part sees it: points are numbered as in the part, and layers, which know
 * the points of whole maps, are not painted. Everything else is inherited, so that a panel of a part
 * is a panel like any other.
 */
function appOfPart(app, part) {
  const { points, placeOf } = part;
  const place = (point) => placeOf.get(point) ?? -1;
  const point = (at) => (points && at >= 0 ? points[at] : -1);
  const all = (chosen) => {
    const found = new Uint8Array(app.points.n);
    chosen.forEach((value, at) => (found[points[at]] = value));
    return found;
  };
  return Object.create(app, {
    layers: { value: [] },
    hovered: { get: () => place(app.hovered) },
    pinned: { get: () => place(app.pinned) },
    selection: { get: () => app.selection && points && points.map((at) => app.selection[at]) },
    visible: { get: () => (points ? points.map((at) => app.visible[at]) : new Uint8Array(part.n).fill(1)) },
    isVisible: { value: (at) => !points || app.isVisible(points[at]) },
    hover: { value: (at, ...cursor) => app.hover(point(at), ...cursor) },
    pin: { value: (at) => app.pin(point(at)) },
    select: { value: (chosen) => app.select(chosen && points ? all(chosen) : null) },
  });
}
