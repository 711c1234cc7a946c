import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import {
  AdmissionChain,
  type AdmissionPlugin,
  type Attributes,
  type Phase,
} from "../../../dev/apiserver/admission/admission.ts";
import * as builtin from "../../../dev/apiserver/builtin/builtin_definitions.ts";
import { answerOf } from "../../../dev/apiserver/settle.ts";
import { TestServer } from "../support/test_server.ts";

const NAMESPACE = "/api/v1/namespaces/default";

/** A server that records what admission sees, as `phase OPERATION resource name`. */
function recorded(
  seen: string[],
  react?: (phase: Phase, attributes: Attributes) => void,
  clock?: VirtualClock,
): TestServer {
  const server = new TestServer({ builtin, ...clock && { clock } });
  const handle = (phase: Phase) => (attributes: Attributes) => {
    const { operation, name, namespace, request } = attributes;
    // The server's controllers write without HTTP.
    if (request.http.target === "") return;
    const { subresource, definition } = request;
    const path = [definition.plural, subresource?.name].filter(Boolean);
    seen.push(
      `${phase} ${operation} ${path.join("/")} ${namespace}/${name}`,
    );
    react?.(phase, attributes);
  };
  const plugin: AdmissionPlugin = {
    name: "Recorder",
    operations: ["CREATE", "UPDATE", "DELETE", "CONNECT"],
    mutate: handle("mutate"),
    validate: handle("validate"),
  };
  Object.assign(server.instance.context, {
    admission: new AdmissionChain([plugin]),
  });
  return server;
}

const POD = {
  metadata: { name: "p" },
  spec: { containers: [{ name: "c", image: "i" }] },
};

test("every write, subresource and connection passes both phases", async () => {
  const seen: string[] = [];
  const server = recorded(seen);
  const pod = `${NAMESPACE}/pods/p`;
  const steps = [
    ["POST", `${NAMESPACE}/pods`, POD],
    ["PATCH", pod, { metadata: { labels: { a: "b" } } }],
    ["PATCH", `${pod}/status`, { status: { phase: "Running" } }],
    ["POST", `${pod}/binding`, {
      metadata: { name: "p" },
      target: { name: "n" },
    }],
    ["POST", `${pod}/exec?command=ls`, undefined],
    ["POST", `${pod}/eviction?dryRun=All`, { metadata: { name: "p" } }],
    ["DELETE", `${NAMESPACE}/pods?dryRun=All`, undefined],
    ["DELETE", `${pod}?gracePeriodSeconds=0`, undefined],
    ["POST", `${NAMESPACE}/serviceaccounts/default/token`, {}],
    ["POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {
      spec: { nonResourceAttributes: { path: "/", verb: "get" } },
    }],
  ] as const;
  const expected = [
    "CREATE pods default/p",
    "UPDATE pods default/p",
    "UPDATE pods/status default/p",
    "CREATE pods/binding default/p",
    "CONNECT pods/exec default/p",
    "CREATE pods/eviction default/p",
    "DELETE pods default/p",
    "DELETE pods default/p",
    "CREATE serviceaccounts/token default/default",
    "CREATE selfsubjectaccessreviews /",
  ];
  for (const [index, [method, path, body]] of steps.entries()) {
    seen.length = 0;
    await server.send(
      method,
      path,
      body,
      method === "PATCH"
        ? { "content-type": "application/merge-patch+json" }
        : {},
    );
    assert.deepEqual(seen, [
      `mutate ${expected[index]}`,
      `validate ${expected[index]}`,
    ]);
  }
  server.stop();
});

test("admission changes what is stored, in a dry run too, and sees its name", async () => {
  const names: string[] = [];
  const server = recorded([], (phase, attributes) => {
    names.push(`${phase} ${attributes.name}`);
    const { object } = attributes;
    if (phase === "mutate" && object) object.metadata.labels = { by: "me" };
  });
  const map = { metadata: { generateName: "g-" }, data: {} };
  for (const query of ["?dryRun=All", ""]) {
    names.length = 0;
    const { status, body } = await server.send(
      "POST",
      `${NAMESPACE}/configmaps${query}`,
      map,
    );
    assert.equal(status, 201);
    assert.deepEqual(body.metadata.labels, { by: "me" });
    assert.deepEqual(names, ["mutate ", `validate ${body.metadata.name}`]);
  }
  server.stop();
});

test("the write of a Scale is admitted as a Scale", async () => {
  const scales: unknown[] = [];
  const server = recorded([], (phase, { request, object, oldObject }) => {
    if (request.subresource?.name !== "scale") return;
    scales.push([phase, object?.kind, object?.spec, oldObject?.spec]);
    if (phase === "mutate" && object) object.spec = { replicas: 3 };
  });
  const labels = { a: "b" };
  const controllers = `${NAMESPACE}/replicationcontrollers`;
  await server.send("POST", controllers, {
    metadata: { name: "r" },
    spec: { selector: labels, template: { ...POD, metadata: { labels } } },
  });
  const { body } = await server.send("PUT", `${controllers}/r/scale`, {
    metadata: { name: "r" },
    spec: { replicas: 2 },
  });
  assert.equal(body.spec.replicas, 3);
  assert.deepEqual(scales, [
    ["mutate", "Scale", { replicas: 2 }, { replicas: 1 }],
    ["validate", "Scale", { replicas: 3 }, { replicas: 1 }],
  ]);
  server.stop();
});

test("audit annotations reach the audit event", async () => {
  const server = recorded([], (_, attributes) => {
    attributes.annotate("example.com/why", "because");
  });
  const annotations: Record<string, string> = {};
  const { request } = {
    request: {
      method: "POST",
      target: `${NAMESPACE}/configmaps`,
      headers: { authorization: "Bearer secret" },
      body: new TextEncoder().encode('{"metadata":{"name":"m"}}'),
    },
  };
  const { RequestHandler } = await import(
    "../../../dev/apiserver/request_handler.ts"
  );
  const handler = new RequestHandler({
    context: server.instance.context,
    openApi: undefined as never,
    audit: (event) => Object.assign(annotations, event.annotations),
  });
  assert.equal((await handler.handle(request)).status, 201);
  assert.deepEqual(annotations, { "example.com/why": "because" });
  server.stop();
});

test("a write that waits for an answer asks once, however long it takes", async () => {
  const clock = new VirtualClock();
  const asked: string[] = [];
  const server = recorded([], (phase, { object, operation, request }) => {
    if (phase === "mutate" || request.definition.plural !== "configmaps") {
      return;
    }
    const key = JSON.stringify(object ?? null);
    answerOf(key, async () => {
      asked.push(operation);
      await clock.advance(2_000);
    });
  }, clock);
  const maps = `${NAMESPACE}/configmaps`;
  const map = { metadata: { name: "m" }, data: { a: "1" } };
  const merge = { "content-type": "application/merge-patch+json" };
  assert.equal((await server.send("POST", maps, map)).status, 201);
  const put = { ...map, data: { a: "2" } };
  assert.equal((await server.send("PUT", `${maps}/m`, put)).status, 200);
  const patch = { data: { a: "3" } };
  const { status } = await server.send("PATCH", `${maps}/m`, patch, merge);
  assert.equal(status, 200);
  assert.equal((await server.send("DELETE", `${maps}/m`)).status, 200);
  assert.deepEqual(asked, ["CREATE", "UPDATE", "UPDATE", "DELETE"]);
  server.stop();
});
