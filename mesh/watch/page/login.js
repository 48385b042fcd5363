// Changes the one-time token of the URL's fragment, or a user's name and password, into a session, which the browser
// keeps in a cookie that no script can read.

const said = document.getElementById("said");
const form = document.getElementById("login");
const button = document.getElementById("log-in");
const once = location.hash.slice(1);

async function logIn(login) {
  said.textContent = "Logging in ...";
  button.disabled = true;
  try {
    const answer = await fetch("/login", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(login),
    });
    // A user whose name and password are right may have no right to see anything.
    const first = answer.ok ? await fetch("/console/model") : answer;
    if (first.ok) {
      location.replace("/");
      return;
    }
    const content = await first.json();
    said.textContent = `The login was refused: ${content.error}.`;
    said.className = "error";
  } catch {
    said.textContent = "The observer does not answer. Does it still run?";
  }
  button.disabled = false;
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const { user, password } = form.elements;
  logIn({ user: user.value, password: password.value });
  password.value = "";
});

if (once) {
  // The token leaves the address bar and the history first.
  history.replaceState(null, "", "/login");
  await logIn({ once });
}
