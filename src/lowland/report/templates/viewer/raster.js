// The painter without WebGL: discs are blended into an array of pixels. On a processor it is several
// times as fast as a software emulation of a graphics card.

const PAIR = 0x00ff00ff; // two of the four channels of a pixel, computed with at once
const DISC_SIZES = 9; // of discs in three dimensions, from those farthest away to the nearest

/** The pixels of a disc of this diameter, and how much of 256 is covered: what the shader does. */
function makeStamp(size, width) {
  const side = Math.max(1, Math.round(size));
  const middle = (side - 1) / 2;
  const [xs, ys, covers] = [[], [], []];
  for (let y = 0; y < side; y++) {
    for (let x = 0; x < side; x++) {
      const radius = (2 * Math.hypot(x - middle, y - middle)) / size;
      const edge = Math.min(Math.max(1 - (1 - radius) * (size / 2), 0), 1);
      const cover = size < 2.5 ? 256 : Math.round(256 * (1 - edge * edge * (3 - 2 * edge)));
      if (!cover) continue;
      xs.push(x);
      ys.push(y);
      covers.push(cover);
    }
  }
  const offsets = Int32Array.from(xs, (x, k) => ys[k] * width + x);
  return { side, size: covers.length, xs: Int32Array.from(xs), offsets, covers: Uint16Array.from(covers) };
}

/** One color over another; `share` of 256 is the upper one's, and a pixel's colors are multiplied by alpha. */
function blended(color, under, share) {
  const rest = 256 - share;
  const redBlue = (Math.imul(color & PAIR, share) + Math.imul(under & PAIR, rest)) >>> 8;
  const greenAlpha = Math.imul(((color >>> 8) & 255) | 0xff0000, share) + Math.imul((under >>> 8) & PAIR, rest);
  return (redBlue & PAIR) | (greenAlpha & ~PAIR);
}

class CanvasPainter {
  constructor() {
    this.pace = new Pace();
  }

  begin(panel) {
    const { width, height } = panel.canvas;
    const isDeep = panel.cloud.dimensions === 3;
    if (this.image?.width !== width || this.image?.height !== height) {
      this.image = new ImageData(width, height);
      this.pixels = new Uint32Array(width * height);
    }
    this.pixels.fill(0);
    if (isDeep) this.nearest = new Float32Array(width * height).fill(-Infinity);
    const size = panel.pointSize * panel.ratio;
    const sizes = isDeep ? Array.from({ length: DISC_SIZES }, (_, k) => size * (0.7 + (0.6 * k) / (DISC_SIZES - 1))) : [size];
    this.stamps = sizes.map((each) => makeStamp(each, width));
  }

  add(panel, first, last) {
    if (panel.cloud.dimensions === 3) {
      this.addDeep(panel, first, last);
      return;
    }
    this.addFlat(panel, first, last, 0, 0, panel.opacity);
    for (const [right, up] of panel.cloud.copies) this.addFlat(panel, first, last, right, up, FADED * panel.opacity);
  }

  /** Pixels per unit, and the pixel of the middle of a map that is shifted. */
  frame({ view, ratio }, right, up) {
    const [perX, perY] = view.scale.map((scale) => scale * ratio);
    const left = (view.width * ratio) / 2 + (right - view.center[0]) * perX;
    const top = (view.height * ratio) / 2 - (up - view.center[1]) * perY;
    return [left, top, perX, perY];
  }

