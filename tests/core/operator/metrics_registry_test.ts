import assert from "node:assert/strict";
import { test } from "node:test";
import { MetricsRegistry } from "@coracle/operator/core";

test("MetricsRegistry exposes counters and gauges in Prometheus text format", () => {
  const registry = new MetricsRegistry();
  const runs = registry.counter({ name: "runs_total", help: "Runs\nof \\n." });
  runs.add(2, { controller: "a", result: "success" });
  runs.add(1, { result: "success", controller: "a" });
  runs.add(0.5);
  const depth = registry.gauge({ name: "depth", help: "Depth." });
  depth.set(5, { name: 'say "hi"\\' });
  depth.add(-2, { name: 'say "hi"\\' });
  assert.equal(
    registry.text(),
    "# HELP depth Depth.\n# TYPE depth gauge\n" +
      'depth{name="say \\"hi\\"\\\\"} 3\n' +
      "# HELP runs_total Runs\\nof \\\\n.\n# TYPE runs_total counter\n" +
      'runs_total{controller="a",result="success"} 3\nruns_total 0.5\n',
  );
});

test("MetricsRegistry counts observations in cumulative buckets", () => {
  const registry = new MetricsRegistry();
  const duration = registry.histogram({
    name: "seconds",
    help: "Seconds.",
    buckets: [1, 0.5],
  });
  for (const value of [0.1, 0.5, 0.7, 9]) duration.observe(value, { a: "b" });
  const lines = registry.text().split("\n").slice(2, -1);
  assert.deepEqual(lines, [
    'seconds_bucket{a="b",le="0.5"} 2',
    'seconds_bucket{a="b",le="1"} 3',
    'seconds_bucket{a="b",le="+Inf"} 4',
    'seconds_sum{a="b"} 10.3',
    'seconds_count{a="b"} 4',
  ]);
});

test("MetricsRegistry orders buckets by number, and needs no labels", () => {
  const registry = new MetricsRegistry();
  const options = { name: "seconds", help: "Seconds." };
  const wrong = { ...options, buckets: 5 as never };
  assert.throws(() => registry.histogram(wrong), /"buckets"/);
  registry.histogram({ ...options, buckets: [10, 2] }).observe(3);
  assert.deepEqual(registry.text().split("\n").slice(2, -1), [
    'seconds_bucket{le="2"} 0',
    'seconds_bucket{le="10"} 1',
    'seconds_bucket{le="+Inf"} 1',
    "seconds_sum 3",
    "seconds_count 1",
  ]);
});

test("MetricsRegistry exports infinite values", () => {
  const registry = new MetricsRegistry();
  const gauge = registry.gauge({ name: "a", help: "A." });
  gauge.set(Infinity, { to: "x" });
  gauge.set(-Infinity, { to: "y" });
  assert.deepEqual(registry.text().split("\n").slice(2, -1), [
    'a{to="x"} +Inf',
    'a{to="y"} -Inf',
  ]);
});

test("MetricsRegistry returns an existing metric of the same type", () => {
  const registry = new MetricsRegistry();
  const first = registry.counter({ name: "a", help: "A." });
  assert.equal(registry.counter({ name: "a", help: "Other." }), first);
  assert.throws(() => registry.gauge({ name: "a", help: "A." }), TypeError);
  assert.throws(() => registry.gauge({ name: "a-b", help: "A." }), TypeError);
  for (const value of [-1, -Infinity, NaN]) {
    assert.throws(() => first.add(value), RangeError);
  }
  assert.doesNotMatch(registry.text(), /NaN|-/);
});

test("MetricsRegistry distinguishes labels that were changed by the caller", () => {
  const registry = new MetricsRegistry();
  const counter = registry.counter({ name: "a", help: "A." });
  const labels = { to: "x" };
  counter.add(1, labels);
  labels.to = "y";
  counter.add(1, labels);
  const frozen = Object.freeze({ to: "z" });
  counter.add(1, frozen);
  counter.add(1, frozen);
  assert.deepEqual(registry.text().split("\n").slice(2, -1), [
    'a{to="x"} 1',
    'a{to="y"} 1',
    'a{to="z"} 2',
  ]);
});

