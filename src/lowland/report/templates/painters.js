// Two painters with one duty, paint(panel): WebGL for speed, a plain canvas where there is no WebGL.

const FADED = 0.25; // opacity of the copies of a torus, relative to its points

const VERTEX = `
  attribute vec3 position;
  attribute vec4 color;
  uniform mat3 rotation;
  uniform vec2 center;
  uniform vec2 scale;
  uniform vec3 paper;
  uniform mediump float size; // in the fragment's precision: the two must agree
  uniform mediump float depth;
  varying vec4 tint;
  void main() {
    vec3 place = rotation * position;
    gl_Position = vec4((place.xy - center) * scale, -0.5 * place.z * depth, 1.0);
    if (color.a == 0.0) gl_Position = vec4(2.0, 2.0, 2.0, 1.0);
    gl_PointSize = size * (1.0 + 0.3 * depth * place.z);
    tint = vec4(mix(color.rgb, paper, depth * clamp(0.25 - 0.35 * place.z, 0.0, 0.6)), color.a);
  }`;

const FRAGMENT = `
  precision mediump float;
  uniform float size;
  uniform float depth;
  uniform float opacity;
  varying vec4 tint;
  void main() {
    float radius = length(2.0 * gl_PointCoord - 1.0);
    float cover = size < 2.5 ? 1.0 : 1.0 - smoothstep(1.0 - 2.0 / size, 1.0, radius);
    if (cover <= 0.5 * depth) discard; // a soft edge in front would punch holes into what is behind
    float alpha = tint.a * opacity * cover;
    gl_FragColor = vec4(tint.rgb * alpha, alpha);
  }`;

/**
 * One WebGL context paints all panels, one after the other, and each is copied to the panel's own
 * canvas: browsers allow few contexts, and a copied picture can be printed.
 */
class WebGLPainter {
  constructor(onLost) {
    this.canvas = document.createElement("canvas");
    const options = { antialias: false, premultipliedAlpha: true };
    this.gl = this.canvas.getContext("webgl", options);
    if (!this.gl) throw new Error("the browser has no WebGL");
    this.canvas.addEventListener("webglcontextlost", onLost);
    this.program = this.link();
    this.positions = new Map();
    this.colors = new Map();
  }

  link() {
    const { gl } = this;
    const program = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program));
    gl.useProgram(program);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    return program;
  }

  paint(panel) {
    const { gl } = this;
    const [width, height] = [panel.canvas.width, panel.canvas.height];
    if (this.canvas.width < width || this.canvas.height < height) {
      this.canvas.width = Math.max(this.canvas.width, width);
      this.canvas.height = Math.max(this.canvas.height, height);
    }
    gl.viewport(0, 0, width, height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    const isDeep = panel.cloud.dimensions === 3;
    if (isDeep) gl.enable(gl.DEPTH_TEST);
    else gl.disable(gl.DEPTH_TEST);
    this.setUniforms(panel, isDeep);
    this.bind("position", 3, gl.FLOAT, false, this.positionBuffer(panel.cloud));
    this.bind("color", 4, gl.UNSIGNED_BYTE, true, this.colorBuffer(panel));
    gl.drawArrays(gl.POINTS, 0, panel.cloud.n);
    const at = (name) => gl.getUniformLocation(this.program, name);
    gl.uniform1f(at("opacity"), FADED * panel.opacity);
    for (const [right, up] of panel.cloud.copies) {
      gl.uniform2f(at("center"), panel.view.center[0] - right, panel.view.center[1] - up);
      gl.drawArrays(gl.POINTS, 0, panel.cloud.n);
    }
    panel.context.clearRect(0, 0, width, height);
    panel.context.drawImage(this.canvas, 0, this.canvas.height - height, width, height, 0, 0, width, height);
  }

  setUniforms(panel, isDeep) {
    const { gl, program } = this;
    const at = (name) => gl.getUniformLocation(program, name);
    const { view } = panel;
    const [r, [scaleX, scaleY]] = [view.rotation, view.scale];
    const byColumns = [r[0], r[3], r[6], r[1], r[4], r[7], r[2], r[5], r[8]];
    gl.uniformMatrix3fv(at("rotation"), false, byColumns);
    gl.uniform2f(at("center"), ...view.center);
    gl.uniform2f(at("scale"), (2 * scaleX) / view.width, (2 * scaleY) / view.height);
    gl.uniform3f(at("paper"), ...panel.theme.paper.map((value) => value / 255));
    gl.uniform1f(at("size"), panel.pointSize * panel.ratio);
    gl.uniform1f(at("opacity"), panel.opacity);
    gl.uniform1f(at("depth"), isDeep ? 1 : 0);
  }

  bind(name, size, type, normalized, buffer) {
    const { gl } = this;
    const location = gl.getAttribLocation(this.program, name);
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.enableVertexAttribArray(location);
    gl.vertexAttribPointer(location, size, type, normalized, 0, 0);
  }

  /** Coordinates are sent once for each map, in the order of painting. */
  positionBuffer(cloud) {
    if (!this.positions.has(cloud)) {
      const ordered = new Float32Array(3 * cloud.n);
      cloud.order.forEach((point, place) => {
        ordered.set(cloud.positions.subarray(3 * point, 3 * point + 3), 3 * place);
      });
      this.positions.set(cloud, this.upload(this.gl.createBuffer(), ordered));
    }
    return this.positions.get(cloud);
  }

  colorBuffer(panel) {
    const kept = this.colors.get(panel);
    if (kept?.colors === panel.colors) return kept.buffer;
    const buffer = this.upload(kept?.buffer ?? this.gl.createBuffer(), panel.colors);
    this.colors.set(panel, { buffer, colors: panel.colors });
    return buffer;
  }

  upload(buffer, values) {
    const { gl } = this;
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, values, gl.DYNAMIC_DRAW);
    return buffer;
  }
}

const MOST_WHILE_MOVING = 20000;

/** The same picture without WebGL, more slowly: squares, and fewer of them while the map moves. */
class CanvasPainter {
  paint(panel) {
    const { context, cloud, view, colors, ratio } = panel;
    context.clearRect(0, 0, panel.canvas.width, panel.canvas.height);
    const size = Math.max(1, panel.pointSize * ratio);
    const flat = view.flat;
    const [scaleX, scaleY] = view.scale;
    const count = panel.isMoving ? Math.min(cloud.n, MOST_WHILE_MOVING) : cloud.n;
    for (const [right, up] of [[0, 0], ...cloud.copies]) {
      const opacity = right || up ? FADED * panel.opacity : panel.opacity;
      for (let place = 0; place < count; place++) {
        const alpha = colors[4 * place + 3];
        if (!alpha) continue;
        const point = cloud.order[place];
        const left = (view.width / 2 + (flat[2 * point] + right - view.center[0]) * scaleX) * ratio;
        const top = (view.height / 2 - (flat[2 * point + 1] + up - view.center[1]) * scaleY) * ratio;
        context.globalAlpha = (opacity * alpha) / 255;
        context.fillStyle = cssColor(colors.subarray(4 * place, 4 * place + 3));
        context.fillRect(left - size / 2, top - size / 2, size, size);
      }
    }
    context.globalAlpha = 1;
  }
}