  addFlat(panel, first, last, right, up, opacity) {
    const { pixels } = this;
    const { ordered } = panel.cloud;
    const { colors } = panel;
    const { width, height } = panel.canvas;
    const [stamp] = this.stamps;
    const { offsets, covers, side, size } = stamp;
    const [left, top, perX, perY] = this.frame(panel, right, up);
    const corner = (1 - side) / 2;
    const [fromX, fromY] = [left + corner, top + corner];
    const factor = (opacity * 256) / 255;
    for (let place = first; place < last; place++) {
      const color = colors[place];
      if (color >>> 24 === 0) continue;
      const column = Math.floor(fromX + ordered[2 * place] * perX);
      const row = Math.floor(fromY - ordered[2 * place + 1] * perY);
      if (column <= -side || row <= -side || column >= width || row >= height) continue;
      const alpha = (color >>> 24) * factor;
      const at = row * width + column;
      const isWhole = column >= 0 && row >= 0 && column + side <= width && row + side <= height;
      if (isWhole) {
        for (let k = 0; k < size; k++) {
          pixels[at + offsets[k]] = blended(color, pixels[at + offsets[k]], (alpha * covers[k]) >> 8);
        }
      } else this.addPartly(stamp, column, at, color, alpha, width);
    }
  }

  /** A disc that reaches beyond the edge of the picture. */
  addPartly({ xs, offsets, covers }, column, at, color, alpha, width) {
    const { pixels } = this;
    for (let k = 0; k < xs.length; k++) {
      const [x, pixel] = [column + xs[k], at + offsets[k]];
      if (x < 0 || x >= width || pixel < 0 || pixel >= pixels.length) continue;
      pixels[pixel] = blended(color, pixels[pixel], (alpha * covers[k]) >> 8);
    }
  }

  /** As the shaders do it: what is near is larger and clearer, and hides what is behind it. */
  addDeep(panel, first, last) {
    const { pixels, nearest, stamps } = this;
    const { width } = panel.canvas;
    const { ordered } = panel.cloud;
    const { rotation: r } = panel.view;
    const [left, top, perX, perY] = this.frame(panel, 0, 0);
    const paper = colorBytes(panel.theme.paper);
    const factor = (panel.opacity * 256) / 255;
    for (let place = first; place < last; place++) {
      const color = panel.colors[place];
      if (color >>> 24 === 0) continue;
      const [x, y, z] = [ordered[3 * place], ordered[3 * place + 1], ordered[3 * place + 2]];
      const depth = r[6] * x + r[7] * y + r[8] * z;
      const { side, xs, offsets, covers } = stamps[Math.min(Math.max(Math.round(((depth + 1) / 2) * (DISC_SIZES - 1)), 0), DISC_SIZES - 1)];
      const column = Math.floor(left + (r[0] * x + r[1] * y + r[2] * z) * perX + (1 - side) / 2);
      const row = Math.floor(top - (r[3] * x + r[4] * y + r[5] * z) * perY + (1 - side) / 2);
      const haze = Math.min(Math.max(0.25 - 0.35 * depth, 0), 0.6);
      const tint = blended(paper, color | 0xff000000, (haze * 256) | 0);
      for (let k = 0; k < xs.length; k++) {
        const [across, at] = [column + xs[k], row * width + column + offsets[k]];
        if (across < 0 || across >= width || at < 0 || at >= pixels.length) continue;
        if (covers[k] <= 128 || nearest[at] > depth) continue;
        nearest[at] = depth;
        pixels[at] = blended(tint, pixels[at], ((color >>> 24) * factor * covers[k]) >> 8);
      }
    }
  }

  /** A canvas wants colors that are not multiplied by alpha. */
  show(panel) {
    const { pixels, image } = this;
    const shown = new Uint32Array(image.data.buffer);
    for (let i = 0; i < pixels.length; i++) {
      const pixel = pixels[i];
      const alpha = pixel >>> 24;
      if (!alpha || alpha === 255) {
        shown[i] = pixel;
        continue;
      }
      const factor = 255 / alpha;
      const red = Math.min((pixel & 255) * factor, 255);
      const green = Math.min(((pixel >>> 8) & 255) * factor, 255);
      const blue = Math.min(((pixel >>> 16) & 255) * factor, 255);
      shown[i] = red | (green << 8) | (blue << 16) | (alpha << 24);
    }
    panel.context.putImageData(image, 0, 0);
  }
}
