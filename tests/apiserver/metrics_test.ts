import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { TestServer } from "./support/test_server.ts";

test("/metrics counts requests, durations and objects", async () => {
  const server = new TestServer({ clock: new VirtualClock() });
  const path = "/api/v1/namespaces/default/configmaps";
  await server.send("POST", path, { metadata: { name: "a" } });
  await server.send("GET", `${path}/a`);
  await server.send("GET", `${path}/b`);
  await server.send("GET", `${path}?dryRun=All`);
  const { headers, body } = await server.send("GET", "/metrics");
  assert.match(String(headers["content-type"]), /^text\/plain; version=0.0.4/);
  const value = (name: string, ...labels: readonly string[]) => {
    const found = String(body).split("\n").filter((line) =>
      line.startsWith(name) && labels.every((label) => line.includes(label))
    );
    assert.equal(found.length, 1, `${name} ${labels}: ${found.join("; ")}`);
    return Number(found[0]?.split(" ").at(-1));
  };
  const total = "apiserver_request_total{";
  const resource = 'resource="configmaps"';
  assert.equal(value(total, 'code="201"', 'verb="POST"', resource), 1);
  assert.equal(value(total, 'code="404"', 'verb="GET"', 'scope="resource"'), 1);
  assert.equal(value(total, 'verb="LIST"', 'dry_run="All"'), 1);
  const duration = "apiserver_request_duration_seconds";
  assert.equal(value(`${duration}_count`, 'verb="GET"', resource), 2);
  assert.equal(
    value(`${duration}_bucket`, 'verb="GET"', resource, 'le="1"'),
    2,
  );
  const { size } = server.instance.context.store
    .collection({ group: "", plural: "configmaps" });
  assert.equal(value("apiserver_storage_objects", resource), size);
  assert.equal(
    value("apiserver_current_inflight_requests", 'request_kind="readOnly"'),
    1,
  );
  const seats = "apiserver_flowcontrol_nominal_limit_seats";
  assert.equal(value(seats, 'priority_level="exempt"'), 0);
  assert.equal(value(seats, 'priority_level="system"'), 74);
  assert(value("process_resident_memory_bytes ") > 0);
  for (const line of String(body).trim().split("\n")) {
    assert.match(line, /^# (HELP|TYPE) \S+ .+$|^[a-z_]+(\{.*\})? -?[\d.e+-]+$/);
  }
  server.stop();
});
