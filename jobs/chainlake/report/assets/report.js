/* Charts, the grid of definitions and days, and the search of Chainlake's report. Loads nothing. */
"use strict";
(function () {
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const dark = matchMedia("(prefers-color-scheme: dark)");

  /* ---- charts */

  const LIGHT = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"];
  const DARK = ["#56B4E9", "#F08A3C", "#2FC79B", "#E0A0C4", "#F0C04A", "#8FB7FF", "#E6E9ED"];

  function config() {
    const fg = css("fg"), soft = css("soft"), grid = css("grid"), font = 'system-ui, "DejaVu Sans", Arial, sans-serif';
    return {
      background: null, font: font,
      view: { stroke: null },
      axis: { labelColor: soft, titleColor: fg, gridColor: grid, domainColor: soft, tickColor: soft, labelFontSize: 11,
              titleFontSize: 12, titleFontWeight: 500, labelFlush: false, titlePadding: 8 },
      /* A label that is centred this close to an end would leave the picture. */
      axisX: { labelFlush: 42 },
      legend: { labelColor: fg, titleColor: fg, labelFontSize: 11, titleFontSize: 12, titleFontWeight: 500, labelLimit: 260 },
      title: { color: fg, fontSize: 13, fontWeight: 600, anchor: "start" },
      range: { category: dark.matches ? DARK : LIGHT },
      style: {
        ink: { color: fg }, "label": { color: fg, fontSize: 11 },
        shade: { color: css("shade"), opacity: dark.matches ? 0.22 : 0.18 },
        halo: { color: css("bg"), stroke: css("bg"), strokeWidth: 4, strokeJoin: "round", fontSize: 11 },
        loud: { color: css("failed"), stroke: css("failed") }, quiet: { color: soft, stroke: soft },
        main: { color: css("done") }, second: { color: css("stale") },
        "shown-point": { stroke: css("bg"), strokeWidth: 1.5 },
      },
    };
  }

  const drawn = new Map();

  function draw(figure) {
    if (drawn.get(figure) === dark.matches) return;
    drawn.set(figure, dark.matches);
    const spec = JSON.parse(figure.querySelector("script.spec").textContent);
    const holder = figure.querySelector(".chart");
    const renderer = (spec.usermeta && spec.usermeta.renderer) || "svg";
    vegaEmbed(holder, spec, { actions: false, renderer: renderer, config: config(), tooltip: { theme: dark.matches ? "dark" : "light" } })
      .then(() => { holder.dataset.drawn = "yes"; })
      .catch((error) => {
        console.error(error);
        holder.textContent = "This chart could not be drawn: " + error.message;
        holder.classList.add("error");
      });
  }

  function charts() {
    const figures = [...document.querySelectorAll("figure")].filter((one) => one.querySelector("script.spec"));
    if (!figures.length) return;
    const seen = new IntersectionObserver((entries) => {
      for (const entry of entries) if (entry.isIntersecting) draw(entry.target);
    }, { rootMargin: "600px" });
    figures.forEach((one) => seen.observe(one));
    dark.addEventListener("change", () => { for (const one of [...drawn.keys()]) draw(one); });
    addEventListener("beforeprint", () => figures.forEach(draw));
  }

  /* ---- the grid of definitions and days */

  function unpack(text) {
    /* "3x12,0x4": twelve days of state 3, four of state 0; "-" is no day. */
    const out = [];
    for (const part of text ? text.split(",") : []) {
      const [code, times] = part.split("x");
      const value = code === "-" ? -1 : +code;
      for (let n = times === undefined ? 1 : +times; n > 0; n--) out.push(value);
    }
    return out;
  }

  class Grid {
    constructor(box, data) {
      this.box = box; this.data = data; this.layer = "status"; this.row = 0; this.at = data.days - 1; this.hit = null;
      this.numbers = data.spans.flatMap(([day, many]) => Array.from({ length: many }, (_, n) => Date.parse(day + "T00:00:00Z") / 864e5 + n));
      this.begins = new Set(); let at = 0; for (const [, many] of data.spans) { this.begins.add(at); at += many; }
      /* Per state its words, its colour, and its rank among days that share a column of pixels. */
      this.known = data.states.map(([words, colour, rank, hatched]) => ({ words, colour, rank, hatched }));
      this.states = data.rows.map((row) => Int8Array.from(unpack(row.states)));
      this.counts = data.rows.map((row) => Float64Array.from(unpack(row.counts)));
      this.canvas = box.querySelector("canvas");
      this.said = document.getElementById("said");
      this.from = 0; this.to = data.days;
      const ask = (event) => this.point(event);
      this.canvas.addEventListener("mousemove", ask);
      this.canvas.addEventListener("click", (event) => { ask(event); this.go(); });
      this.canvas.addEventListener("keydown", (event) => this.key(event));
      addEventListener("resize", () => this.draw());
      dark.addEventListener("change", () => this.draw());
      document.querySelectorAll("[data-layer]").forEach((button) => button.addEventListener("click", () => {
        this.layer = button.dataset.layer;
        document.querySelectorAll("[data-layer]").forEach((b) => b.setAttribute("aria-pressed", String(b === button)));
        document.querySelectorAll("[data-legend]").forEach((b) => { b.hidden = b.dataset.legend !== this.layer; });
        this.draw();
      }));
      const years = document.getElementById("years");
      if (years) years.addEventListener("change", () => {
        const [from, to] = years.value.split("..");
        this.from = from ? Math.max(0, this.number(from)) : 0;
        this.to = to ? Math.min(data.days, this.number(to)) : data.days;
        this.at = Math.min(Math.max(this.at, this.from), this.to - 1);
        this.draw();
      });
      this.draw();
    }
    number(day) { const n = Date.parse(day + "T00:00:00Z") / 864e5, at = this.numbers.findIndex((one) => one >= n); return at < 0 ? this.numbers.length : at; }
    day(at) { return new Date(this.numbers[at] * 864e5).toISOString().slice(0, 10); }

    measure() {
      const rows = this.data.rows.length, width = this.box.clientWidth - 2;
      const context = this.canvas.getContext("2d");
      context.font = this.font = "12px system-ui, 'DejaVu Sans', Arial, sans-serif";
      const longest = Math.max(...this.data.rows.map((row) => context.measureText(row.name).width), 40);
      this.left = Math.min(Math.ceil(longest) + 14, Math.floor(width * 0.4));
      this.top = 24; this.high = rows > 40 ? 14 : 18; this.days = this.to - this.from;
      this.span = Math.max(1, width - this.left - 6);
      this.cell = Math.min(48, this.span / this.days);
      this.width = width; this.height = this.top + rows * this.high + 6;
    }

    draw() {
      this.measure();
      const scale = devicePixelRatio || 1, canvas = this.canvas;
      canvas.width = Math.round(this.width * scale); canvas.height = Math.round(this.height * scale);
      canvas.style.width = this.width + "px"; canvas.style.height = this.height + "px";
      const g = canvas.getContext("2d");
      g.scale(scale, scale); g.font = this.font; g.textBaseline = "middle";
      this.ticks(g);
      const gap = this.cell >= 5 ? 1 : 0;
      const columns = Math.min(this.days, Math.ceil(this.days * this.cell));
      const colours = Object.fromEntries(this.known.map(({ colour }) => [colour, css(colour)]));
      const most = Math.max(1, this.data.most), few = parse(css("few")), many = parse(css("many")), empty = css("empty");
      g.fillStyle = css("fg");
      this.data.rows.forEach((row, r) => {
        const y = this.top + r * this.high;
        g.fillStyle = css("fg"); g.textAlign = "left";
        g.fillText(fit(g, row.name, this.left - 10), 4, y + this.high / 2);
        let last = null, lined = 0, from = 0;
        const flush = (x) => {
          if (last === null || x <= from) return;
          g.fillStyle = last; g.fillRect(this.left + from, y + 1, x - from - gap, this.high - 2);
          if (lined) this.hatch(g, this.left + from, y + 1, x - from - gap, this.high - 2);
        };
        for (let c = 0; c < columns; c++) {
          const a = this.from + Math.floor(c * this.days / columns), b = Math.max(a + 1, this.from + Math.floor((c + 1) * this.days / columns));
          const state = this.layer === "status" ? this.worst(r, a, b) : null, hatched = state ? state.hatched : 0;
          const colour = state ? colours[state.colour] : this.layer === "status" ? null : this.heat(r, a, b, most, few, many, empty);
          const x = c * Math.max(this.cell, this.days * this.cell / columns);
          if (colour !== last || hatched !== lined || gap) { flush(x); last = colour; lined = hatched; from = x; }
        }
        flush(columns * Math.max(this.cell, this.days * this.cell / columns));
      });
      this.mark(g);
    }

    hatch(g, x, y, wide, high) {
      g.save();
      g.beginPath(); g.rect(x, y, wide, high); g.clip();
      g.strokeStyle = css("bg"); g.lineWidth = 1.5;
      g.beginPath();
      for (let at = x - high; at < x + wide; at += 5) { g.moveTo(at, y + high); g.lineTo(at + high, y); }
      g.stroke(); g.restore();
    }

    worst(r, a, b) {
      let best = -1, state = -1;
      for (let d = a; d < b; d++) { const one = this.states[r][d]; if (one >= 0 && this.known[one].rank > best) { best = this.known[one].rank; state = one; } }
      return state < 0 ? null : this.known[state];
    }

    heat(r, a, b, most, few, many, empty) {
      let sum = 0, known = false;
      for (let d = a; d < b; d++) { const n = this.counts[r][d]; if (n >= 0) { known = true; sum = Math.max(sum, n); } }
      if (!known) return null;
      if (!sum) return empty;
      /* Counts differ by powers of ten between patterns. */
      const share = Math.log1p(sum) / Math.log1p(most);
      return `rgb(${few.map((v, i) => Math.round(v + (many[i] - v) * share)).join(",")})`;
    }

    ticks(g) {
      g.fillStyle = css("soft"); g.strokeStyle = css("grid"); g.lineWidth = 1; g.textAlign = "left";
      let last = -1e9, named = true;
      const step = this.days > 800 ? "year" : this.days > 45 ? "month" : "day";
      for (let d = this.from; d < this.to; d++) {
        const day = this.day(d);
        const begins = this.begins.has(d) && this.begins.size > 1;
        if (begins) named = false;
        if (!begins && step === "year" && !day.endsWith("-01-01")) continue;
        if (!begins && step === "month" && !day.endsWith("-01")) continue;
        const x = this.left + (d - this.from) * this.cell;
        /* Where days are left out, the first label that fits names the year. */
        const label = !named ? day : step === "year" ? day.slice(0, 4) : step === "month" ? day.slice(0, 7) : day.slice(5);
        const wide = g.measureText(label).width;
        if (x < last + 10 || x + wide > this.width) continue;
        last = x + wide;
        named = true;
        g.fillText(label, x, 11);
        /* Days are left out before it. */
        g.strokeStyle = css(begins && d > this.from ? "soft" : "grid");
        g.beginPath(); g.moveTo(x - 0.5, 20); g.lineTo(x - 0.5, this.height - 6); g.stroke();
      }
    }

    mark(g) {
      if (document.activeElement !== this.canvas && !this.hit) return;
      const x = this.left + (this.at - this.from) * this.cell, y = this.top + this.row * this.high;
      g.strokeStyle = css("focus"); g.lineWidth = 2;
      g.strokeRect(x - 1, y, Math.max(4, this.cell), this.high);
    }

    say() {
      const row = this.data.rows[this.row], state = this.states[this.row][this.at], count = this.counts[this.row][this.at];
      const key = row.name + " " + this.day(this.at);
      const why = row.why && row.why[String(this.at)];
      let text = key + ": " + (state < 0 || state === undefined ? "no such day" : this.known[state].words);
      if (count >= 0) text += ", " + count.toLocaleString("en") + (count === 1 ? " row" : " rows");
      if (why) text += " (" + why + ")";
      this.said.textContent = text;
    }

    point(event) {
      const box = this.canvas.getBoundingClientRect();
      const r = Math.floor((event.clientY - box.top - this.top) / this.high);
      const d = this.from + Math.floor((event.clientX - box.left - this.left) / this.cell);
      if (r < 0 || r >= this.data.rows.length) return;
      this.named = event.clientX - box.left < this.left;
      this.row = r; this.hit = true;
      if (!this.named) this.at = Math.min(Math.max(d, this.from), this.to - 1);
      this.canvas.style.cursor = this.data.rows[r].page ? "pointer" : "default";
      this.say(); this.draw();
    }

    go() { const page = this.data.rows[this.row].page; if (page) location.href = page; }

    key(event) {
      const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], PageUp: [0, -30], PageDown: [0, 30] };
      if (event.key === "Enter") { this.go(); return; }
      if (event.key === "Home") this.at = this.from;
      else if (event.key === "End") this.at = this.to - 1;
      else if (steps[event.key]) {
        this.row = Math.min(Math.max(this.row + steps[event.key][0], 0), this.data.rows.length - 1);
        this.at = Math.min(Math.max(this.at + steps[event.key][1], this.from), this.to - 1);
      } else return;
      event.preventDefault(); this.hit = true; this.say(); this.draw();
    }
  }

  function parse(colour) {
    const hex = colour.replace("#", "");
    return [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16));
  }

  function fit(g, text, width) {
    if (g.measureText(text).width <= width) return text;
    let cut = text;
    while (cut.length > 1 && g.measureText(cut + "…").width > width) cut = cut.slice(0, -1);
    return cut + "…";
  }

  /* ---- search by name */

  function search() {
    const field = document.getElementById("find");
    if (!field) return;
    const rows = [...document.querySelectorAll("[data-name]")], told = document.getElementById("found");
    field.addEventListener("input", () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        row.hidden = !words.every((word) => row.dataset.name.includes(word));
        shown += row.hidden ? 0 : 1;
      }
      told.textContent = shown + " of " + rows.length;
    });
  }

  addEventListener("DOMContentLoaded", () => {
    charts();
    search();
    const box = document.getElementById("grid"), data = document.getElementById("grid-data");
    if (box && data) new Grid(box, JSON.parse(data.textContent));
    document.documentElement.dataset.ready = "yes";
  });
})();
