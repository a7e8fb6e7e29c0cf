// What the buttons of the trust part do; app.js makes the panels.

/** Layers over the panels, toggles, and buttons that select kinds and islands. */
class TrustPart {
  constructor(app) {
    this.app = app;
    this.arrows = new ArrowLayer(app);
    this.graph = new IslandLayer(app);
    app.layers.push(this.arrows, this.graph);
    for (const button of document.querySelectorAll("[data-pick]")) this.nameIslands(button);
    this.listen();
    window.addEventListener("beforeprint", () => {
      for (const details of document.querySelectorAll("#verdict details")) details.open = true;
    });
  }

  /** A panel that has just been made. */
  add(figure, panel) {
    const { trust } = figure.dataset;
    if (trust === "square") this.arrows.shown.add(panel);
    if (trust === "islands") this.graph.panels.add(panel);
  }

  panelsOf(figure) {
    return this.app.panels.filter((panel) => figure.contains(panel.frame));
  }

  listen() {
    const toggles = (name, act) => {
      for (const button of document.querySelectorAll(`[data-${name}]`)) {
        button.addEventListener("click", () => {
          const isOn = button.getAttribute("aria-pressed") !== "true";
          button.setAttribute("aria-pressed", String(isOn));
          act(button, isOn);
        });
      }
    };
    toggles("arrows", (button, isOn) => {
      const place = button.dataset.arrows === "map" ? byId("map") : button.closest("figure");
      this.toggle(this.arrows.shown, this.panelsOf(place), isOn);
    });
    toggles("real", (button, isOn) => this.toggle(this.graph.withReal, this.panelsOf(button.closest("figure")), isOn));
    for (const button of document.querySelectorAll("[data-pick]")) {
      button.addEventListener("click", () => this.pick(button.dataset));
    }
  }

  toggle(set, panels, isOn) {
    for (const panel of panels) {
      if (isOn && panel.cloud.trust) set.add(panel);
      else set.delete(panel);
      panel.paintOverlay();
    }
  }

  /** Select the points of a kind, or of some islands. */
  pick({ pick, map, value }) {
    const { trust } = this.app.points.clouds[Number(map)];
    const codes = pick === "kind" ? trust.kind.codes : trust.islandOf;
    const wanted = new Set(value.split(" ").map(Number));
    pickPoints(this.app, `${pick} ${map} ${value}`, () => Uint8Array.from(codes, (code) => Number(wanted.has(code))));
  }

  /** Islands may have names that describe what distinguishes them. */
  nameIslands(button) {
    const { pick, map, value } = button.dataset;
    if (pick !== "islands") return;
    const cloud = this.app.points.clouds[Number(map)];
    const known = value.split(" ").map((number) => islandName(cloud, Number(number))).filter(Boolean);
    if (known.length) button.after(element("small", "names-of", known.join(" and ")));
  }
}
