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
  throw new Error(await reason(answer));
}

async function reason(answer) {
  if (answer.status === 401) return "The token is missing or wrong. Open the URL that sqlstream has printed.";
  const text = await answer.text();
  try {
    return JSON.parse(text).error;
  } catch {
    return text.trim() || `The server answered ${answer.status}.`;
  }
}

/** Returns the path of a query's data. */
export function queryPath(model, part) {
  return `query/${encodeURIComponent(model)}${part ? `/${part}` : ""}`;
}
