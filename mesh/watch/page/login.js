// Changes the one-time token of the URL's fragment into a session, which the browser keeps in a cookie.

const said = document.getElementById("said");
const once = location.hash.slice(1);

if (once) {
  // The token leaves the address bar and the history first.
  history.replaceState(null, "", "/login");
  said.textContent = "Logging in ...";
  try {
    const answer = await fetch("/login", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ once }),
    });
    const content = await answer.json();
    if (answer.ok) location.replace("/");
    else said.textContent = `The login was refused: ${content.error}.`;
  } catch {
    said.textContent = "The observer does not answer. Does it still run?";
  }
}
