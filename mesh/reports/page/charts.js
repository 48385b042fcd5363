"use strict";
// The charts over time of a report of link logs, all with the same zoom, size and colors.

(() => {
  const data = JSON.parse(document.getElementById("report").textContent);
  const charts = [];
  const LINES = ["received", "sent", "o-released", "o-modified"];
  let colors = {};

  function readColors() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["muted", "grid", "failed", "failed-fill", "p50", "p99", "max", ...LINES])
      colors[name] = style.getPropertyValue(`--${name}`).trim();
  }
  const color = (name) => () => colors[name];
  const formatRate = (value) => (value == null ? "–" : value.toLocaleString("en", value < 100 ? { maximumSignificantDigits: 3 } : { maximumFractionDigits: 0 }));
  function formatMs(value) {
    if (value == null) return "–";
    if (value >= 1000) return `${+(value / 1000).toPrecision(3)} s`;
    return `${+value.toPrecision(3)} ms`;
  }

  // Least distance of two ticks in s -> label of a tick, and the addition where a year, day or minute begins.
  const DAY = "\n{YYYY}-{MM}-{DD}";
  const TIMES = [
    [31536000, "{YYYY}", null, null, null, null, null, null, 1],
    [2419200, "{YYYY}-{MM}", null, null, null, null, null, null, 1],
    [86400, "{MM}-{DD}", "\n{YYYY}", null, null, null, null, null, 1],
    [60, "{HH}:{mm}", DAY, null, DAY, null, null, null, 1],
    [1, ":{ss}", `${DAY} {HH}:{mm}`, null, `${DAY} {HH}:{mm}`, null, "\n{HH}:{mm}", null, 1],
    [0.001, ":{ss}.{fff}", `${DAY} {HH}:{mm}`, null, `${DAY} {HH}:{mm}`, null, "\n{HH}:{mm}", null, 1],
  ];
  const TIME = { value: "{YYYY}-{MM}-{DD} {HH}:{mm}:{ss}" };

  function base(width, height, values, filter = {}) {
    // A font of whole pixels: at 11.5px, lines would be as close as at 5px.
    const shared = { stroke: color("muted"), font: "12px ui-sans-serif, system-ui, sans-serif", grid: { stroke: color("grid"), width: 1 }, ticks: { show: false } };
    return {
      width,
      height,
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), data.tz),
      cursor: { y: false, sync: { key: "report", scales: ["x", null] } },
      plugins: [shadedWindows(data.outages, data.ends_s)],
      axes: [{ ...shared, space: 90, values: TIMES }, { ...shared, size: 64, values, ...filter }],
    };
  }

  // A value without neighbors makes no line, so the value is drawn as a dot.
  function alone(u, i) {
    const values = u.data[i];
    const found = [];
    for (let at = 0; at < values.length; at++) if (values[at] != null && values[at - 1] == null && values[at + 1] == null) found.push(at);
    return found.length ? found : null;
  }
  const line = (label, name, value, more = {}) => ({ label, stroke: color(name), value, width: 1.5, points: { show: false, size: 7, fill: color(name), filter: alone }, ...more });

  // A single moment has no width: show also a window on either side.
  const around = (at) => (at.length === 1 ? { range: () => [at[0] - data.window_s, at[0] + data.window_s] } : {});

  function throughput({ at, lines, failed }, width) {
    const value = (u, rate) => formatRate(rate);
    return [
      {
        ...base(width, 200, (u, splits) => splits.map(formatRate)),
        scales: { x: around(at), y: { range: (u, least, most) => [0, (most || 1) * 1.1] } },
        series: [TIME, ...lines.map((each, i) => line(each.label, LINES[i], value)), line("not accepted", "failed", value, { fill: color("failed-fill") })],
      },
      [at, ...lines.map((each) => each.values), failed],
    ];
  }

  function latency({ at, p50, p99, max }, width) {
    const value = (u, ms) => formatMs(ms);
    const decade = (u, splits) => splits.map((ms) => (Math.abs(Math.log10(ms) % 1) < 1e-6 ? ms : null));
    // A logarithmic axis has no place for 0.
    const above0 = (values) => values.map((ms) => (ms == null ? null : Math.max(ms, 0.001)));
    return [
      {
        ...base(width, 200, (u, splits) => splits.map((ms) => (ms == null ? "" : formatMs(ms))), { filter: decade, space: 20 }),
        scales: { x: around(at), y: { distr: 3 } },
        series: [TIME, line("longest", "max", value, { dash: [1, 3] }), line("p99", "p99", value, { dash: [6, 3] }), line("p50", "p50", value, { width: 2 })],
      },
      [at, above0(max), above0(p99), above0(p50)],
    ];
  }

  readColors();
  const kinds = { throughput, latency };
  for (const figure of document.querySelectorAll("[data-kind]")) {
    const plot = figure.querySelector(".plot");
    const [options, columns] = kinds[figure.dataset.kind](data[figure.dataset.kind], plot.clientWidth);
    charts.push({ chart: new uPlot(options, columns, plot), plot });
  }

  const resize = (width) => charts.forEach(({ chart, plot }) => chart.setSize({ width: width ?? plot.clientWidth, height: chart.height }));
  function redraw() {
    readColors();
    charts.forEach(({ chart }) => chart.redraw(false, true));
  }
  const isPrinting = () => document.documentElement.classList.contains("printing");
  new ResizeObserver(() => isPrinting() || resize()).observe(document.body);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  // Paper is light, narrow, and cannot be clicked.
  addEventListener("beforeprint", () => {
    document.documentElement.classList.add("printing");
    document.querySelectorAll("details").forEach((each) => (each.open = true));
    redraw();
    resize(680);
  });
  addEventListener("afterprint", () => {
    document.documentElement.classList.remove("printing");
    redraw();
    resize();
  });
})();
