// One picture of one map: its canvas, what the pointer and the keys do to it, and its highlights.

const REACH = 12; // pixels from the cursor, within which a point is meant
const DIMMED = 26; // of 255: points outside the selection
const REST = 150; // milliseconds after the last turn of a wheel or press of a key

class Panel {
  constructor(figure, cloud, app) {
    this.app = app;
    this.cloud = cloud;
    this.view = new View(cloud);
    this.frame = figure.querySelector(".canvas");
    this.canvas = this.addCanvas();
    this.overlay = this.addCanvas();
    const isInMemory = app.painter instanceof CanvasPainter; // where it puts its pixels
    this.context = this.canvas.getContext("2d", { willReadFrequently: isInMemory });
    this.pointers = new Map();
    this.lasso = null;
    this.isMoving = false;
    this.painted = this.version = 0;
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.frame);
  }

  addCanvas() {
    const canvas = document.createElement("canvas");
    this.frame.append(canvas);
    return canvas;
  }

  resize() {
    this.ratio = Math.min(window.devicePixelRatio || 1, 3);
    [this.view.width, this.view.height] = [this.frame.clientWidth || 1, this.frame.clientHeight || 1];
    for (const canvas of [this.canvas, this.overlay]) {
      canvas.width = Math.round(this.view.width * this.ratio);
      canvas.height = Math.round(this.view.height * this.ratio);
    }
    this.paint();
  }

  /** Small maps have large points; they grow a little when one comes nearer. */
  get pointSize() {
    const bySpace = Math.min(Math.max(Math.min(this.view.width, this.view.height) / 600, 0.6), 1.2);
    const byCount = Math.min(Math.max(28 * this.cloud.n ** -0.22, 2), 9);
    return Math.max(1.5, byCount * Math.sqrt(bySpace)) * Math.min(Math.max(this.view.zoom, 1) ** 0.3, 3);
  }

  get opacity() {
    return Math.min(Math.max(1.25 * this.cloud.n ** -0.06, 0.6), 0.9);
  }

  /** The colors are looked up when the panel is painted next. */
  recolor(coloring, theme) {
    this.coloring = coloring;
    this.theme = theme;
    this.isStale = true;
    this.paint();
  }

  get isReady() {
    return this.coloring !== undefined && this.ratio !== undefined;
  }

  get isUnfinished() {
    return this.isChanged || this.painted < this.cloud.n;
  }

  /** What has to be known before the first point is painted: a color for each, in that order. */
  prepare() {
    this.isChanged = false;
    if (!this.isStale) return;
    this.isStale = false;
    this.colors ??= new Uint32Array(this.cloud.n);
    this.version++;
    fillColors(this.colors, this.cloud.order, this.coloring, this.app.visible, this.app.selection, DIMMED);
  }

  /** Paint anew at the next frame. */
  paint() {
    this.isChanged = true;
    this.app.easel.ask();
  }

  /** Fewer points are painted while the panel moves, the rest when it has come to rest. */
  stir() {
    this.isMoving = true;
    clearTimeout(this.resting);
    this.resting = setTimeout(() => this.rest(), REST);
    this.paint();
  }

  rest() {
    clearTimeout(this.resting);
    this.isMoving = false;
    this.app.easel.ask();
  }

  /** The layers, rings around the hovered and the pinned point, and the lasso. */
  paintOverlay() {
    const context = this.overlay.getContext("2d");
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.view.width, this.view.height);
    context.strokeStyle = this.theme.ink;
    if (this.cloud.torus) this.paintFrame(context);
    for (const layer of this.app.layers) {
      context.save();
      layer.paint(context, this);
      context.restore();
    }
    for (const [point, width] of [[this.app.pinned, 2.5], [this.app.hovered, 1.5]]) {
      if (point < 0 || !this.app.isVisible(point)) continue;
      const flat = this.view.flat;
      context.lineWidth = width;
      context.beginPath();
      context.arc(...this.view.toScreen(flat[2 * point], flat[2 * point + 1]), this.pointSize / 2 + 3, 0, 7);
      context.stroke();
    }
    if (this.lasso) this.paintLasso(context);
  }

  /** One period of a torus; a map of one dimension has only a left and a right edge. */
  paintFrame(context) {
    const { low, sides } = this.cloud.torus;
    const [left, bottom] = this.view.toScreen(low[0], low[1] ?? 0);
    const [right, top] = this.view.toScreen(low[0] + sides[0], low.length > 1 ? low[1] + sides[1] : 0);
    const [from, to] = low.length > 1 ? [top, bottom] : [-1, this.view.height + 1];
    context.lineWidth = 1;
    context.globalAlpha = 0.5;
    context.strokeRect(left, from, right - left, to - from);
    context.globalAlpha = 1;
  }

  paintLasso(context) {
    context.beginPath();
    this.lasso.forEach(([x, y]) => context.lineTo(...this.view.toScreen(x, y)));
    context.closePath();
    context.lineWidth = 1.5;
    context.setLineDash([5, 4]);
    context.stroke();
    context.setLineDash([]);
    context.globalAlpha = 0.06;
    context.fillStyle = this.theme.ink;
    context.fill();
    context.globalAlpha = 1;
  }

  pointAt(left, top) {
    const flat = this.view.flat;
    if (this.index?.flat !== flat) this.index = new GridIndex(flat);
    const place = this.view.toMap(left, top);
    return this.index.nearest(...place, this.view.scale, REACH, this.app.visible);
  }

  listen() {
    const { frame } = this;
    frame.addEventListener("pointerdown", (event) => this.press(event));
    frame.addEventListener("pointermove", (event) => this.move(event));
    frame.addEventListener("pointerup", (event) => this.release(event));
    frame.addEventListener("pointercancel", (event) => this.release(event));
    frame.addEventListener("pointerleave", () => this.app.hover(-1));
    frame.addEventListener("dblclick", () => this.reset());
    frame.addEventListener("contextmenu", (event) => event.preventDefault());
    frame.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    frame.addEventListener("keydown", (event) => this.key(event));
  }

  place(event) {
    const box = this.frame.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  press(event) {
    this.frame.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, this.place(event));
    this.pressed = this.place(event);
    this.isClick = this.pointers.size === 1;
    const wantsLasso = this.app.tool === "lasso" || event.shiftKey;
    this.lasso = wantsLasso && event.button === 0 && this.isClick ? [this.view.toMap(...this.pressed)] : null;
    this.isShift = event.button !== 0;
  }

  move(event) {
    const now = this.place(event);
    const before = this.pointers.get(event.pointerId);
    if (!before) {
      this.app.hover(this.pointAt(...now), event.clientX, event.clientY);
      return;
    }
    if (Math.hypot(now[0] - this.pressed[0], now[1] - this.pressed[1]) > 4) this.isClick = false;
    if (this.pointers.size === 2) this.pinch(event.pointerId, before, now);
    else if (this.lasso) this.lasso.push(this.view.toMap(...now));
    else if (!this.isClick) this.drag(now[0] - before[0], now[1] - before[1]);
    this.pointers.set(event.pointerId, now);
    if (this.lasso) this.paintOverlay();
    else if (!this.isClick) this.stir();
  }

  drag(right, down) {
    this.app.hover(-1);
    if (this.cloud.dimensions === 3 && !this.isShift) this.view.rotate(right, down);
    else this.view.pan(right, down);
  }

  /** Two fingers: their distance zooms, their middle moves. */
  pinch(id, before, now) {
    this.lasso = null;
    const [[, other]] = [...this.pointers].filter(([key]) => key !== id);
    const apart = (place) => Math.hypot(place[0] - other[0], place[1] - other[1]) || 1;
    const middle = [(now[0] + other[0]) / 2, (now[1] + other[1]) / 2];
    this.view.pan((now[0] - before[0]) / 2, (now[1] - before[1]) / 2);
    this.view.zoomAt(...middle, apart(now) / apart(before));
  }

  release(event) {
    if (!this.pointers.delete(event.pointerId)) return;
    if (this.lasso && this.lasso.length > 2) {
      this.app.select(pointsInside(this.view.flat, this.lasso, this.app.visible));
    } else if (this.isClick) {
      this.app.pin(this.pointAt(...this.place(event)));
    }
    this.lasso = null;
    this.paintOverlay();
    this.rest();
  }

  wheel(event) {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 24 : 1;
    this.view.zoomAt(...this.place(event), Math.exp(-0.0016 * lines * event.deltaY));
    this.app.hover(this.pointAt(...this.place(event)), event.clientX, event.clientY);
    this.stir();
  }

  zoom(factor) {
    this.view.zoomAt(this.view.width / 2, this.view.height / 2, factor);
    this.stir();
  }

  reset() {
    this.view.reset();
    this.paint();
  }

  key(event) {
    const step = 40;
    const moves = { ArrowLeft: [step, 0], ArrowRight: [-step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
    if (moves[event.key]) {
      const [right, down] = moves[event.key];
      if (this.cloud.dimensions === 3 && !event.shiftKey) this.view.rotate(-right, -down);
      else this.view.pan(right, down);
    } else if (event.key === "+" || event.key === "=") this.zoom(1.25);
    else if (event.key === "-") this.zoom(0.8);
    else if (event.key === "0") this.view.reset();
    else if (event.key === "Escape") this.app.select(null);
    else return;
    event.preventDefault();
    this.stir();
  }
}
