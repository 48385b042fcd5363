"use strict";
// The look of a chart: axes, series, marks, and the windows of the faults behind the series. Independent of the page.

const drillCharts = (() => {
  const OUTCOMES = ["accepted", "released", "modified", "rejected", "unknown", "lost"];
  const AXIS_WIDTH = 56;
  const HEIGHTS = { throughput: 170, latency: 170, messages: 200 };
  const SYNC = "drill";
  let colors = {};

  function readColors() {
    const style = getComputedStyle(document.documentElement);
    const names = ["ink", "muted", "grid", "sent", "received", "received-fill", "failed", "failed-fill", "p50", "p99", "max"];
    for (const name of [...names, ...OUTCOMES.map((outcome) => `o-${outcome}`)])
      colors[name] = style.getPropertyValue(`--${name}`).trim();
  }
  const color = (name) => () => colors[name];
  const outcomeColor = (outcome) => colors[`o-${outcome}`] || colors["o-unknown"];

  function formatMs(value) {
    if (value == null) return "–";
    if (value >= 60000) return `${+(value / 60000).toPrecision(3)} min`;
    if (value >= 1000) return `${+(value / 1000).toPrecision(3)} s`;
    return `${+value.toPrecision(3)} ms`;
  }
  const formatRate = (value) => (value == null ? "–" : (value < 10 ? +value.toFixed(1) : Math.round(value)).toLocaleString("en"));
  const formatTime = (value) => (value == null ? "–" : `${value.toFixed(2)} s`);

  function axes(yValues, isLog = false) {
    // A logarithmic axis has lines at the decades only: lines without figures would say nothing.
    const decade = (u, splits) => splits.map((ms) => (Math.abs(Math.log10(ms) % 1) < 1e-6 ? ms : null));
    const filter = isLog ? { filter: decade, grid: { filter: decade, stroke: color("grid"), width: 1 } } : {};
    const shared = { stroke: color("muted"), font: "11.5px ui-sans-serif, system-ui, sans-serif", grid: { stroke: color("grid"), width: 1 }, ticks: { show: false } };
    return [
      { ...shared, space: 70, size: 26, values: (u, splits) => splits.map((at) => `${+at.toFixed(3)} s`) },
      { ...shared, space: isLog ? 20 : 30, size: AXIS_WIDTH, values: yValues, ...filter },
    ];
  }

  function options(kind, width, faults, end, view) {
    return {
      width,
      height: HEIGHTS[kind],
      padding: [10, 18, 0, 0],
      plugins: [shadedWindows(faults, end)],
      cursor: {
        y: false,
        points: { size: 6 },
        drag: { x: true, y: false, setScale: false },
        // Each chart follows the cursor of the others; the page zooms them all.
        sync: { key: SYNC, setSeries: false, filters: { pub: (type) => type === "mousemove" || type === "mouseleave" } },
        bind: { dblclick: () => () => view.show(null) },
      },
      select: { show: true },
      scales: { x: { time: false, range: () => view.range() } },
      hooks: {
        setSelect: [
          (u) => {
            const { left, width: wide } = u.select;
            if (wide > 4) view.show([u.posToVal(left, "x"), u.posToVal(left + wide, "x")]);
            u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          },
        ],
      },
    };
  }

  function throughput(series, base) {
    const steps = (counts) => [...counts.map((count) => count / series.bin_s), counts.at(-1) / series.bin_s];
    const at = [...series.sent, 0].map((_, i) => i * series.bin_s);
    const paths = uPlot.paths.stepped({ align: 1 });
    const value = (u, rate) => formatRate(rate);
    const line = (label, more) => ({ label, paths, value, width: 1.5, points: { show: false }, ...more });
    return [
      {
        ...base,
        axes: axes((u, splits) => splits.map(formatRate)),
        scales: { ...base.scales, y: { range: (u, least, most) => [0, (most || 1) * 1.18] } },
        series: [
          { label: "at", value: (u, seconds) => formatTime(seconds) },
          line("received", { stroke: color("received"), fill: color("received-fill") }),
          line("sent", { stroke: color("sent"), dash: [4, 3] }),
          line("failed", { stroke: color("failed"), fill: color("failed-fill") }),
        ],
      },
      [at, steps(series.received), steps(series.sent), steps(series.failed)],
    ];
  }

  // A logarithmic axis has no place for 0.
  const above0 = (values) => values.map((value) => (value == null ? null : Math.max(value, 0.01)));

  function decades(u, least, most) {
    if (least == null || most == null) return [0.1, 100];
    return [10 ** Math.floor(Math.log10(least)), 10 ** Math.ceil(Math.log10(most * 1.6))];
  }

  function latency(series, base) {
    const at = series.p50_ms.map((_, i) => (i + 0.5) * series.bin_s);
    const value = (u, ms) => formatMs(ms);
    const line = (label, name, more) => ({ label, stroke: color(name), value, width: 1.5, points: { show: false }, ...more });
    return [
      {
        ...base,
        axes: axes((u, splits) => splits.map((ms) => (ms == null ? "" : formatMs(ms))), true),
        scales: { ...base.scales, y: { distr: 3, range: decades } },
        series: [
          { label: "at", value: (u, seconds) => formatTime(seconds) },
          line("max", "max", { dash: [1, 3] }),
          line("p99", "p99", { dash: [6, 3] }),
          line("p50", "p50", { width: 2 }),
        ],
      },
      [at, above0(series.max_ms), above0(series.p99_ms), above0(series.p50_ms)],
    ];
  }

  // Shapes as well as colors tell outcomes apart.
  function mark(context, outcome, x, y, size) {
    context.strokeStyle = context.fillStyle = outcomeColor(outcome);
    context.beginPath();
    if (outcome === "accepted") context.arc(x, y, size * 0.55, 0, 2 * Math.PI);
    else if (outcome === "released") context.rect(x - size * 0.7, y - size * 0.7, size * 1.4, size * 1.4);
    else if (outcome === "modified") corners(context, [[x, y - size], [x + size, y + size * 0.8], [x - size, y + size * 0.8]]);
    else if (outcome === "rejected") corners(context, [[x, y - size], [x + size, y], [x, y + size], [x - size, y]]);
    else if (outcome === "lost") cross(context, x, y, size, size);
    else cross(context, x, y, size, 0);
    if (outcome === "accepted" || outcome === "released" || outcome === "modified" || outcome === "rejected") context.fill();
    else context.stroke();
  }
  function corners(context, points) {
    points.forEach(([x, y]) => context.lineTo(x, y));
    context.closePath();
  }
  function cross(context, x, y, size, lean) {
    const straight = lean ? lean : 0;
    context.moveTo(x - size, y - straight);
    context.lineTo(x + size, y + straight);
    context.moveTo(x - straight, y + size);
    context.lineTo(x + straight, y - size);
  }

  function drawMarks(messages) {
    return (u) => {
      const { ctx: context, bbox } = u;
      const ratio = devicePixelRatio;
      const [from, to] = [u.scales.x.min, u.scales.x.max];
      context.save();
      context.beginPath();
      context.rect(bbox.left, bbox.top, bbox.width, bbox.height);
      context.clip();
      context.lineWidth = 1.75 * ratio;
      for (const [at, outcome, ms] of messages) {
        if (at < from || at > to) continue;
        const x = u.valToPos(at, "x", true);
        const y = ms == null ? bbox.top + 24 * ratio : u.valToPos(Math.max(ms, 0.01), "y", true);
        context.globalAlpha = outcome === "accepted" ? 0.55 : 0.9;
        mark(context, outcome, x, y, (outcome === "accepted" ? 3 : 4) * ratio);
      }
      context.restore();
    };
  }

  function messages(all, base) {
    // Accepted messages first, so that they do not hide the others.
    const ordered = [...all].sort((a, b) => (a[1] !== "accepted") - (b[1] !== "accepted") || a[0] - b[0]);
    const points = [...all].sort((a, b) => a[0] - b[0]);
    const top = (u, least, most) => {
      const [bottom, ceiling] = decades(u, least, most);
      return [bottom, ceiling * 10];
    };
    return [
      {
        ...base,
        legend: { show: false },
        cursor: { ...base.cursor, points: { show: false } },
        axes: axes((u, splits) => splits.map((ms) => (ms == null || ms >= u.scales.y.max * 0.9 ? "" : formatMs(ms))), true),
        scales: { ...base.scales, y: { distr: 3, range: top } },
        series: [{}, { paths: () => null, points: { show: false } }],
        hooks: { ...base.hooks, draw: [drawMarks(ordered)] },
      },
      [points.map((point) => point[0]), above0(points.map((point) => point[2]))],
    ];
  }

  // The samples beside the labels of a legend.
  function drawLegend(item) {
    const canvas = item.querySelector("canvas");
    const context = canvas.getContext("2d");
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.lineWidth = 3.5;
    mark(context, item.dataset.outcome, canvas.width / 2, canvas.height / 2, 8);
  }

  return { readColors, options, drawLegend, kinds: { throughput, latency, messages } };
})();
