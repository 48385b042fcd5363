// Indents JSON without reading numbers or texts: what is shown is what was sent, also numbers that JavaScript rounds.

const MAX_DEPTH = 40;
const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

/** Return the JSON `text` with a line for each member, or null if the text is not JSON. */
export function indented(text) {
  try {
    JSON.parse(text);
  } catch {
    return null;
  }
  const tokens = text.match(TOKENS);
  const parts = [];
  let depth = 0;
  const line = () => `\n${"  ".repeat(Math.min(depth, MAX_DEPTH))}`;
  tokens.forEach((token, place) => {
    if (token === "{" || token === "[") {
      depth++;
      parts.push(token, isClosing(tokens[place + 1]) ? "" : line());
    } else if (isClosing(token)) {
      depth--;
      parts.push(isOpening(tokens[place - 1]) ? "" : line(), token);
    } else parts.push(token === "," ? `,${line()}` : token === ":" ? ": " : token);
  });
  return parts.join("");
}

function isOpening(token) {
  return token === "{" || token === "[";
}

function isClosing(token) {
  return token === "}" || token === "]";
}
