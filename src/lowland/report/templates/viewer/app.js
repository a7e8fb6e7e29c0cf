// The page: one state (color, hidden categories, selection, hovered and pinned point) for all panels.

const DOUBLE_CLICK = 400; // milliseconds
const MOST_EMULATED = 2000; // points for WebGL without a graphics card
const byId = (id) => document.getElementById(id);

class App {
  constructor(packed) {
    this.points = new Points(packed);
    this.layers = []; // what is painted over the points: objects with paint(context, panel)
    addTrust(this.points.clouds, packed);
    this.painter = this.makePainter();
    this.easel = new Easel(this);
    this.tool = "move";
    this.hovered = this.pinned = -1;
    this.selection = null;
    this.hidden = new Set();
    this.values = (packed.values?.columns ?? []).map((column) => new ValueColumn(column));
    this.thumbnails = new Thumbnails(packed.images);
    this.neighbors = new Neighbors(this, packed.neighbors);
    this.chosenRows = new Selection(this);
    this.visible = new Uint8Array(this.points.n).fill(1); // 1 for each point that is shown
    this.restyle();
    this.choices = this.colorChoices();
    this.panels = [];
    this.fixed = [];
    this.trust = new TrustPart(this);
    for (const figure of document.querySelectorAll(".panel")) this.addPanel(figure);
    this.contours = new Contours(this);
    this.filters = new Filters(this);
    this.names = new Names(this);
    this.listen();
    this.chooseColor(this.firstChoice());
  }

  /** WebGL on a graphics card; for few points, also where a program stands in for it. */
  makePainter() {
    try {
      const painter = new WebGLPainter((event) => {
        event.preventDefault();
        this.say("The map is drawn without WebGL, which is slower: the graphics card was lost.");
        this.easel.paintWith(new CanvasPainter());
      });
      return painter.isEmulated && this.points.n > MOST_EMULATED ? new CanvasPainter() : painter;
    } catch (error) {
      this.say(`The map is drawn without WebGL, which is slower: ${error.message}.`);
      return new CanvasPainter();
    }
  }

  say(text) {
    byId("message").textContent = text;
    byId("message").hidden = false;
  }

  /** A panel of the distortion section has its own color; the others share the chosen one. */
  addPanel(figure) {
    const cloud = this.points.clouds[Number(figure.dataset.map)];
    const part = cloud.trust?.parts.get(figure.dataset.part);
    const panel = part ? new Panel(figure, part, appOfPart(this, part)) : new Panel(figure, cloud, this);
    this.panels.push(panel);
    this.easel.add(panel);
    this.trust.add(figure, panel);
    const column = ownColumn(figure.dataset, cloud);
    if (column === undefined) return;
    this.fixed.push({ panel, column, legend: figure.querySelector(".legend") });
  }

  /** Every label, the islands and the measures of each map: [name, column by map]. */
  colorChoices() {
    const { columns, clouds } = this.points;
    const everywhere = (column) => clouds.map(() => column);
    const choices = columns.map((column) => [column.name, everywhere(column)]);
    for (const cloud of clouds) {
      const name = clouds.length > 1 ? `islands of ${cloud.title}` : "island";
      choices.push([name, everywhere(cloud.clusters)]);
    }
    const measures = new Set(clouds.flatMap((cloud) => cloud.measures.map((measure) => measure.name)));
    for (const name of measures) {
      const byMap = clouds.map((cloud) => cloud.measures.find((measure) => measure.name === name));
      choices.push([name.replaceAll("_", " "), byMap]);
    }
    const trusts = new Set(clouds.flatMap((cloud) => cloud.trust?.choices.map(({ name }) => name) ?? []));
    for (const name of trusts) {
      choices.push([name, clouds.map((cloud) => cloud.trust?.choices.find((column) => column.name === name))]);
    }
    choices.push(["one color", everywhere(null)]);
    for (const column of this.values) choices.push([column.name, everywhere(column)]);
    const table = element("optgroup");
    table.label = "columns of the table";
    choices.forEach(([name, [column]], number) => {
      const option = element("option", "", name);
      option.value = number;
      (column instanceof ValueColumn ? table : byId("color")).append(option);
    });
    if (this.values.length) byId("color").append(table);
    return choices;
  }

  firstChoice() {
    const wanted = this.points.columns.findIndex((column) => column.name === this.points.firstColor);
    return Math.max(wanted, 0);
  }

  chooseColor(number) {
    byId("color").value = number;
    this.chosen = number;
    this.hidden.clear();
    this.recolor();
  }

  /** Colorings are kept for each column until the page becomes light or dark. */
  restyle() {
    this.theme = new Theme();
    this.colorings = new Map();
  }

  coloringOf(column) {
    if (!this.colorings.has(column)) this.colorings.set(column, makeColoring(column, this.theme, this.points.n));
    return this.colorings.get(column);
  }

  recolor() {
    const columns = this.choices[this.chosen][1];
    this.coloring = this.coloringOf(columns[0]);
    this.updateVisible();
    const own = new Map(this.fixed.map(({ panel, column }) => [panel, column]));
    for (const panel of this.panels) {
      const { parent } = panel.cloud;
      const shared = columns[this.points.clouds.indexOf(parent ?? panel.cloud)];
      const coloring = this.coloringOf(own.has(panel) ? own.get(panel) : shared);
      panel.recolor(parent ? coloringOfPart(coloring, panel.cloud) : coloring, this.theme);
    }
    fillLegend(byId("legend"), this.coloring, this);
    for (const { column, legend } of this.fixed) if (legend) fillLegend(legend, this.coloringOf(column), this);
    this.filters.show();
    this.contours.forget();
    const shown = countOf(this.visible);
    this.chosenRows.offerShown(shown > 0 && shown < this.points.n);
    this.tellSelection();
  }

