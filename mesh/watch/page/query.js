// The URL of this page, and the query strings of requests: both have the parameters of the REST interface.

const MAX_LINK_CHARS = 4000;
const TERM = /^[a-z0-9_]+(!=|<=|>=|=|<|>|~)/;

/** Encode a value so that it stands in a URL, and within quotes of a shell. */
export function encoded(text) {
  return encodeURIComponent(text).replace(/'/g, "%27").replace(/%20/g, "+").replace(/%2C/g, ",").replace(/%3D/g, "=").replace(/%2F/g, "/");
}

export function queryString(pairs) {
  return pairs.map(([name, value]) => `${name}=${encoded(value)}`).join("&");
}

/** Return a link within the console, or null if a name in it is too long for a URL. */
export function link(path, parameters = {}) {
  const query = queryString(Object.entries(parameters));
  return query.length > MAX_LINK_CHARS ? null : query ? `${path}?${query}` : path;
}

export function parameter(name) {
  return new URLSearchParams(location.search).get(name);
}

export function parameters(name) {
  return new URLSearchParams(location.search).getAll(name);
}

/** Change parameters of the URL, each to a value, a list of values, or null, and tell the page. */
export function change(changes, { replace = false } = {}) {
  const search = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    search.delete(name);
    for (const each of value === null ? [] : [value].flat()) search.append(name, each);
  }
  const query = queryString([...search]);
  const url = query ? `${location.pathname}?${query}` : location.pathname;
  if (replace) history.replaceState(null, "", url);
  else history.pushState(null, "", url);
  dispatchEvent(new Event("url"));
}

/** Split the text of a filter field into filters. A word without an operator looks for the word in `main`. */
export function filtersOf(text, main) {
  const words = text.match(/(?:[^\s"]+|"[^"]*")+/g) ?? [];
  return words.map((word) => word.replaceAll('"', "")).map((word) => (TERM.test(word) ? word : `${main}~${word}`));
}

export function textOf(filters) {
  return filters.map((each) => (/\s/.test(each) ? `"${each}"` : each)).join(" ");
}
