// The tab about what sqlstream knows before a run: the plan, findings and unit tests; and about
// its data tests in the newest run.

import { h } from "../../dom.js";
import { codeBlock } from "../../sql.js";
import { exact, seconds, timeElement } from "../format.js";
import { findingBox } from "./failure.js";
import { card, table } from "./sections.js";

const TEST_LOOKS = { passed: "ok", failed: "bad", error: "bad", skipped: "idle" };
const VERDICTS = { unchanged: "ok", resume: "ok", new: "accent", refuse: "bad", rebuild: "warn" };

/** Returns the tab. */
export function checksTab(page) {
  return h("div.stack", null,
    (page.problems || []).map((text) => h("section.card.notice.warn", null, h("div", null, h("p", null, text)))),
    card("What the next run does", planBody(page.plan)),
    card("Findings", page.findings?.length
      ? h("div.findings", null, page.findings.map((finding) => findingBox(finding, finding.severity === "error" ? "Error" : "Warning", finding.severity === "error" ? "bad" : "warn", page)))
      : h("p.note-text", null, "No errors and no warnings.")),
    card("Data tests", dataTestsBody(page.now?.data_tests)),
    card("Unit tests", testsBody(page.tests)));
}

function dataTestsBody(tests) {
  const names = Object.keys(tests || {});
  if (!names.length) return h("p.note-text", null, "No data test has checked a row in the newest run.");
  const cell = (value) => h("td.number", null, value);
  return table("Data tests", ["Test", "Result", ["Passed", "number"], ["Violations", "number"], ["Share", "number"]], names.map((name) => {
    const { passed, failed } = tests[name];
    return h("tr", null, h("td", null, h("b", null, name)),
      h("td", null, h("span.badge", { class: failed ? "warn" : "ok" }, failed ? "violated" : "passed")),
      cell(exact(passed)), cell(exact(failed)), cell(passed + failed ? `${(100 * failed / (passed + failed)).toPrecision(3)} %` : "–"));
  }));
}

function planBody(plan) {
  if (!plan) return h("p.note-text", null, "The plan is not known: the project does not compile, or its checkpoints need Spark.");
  const facts = [["Version", exact(plan.version)], ["Batches so far", exact(plan.batches)]];
  if (plan.reads_again?.length) facts.push(["Reads", plan.reads_again.join(", ")]);
  if (plan.frozen_settings?.length) facts.push(["Settings without effect", plan.frozen_settings.join(", ")]);
  return h("div.body", null,
    h("p", null, h("span.badge", { class: VERDICTS[plan.verdict] || "warn" }, plan.verdict), " ", plan.reason),
    h("dl.facts", null, facts.map(([name, value]) => [h("dt", null, name), h("dd", null, value)])),
    plan.changes?.length ? h("ul", null, plan.changes.map((text) => h("li", null, text))) : null,
    (plan.sql || []).map(({ model, before, after }) => h("details", null, h("summary", null, `SQL of ${model}, before and after`),
      h("div.sides", null, codeBlock(before || "", "sql", `SQL of ${model} before`), codeBlock(after || "", "sql", `SQL of ${model} after`)))),
    (plan.findings || []).map((finding) => findingBox(finding, finding.severity, finding.severity === "error" ? "bad" : "warn")));
}

function testsBody(tests) {
  if (!tests) return h("p.note-text", null, "The unit tests are not known: the project does not compile.");
  if (!tests.length) return h("p.note-text", null, "This model has no unit tests. `sqlstream replay --to-test` writes one from a batch.");
  return table("Unit tests", ["Test", "Result", "When", ["Time", "number"], "Message"], tests.map((test) => h("tr", null,
    h("td", null, h("b", null, test.name)),
    h("td", null, h("span.badge", { class: TEST_LOOKS[test.status] || "idle" }, test.status || "not run")),
    h("td.fixed", null, test.at ? timeElement(test.at, true) : "–"), h("td.number", null, seconds(test.seconds)),
    h("td.text", null, test.message ? h("pre.prose", null, test.message) : h("span.muted", null, "–")))));
}
