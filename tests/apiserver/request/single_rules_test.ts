// deno-lint-ignore-file no-explicit-any -- tests look at whatever is there
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { builtinDefinitions } from "../../../dev/apiserver/builtin/builtin_definitions.ts";
import { TestServer } from "../support/test_server.ts";

const server = new TestServer({
  builtin: { builtinDefinitions },
});
after(() => server.stop());

const IN_DEFAULT = "/api/v1/namespaces/default";

test("?timeout= must be a duration, except of a watch", async () => {
  const timeouts: readonly (readonly [string, number, string?])[] = [
    ["invalid", 400, 'time: invalid duration "invalid"'],
    ["5", 400, 'time: missing unit in duration "5"'],
    ["5d", 400, 'time: unknown unit "d" in duration "5d"'],
    ["1m30.5s", 200],
    ["-1s", 200],
    ["", 200],
  ];
  for (const [timeout, status, why] of timeouts) {
    const answer = await server.send(
      "GET",
      `/api/v1/namespaces?timeout=${timeout}`,
    );
    assert.equal(answer.status, status, timeout);
    if (why) {
      assert.equal(
        answer.body.message,
        `invalid timeout specified in the request URL - ${why}`,
      );
    }
  }
  const watch = await server.send(
    "GET",
    "/api/v1/namespaces?watch=1&fieldSelector=metadata.name=none&timeout=invalid&timeoutSeconds=1",
  );
  assert.equal(watch.status, 200);
});

test("strict validation names unknown and duplicate fields in order", async () => {
  const body =
    '{"metadata":{"name":"a"},"foo":1,"data":{"a":"b"},"data":{"a":"c"},"z":{}}';
  const path = `${IN_DEFAULT}/configmaps?dryRun=All&fieldValidation=`;
  const strict = await server.send("POST", `${path}Strict`, body);
  assert.equal(
    strict.body.message,
    'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "foo", duplicate field "data", unknown field "z"',
  );
  const warned = await server.send("POST", `${path}Warn`, body);
  assert.match(
    String(warned.headers.warning),
    /unknown field \\"foo.*duplicate field \\"data.*unknown field \\"z/,
  );
});

test("a dry run creates with a resourceVersion, a real create does not", async () => {
  const body = { metadata: { name: "a", resourceVersion: "5" } };
  const dry = await server.send(
    "POST",
    `${IN_DEFAULT}/configmaps?dryRun=All`,
    body,
  );
  assert.deepEqual([dry.status, dry.body.metadata.resourceVersion], [201, "5"]);
  const real = await server.send("POST", `${IN_DEFAULT}/configmaps`, body);
  assert.equal(real.status, 500);
});

test("a node port must be in its range when a Service is updated", async () => {
  const made = await server.send("POST", `${IN_DEFAULT}/services`, {
    metadata: { name: "s" },
    spec: { type: "NodePort", ports: [{ port: 80 }] },
  });
  assert.equal(made.status, 201);
  made.body.spec.ports[0].nodePort = 80;
  const refused = await server.send(
    "PUT",
    `${IN_DEFAULT}/services/s`,
    made.body,
  );
  assert.equal(
    refused.body.message,
    'Service "s" is invalid: spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. The range of valid ports is 30000-32767',
  );
  made.body.spec.ports[0].nodePort = 30_080;
  const moved = await server.send("PUT", `${IN_DEFAULT}/services/s`, made.body);
  assert.equal(moved.body.spec.ports[0].nodePort, 30_080);
});

test("a negative grace period of a Pod is one second, in updates too", async () => {
  const pod = {
    metadata: { name: "p" },
    spec: {
      terminationGracePeriodSeconds: 1,
      containers: [{ name: "c", image: "i" }],
    },
  };
  const made = await server.send("POST", `${IN_DEFAULT}/pods`, pod);
  made.body.spec.terminationGracePeriodSeconds = -1;
  const put = await server.send("PUT", `${IN_DEFAULT}/pods/p`, made.body);
  assert.equal(put.status, 200, put.body.message);
  assert.equal(put.body.spec.terminationGracePeriodSeconds, 1);
});

test("Events are selected by the fields of either group", async () => {
  const events = "/apis/events.k8s.io/v1/namespaces/default/events";
  const regarding = { kind: "Pod", namespace: "default", name: "p" };
  const event = {
    metadata: { name: "new", namespace: "default" },
    eventTime: "2026-01-02T03:04:05.000000Z",
    type: "Normal",
    reason: "r",
    action: "a",
    reportingController: "x.example/y",
    reportingInstance: "i",
    regarding,
  };
  const old = {
    metadata: { name: "old", namespace: "default" },
    involvedObject: regarding,
    reportingComponent: "x.example/y",
    type: "Normal",
  };
  assert.equal((await server.send("POST", events, event)).status, 201);
  assert.equal(
    (await server.send("POST", `${IN_DEFAULT}/events`, old)).status,
    201,
  );
  for (
    const path of [
      `${events}?fieldSelector=reportingController=x.example/y`,
      `${events}?fieldSelector=regarding.name=p`,
      `${IN_DEFAULT}/events?fieldSelector=reportingComponent=x.example/y`,
      `${IN_DEFAULT}/events?fieldSelector=involvedObject.name=p`,
    ]
  ) {
    const { body } = await server.send("GET", path);
    const names = body.items.map((item: any) => item.metadata.name);
    assert.deepEqual(names, ["new", "old"], path);
  }
});

test("health answers its checks when it is asked for them", async () => {
  assert.equal((await server.send("GET", "/readyz")).body, "ok");
  const { body } = await server.send(
    "GET",
    "/livez?verbose&exclude=etcd&exclude=nope",
  );
  assert.match(
    body,
    /^\[\+\]ping ok\n\[\+\]log ok\n\[\+\]etcd excluded: ok\n/,
  );
  assert.match(
    body,
    /\nwarn: some health checks cannot be excluded: no matches for "nope"\nlivez check passed\n$/,
  );
  const ready = await server.send("GET", "/readyz?verbose");
  assert.match(ready.body, /\n\[\+\]informer-sync ok\n/);
  assert.equal((await server.send("GET", "/livez/etcd")).body, "ok");
  assert.equal((await server.send("GET", "/livez/informer-sync")).status, 404);
});
