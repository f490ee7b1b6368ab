"use strict";
// Draws the plots of the page from the JSON in it, with their switches. Without it the tables remain.
(() => {
  const COLOURS = 11, CEILING = 1e3, FLOOR = 1e-12, LONG = 300;
  const DASHES = [[], [10, 4], [3, 3], [10, 3, 3, 3]];
  const AXES = [["k", "iterations"], ["g", "gradients"], ["t", "time"]];
  const plots = [];

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colour = (m) => css(`--c${m.place % COLOURS}`);
  const dash = (m) => DASHES[m.place % DASHES.length];

  function element(tag, attributes = {}, ...children) {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  }

  function power(v) {
    const signs = "⁰¹²³⁴⁵⁶⁷⁸⁹";
    const e = Math.round(Math.log10(v));
    return "10" + (e < 0 ? "⁻" : "") + [...String(Math.abs(e))].map((d) => signs[d]).join("");
  }

  const isPower = (v) => v > 0 && Math.abs(Math.log10(v) - Math.round(Math.log10(v))) < 1e-9;
  // Powers of ten, and twice and five times them where there are few.
  function ticks(low, high, width) {
    const first = Math.floor(Math.log10(low) + 1e-9), last = Math.ceil(Math.log10(high) - 1e-9);
    const factors = last - first < Math.min(4, width / 140) ? [1, 2, 5] : [1], at = [];
    for (let e = first; e <= last; e++) for (const f of factors) {
      const v = Number(`${f}e${e}`);
      if (v >= low * (1 - 1e-9) && v <= high * (1 + 1e-9)) at.push(v);
    }
    return at;
  }

  const short = (v) => (v >= 0.01 && v < 1e5) || v === 0 ? String(+v.toPrecision(3)) : v.toExponential(2);

  // Every method has its own x (gradients, time). All get a value at every x, between two of their
  // own by interpolation of logarithms, so that the readout under the cursor names all methods.
  function align(curves, axis) {
    const all = new Set();
    for (const c of curves) for (const x of c[axis]) all.add(x);
    const x = Float64Array.from(all).sort();
    const fill = (c, key) => {
      const at = c[axis], values = c[key], out = new Array(x.length).fill(null);
      for (let i = 0, j = 0; i < x.length; i++) {
        while (j + 1 < at.length && at[j + 1] <= x[i]) j++;
        if (x[i] < at[0] || x[i] > at[at.length - 1]) continue;
        const low = values[j], high = values[Math.min(j + 1, at.length - 1)];
        if (at[j] === x[i]) { out[i] = low; continue; }
        if (low === null || high === null) continue;
        const w = (x[i] - at[j]) / (at[j + 1] - at[j]);
        out[i] = low > 0 && high > 0 ? low ** (1 - w) * high ** w : (1 - w) * low + w * high;
      }
      return out;
    };
    return [x, fill];
  }

  // One plot with its switches. The state decides all; a change draws again from nothing.
  class Plot {
    constructor(figure, panel) {
      this.panel = panel;
      this.box = figure.querySelector(".canvas");
      const what = panel.methods.every((m) => m.median) ? "median" : "mean";
      const last = this.xEnd(panel.methods.map((m) => m[what]), panel.x);
      this.state = {
        x: panel.x,
        scale: last > LONG ? "log" : "linear",
        what,
        shown: panel.methods.map(() => true),
      };
      this.outputs = [];
      this.build(figure.querySelector(".controls"));
      this.draw();
      new ResizeObserver(() => this.fit()).observe(this.box);
    }

    build(controls) {
      const id = `p${plots.length}`, panel = this.panel;
      const switches = element("div", { class: "switches" });
      switches.append(this.choice(id, "Against", "x", AXES));
      switches.append(this.choice(id, "x scale", "scale", [["linear", "linear"], ["log", "log"]]));
      if (this.state.what === "median")
        switches.append(this.choice(id, "Show", "what", [
          ["median", `median of ${panel.some}`], ["mean", `mean of ${panel.all}`],
        ]));
      const methods = element("fieldset", { "aria-label": "Methods" });
      const list = element("div", { class: "methods" });
      this.boxes = panel.methods.map((m, i) => this.method(m, i, list));
      const set = (text, on) => {
        const button = element("button", { type: "button" }, text);
        button.addEventListener("click", () => {
          this.boxes.forEach((box, i) => { box.checked = on; this.state.shown[i] = on; });
          this.draw();
        });
        return button;
      };
      this.readout = element("span", { class: "readout" });
      const tools = element("div", { class: "tools" }, set("All", true), set("None", false), this.readout);
      methods.append(list, tools);
      controls.append(switches, methods);
    }

    choice(id, title, key, options) {
      const set = element("fieldset", {}, element("legend", {}, title));
      const row = element("div", { class: "choices" });
      for (const [value, text] of options) {
        const input = element("input", { type: "radio", name: `${id}-${key}`, value });
        input.checked = this.state[key] === value;
        input.addEventListener("change", () => { this.state[key] = value; this.draw(); });
        row.append(element("label", {}, input, element("span", {}, text)));
      }
      set.append(row);
      return set;
    }

    method(m, i, list) {
      const box = element("input", { type: "checkbox" });
      box.checked = true;
      box.addEventListener("change", () => { this.state.shown[i] = box.checked; this.draw(); });
      const ns = "http" + "://www.w3.org/2000/svg";
      const svg = document.createElementNS(ns, "svg"), line = document.createElementNS(ns, "line");
      for (const [k, v] of Object.entries({ width: 34, height: 8, "aria-hidden": "true" })) svg.setAttribute(k, v);
      const drawn = { x1: 0, x2: 34, y1: 4, y2: 4, "stroke-width": 2.5, "stroke-dasharray": dash(m).join(" ") };
      for (const [k, v] of Object.entries(drawn)) line.setAttribute(k, v);
      line.style.stroke = `var(--c${m.place % COLOURS})`;
      svg.append(line);
      const output = element("output", { "aria-live": "off" });
      this.outputs.push(output);
      list.append(element("label", {}, box, svg, element("span", { class: "name" }, m.label), output));
      return box;
    }

    xLabel() {
      return { k: "iterations", g: "gradients", t: "milliseconds a problem" }[this.state.x];
    }

    yRange(curves) {
      const all = curves.flatMap((c) => [...c.v, ...(c.low || [])]).filter((v) => v !== null && v > 0);
      if (!all.length) return [0.1, 10];
      const first = Math.max(...curves.map((c) => c.v[0] || 0)), most = Math.max(...all);
      const low = Math.floor(Math.log10(Math.min(...all)) + 1e-9);
      // A curve that leaves the plot at the top diverged; it must not flatten the others.
      const high = Math.ceil(Math.log10(Math.min(most, Math.max(first, CEILING))) - 1e-9);
      return [10 ** low, 10 ** Math.max(high, low + 1)];
    }

    floored(v) { return this.panel.gap && v !== null && v <= FLOOR; }

    // Where the last curve comes down to the floor for good: beyond there is nothing to see.
    xEnd(curves, axis) {
      const ends = curves.map((c) => {
        const above = c.v.findLastIndex((v) => !this.floored(v));
        return c[axis][Math.min(above + 1, c.v.length - 1)];
      });
      return Math.max(...ends);
    }

    draw() {
      if (!this.box.clientWidth) return;
      const { x: axis, what, scale, shown } = this.state;
      const curves = this.panel.methods.map((m) => m[what] || m.mean);
      const [x, fill] = align(curves, axis);
      const data = [x], series = [{}], bands = [];
      curves.forEach((c, i) => {
        const m = this.panel.methods[i];
        data.push(fill(c, "v"));
        series.push({ label: m.label, stroke: colour(m), width: 2, dash: dash(m), show: shown[i],
          points: { show: x.length < 2 } });
      });
      curves.forEach((c, i) => {
        if (!c.low || !shown[i]) return;
        const n = data.length;
        data.push(fill(c, "high"), fill(c, "low"));
        for (let j = 0; j < 2; j++) series.push({ stroke: "transparent", width: 0, points: { show: false } });
        bands.push({ series: [n, n + 1], fill: colour(this.panel.methods[i]) + "26" });
      });
      this.render(data, series, bands, this.xEnd(curves, axis), this.yRange(curves), scale === "log");
    }

    render(data, series, bands, last, range, logarithmic) {
      const quiet = css("--quiet"), grid = { stroke: css("--line"), width: 1 };
      const font = "13px system-ui, sans-serif", log = { distr: 3, log: 10 };
      const logs = {
        splits: (u, i, low, high) => ticks(low, high, i === 0 ? u.width : Infinity),
        values: (u, at) => at.map((v) => (v < 1 || v > 1e4) && isPower(v) ? power(v) : short(v)),
        filter: (u, at) => at,
      };
      const first = logarithmic ? data[0].find((v) => v > 0) || 1 : data[0][0], all = data[0][data[0].length - 1];
      const axis = { stroke: quiet, grid, ticks: grid, font, labelFont: font };
      if (this.u) this.u.destroy();
      this.u = new uPlot({
        width: this.box.clientWidth, height: this.box.clientHeight,
        padding: [12, 20, 0, 0],
        legend: { show: false },
        cursor: { y: false, points: { size: 7 } },
        scales: {
          x: { time: false, ...(logarithmic ? log : {}), range: (u, a, b) => this.zoom(a, b, first, last, all) },
          y: { ...log, range: () => range },
        },
        axes: [
          { ...axis, label: this.xLabel(), labelSize: 24, size: 36, ...(logarithmic ? logs : {}) },
          { ...axis, label: this.panel.y, labelSize: 26, size: 52, ...logs },
        ],
        series, bands,
        hooks: { setCursor: [(u) => this.read(u)] },
      }, data, this.box);
      this.read(this.u);
    }

    // uPlot asks with the zoom, or with the ends of the data where there is none.
    zoom(a, b, first, last, all) {
      const whole = a === null || a === b || (a <= first && b >= all);
      return whole ? [first, last > first ? last : first + 1] : [Math.max(a, first), b];
    }

    read(u) {
      const i = u.cursor.idx;
      const some = i !== null && i !== undefined;
      this.readout.textContent = some ? `at ${short(u.data[0][i])} ${this.xLabel()}` : "";
      this.outputs.forEach((output, j) => {
        const v = some && this.state.shown[j] ? u.data[j + 1][i] : null;
        output.textContent = v === null || v === undefined ? "" : this.floored(v) ? "≤ 1e-12" : short(v);
      });
    }

    fit() {
      if (this.u && this.box.clientWidth !== this.u.width)
        this.u.setSize({ width: this.box.clientWidth, height: this.box.clientHeight });
    }
  }

  const dark = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement, button = document.getElementById("theme");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);

  function paint() {
    button.textContent = isDark() ? "Light colours" : "Dark colours";
    for (const plot of plots) plot.draw();
  }

  // Some browsers keep nothing for pages from disk; the switch then lasts as long as the page.
  function remember(value) { try { localStorage.setItem("proxlearn-theme", value); } catch { /* lasts as long as the page */ } }
  function remembered() { try { return localStorage.getItem("proxlearn-theme"); } catch { return null; } }

  if (["dark", "light"].includes(remembered())) root.dataset.theme = remembered();
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    remember(root.dataset.theme);
    paint();
  });
  dark.addEventListener("change", paint);

  const data = JSON.parse(document.getElementById("data").textContent).flat();
  // Gradients that are not given are one an iteration.
  for (const m of data.flatMap((panel) => panel.methods)) for (const c of [m.mean, m.median]) if (c) c.g ||= c.k;
  document.querySelectorAll("figure.plot").forEach((figure, i) => {
    const plot = new Plot(figure, data[i]);
    figure.plot = plot;
    plots.push(plot);
  });
  paint();
})();
