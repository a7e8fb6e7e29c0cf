// The painter for graphics cards. raster.js has one that needs none, with the same duties: a picture is
// begun, parts of the points are added to it, and it is shown whenever a part is done.

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
    const options = { antialias: false, premultipliedAlpha: true, preserveDrawingBuffer: true };
    this.gl = this.canvas.getContext("webgl", options);
    if (!this.gl) throw new Error("the browser has no WebGL");
    this.canvas.addEventListener("webglcontextlost", onLost);
    this.program = this.link();
    this.at = {};
    for (const name of ["rotation", "center", "scale", "paper", "size", "depth", "opacity"]) {
      this.at[name] = this.gl.getUniformLocation(this.program, name);
    }
    this.pixel = new Uint8Array(4);
    this.positions = new Map();
    this.colors = new Map();
    this.pace = new Pace();
  }

  /** Whether a program stands in for the graphics card. Chrome reports it only in an extension. */
  get isEmulated() {
    const { gl } = this;
    let name = gl.getParameter(gl.RENDERER);
    const extension = name.startsWith("WebKit") && gl.getExtension("WEBGL_debug_renderer_info");
    if (extension) name = gl.getParameter(extension.UNMASKED_RENDERER_WEBGL);
    return /swiftshader|llvmpipe|softpipe|software|basic render/i.test(name);
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

  begin(panel) {
    const { gl } = this;
    const { width, height } = panel.canvas;
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
    this.bind("position", panel.cloud.stride, gl.FLOAT, false, this.positionBuffer(panel.cloud));
    this.bind("color", 4, gl.UNSIGNED_BYTE, true, this.colorBuffer(panel));
  }

  /** Paint the places from first to last; of a torus, faded copies too. */
  add(panel, first, last) {
    const { gl, at } = this;
    const { center } = panel.view;
    gl.drawArrays(gl.POINTS, first, last - first);
    if (panel.cloud.torus) {
      gl.uniform1f(at.opacity, FADED * panel.opacity);
      for (const [right, up] of panel.cloud.copies) {
        gl.uniform2f(at.center, center[0] - right, center[1] - up);
        gl.drawArrays(gl.POINTS, first, last - first);
      }
      gl.uniform1f(at.opacity, panel.opacity);
      gl.uniform2f(at.center, ...center);
    }
    // Reading a pixel waits until all is painted: without it, nothing could be timed.
    if (last - first >= WORTH_TIMING) gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, this.pixel);
  }

  show(panel) {
    const { width, height } = panel.canvas;
    panel.context.clearRect(0, 0, width, height);
    panel.context.drawImage(this.canvas, 0, this.canvas.height - height, width, height, 0, 0, width, height);
  }

  setUniforms(panel, isDeep) {
    const { gl, at } = this;
    const { view } = panel;
    const [r, [scaleX, scaleY]] = [view.rotation, view.scale];
    const byColumns = [r[0], r[3], r[6], r[1], r[4], r[7], r[2], r[5], r[8]];
    gl.uniformMatrix3fv(at.rotation, false, byColumns);
    gl.uniform2f(at.center, ...view.center);
    gl.uniform2f(at.scale, (2 * scaleX) / view.width, (2 * scaleY) / view.height);
    gl.uniform3f(at.paper, ...panel.theme.paper.map((value) => value / 255));
    gl.uniform1f(at.size, panel.pointSize * panel.ratio);
    gl.uniform1f(at.opacity, panel.opacity);
    gl.uniform1f(at.depth, isDeep ? 1 : 0);
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
    if (!this.positions.has(cloud)) this.positions.set(cloud, this.upload(this.gl.createBuffer(), cloud.ordered));
    return this.positions.get(cloud);
  }

  /** Colors are sent again only when they have changed. */
  colorBuffer(panel) {
    const kept = this.colors.get(panel);
    if (kept?.version === panel.version) return kept.buffer;
    const buffer = this.upload(kept?.buffer ?? this.gl.createBuffer(), panel.colors);
    this.colors.set(panel, { buffer, version: panel.version });
    return buffer;
  }

  upload(buffer, values) {
    const { gl } = this;
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, values, gl.DYNAMIC_DRAW);
    return buffer;
  }
}

