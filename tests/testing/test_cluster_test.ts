import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import process from "node:process";
import { test } from "node:test";
import { ConfigMap, Deployment, Namespace, Pod } from "@coracle/operator/kinds";
import {
  TestCluster,
  type TestClusterOptions,
  type TestedOperator,
  VirtualClock,
  withTestCluster,
} from "@coracle/dev";
import type { HttpRequest, StreamRequest } from "@coracle/operator/client";
import { ActingTransport } from "../../dev/testing/acting_transport.ts";

const cluster = "embedded";
const virtual = () => ({ cluster, clock: new VirtualClock() }) as const;

/** Operator that counts how often it is started and stopped. */
function counted(): TestedOperator & { started: number; stopped: number } {
  return {
    started: 0,
    stopped: 0,
    start() {
      this.started++;
      return Promise.resolve();
    },
    stop() {
      this.stopped++;
      return Promise.resolve();
    },
  };
}

test("until() gives the first result but undefined, null and false", () =>
  withTestCluster(virtual(), async ({ until }) => {
    const results: unknown[] = [undefined, null, false, 0, 1];
    assert.equal(await until(() => results.shift()), 0);
    assert.equal(await until(() => ""), "");
  })());

test("until() ends with the error of its condition", () =>
  withTestCluster(virtual(), async ({ until, clock }) => {
    const broken = new Error("broken");
    const before = clock.now();
    await assert.rejects(
      until(() => Promise.reject(broken)),
      ({ cause }: Error) => cause === broken,
    );
    assert.equal(clock.now(), before);
  })());

test("until() waits for an hour of a virtual clock by default", () =>
  withTestCluster(virtual(), async ({ until, clock }) => {
    let isDue = false;
    clock.setTimer(() => void (isDue = true), 59 * 60_000);
    await until(() => isDue);
  })());

test("until() waits longer than a second in real time", () =>
  withTestCluster({ cluster }, async ({ until, clock }) => {
    const end = clock.now() + 1_200;
    await until(() => clock.now() > end);
  })());

test("apply() takes over fields, and knows objects without a namespace", () =>
  withTestCluster(virtual(), async ({ apply, client, namespace }) => {
    const key = { namespace, name: "a" };
    const map = { metadata: key, data: { a: "1" } };
    await client.apply(ConfigMap, map, { fieldManager: "another" });
    const header = { apiVersion: "v1", kind: "ConfigMap" };
    await apply({ ...header, metadata: { name: "a" }, data: { a: "2" } });
    assert.equal((await client.get(ConfigMap, key)).data?.["a"], "2");
    const spaces = { apiVersion: "v1", kind: "Namespace" };
    const made = await apply({ ...spaces, metadata: { name: "extra" } });
    assert.equal(made.metadata.namespace, undefined);
  })());

test("an operator is stopped once, and before its cluster", async () => {
  const operator = counted();
  const kit = await TestCluster.start({
    ...virtual(),
    operator: () => operator,
  });
  assert.equal(operator.started, 1);
  await kit.stopOperator();
  await kit.stopOperator();
  await kit.stop();
  assert.equal(operator.stopped, 1);
  const another = counted();
  await withTestCluster({ ...virtual(), operator: () => another }, () => {})();
  assert.equal(another.stopped, 1);
});

test("a cluster that cannot start stops its server", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const operator = {
    ...counted(),
    start: () => Promise.reject(new Error("no start")),
    stop: () => Promise.resolve(resolve()),
  };
  await assert.rejects(
    TestCluster.start({ ...virtual(), operator: () => operator }),
    /no start/,
  );
  await promise;
});

test("a stopped cluster takes no requests", async () => {
  const kit = await TestCluster.start(virtual());
  const { transport, namespace } = kit;
  await kit.stop();
  const path = `/api/v1/namespaces/${namespace}`;
  await assert.rejects(
    transport.send({ method: "GET", path, headers: {} }),
  );
});

test("a body that fails has the log and its cause, also if the end fails", async () => {
  const cause = new Error("broken");
  const failing = (more: Partial<TestedOperator>) =>
    withTestCluster({
      ...virtual(),
      operator: ({ logger }) => ({
        ...counted(),
        start: () => Promise.resolve(logger.info("Begun")),
        ...more,
      }),
    }, () => Promise.reject(cause))();
  const stop = () => Promise.reject(new Error("no end"));
  for (const more of [{}, { stop }]) {
    await assert.rejects(failing(more), (error: Error) => {
      assert.match(
        error.message,
        /^Cannot pass the test: broken\n\nThe log:\n.*Begun/,
      );
      assert.equal(error.cause, cause);
      return true;
    });
  }
});

test("an end that fails fails the test, and a log is not repeated", async () => {
  const stop = () => Promise.reject(new Error("no end"));
  const operator = () => ({ ...counted(), stop });
  await assert.rejects(
    withTestCluster({ ...virtual(), operator }, () => {})(),
    /no end/,
  );
  await assert.rejects(
    withTestCluster(virtual(), async ({ until }) => {
      await until(() => false, { within: "1s" });
    })(),
    ({ message }: Error) => message.split("The log:").length === 2,
  );
});

