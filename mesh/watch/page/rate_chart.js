// A chart of the rates in and out since the page was opened, five minutes at most.

import { el } from "./dom.js";

const POINTS = 300;
const HEIGHT = 132;

export class RateChart {
  constructor(signal) {
    this.data = [[], [], []];
    this.place = el("div", { class: "chart", role: "img", "aria-label": "Deliveries per second in and out, over the last five minutes" });
    this.element = el("figure", {}, el("figcaption", {}, "Deliveries per second: ", el("span", { class: "key in", text: "in" }), " ", el("span", { class: "key out", text: "out" }), ", since this page was opened"), this.place);
    const redraw = () => this.#make();
    const sizes = new ResizeObserver(() => this.plot?.setSize({ width: this.place.clientWidth, height: HEIGHT }));
    sizes.observe(this.place);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", redraw);
    addEventListener("theme", redraw);
    signal.addEventListener("abort", () => {
      sizes.disconnect();
      scheme.removeEventListener("change", redraw);
      removeEventListener("theme", redraw);
      this.plot?.destroy();
      this.plot = null;
    }, { once: true });
  }

  add(at, incoming, outgoing) {
    [at, incoming, outgoing].forEach((each, place) => {
      this.data[place].push(each);
      if (this.data[place].length > POINTS) this.data[place].shift();
    });
    if (!this.plot) this.#make();
    else this.plot.setData(this.data);
  }

  #make() {
    this.plot?.destroy();
    const probe = (name) => {
      const element = this.place.appendChild(el("span", { class: `probe ${name}` }));
      const color = getComputedStyle(element).color;
      element.remove();
      return color;
    };
    const [incoming, outgoing, muted, grid] = ["in", "out", "muted", "grid"].map(probe);
    const axis = { stroke: muted, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 }, font: "11px ui-monospace, monospace" };
    this.plot = new uPlot(
      {
        width: this.place.clientWidth || 300, height: HEIGHT, legend: { show: false }, cursor: { y: false, drag: { x: false } },
        scales: { x: { time: true, range: (_plot, low, high) => [Math.min(low, high - 60), high] }, y: { range: (_plot, _low, high) => [0, Math.max(high * 1.1, 1)] } },
        axes: [{ ...axis, size: 26, values: (_plot, ticks) => ticks.map((each) => new Date(each * 1000).toLocaleTimeString("en-GB")) }, { ...axis, size: 56 }],
        series: [{}, { stroke: incoming, width: 1.25, points: { show: false } }, { stroke: outgoing, width: 1.25, points: { show: false } }],
      },
      this.data, this.place,
    );
  }
}
