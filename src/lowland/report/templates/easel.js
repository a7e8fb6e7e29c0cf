// Who is painted when: a moving panel first and only as much as keeps it moving, then the rest.

const MOVING = 16; // milliseconds of painting in a frame while something moves
const RESTING = 40; // the same while the picture is completed
const ALWAYS = 50000; // points; larger panels are painted only where they can be seen

class Easel {
  constructor(app) {
    this.app = app;
    this.begun = null; // the panel whose picture the painter holds
    this.seen = new IntersectionObserver((entries) => this.noteSeen(entries));
    window.addEventListener("beforeprint", () => this.finish());
  }

  add(panel) {
    panel.isSeen = panel.cloud.n <= ALWAYS;
    if (!panel.isSeen) this.seen.observe(panel.frame);
  }

  noteSeen(entries) {
    for (const panel of this.app.panels) {
      const entry = entries.findLast(({ target }) => target === panel.frame);
      if (entry) panel.isSeen = entry.isIntersecting;
    }
    this.ask();
  }

  /** Paint at the next frame, however often it is asked for. */
  ask() {
    if (this.isAsked) return;
    this.isAsked = true;
    requestAnimationFrame(() => {
      this.isAsked = false;
      this.paintFrame();
    });
  }

  /** Panels with something left to paint: moving ones, then the one that is begun, then the others. */
  get waiting() {
    const rank = (panel) => (panel.isMoving ? 0 : panel === this.begun ? 1 : 2);
    const waiting = this.app.panels.filter((panel) => panel.isSeen && panel.isReady && panel.isUnfinished);
    return waiting.sort((one, other) => rank(one) - rank(other));
  }

  paintFrame() {
    const { waiting } = this;
    const moving = waiting.filter((panel) => panel.isMoving).length;
    const end = performance.now() + (moving ? MOVING : RESTING);
    for (const [number, panel] of waiting.entries()) {
      const left = end - performance.now();
      if (number >= Math.max(moving, 1) && left <= 0) break;
      this.paintPart(panel, moving ? Math.max(left, MOVING / moving) : left);
    }
    if (this.waiting.some((panel) => !panel.isMoving)) this.ask();
  }

  paintPart(panel, milliseconds) {
    const { painter } = this.app;
    if (panel.isChanged || this.begun !== panel) {
      panel.prepare();
      painter.begin(panel);
      this.begun = panel;
      panel.painted = 0;
    }
    const start = performance.now();
    const first = panel.painted;
    panel.painted = Math.min(first + painter.pace.count(milliseconds), panel.cloud.n);
    painter.add(panel, first, panel.painted);
    painter.show(panel);
    painter.pace.learn(panel.painted - first, performance.now() - start);
    panel.frame.ariaBusy = String(panel.isUnfinished);
    panel.paintOverlay();
  }

  /** Everything at once, for paper. */
  finish() {
    for (const panel of this.app.panels) {
      while (panel.isReady && panel.isUnfinished) this.paintPart(panel, Infinity);
    }
  }
}
