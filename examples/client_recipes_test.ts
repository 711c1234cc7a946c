import { ApiServer } from "@coracle/dev/apiserver";
import { ApiError, configFromText, Informer } from "@coracle/operator/client";
import {
  ConfigMap,
  CustomResourceDefinition,
  Deployment,
  Pod,
  PodDisruptionBudget,
} from "@coracle/operator/kinds";
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";
import * as recipes from "./client_recipes.ts";
import { until } from "./run_example.ts";

/** Files of the only container. */
const files = new Map<string, Uint8Array>();

const server = await ApiServer.start({
  seed: 1,
  authorization: "rbac",
  controllers: ["*"],
  simulate: true,
  pods: {
    *logs({ tailLines = Infinity }) {
      const lines = ["one\n", "two\n", "three\n"];
      yield* lines.slice(-Math.min(tailLines, lines.length));
    },
    async exec({ command, stdin, write, writeError }) {
      const path = command.at(-1) ?? "";
      if (command[0] === "sh") {
        const chunks: Uint8Array[] = [];
        for await (const chunk of stdin) chunks.push(chunk);
        files.set(path, Buffer.concat(chunks));
        return 0;
      }
      if (command[0] === "cat") {
        const content = files.get(path);
        if (content === undefined) return 1;
        await write(content);
        return 0;
      }
      if (command[0] === "date") await write("today\n");
      else await writeError("no such program");
      return command[0] === "date" ? 0 : 127;
    },
    async portForward({ data, write }) {
      for await (const _request of data) {
        await write("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhello");
        return;
      }
    },
  },
});
const { client } = server;
after(() => server.stop());

const inDefault = (name: string) => ({ namespace: "default", name });

/** Creates a pod, and waits until it runs. */
async function runningPod(name: string, labels = {}): Promise<void> {
  await client.create(Pod, {
    metadata: { ...inDefault(name), labels },
    spec: { containers: [{ name: "main", image: "web" }] },
  });
  await until(`pod ${name} runs`, async () => {
    const { status } = await client.get(Pod, inDefault(name));
    return status?.phase === "Running";
  });
}

test("The recipes read a log, run a command, copy a file and ask a port", async () => {
  const pod = inDefault("shell");
  await runningPod("shell");
  assert.deepEqual(await recipes.lastLines(client, pod, 2), ["two", "three"]);
  assert.equal(await recipes.outputOf(client, pod, ["date"]), "today\n");
  await assert.rejects(recipes.outputOf(client, pod, ["dat"]), {
    message: "dat ended with 127: no such program",
  });
  const content = Buffer.from([0, 1, 254, 255]);
  await recipes.copyIn(client, pod, "/tmp/file", content);
  const copied = await recipes.copyOut(client, pod, "/tmp/file");
  assert.deepEqual(Buffer.from(copied), content);
  await assert.rejects(recipes.copyOut(client, pod, "/none"), {
    message: "Cannot read /none: cat ended with 1",
  });
  assert.equal(await recipes.askPort(client, pod, 80), "hello");
});

test("The recipes watch for a time, and list all names in pages", async () => {
  await runningPod("seen");
  const names = await recipes.changedPods(client, "default", 200);
  assert.ok(names.includes("seen"), `${names}`);
  for (const name of ["a", "b"]) {
    await client.create(ConfigMap, { metadata: inDefault(name) });
  }
  const all = await recipes.allNames(client, ConfigMap, "default");
  assert.deepEqual(all.filter((name) => name.length === 1), ["a", "b"]);
});

test("The recipes wait for a rollout, and restart a Deployment", async () => {
  const key = inDefault("web");
  await client.create(Deployment, {
    metadata: key,
    spec: {
      replicas: 2,
      selector: { matchLabels: { app: "web" } },
      template: {
        metadata: { labels: { app: "web" } },
        spec: { containers: [{ name: "main", image: "web" }] },
      },
    },
  });
  const signal = AbortSignal.timeout(60_000);
  await recipes.rolledOut(client, key, signal);
  await recipes.restart(client, key);
  await recipes.rolledOut(client, key, signal);
  const { metadata } = await client.get(Deployment, key);
  assert.equal(metadata.generation, 2);
  await assert.rejects(
    recipes.rolledOut(client, inDefault("none"), AbortSignal.timeout(50)),
    { name: "TimeoutError" },
  );
});

test("The recipes sum the memory of the containers of pods", async () => {
  await client.create(CustomResourceDefinition, {
    metadata: {
      name: "pods.metrics.k8s.io",
      annotations: { "api-approved.kubernetes.io": "unapproved, for a test" },
    },
    spec: {
      group: "metrics.k8s.io",
      names: { plural: "pods", kind: "PodMetrics" },
      scope: "Namespaced",
      versions: [{
        name: "v1beta1",
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: "object",
            "x-kubernetes-preserve-unknown-fields": true,
          },
        },
      }],
    },
  });
  const created = await until("metrics are served", async () => {
    try {
      return await client.create(recipes.PodMetrics, {
        metadata: inDefault("web"),
        containers: [
          { name: "main", usage: { cpu: "10m", memory: "64Mi" } },
          { name: "proxy", usage: { cpu: "1m", memory: "1Mi" } },
        ],
      });
    } catch (error) {
      if (ApiError.is(error) && error.isNotFound) return undefined;
      throw error;
    }
  });
  assert.equal(created.containers.length, 2);
  const memory = await recipes.memoryOfPods(client, "default");
  assert.deepEqual([...memory], [["web", 65 * 1024 * 1024]]);
});

test("The recipes evict a pod unless its disruption budget forbids it", async () => {
  await runningPod("kept", { app: "kept" });
  await client.create(PodDisruptionBudget, {
    metadata: inDefault("kept"),
    spec: { minAvailable: 1, selector: { matchLabels: { app: "kept" } } },
  });
  await until("the budget is counted", async () => {
    const { status } = await client.get(PodDisruptionBudget, inDefault("kept"));
    return status?.currentHealthy === 1;
  });
  assert.equal(await recipes.evict(client, inDefault("kept")), false);
  await client.delete(PodDisruptionBudget, inDefault("kept"));
  assert.equal(await recipes.evict(client, inDefault("kept")), true);
});

test("The recipes get a token, with whose rights a client then asks", async () => {
  const account = inDefault("default");
  const token = await until("the account exists", async () => {
    try {
      return await recipes.tokenOf(client, account);
    } catch {
      return undefined;
    }
  });
  const config = await configFromText(server.kubeconfig);
  const own = recipes.clientOf(config, token);
  try {
    await assert.rejects(own.list(Pod, { namespace: "default" }), {
      message: /User "system:serviceaccount:default:default" cannot list/,
    });
  } finally {
    await own.close();
  }
});

test("The recipes stream the pods of one informer to a page", async () => {
  const informer = new Informer(client, Pod, { namespaces: ["default"] });
  await informer.start().synced;
  const web = recipes.podEvents(informer).listen(0, "127.0.0.1");
  await once(web, "listening");
  try {
    const { port } = web.address() as AddressInfo;
    const abort = new AbortController();
    const response = await fetch(`http://127.0.0.1:${port}/`, abort);
    await runningPod("streamed");
    let text = "";
    for await (const chunk of response.body ?? []) {
      text += Buffer.from(chunk).toString();
      if (/"default\/streamed","phase":"Running"/.test(text)) break;
    }
    abort.abort();
  } finally {
    web.closeAllConnections();
    web.close();
    await informer.stop();
  }
});