  /** The one place that decides which points are shown; everything else asks `visible`. */
  updateVisible() {
    const { visible, hidden } = this;
    visible.set(this.filters.passed);
    if (!hidden.size) return;
    const { slots } = this.coloring;
    const isShown = Uint8Array.from({ length: 256 }, (_, slot) => (hidden.has(slot) ? 0 : 1));
    for (let i = 0; i < visible.length; i++) visible[i] &= isShown[slots[i]];
  }

  isVisible(point) {
    return this.visible[point] === 1;
  }

  /** The points that the legend counts: also those of entries that it hides. */
  countedPoints() {
    const { selection } = this;
    const { passed } = this.filters;
    return selection ? passed.map((value, point) => value & selection[point]) : passed;
  }

  /** 1 for each point that is selected and shown; without a selection, for each that is shown. */
  shownSelection() {
    const { selection } = this;
    return selection ? this.visible.map((value, point) => value & selection[point]) : this.visible;
  }

  /** The legend is made anew at each click, so a double click has to be noticed here. */
  clickEntry(slot, time) {
    const isSecond = this.lastClick?.slot === slot && time - this.lastClick.time < DOUBLE_CLICK;
    this.lastClick = isSecond ? null : { slot, time };
    if (isSecond) this.isolate(slot);
    else if (!this.hidden.delete(slot)) this.hidden.add(slot);
    this.recolorKeepingFocus();
  }

  /** Only this entry; all of them if it is already alone. */
  isolate(slot) {
    const others = this.coloring.entries.map((_, other) => other).filter((other) => other !== slot);
    const isAlone = others.every((other) => this.hidden.has(other));
    this.hidden = new Set(isAlone ? [] : others);
  }

  recolorKeepingFocus() {
    const place = [...byId("legend").children].indexOf(document.activeElement);
    this.recolor();
    if (place >= 0) byId("legend").children[place]?.focus();
  }

  hover(point, left, top) {
    if (point < 0 && this.hovered < 0) return;
    const changed = point !== this.hovered;
    this.hovered = point;
    const picture = point < 0 || left === undefined ? null : this.thumbnails.picture(point, this.points.id(point));
    showTip(byId("tip"), this.points, point, left, top, picture);
    if (changed) for (const panel of this.panels) if (panel.theme) panel.paintOverlay();
  }

  pin(point) {
    this.hover(-1); // a row of a table that is replaced under the pointer sends no event
    this.pinned = point;
    byId("details").replaceChildren(...(point < 0 ? [] : pointDetails(this, point)));
    this.neighbors.show(point);
    for (const panel of this.panels) panel.paintOverlay();
  }

  /** 1 for each selected point; null, or nothing selected, shows all points again. */
  select(chosen) {
    const count = chosen ? countOf(chosen) : 0;
    this.selection = count ? chosen : null;
    byId("selection").hidden = !chosen;
    byId("export").hidden = !count;
    this.recolor();
  }

  tellSelection() {
    const [shown, all] = this.selection ? [countOf(this.shownSelection()), countOf(this.selection)] : [0, 0];
    const hidden = all > shown ? `, ${all - shown} more hidden` : "";
    byId("selected").textContent = `${shown} of ${this.points.n} points selected${hidden}`;
    this.chosenRows.show(shown ? this.shownSelection() : null);
  }

  find(text) {
    if (!text.trim()) {
      this.select(null);
      this.pin(-1);
      return;
    }
    const found = this.points.find(text);
    this.select(found);
    this.pin(found.findIndex((is, point) => is && this.isVisible(point)));
  }

  setTool(tool) {
    this.tool = tool;
    byId("tool-move").setAttribute("aria-pressed", String(tool === "move"));
    byId("tool-lasso").setAttribute("aria-pressed", String(tool === "lasso"));
    for (const panel of this.panels) panel.frame.classList.toggle("lasso", tool === "lasso");
  }

  listen() {
    const onClick = (id, action) => byId(id).addEventListener("click", action);
    byId("color").addEventListener("change", (event) => this.chooseColor(Number(event.target.value)));
    byId("find").addEventListener("change", (event) => this.find(event.target.value));
    onClick("tool-move", () => this.setTool("move"));
    onClick("tool-lasso", () => this.setTool("lasso"));
    onClick("zoom-in", () => this.panels.forEach((panel) => panel.zoom(1.25)));
    onClick("zoom-out", () => this.panels.forEach((panel) => panel.zoom(0.8)));
    onClick("reset", () => this.panels.forEach((panel) => panel.reset()));
    onClick("clear", () => this.select(null));
    onClick("export", () => this.chosenRows.export());
    onClick("copy", () => this.copyCommand());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.restyle();
      this.recolor();
    });
  }

  /** Where the clipboard is closed to pages, the text is at least marked. */
  async copyCommand() {
    getSelection().selectAllChildren(byId("command"));
    try {
      await navigator.clipboard.writeText(byId("command").textContent);
      byId("copy").textContent = "Copied";
    } catch {
      byId("copy").textContent = "Press Ctrl-C";
    }
  }
}

new App(JSON.parse(byId("data").textContent));
