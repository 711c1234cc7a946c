// deno-lint-ignore-file no-explicit-any -- tests look at whatever is there
import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { ApiServer } from "@coracle/dev/apiserver";

const FLOWS = "/apis/flowcontrol.apiserver.k8s.io/v1";

async function start(clock = new VirtualClock()) {
  const server = await ApiServer.start({ port: false, clock });
  const send = async (
    method: "GET" | "POST",
    path: string,
    { body, headers = {} }: {
      body?: unknown;
      headers?: Record<string, string>;
    } = {},
  ) => {
    const answer = await server.transport.send({
      method,
      path,
      headers: {
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    let text = "";
    for await (const chunk of answer.body) {
      text += new TextDecoder().decode(chunk);
    }
    const { status } = answer;
    const value = text.startsWith("{") ? JSON.parse(text) : text;
    return { status, headers: answer.headers, body: value as any };
  };
  return { server, send };
}

const UID = "x-kubernetes-pf-flowschema-uid";
const LEVEL = "x-kubernetes-pf-prioritylevel-uid";

test("answers name the flow schema and the level of their request", async () => {
  const { server, send } = await start();
  const first = await send("GET", "/api/v1/namespaces");
  const named = async (plural: string, name: string) =>
    (await send("GET", `${FLOWS}/${plural}/${name}`)).body.metadata.uid;
  assert.equal(first.headers[UID], await named("flowschemas", "exempt"));
  const level = await named("prioritylevelconfigurations", "exempt");
  assert.equal(first.headers[LEVEL], level);
  const { body } = await send("GET", `${FLOWS}/flowschemas`);
  assert.equal(body.items.length, 13);
  assert.equal(body.items[0].status.conditions[0].status, "False");
  const impersonate = { "impersonate-user": "ann" };
  const other = await send("GET", "/api/v1/namespaces", {
    headers: impersonate,
  });
  assert.equal(other.status, 403);
  const fallback = await named("flowschemas", "global-default");
  assert.equal(other.headers[UID], fallback);
  const made = await send("POST", `${FLOWS}/flowschemas`, {
    body: {
      metadata: { name: "own" },
      spec: {
        priorityLevelConfiguration: { name: "workload-high" },
        matchingPrecedence: 3,
        rules: [{
          subjects: [{ kind: "User", user: { name: "ann" } }],
          resourceRules: [{
            verbs: ["list"],
            apiGroups: [""],
            resources: ["*"],
            clusterScope: true,
          }],
        }],
      },
    },
  });
  assert.equal(made.status, 201, made.body.message);
  const moved = await send("GET", "/api/v1/namespaces", {
    headers: impersonate,
  });
  assert.equal(moved.headers[UID], made.body.metadata.uid);
  const own = await send("GET", `${FLOWS}/flowschemas/own`);
  assert.equal(own.body.status.conditions[0].reason, "Found");
  await server.stop();
});

test("component statuses are shown, as far as there are components", async () => {
  const { server, send } = await start();
  const list = await send("GET", "/api/v1/componentstatuses");
  assert.match(
    String(list.headers["warning"]),
    /ComponentStatus is deprecated/,
  );
  const shown = list.body.items.map((item: any) => [
    item.metadata.name,
    item.conditions[0].status,
  ]);
  assert.deepEqual(Object.fromEntries(shown), {
    "controller-manager": "True",
    "etcd-0": "True",
    scheduler: "False",
  });
  await server.stop();
});

test("a continue token expires after five minutes, and can be replaced", async () => {
  const clock = new VirtualClock();
  const { server, send } = await start(clock);
  const path = "/api/v1/namespaces?limit=1";
  const page = (token: string) =>
    send("GET", `${path}&continue=${encodeURIComponent(token)}`);
  const first = (await send("GET", path)).body.metadata;
  await clock.advance(200_000);
  const second = (await page(first.continue)).body.metadata;
  await clock.advance(100_000);
  assert.equal((await page(second.continue)).status, 200);
  await clock.advance(2_000);
  const { status, body } = await page(second.continue);
  assert.deepEqual([status, body.reason], [410, "Expired"]);
  const rest = await page(body.metadata.continue);
  assert.equal(rest.status, 200);
  assert.equal(rest.body.items[0].metadata.name, "kube-public");
  await server.stop();
});
