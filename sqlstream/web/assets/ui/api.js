// Requests to the server.

/** Returns an address of the API; parameters without a value are left out. */
export function address(path, parameters = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== null && value !== undefined && value !== "") query.set(name, value);
  }
  const text = query.toString();
  return `/api/${path}${text ? `?${text}` : ""}`;
}

/** Returns the answer to a request. Throws an error with a text for people; an AbortError if `signal` ended it. */
export async function get(path, parameters, signal) {
  let answer;
  try {
    answer = await fetch(address(path, parameters), { signal, credentials: "same-origin" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("sqlstream does not answer. Is `sqlstream ui` still running?");
  }
  if (answer.ok) return answer.json();
  throw await refusal(answer);
}

/** Returns the error of a refused request, with its `status` and what the server says about it as `details`. */
async function refusal(answer) {
  const text = await answer.text();
  let details = {};
  try {
    details = JSON.parse(text);
  } catch {
    details = { error: text.trim() || `The server answered ${answer.status}.` };
  }
  if (answer.status === 401) details.error = "The token is missing or wrong. Open the URL that sqlstream has printed.";
  return Object.assign(new Error(details.error), { status: answer.status, details });
}

/** Returns the path of a query's data. */
export function queryPath(model, part) {
  return `query/${encodeURIComponent(model)}${part ? `/${part}` : ""}`;
}
