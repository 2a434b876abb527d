// What the server has told: the overview, kept up to date by server-sent events.

import { address, get } from "./api.js";

const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 15_000;
const TICK_MS = 1_000;
const SILENT_MS = 45_000; // the server says every 15 seconds that it is alive
const PROBE_MS = 5_000;
const OVERLAP_MS = 600_000; // batches that began before this page was opened, and end later

/**
 * Follows one target. `listen(call)` calls `call(change)` after each update and returns a function that ends it. A change
 * has `all` (everything is new), `queries` (a Map from a model to the names of its changed fields), `flow`, `runs`,
 * `batches` (`{ model, rows }`), `connection`, or `tick` (a second has passed).
 */
export class Store {
  constructor(target) {
    this.target = target;
    this.overview = null;
    this.project = null;
    this.error = null;
    this.connection = { state: "connecting", since: Date.now() };
    this.listeners = new Set();
    this.model = null;
    this.waiting = [];
    this.retry = FIRST_RETRY_MS;
  }

  /** Starts to follow. `model` is the query whose new batches are wanted, too. */
  start(model = null) {
    this.model = model;
    this.#connect();
    this.load();
    this.ticks = setInterval(() => this.#tick(), TICK_MS);
  }

  /** Ends everything. */
  close() {
    this.closed = true;
    this.source?.close();
    clearTimeout(this.timer);
    clearInterval(this.ticks);
    this.listeners.clear();
  }

  /** Stops or continues updates. What is shown stays as it is while they are paused. */
  pause(isPaused) {
    this.isPaused = isPaused;
    if (isPaused) {
      this.source?.close();
      clearTimeout(this.timer);
      this.#setConnection("paused");
    } else {
      this.#setConnection("connecting");
      this.#connect();
      this.load();
    }
  }

  /** Follows the batches of another query; null for none. */
  watch(model) {
    if (model === this.model) return;
    this.model = model;
    if (!this.isPaused) this.#connect();
  }

  listen(call) {
    this.listeners.add(call);
    return () => this.listeners.delete(call);
  }

  get queries() {
    return this.overview?.queries || {};
  }

  /** Reads everything again. */
  async load() {
    const number = (this.loading = (this.loading || 0) + 1);
    const isSuperseded = () => this.closed || number !== this.loading;
    try {
      const overview = await get("overview", { target: this.target });
      if (isSuperseded()) return;
      this.overview = overview;
      this.error = null;
      if (overview.time < this.followedSince) return this.load(); // neither it nor the stream has what changed in between
      for (const change of this.waiting.splice(0)) this.#merge(change);
      this.#tell({ all: true });
      const project = await get("project", { target: this.target }); // the table does not wait for it
      if (isSuperseded()) return;
      this.project = project;
      this.#tell({ project: true });
    } catch (error) {
      if (isSuperseded()) return;
      this.error = error;
      this.#tell({ all: true });
    }
  }

  #tick() {
    if (this.connection.state !== "live") return;
    if (Date.now() - this.heard > SILENT_MS) this.#lost(this.source);
    else if (!document.hidden) this.#tell({ tick: true });
  }

  /** Reads the problems again: a run has begun or ended. */
  async #loadProject() {
    const { target } = this;
    try {
      const project = await get("project", { target });
      if (this.closed || target !== this.target) return;
      this.project = project;
      this.#tell({ project: true });
    } catch {
      // the connection says what is wrong
    }
  }

  #connect() {
    this.source?.close();
    clearTimeout(this.timer);
    const after = this.model ? Date.now() - OVERLAP_MS : null;
    const source = (this.source = new EventSource(address("live", { target: this.target, model: this.model, after })));
    const on = (name, call) => source.addEventListener(name, (event) => {
      this.heard = Date.now();
      call(JSON.parse(event.data));
    });
    on("hello", (hello) => this.#connected(hello));
    on("overview", (change) => this.#updated(change));
    on("batches", (batches) => this.#tell({ batches }));
    on("alive", () => {});
    source.addEventListener("error", () => this.#lost(source));
  }

  #connected({ time }) {
    this.followedSince = time;
    this.retry = FIRST_RETRY_MS;
    const wasLost = ["lost", "locked", "refused"].includes(this.connection.state);
    this.#setConnection("live");
    if (wasLost || this.error || (this.overview && this.overview.time < time)) this.load();
  }

  #lost(source) {
    if (source !== this.source || this.closed) return;
    source.close(); // the browser's own retries end at some errors
    this.timer = setTimeout(() => this.#connect(), this.retry);
    this.retry = Math.min(this.retry * 2, LONGEST_RETRY_MS);
    this.#findOut(source);
  }

  /** Finds out why there is no connection: a stream of events does not say it. */
  async #findOut(source) {
    let [state, reason] = ["lost", null];
    if (this.connection.state === "live") this.#setConnection(state);
    try {
      await get("project", { target: this.target }, AbortSignal.timeout(PROBE_MS));
    } catch (error) {
      if (error.status === 401) state = "locked";
      else if (error.status) [state, reason] = ["refused", error.message];
    }
    if (source === this.source && !this.closed && !this.isPaused) this.#setConnection(state, reason);
  }

  /** Tries at once to connect. */
  reconnect() {
    this.retry = FIRST_RETRY_MS;
    this.#connect();
  }

  /** Sets the state: connecting, live, paused, lost, locked (the token is wrong), or refused for a `reason`. */
  #setConnection(state, reason = null) {
    const { state: before, since } = this.connection;
    if (before === state) return;
    const isWithout = (name) => ["lost", "locked", "refused"].includes(name);
    this.connection = { state, reason, since: isWithout(before) && isWithout(state) ? since : Date.now() };
    this.#tell({ connection: true });
  }

  #updated(change) {
    if (change.reload) {
      this.load();
      return;
    }
    if (!this.overview) {
      this.waiting.push(change);
      return;
    }
    const began = performance.now();
    const before = newestRun(this.overview);
    this.#tell(this.#merge(change));
    if (newestRun(this.overview) !== before) this.#loadProject();
    performance.measure("sqlstream:update", { start: began });
    performance.clearMeasures("sqlstream:update"); // observers have it; the browser would keep all of them
  }

  #merge(change) {
    const { overview } = this;
    overview.time = change.time;
    const queries = new Map();
    for (const [model, fields] of Object.entries(change.queries || {})) {
      overview.queries[model] = { ...overview.queries[model], ...fields };
      queries.set(model, fields);
    }
    for (const [number, value] of Object.entries(change.flow?.edges || {})) overview.flow.edges[number] = value ?? 0;
    for (const [id, value] of Object.entries(change.flow?.nodes || {})) overview.flow.nodes[id] = value ?? 0;
    for (const node of overview.nodes) if (node.id in (change.nodes || {})) node.status = change.nodes[node.id];
    if (change.runs) overview.runs = change.runs;
    return { queries, flow: true, runs: Boolean(change.runs) };
  }

  #tell(change) {
    for (const call of [...this.listeners]) call(change);
  }
}

/** Returns the id and the life of the newest run as text. */
function newestRun({ runs }) {
  return runs?.length ? `${runs[0].id} ${runs[0].life}` : "";
}