test("the option cluster goes before the variable, whose values are checked", async () => {
  const name = "CORACLE_TEST_CLUSTER";
  const before = process.env[name];
  process.env[name] = "minikube";
  try {
    const kit = await TestCluster.start(virtual());
    await kit.stop();
    await assert.rejects(
      TestCluster.start(),
      /^RangeError: .* "embedded" or "kubeconfig": received "minikube"$/,
    );
  } finally {
    if (before === undefined) delete process.env[name];
    else process.env[name] = before;
  }
});

test("an empty name of a record records nothing", async () => {
  const name = "CORACLE_RECORD";
  const before = process.env[name];
  process.env[name] = "";
  try {
    await withTestCluster(virtual(), () => {})();
  } finally {
    if (before === undefined) delete process.env[name];
    else process.env[name] = before;
  }
});

test("a cluster takes a namespace that exists", () =>
  withTestCluster(
    { ...virtual(), namespace: "default" },
    async ({ client, namespace }) => {
      assert.equal(namespace, "default");
      await client.get(Namespace, { name: namespace });
    },
  )());

test("a rule for several refused requests is logged once", () =>
  withTestCluster(
    { ...virtual(), rights: [] },
    async (kit) => {
      const { operatorClient, namespace } = kit;
      for (const name of ["a", "b"]) {
        const metadata = { namespace, name };
        await assert.rejects(operatorClient.get(Pod, metadata));
        await assert.rejects(operatorClient.get(Deployment, metadata));
        const spec = { containers: [{ name: "main", image: "a" }] };
        await assert.rejects(operatorClient.apply(Pod, { metadata, spec }));
      }
      for (
        const rule of [
          '{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}',
          '{"apiGroups":["apps"],"resources":["deployments"],"verbs":["get"]}',
          '{"apiGroups":[""],"resources":["pods"],"verbs":["patch","create"]}',
        ]
      ) assert.equal(kit.log.split(rule).length, 2, kit.log);
    },
  )());

test("the clients of a test cluster do not retry in real time", () =>
  withTestCluster(virtual(), async ({ client, operatorClient, faults }) => {
    for (const one of [client, operatorClient]) {
      faults.add({ effect: { status: 503 }, count: 1 });
      await assert.rejects(one.list(ConfigMap), { status: 503 });
      await one.list(ConfigMap);
    }
  })());

test("a rule without verbs is refused", async () => {
  const rights = [{ resources: ["pods"] }] as never as NonNullable<
    TestClusterOptions["rights"]
  >;
  await assert.rejects(
    TestCluster.start({ ...virtual(), rights }),
    /a test cluster, rights.*verbs/,
  );
});

test("an acting transport reports refusals alone, and leaves its inner open", async () => {
  let isClosed = false;
  const refused: unknown[] = [];
  const recorded: unknown[] = [];
  const transport = new ActingTransport({
    send: ({ path }: HttpRequest) =>
      Promise.resolve({
        status: path.endsWith("/b") ? 403 : 404,
        headers: {},
        body: (async function* () {})(),
        cancel: () => Promise.resolve(),
      }),
    close: () => Promise.resolve(void (isClosed = true)),
  }, {
    refused: ({ resource }) => void refused.push(resource),
    record: ({ resource }, status) => void recorded.push([resource, status]),
  });
  for (const path of ["/api/v1/nodes/a", "/api/v1/namespaces/b"]) {
    await transport.send({ method: "GET", path, headers: {} });
  }
  assert.deepEqual(refused, ["namespaces"]);
  assert.deepEqual(recorded, [["nodes", 0], ["namespaces", 0]]);
  await transport.close();
  assert.equal(isClosed, false);
});

test("until() ends in real time, and names its limit", async () => {
  await withTestCluster({ cluster: "embedded" }, async ({ until }) => {
    await assert.rejects(
      until(() => false, { within: "20ms" }),
      /^Error: Cannot wait any longer: the condition did not hold within 20ms/,
    );
  })();
});

test("an acting transport acts as its user, whatever a request says", async () => {
  const sent: HttpRequest["headers"][] = [];
  const transport = new ActingTransport({
    send({ headers }: HttpRequest) {
      sent.push(headers);
      return Promise.resolve({
        status: 200,
        headers: {},
        body: (async function* () {})(),
        cancel: () => Promise.resolve(),
      });
    },
    close: () => Promise.resolve(),
  }, { user: "ann" });
  const headers = { "impersonate-user": "root", accept: "a" };
  await transport.send({ method: "GET", path: "/version", headers });
  assert.deepEqual(sent, [{ "impersonate-user": "ann", accept: "a" }]);
});

