// The page: one state (color, hidden categories, selection, hovered and pinned point) for all panels.

const DOUBLE_CLICK = 400; // milliseconds
const byId = (id) => document.getElementById(id);

class App {
  constructor(packed) {
    this.points = new Points(packed);
    this.layers = []; // what is painted over the points: objects with paint(context, panel)
    this.painter = this.makePainter();
    this.tool = "move";
    this.hovered = this.pinned = -1;
    this.selection = null;
    this.hidden = new Set();
    this.values = (packed.values?.columns ?? []).map((column) => new ValueColumn(column));
    this.thumbnails = new Thumbnails(packed.images);
    this.neighbors = new Neighbors(this, packed.neighbors);
    this.chosenRows = new Selection(this);
    this.choices = this.colorChoices();
    this.panels = [];
    this.fixed = [];
    for (const figure of document.querySelectorAll(".panel")) this.addPanel(figure);
    this.names = new Names(this);
    this.listen();
    this.chooseColor(this.firstChoice());
  }

  makePainter() {
    try {
      return new WebGLPainter((event) => {
        event.preventDefault();
        this.say("The map is drawn without WebGL, which is slower: the graphics card was lost.");
        this.painter = new CanvasPainter();
        for (const panel of this.panels) panel.paint();
      });
    } catch (error) {
      this.say(`The map is drawn without WebGL, which is slower: ${error.message}.`);
      return new CanvasPainter();
    }
  }

  say(text) {
    byId("message").textContent = text;
    byId("message").hidden = false;
  }

  /** A panel of the distortion section has a color of its own; the others share the chosen one. */
  addPanel(figure) {
    const cloud = this.points.clouds[Number(figure.dataset.map)];
    const panel = new Panel(figure, cloud, this);
    this.panels.push(panel);
    if (figure.dataset.measure === undefined) return;
    const column = cloud.measures[Number(figure.dataset.measure)];
    this.fixed.push({ panel, column, legend: figure.querySelector(".legend") });
  }

  /** Every label, the clusters and the measures of each map: [name, column by map]. */
  colorChoices() {
    const { columns, clouds } = this.points;
    const everywhere = (column) => clouds.map(() => column);
    const choices = columns.map((column) => [column.name, everywhere(column)]);
    for (const cloud of clouds) {
      const name = clouds.length > 1 ? `clusters of ${cloud.title}` : "cluster";
      choices.push([name, everywhere(cloud.clusters)]);
    }
    const measures = new Set(clouds.flatMap((cloud) => cloud.measures.map((measure) => measure.name)));
    for (const name of measures) {
      const byMap = clouds.map((cloud) => cloud.measures.find((measure) => measure.name === name));
      choices.push([name.replaceAll("_", " "), byMap]);
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

  recolor() {
    const theme = new Theme();
    const columns = this.choices[this.chosen][1];
    const made = new Map();
    for (const column of columns) if (!made.has(column)) made.set(column, makeColoring(column, theme));
    const colorings = columns.map((column) => made.get(column));
    [this.coloring] = colorings;
    const own = new Map(this.fixed.map(({ panel, column }) => [panel, makeColoring(column, theme)]));
    for (const panel of this.panels) {
      const shared = colorings[this.points.clouds.indexOf(panel.cloud)];
      panel.recolor(own.get(panel) ?? shared, theme);
    }
    fillLegend(byId("legend"), this.coloring, this);
    for (const { panel, legend } of this.fixed) fillLegend(legend, own.get(panel));
    this.chosenRows.offerShown(this.hidden.size > 0 && this.hidden.size < this.coloring.entries.length);
  }

  isVisible(point) {
    return !this.hidden.size || !this.hidden.has(this.coloring.slots[point]);
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
    this.pinned = point;
    byId("details").replaceChildren(...(point < 0 ? [] : pointDetails(this, point)));
    this.neighbors.show(point);
    for (const panel of this.panels) panel.paintOverlay();
  }

  /** 1 for each selected point; null, or nothing selected, shows all points again. */
  select(chosen) {
    const count = chosen ? chosen.reduce((sum, value) => sum + value, 0) : 0;
    this.selection = count ? chosen : null;
    byId("selection").hidden = !chosen;
    byId("export").hidden = !count;
    byId("selected").textContent = `${count} of ${this.points.n} points selected`;
    this.recolor();
    this.chosenRows.show(this.selection);
  }

  find(text) {
    if (!text.trim()) {
      this.select(null);
      this.pin(-1);
      return;
    }
    const found = this.points.find(text);
    this.select(found);
    this.pin(found.indexOf(1));
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
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.recolor());
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
