// What benchmarks/bench_ui.py runs in the page.

window.bench = (() => {
  const streams = [];
  const Original = EventSource;
  window.EventSource = class extends Original {
    constructor(...given) {
      super(...given);
      streams.push(this);
    }
  };

  const random = (low, high) => low + Math.random() * (high - low);
  const add = (values, value) => [...(values || []).slice(-39), value];
  const frame = () => new Promise(requestAnimationFrame);

  /** Resolves to the times of the first paint and of the table with all queries, in ms since the navigation. */
  async function paint() {
    const isShown = () => document.querySelectorAll(".rows .row").length >= 200;
    while (!isShown()) await new Promise((done) => setTimeout(done, 4));
    await frame();
    await frame();
    const [first] = performance.getEntriesByName("first-contentful-paint");
    return { first: first?.startTime ?? 0, table: performance.now() };
  }

  function fields(query, number) {
    const [rate, duration, rows] = [random(1, 9000), random(100, 9000), Math.round(random(1e4, 2e4))];
    const { spark } = query;
    query.spark = {
      input_rows_per_second: add(spark?.input_rows_per_second, rate),
      duration_ms: add(spark?.duration_ms, duration),
      state_rows: add(spark?.state_rows, rows),
    };
    return {
      batches: number, rows_in: number * 100, rows_out: number * 50, input_rows_per_second: rate, processed_rows_per_second: rate * 9,
      output_rows_per_second: rate / 2, duration_ms: duration,
      add_batch_ms: duration * 0.7, planning_ms: duration * 0.1, wal_ms: duration * 0.1, other_ms: duration * 0.1,
      watermark: new Date(Date.now() - 6e5).toISOString(), watermark_lag_seconds: random(1, 900),
      state_rows: rows, state_bytes: Math.round(random(4e6, 5e6)), late_rows: number, last_batch_id: number,
      last_batch_at: new Date().toISOString(), spark: query.spark,
    };
  }

  /** Dispatches `count` updates in which `changed` queries change, and resolves to what each took, in ms. */
  async function dispatch({ count, changed }) {
    const overview = await (await fetch("/api/overview")).json();
    const models = Object.keys(overview.queries);
    const took = [];
    for (let number = 0; number < count; number += 1) {
      const names = Array.from({ length: changed }, (_, index) => models[(number * changed + index) % models.length]);
      const queries = Object.fromEntries(names.map((name) => [name, fields(overview.queries[name], number)]));
      const edges = Object.fromEntries(overview.edges.slice(0, changed).map((_, index) => [index, random(0, 9000)]));
      const change = { time: new Date().toISOString(), queries, nodes: {}, flow: { edges, nodes: {} } };
      const message = new MessageEvent("overview", { data: JSON.stringify(change) });
      const began = performance.now();
      streams.at(-1).dispatchEvent(message);
      document.body.getBoundingClientRect(); // styles and layout belong to the update
      took.push(performance.now() - began);
      await (number % 10 ? new Promise((done) => setTimeout(done)) : frame());
    }
    return took;
  }

  return { paint, dispatch };
})();
