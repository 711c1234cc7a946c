import assert from "node:assert/strict";
import { test } from "node:test";
import { MetricsRegistry } from "@coracle/operator/core";
import { withInformer } from "../../../support/informer_case.ts";
import { refuse } from "../../../support/watch_faults.ts";

test("Informer counts events, relists, errors and objects", async () => {
  const metrics = new MetricsRegistry();
  const value = (series: string) => {
    const line = metrics.text().split("\n").find((line) =>
      line.startsWith(`${series} `)
    );
    return line && Number(line.split(" ").at(-1));
  };
  const kind = 'kind="example.dev/v1 Widget"';
  await withInformer(async ({ server, informer, sync, settled }) => {
    informer.addHandler(() => {
      throw new Error("thrown");
    }, { name: "thrower" });
    server.put("default/a");
    server.put("default/b");
    await sync();
    server.put("default/a");
    server.delete("default/b");
    await settled();
    server.script(
      "watch",
      refuse(500, "InternalError"),
      refuse(410, "Expired"),
    );
    server.endWatches();
    server.put("default/c");
    await settled();
    const events = `coracle_informer_events_total{${kind},type=`;
    assert.equal(value(`${events}"added"}`), 3);
    assert.equal(value(`${events}"updated"}`), 1);
    assert.equal(value(`${events}"deleted"}`), 1);
    assert.equal(value(`coracle_informer_relists_total{${kind}}`), 1);
    const errors = `coracle_informer_errors_total{${kind},reason=`;
    assert.equal(value(`${errors}"http_500"}`), 1);
    assert.equal(value(`${errors}"expired"}`), 1);
    assert.equal(
      value(`coracle_informer_handler_errors_total{handler="thrower",${kind}}`),
      5,
    );
    assert.equal(value(`coracle_informer_objects{${kind}}`), 2);
    assert.equal(
      value(`coracle_informer_watch_age_seconds_count{${kind}}`),
      1,
    );
  }, { metrics });
  assert.equal(value(`coracle_informer_objects{${kind}}`), 0);
});
