"use strict";
// Places the charts on the page, and keeps zoom, size and colors of all charts the same.

(() => {
  const report = JSON.parse(document.getElementById("report").textContent);
  const end = Number(document.body.dataset.end);
  const PRINT_WIDTH = 680;
  const charts = [];
  const buttons = [...document.querySelectorAll("[data-zoom]")];
  let shown = null;

  const view = {
    range: () => shown ?? [0, end],
    show(range, button = null) {
      shown = range && range[1] - range[0] > 0.001 ? range : null;
      const pressed = shown ? button : buttons.find((each) => each.dataset.zoom === "all");
      for (const each of buttons) each.setAttribute("aria-pressed", String(each === pressed));
      const [min, max] = view.range();
      for (const { chart } of charts) chart.setScale("x", { min, max });
    },
  };

  // The time from shortly before a fault until the last recovery, or shortly after the fault if no recovery is known.
  function rangeOf(fault) {
    const recoveries = report.results.filter((each) => each.fault === fault.id).map((each) => each.recovery_ms ?? 0);
    const until = Math.max(fault.at_s + Math.max(0, ...recoveries) / 1000, fault.at_s + 0.2);
    const room = (until - fault.at_s) * 0.5;
    return [Math.max(0, fault.at_s - room), Math.min(end, until + room)];
  }

  function draw(figure, address) {
    const kind = figure.dataset.kind;
    const source = kind === "messages" ? report.messages[address] : report.series[address];
    const plot = figure.querySelector(".plot");
    const base = drillCharts.options(kind, plot.clientWidth, report.faults, end, view);
    const [options, data] = drillCharts.kinds[kind](source, base);
    charts.push({ chart: new uPlot(options, data, plot), plot });
  }

  const isPrinting = () => document.documentElement.classList.contains("printing");

  function drawLegends() {
    document.querySelectorAll("[data-outcome]").forEach(drillCharts.drawLegend);
  }

  function redraw() {
    drillCharts.readColors();
    for (const { chart } of charts) chart.redraw(false, true);
    drawLegends();
  }

  function resize(width = null) {
    for (const { chart, plot } of charts) chart.setSize({ width: width ?? plot.clientWidth, height: chart.height });
  }

  drillCharts.readColors();
  for (const article of document.querySelectorAll("[data-address]")) {
    const { address } = report.addresses[Number(article.dataset.address)];
    article.querySelectorAll("[data-kind]").forEach((figure) => draw(figure, address));
  }
  drawLegends();

  for (const button of buttons) {
    const fault = report.faults[Number(button.dataset.zoom)];
    button.addEventListener("click", () => view.show(fault ? rangeOf(fault) : null, button));
  }
  new ResizeObserver(() => isPrinting() || resize()).observe(document.body);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

  // Paper is light, narrow, and cannot be clicked.
  addEventListener("beforeprint", () => {
    document.documentElement.classList.add("printing");
    document.querySelectorAll("details").forEach((each) => (each.open = true));
    redraw();
    resize(PRINT_WIDTH);
  });
  addEventListener("afterprint", () => {
    document.documentElement.classList.remove("printing");
    redraw();
    resize();
  });
})();
