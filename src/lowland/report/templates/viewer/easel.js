// Who is painted when: a moving panel first and only as much as keeps it moving, then the rest.

const MOVING_TIME = 16; // milliseconds of painting in a frame while something moves
const RESTING_TIME = 40; // the same while the picture is completed, twice as much for each next part ...
const LONGEST_PART = 200; // ... up to here: so long a movement may have to wait
const PAINTED_ANYWHERE = 50000; // points; larger panels are painted only where they can be seen

const FEWEST_PAINTED = 5000; // points that are painted in any case
const WORTH_TIMING = 20000; // points; the time of fewer does not predict that of the next ones
const SLOW_PAINTING = 3000; // points in a millisecond; a processor that needs no WebGL paints more
const SLOW_IN_A_ROW = 3; // parts, of which the first may have waited for something else

/** How many points can be painted in a given time, as learned from the last parts. */
class Pace {
  constructor() {
    this.perMillisecond = 1000; // until something is known; a graphics card paints far more
    this.slowParts = 0;
  }
  count(milliseconds) {
    return Math.max(FEWEST_PAINTED, Math.floor(this.perMillisecond * milliseconds));
  }
  learn(count, milliseconds) {
    if (count < WORTH_TIMING && milliseconds < 8) return;
    const measured = count / Math.max(milliseconds, 0.1);
    this.perMillisecond += (measured < this.perMillisecond ? 0.7 : 0.4) * (measured - this.perMillisecond);
    this.slowParts = measured < SLOW_PAINTING ? this.slowParts + 1 : 0;
  }
  get isSlow() {
    return this.slowParts >= SLOW_IN_A_ROW;
  }
}

class Easel {
  constructor(app) {
    this.app = app;
    this.begun = null; // the panel whose picture the painter holds
    this.patience = RESTING_TIME;
    this.seen = new IntersectionObserver((entries) => this.noteSeen(entries));
    window.addEventListener("beforeprint", () => this.finish());
  }

  add(panel) {
    panel.isSeen = panel.cloud.n <= PAINTED_ANYWHERE;
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
    this.patience = moving ? RESTING_TIME : Math.min(2 * this.patience, LONGEST_PART);
    const end = performance.now() + (moving ? MOVING_TIME : this.patience);
    for (const [number, panel] of waiting.entries()) {
      const left = end - performance.now();
      if (number >= Math.max(moving, 1) && left <= 0) break;
      this.paintPart(panel, moving ? Math.max(left, MOVING_TIME / moving) : left);
    }
    if (this.waiting.some((panel) => !panel.isMoving)) this.ask();
    else this.patience = RESTING_TIME;
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
    if (painter instanceof WebGLPainter && painter.pace.isSlow) this.paintWith(new CanvasPainter());
  }

  /** Where a program stands in for the graphics card, WebGL is slower than no WebGL. */
  paintWith(painter) {
    this.app.painter = painter;
    for (const panel of this.app.panels) panel.paint();
  }

  /** Everything at once, for paper. */
  finish() {
    for (const panel of this.app.panels) {
      while (panel.isReady && panel.isUnfinished) this.paintPart(panel, Infinity);
    }
  }
}