test("an acting transport acts as its user in streams, if its inner has them", async () => {
  const sent: unknown[] = [];
  const inner = {
    send: () => Promise.reject(new Error("no request")),
    close: () => Promise.resolve(),
  };
  const request = { path: "/api/v1/namespaces/a/pods/b/exec", headers: {} };
  const connect = (request: StreamRequest) => {
    sent.push(request.headers);
    return Promise.reject(new Error("no stream"));
  };
  const stream = { ...request, protocols: [] } as object as StreamRequest;
  await assert.rejects(
    new ActingTransport({ ...inner, connect }, { user: "ann" })
      .connect(stream),
    /no stream/,
  );
  assert.deepEqual(sent, [{ "impersonate-user": "ann" }]);
  await assert.rejects(
    new ActingTransport(inner, {}).connect(stream),
    /^Error: Cannot open a stream: the transport has none$/,
  );
});

test("stop() waits for an operator that needs time of a virtual clock", async () => {
  const clock = new VirtualClock();
  let isStopped = false;
  const operator = {
    ...counted(),
    stop: () =>
      new Promise<void>((resolve) => {
        clock.setTimer(() => {
          isStopped = true;
          resolve();
        }, 1_000);
      }),
  };
  const kit = await TestCluster.start({
    cluster,
    clock,
    operator: () => operator,
  });
  const { complete } = kit;
  assert.equal(await complete(Promise.resolve(1)), 1);
  await kit.stop();
  assert.equal(isStopped, true);
});

test("a stopped cluster has closed the clients that it gave", async () => {
  const kit = await TestCluster.start(virtual());
  const key = { name: "default" };
  for (const client of [kit.client, kit.operatorClient]) {
    await client.get(Namespace, key);
  }
  await kit.stop();
  for (const client of [kit.client, kit.operatorClient]) {
    await assert.rejects(client.get(Namespace, key), /closed/);
  }
});

test("a stopped cluster has stopped its server", async () => {
  const kit = await TestCluster.start({ cluster, server: { port: 0 } });
  const url = kit.server?.url ?? "";
  assert.match(url, /^https:/);
  const port = Number(new URL(url).port);
  await kit.stop();
  await assert.rejects(once(connect(port, "127.0.0.1"), "connect"), {
    code: "ECONNREFUSED",
  });
});

test("a start that fails names its own error, and not that of the stop", async () => {
  const operator = {
    start: () => Promise.reject(new Error("no start")),
    stop: () => Promise.reject(new Error("no end")),
  };
  await assert.rejects(
    TestCluster.start({ ...virtual(), operator: () => operator }),
    /no start/,
  );
});

test("a cluster stops its server although its operator fails to stop", async () => {
  const kit = await TestCluster.start({
    ...virtual(),
    server: { port: 0 },
    operator: () => ({
      ...counted(),
      stop: () => Promise.reject(new Error("no end")),
    }),
  });
  const port = Number(new URL(kit.server?.url ?? "").port);
  await assert.rejects(kit.stop(), /no end/);
  await assert.rejects(once(connect(port, "127.0.0.1"), "connect"), {
    code: "ECONNREFUSED",
  });
});

test("a cluster whose record cannot be written leaves fetch as it was", async () => {
  const { fetch } = globalThis;
  const record = "/dev/null/record";
  await assert.rejects(
    TestCluster.start({ ...virtual(), record }),
    /Cannot record requests/,
  );
  assert.equal(globalThis.fetch, fetch);
});

test("an operator gets what it is tested with", async () => {
  const clock = new VirtualClock();
  let given: unknown;
  const kit = await TestCluster.start({
    cluster,
    clock,
    operator(options) {
      given = options;
      return counted();
    },
  });
  const { operatorClient: client, logger, namespace } = kit;
  assert.deepEqual(Object.entries(Object(given)), [
    ["client", client],
    ["clock", clock],
    ["logger", logger],
    ["namespaces", [namespace]],
    ["probes", undefined],
    ["webhooks", kit.webhooks],
    ["reconnect", { minWatchTimeout: 2_592_000_000 }],
  ]);
  await kit.stop();
});

test("an operator may use a virtual clock while it starts", async () => {
  const clock = new VirtualClock();
  const start = () =>
    new Promise<void>((resolve) => void clock.setTimer(resolve, 1_000));
  const operator = { ...counted(), start };
  const kit = await TestCluster.start({
    cluster,
    clock,
    operator: () => operator,
  });
  await kit.stop();
  // What takes real time, such as the first import of modules, takes little.
  assert.ok(clock.now() >= 1_000 && clock.now() < 15_000, `${clock.now()} ms`);
});

test("the log of a cluster has the time of its clock", async () => {
  const clock = new VirtualClock({ start: new Date("2030-01-01T00:00:00Z") });
  const kit = await TestCluster.start({ cluster, clock });
  kit.logger.info("Begun");
  assert.match(kit.log, /2030-01-01T.*Begun/);
  await kit.stop();
});

test("withTestCluster() refuses a body that is no function", () => {
  assert.throws(
    () => withTestCluster(virtual(), undefined as never),
    /^TypeError: .*withTestCluster\(\)/,
  );
});
