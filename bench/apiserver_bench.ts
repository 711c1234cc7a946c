import process from "node:process";
import { ApiServer } from "@coracle/dev/apiserver";
import {
  type Bench,
  type Measure,
  type Subject,
  verify,
} from "./support/bench.ts";
import { startServerProcess } from "./support/api_server.ts";
import { HttpConnection } from "./support/http_connection.ts";
import { PodFactory } from "./support/pods.ts";
import { cpuTime, median, memoryNow, peakRss } from "./support/sampling.ts";

const CONFIG_MAPS = "/api/v1/namespaces/default/configmaps";
const MIB = 1024 * 1024;

async function post(
  { transport }: ApiServer,
  path: string,
  body: string,
): Promise<void> {
  const headers = { "content-type": "application/json" };
  const answer = await transport.send({ method: "POST", path, headers, body });
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of answer.body) {
    if (answer.status !== 201) text += decoder.decode(chunk);
  }
  verify(answer.status === 201, `a create must succeed: ${text}`);
}

function configMap(i: number): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: `cm-${i}`, labels: { app: "x" } },
    data: { a: "b".repeat(200) },
  });
}

/** Reads a watch until it has delivered a number of events. */
async function countEvents(server: ApiServer, count: number): Promise<void> {
  const { body } = await server.transport.send({
    method: "GET",
    path: `${CONFIG_MAPS}?watch=1&labelSelector=app%3Dx`,
    headers: {},
  });
  let seen = 0;
  for await (const chunk of body) {
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) {
      seen++;
    }
    if (seen >= count) break;
  }
  verify(seen === count, "a watch must see each create once");
}

/**
 * Subject: creates of ConfigMaps with a number of watches, all in one process.
 */
function creates(count: number, watches: number): Subject {
  const run = async () => {
    const server = await ApiServer.start({ port: false });
    for (let i = 0; i < 1000; i++) {
      const warmUp = configMap(i).replace('"cm-', '"w-').replace('"x"', '"w"');
      await post(server, CONFIG_MAPS, warmUp);
    }
    const watching = Array.from(
      { length: watches },
      () => countEvents(server, count),
    );
    const bodies = Array.from({ length: count }, (_, i) => configMap(i));
    const cpu = cpuTime();
    const start = performance.now();
    for (const body of bodies) await post(server, CONFIG_MAPS, body);
    await Promise.all(watching);
    const seconds = (performance.now() - start) / 1000;
    const used = cpuTime() - cpu;
    await server.stop();
    const result: Measure[] = [
      { unit: "µs CPU/create", value: used / count },
      { unit: "creates/s", value: count / seconds },
    ];
    if (watches > 0) {
      result.push({ unit: "events/s", value: count * watches / seconds });
    }
    return [...result, peakRss()];
  };
  const name = watches === 0 ? "creates" : `creates, ${watches} watches`;
  return { name, run };
}

/** Subject: creates over sockets, from a client in this process. */
function remoteCreates(
  scheme: "http" | "https",
  { count, connections, watches }: {
    readonly count: number;
    readonly connections: number;
    readonly watches: number;
  },
): Subject {
  const run = async () => {
    const server = await startServerProcess(scheme);
    const open = (many: number) =>
      Promise.all(
        Array.from({ length: many }, () => HttpConnection.open(server)),
      );
    const writers = await open(connections);
    const create = async (texts: readonly string[]) => {
      let next = 0;
      await Promise.all(writers.map(async (writer) => {
        for (let text = texts[next++]; text; text = texts[next++]) {
          await writer.post(CONFIG_MAPS, text);
        }
      }));
    };
    const texts = (prefix: string, many: number) =>
      Array.from(
        { length: many },
        (_, i) => configMap(i).replaceAll(/"(?=cm-|x")/g, `"${prefix}`),
      );
    await create(texts("warm-up-", 2_000));
    const watchers = await open(watches);
    const path = `${CONFIG_MAPS}?watch=1&labelSelector=app%3Dx`;
    const watching = await Promise.all(
      watchers.map((watcher) => watcher.watch(path, count)),
    );
    const bodies = texts("", count);
    const start = performance.now();
    await create(bodies);
    await Promise.all(watching.map(({ ended }) => ended));
    const seconds = (performance.now() - start) / 1000;
    for (const connection of [...writers, ...watchers]) connection.close();
    const { peak } = await server.stop();
    const creates = { unit: "creates/s", value: count / seconds };
    const events = { unit: "events/s", value: watches * count / seconds };
    return [
      ...(watches > 0 ? [events, creates] : [creates]),
      { unit: "MiB server's peak RSS", value: peak },
    ];
  };
  const name = `${scheme} creates${watches > 0 ? `, ${watches} watches` : ""}`;
  return { name, run };
}

/**
 * Subject: servers of tests; each is started, receives one request and is
 * stopped.
 */
const restarts: Subject = {
  name: "start and stop",
  run: async () => {
    const first = performance.now();
    await (await ApiServer.start()).stop();
    const loaded = performance.now() - first;
    const times: number[] = [];
    for (let i = 0; i < 40; i++) {
      const start = performance.now();
      const server = await ApiServer.start();
      await post(server, CONFIG_MAPS, configMap(i));
      await server.stop();
      times.push(performance.now() - start);
    }
    return [
      { unit: "ms/server", value: median(times) },
      { unit: "ms first", value: loaded },
    ];
  },
};

/** Subject: memory of stored Pods. */
function pods(count: number): Subject {
  const run = async () => {
    const server = await ApiServer.start({ port: false });
    const factory = new PodFactory();
    const before = memoryNow();
    for (let i = 0; i < count; i++) {
      const pod = JSON.parse(factory.text(i));
      // Their owners do not exist here; the garbage collector would delete the
      // Pods.
      delete pod.metadata.ownerReferences;
      delete pod.metadata.resourceVersion;
      pod.metadata.namespace = "default";
      pod.metadata.name = `pod-${i}`;
      pod.spec.serviceAccountName = "default";
      await post(
        server,
        "/api/v1/namespaces/default/pods",
        JSON.stringify(pod),
      );
    }
    const { heap, external } = memoryNow();
    const bytes = heap + external - before.heap - before.external;
    const { rss } = process.memoryUsage();
    await server.stop();
    return [
      { unit: "B/object", value: bytes / count },
      { unit: "MiB RSS", value: rss / MIB },
      peakRss(),
    ];
  };
  return { name: `${count / 1000}k Pods`, run, rounds: 1 };
}

export const bench: Bench = {
  name: "apiserver",
  what: "the embedded API server, in this process and in one of its own",
  subjects: [
    restarts,
    creates(20_000, 0),
    creates(5_000, 50),
    remoteCreates("http", { count: 20_000, connections: 16, watches: 0 }),
    remoteCreates("https", { count: 20_000, connections: 16, watches: 0 }),
    remoteCreates("http", { count: 5_000, connections: 16, watches: 50 }),
    remoteCreates("https", { count: 5_000, connections: 16, watches: 50 }),
    pods(100_000),
  ],
};
