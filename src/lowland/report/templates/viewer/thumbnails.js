// Pictures of the rows, cut out of sheets that hold many; thumbnails.py packs them.

const PICTURE_HEIGHT = 64; // pixels on the page, at least; of a small one a whole multiple

class Thumbnails {
  constructor(packed) {
    this.packed = packed;
    this.sheets = [];
    this.cellOf = new Map();
    if (packed) unpack(packed.points, "u4").forEach((point, cell) => this.cellOf.set(point, cell));
  }

  get any() {
    return this.cellOf.size > 0;
  }

  /** A sheet is decoded when the first of its pictures is asked for. */
  sheet(number) {
    if (!this.sheets[number]) {
      const image = new Image();
      image.src = `data:image/${this.packed.kind};base64,${this.packed.sheets[number]}`;
      this.sheets[number] = { image, ready: image.decode() };
    }
    return this.sheets[number];
  }

  /** A canvas with the picture of a point; null if it has none. */
  picture(point, name, height = PICTURE_HEIGHT) {
    const cell = this.cellOf.get(point);
    if (cell === undefined) return null;
    const { packed } = this;
    const factor = packed.height < height ? Math.max(1, Math.floor(height / packed.height)) : height / packed.height;
    const canvas = element("canvas", packed.pixelated ? "picture pixelated" : "picture");
    [canvas.width, canvas.height] = [packed.width, packed.height];
    canvas.style.width = `${Math.round(packed.width * factor)}px`;
    canvas.style.height = `${Math.round(packed.height * factor)}px`;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `picture of ${name}`);
    const inSheet = cell % packed.in_sheet;
    const left = (inSheet % packed.across) * packed.right;
    const top = Math.floor(inSheet / packed.across) * packed.down;
    const { image, ready } = this.sheet(Math.floor(cell / packed.in_sheet));
    const draw = () => {
      const place = [left, top, packed.width, packed.height, 0, 0, packed.width, packed.height];
      canvas.getContext("2d").drawImage(image, ...place);
    };
    if (image.complete && image.naturalWidth) draw();
    else ready.then(draw);
    return canvas;
  }
}
