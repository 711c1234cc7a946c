import assert from "node:assert/strict";
import { test } from "node:test";
import { Operator, silentLogger } from "@coracle/operator/core";
import { Widget } from "../support/fake_watch_call.ts";
import { FakeWatchServer } from "../support/fake_watch_server.ts";
import { until } from "../support/until.ts";

const HUGE = 9 * 1024 * 1024;

test("After a watch line of 9 MiB its object and all others are reconciled", async () => {
  const server = await FakeWatchServer.start();
  const seen = new Map<string, number>();
  const operator = new Operator({
    client: await server.client(),
    logger: silentLogger,
  });
  operator.register(Widget, {
    reconcile({ metadata, spec }) {
      const { padding = "" } = metadata.annotations ?? {};
      seen.set(metadata.name, spec.size + padding.length);
    },
  });
  try {
    server.put("default/small", { size: 1 });
    await operator.start();
    server.put("default/huge", { size: 1, padding: HUGE });
    server.put("default/small", { size: 2 });
    await until(
      "both were reconciled",
      () => seen.get("huge") === HUGE + 1 && seen.get("small") === 2,
    );
    // A line may be of 8 MiB; the list that follows takes what is larger.
    assert.match(
      operator.metrics(),
      /coracle_informer_errors_total\{[^}]*reason="too_long"[^}]*\} 1$/m,
    );
    const watches = () =>
      operator.health().controllers[0]?.informers[0]?.watches[0];
    assert.match(
      watches()?.lastError?.message ?? "",
      /^Cannot watch Widget objects: .*longer than 8388608 bytes/,
    );
    // So does the list that follows a watch that was lost.
    server.endWatches();
    server.put("default/huge", { size: 2, padding: HUGE });
    server.put("default/small", { size: 3 });
    server.compact();
    await until(
      "both were reconciled again",
      () => seen.get("huge") === HUGE + 2 && seen.get("small") === 3,
    );
    assert.equal(operator.health().healthy, true);
  } finally {
    await operator.stop();
    await server.stop();
  }
});
