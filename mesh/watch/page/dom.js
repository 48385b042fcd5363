// Elements are made here and nowhere else. Whatever comes from the mesh becomes the text of a text node or the value of
// an attribute, never markup.

const SVG = "http://www.w3.org/2000/svg";
const SHOWN_CHARS = 160;
// Characters that show nothing, end a line, or turn the direction of what stands around them.
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;

/** Make an element: `text`, `class`, `data` and `on` of the properties have a meaning, all others are attributes. */
export function el(tag, properties = {}, ...children) {
  return filled(document.createElement(tag), properties, children);
}

export function svg(tag, properties = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), properties, children);
}

function filled(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "text") element.textContent = value;
    else if (name === "on") for (const [event, call] of Object.entries(value)) element.addEventListener(event, call);
    else if (name === "data") Object.assign(element.dataset, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((each) => each !== null && each !== undefined && each !== false));
  return element;
}

/** Set what differs only: a browser repaints nothing, and a screen reader says nothing, of what stays. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function setAttribute(element, name, value) {
  if (value === null || value === undefined || value === false) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
  } else if (element.getAttribute(name) !== String(value)) {
    element.setAttribute(name, value);
  }
}

/** Tell whether a text has characters that show nothing, or change what is shown around them. */
export function hasHidden(text) {
  return text.search(HIDDEN) >= 0;
}

function shownCode(character) {
  return `\u27e8U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
}

/** Return a name as a person can read it: hidden characters as U+XXXX, long names shortened. */
export function readable(name, most = SHOWN_CHARS) {
  const text = String(name);
  const start = text.length > most ? [...text.slice(0, most)].join("") : text;
  const shown = start.replace(HIDDEN, shownCode);
  return text.length > most ? `${shown}\u2026 (${text.length.toLocaleString("en")} characters)` : shown;
}

/** Return a text of several lines as a person can read it: all of it, with hidden characters as U+XXXX. */
export function visible(text) {
  return text.replace(HIDDEN, (each) => (each === "\n" || each === "\t" ? each : shownCode(each)));
}

/** Bring the elements of `parent` into the order of `wanted`, and move only those that are elsewhere. */
export function arrange(parent, wanted) {
  const kept = new Set(wanted);
  for (const each of [...parent.children]) if (!kept.has(each)) each.remove();
  let next = parent.firstElementChild;
  for (const each of wanted) {
    if (each === next) next = next.nextElementSibling;
    else parent.insertBefore(each, next);
  }
}