test("MetricsRegistry removes a series of each type, which then begins anew", () => {
  const registry = new MetricsRegistry();
  const options = (name: string) => ({ name, help: "Any.", labels: ["to"] });
  const counter = registry.counter(options("a"));
  const gauge = registry.gauge(options("b"));
  const histogram = registry.histogram({ ...options("c"), buckets: [1] });
  const labels = Object.freeze({ to: "x" });
  const count = () => {
    counter.add(2, labels);
    gauge.add(3, labels);
    histogram.observe(4, labels);
  };
  const series = () =>
    registry.text().split("\n").filter((line) => /^[abc].*to="x"/.test(line));
  count();
  const first = series();
  assert.equal(first.length, 6);
  count();
  assert.notDeepEqual(series(), first);
  for (const metric of [counter, gauge, histogram]) metric.remove(labels);
  assert.deepEqual(series(), []);
  count();
  assert.deepEqual(series(), first);
});

test("MetricsRegistry reads observable gauges at each export, and keeps nothing", () => {
  const registry = new MetricsRegistry();
  const depth = { name: "depth", help: "Depth." };
  const queues = new Map([["a", 1], ["b", 2]]);
  registry.observableGauge(
    depth,
    () =>
      Array.from(queues, ([queue, value]) => ({ value, labels: { queue } })),
  );
  registry.observableGauge(depth, () => {
    throw new Error("As asked");
  });
  registry.observableGauge(depth, () => [{ value: queues.size }]);
  const series = () =>
    registry.text().split("\n").filter((line) => line.startsWith("depth"));
  assert.deepEqual(series(), [
    'depth{queue="a"} 1',
    'depth{queue="b"} 2',
    "depth 2",
  ]);
  queues.delete("a");
  queues.set("b", 5);
  assert.deepEqual(series(), ['depth{queue="b"} 5', "depth 1"]);
  assert.match(registry.text(), /^# HELP depth Depth\.\n# TYPE depth gauge\n/);
  assert.throws(() => registry.gauge(depth), /the name is taken by a gauge/);
  registry.gauge({ name: "other", help: "Other." });
  assert.throws(
    () => registry.observableGauge({ name: "other", help: "" }, () => []),
    /the name is taken by a gauge/,
  );
  assert.throws(
    () => registry.observableGauge({ name: "x", help: "X." }, 5 as never),
    /"observe" must be a function/,
  );
});

test("MetricsRegistry removes a series by equal labels of any object", () => {
  const registry = new MetricsRegistry();
  const gauge = registry.gauge({ name: "a", help: "A." });
  const labels = Object.freeze({ to: "x" });
  for (const equal of [{ to: "x" }, Object.freeze({ to: "x" })]) {
    gauge.set(1, labels);
    gauge.remove(equal);
    assert.doesNotMatch(registry.text(), /to="x"/);
    gauge.set(2, labels);
    assert.match(registry.text(), /a\{to="x"\} 2/);
  }
});

test("MetricsRegistry escapes the values of labels", () => {
  const registry = new MetricsRegistry();
  const counter = registry.counter({ name: "a_total", help: "All." });
  counter.add(1, { text: 'a\\b"c\nd' });
  assert.match(registry.text(), /^a_total\{text="a\\\\b\\"c\\nd"\} 1$/m);
});

test("MetricsRegistry refuses labels with which nothing of it could be read", () => {
  const registry = new MetricsRegistry();
  const runs = registry.counter({ name: "runs_total", help: "Runs." });
  for (const name of ["a-b", "1a", "", "a:b", "größe"]) {
    assert.throws(() => runs.add(1, { [name]: "x" }), TypeError, name);
    const options = { name: "more_total", help: "More.", labels: [name] };
    assert.throws(() => registry.counter(options), /^TypeError: Cannot label/);
  }
  const seconds = { name: "seconds", help: "Seconds.", labels: ["le"] };
  assert.throws(() => registry.histogram(seconds), /buckets of a histogram/);
  registry.observableGauge({ name: "depth", help: "Depth." }, () => [
    { value: 1, labels: { "a-b": "x" } },
  ]);
  runs.add(1, { a_b: "x" });
  assert.equal(
    registry.text(),
    "# HELP depth Depth.\n# TYPE depth gauge\n" +
      "# HELP runs_total Runs.\n# TYPE runs_total counter\n" +
      'runs_total{a_b="x"} 1\n',
  );
});

test("MetricsRegistry exports what is no number as one", () => {
  const registry = new MetricsRegistry();
  const depth = registry.gauge({ name: "depth", help: "Depth." });
  depth.set(undefined as never, { of: "a" });
  depth.set("5" as never, { of: "b" });
  assert.match(registry.text(), /^depth\{of="a"\} NaN\ndepth\{of="b"\} 5\n/m);
});
