"use strict";
// A plugin of uPlot: what was broken when, behind the lines, as elements: their names can be read, searched, and follow the
// colours of the page. Each with at_s, healed_s (null: not until the end), id and label.
function shadedWindows(faults, end) {
  let made = [];
  let names = [];
  const place = (u) => {
    const width = u.under.clientWidth;
    const spans = faults.map((fault) => {
      const from = u.valToPos(fault.at_s, "x");
      return [from, Math.max(u.valToPos(fault.healed_s ?? end, "x"), from + 2)];
    });
    made.forEach((element, i) => {
      const [from, to] = spans[i];
      element.hidden = to < 0 || from > width;
      const left = Math.max(from, -4);
      element.style.left = `${left}px`;
      element.style.width = `${Math.min(to, width + 4) - left}px`;
      const next = Math.min(width, ...spans.map((span) => span[0]).filter((other) => other > from));
      const room = next - Math.max(from, 0);
      const whole = `${faults[i].id} ${faults[i].label}`;
      names[i].style.left = `${Math.max(from, 0)}px`;
      names[i].textContent = room > 10 + 6.6 * whole.length ? whole : faults[i].id;
      names[i].hidden = element.hidden || room < 6 + 7 * faults[i].id.length;
    });
  };
  const init = (u) => {
    made = faults.map((fault) => {
      const element = document.createElement("div");
      element.className = fault.healed_s == null ? "window stays" : "window";
      u.under.append(element);
      return element;
    });
    names = faults.map(() => {
      const element = document.createElement("span");
      element.className = "window-name";
      u.over.append(element);
      return element;
    });
  };
  return { hooks: { init: [init], draw: [place] } };
}
