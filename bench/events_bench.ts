import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { type Bench, type Measure, verify } from "./support/bench.ts";
import {
  clientNode,
  coracle,
  type StartFollower,
} from "./support/followers.ts";
import type { Toolchain } from "./support/built_rivals.ts";
import { rivalEvents } from "./support/rival_follower.ts";
import { type PodServer, startPodServer } from "./support/pod_server.ts";
import { PodFactory } from "./support/pods.ts";
import { watchUsage } from "./support/watch_usage.ts";

const OBJECTS = 2_000;
const EVENTS = 40_000;

type Scheme = "http" | "https";

function startServer(scheme: Scheme): Promise<PodServer> {
  return startPodServer({ objects: OBJECTS, events: EVENTS, scheme });
}

async function measure(
  scheme: Scheme,
  start: StartFollower,
): Promise<readonly Measure[]> {
  const server = await startServer(scheme);
  const follower = await start(server);
  verify(follower.size === OBJECTS, "every Pod must be there");
  const usage = watchUsage();
  server.send();
  while (follower.changes < EVENTS) {
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  const measures = usage.measures(EVENTS, "event");
  const { metadata } = JSON.parse(new PodFactory().text(OBJECTS - 1));
  verify(
    follower.version(metadata) === String(1_000_000 + EVENTS),
    "the last Pod must equal the last event",
  );
  await follower.stop();
  await server.stop();
  return measures;
}

/**
 * The least that a client in Node needs: `node:http` reads the watch, and its
 * lines are counted. Nothing is scanned or kept.
 */
async function countLines(): Promise<readonly Measure[]> {
  const server = await startServer("http");
  const [watch] = await once(
    get(`${server.url}/api/v1/pods?watch=true`),
    "response",
  ) as [IncomingMessage];
  const usage = watchUsage();
  server.send();
  let lines = 0;
  for await (const chunk of watch) {
    for (let at = -1; (at = chunk.indexOf(0x0a, at + 1)) >= 0;) lines++;
    if (lines === EVENTS) break;
  }
  const measures = usage.measures(EVENTS, "event");
  await server.stop();
  return measures;
}

/** Rival in another language, in a process that measures itself. */
async function rival(
  toolchain: Toolchain,
  scheme: Scheme,
): Promise<readonly Measure[]> {
  const server = await startServer(scheme);
  const { version, measures } = await rivalEvents(toolchain, server, {
    objects: OBJECTS,
    events: EVENTS,
  });
  verify(
    version === String(1_000_000 + EVENTS),
    "the last Pod must equal the last event",
  );
  await server.stop();
  return measures;
}

export const bench: Bench = {
  name: "events",
  what: `${EVENTS} changes of Pods over a watch, from another process`,
  rounds: 3,
  subjects: [
    { name: "coracle", run: () => measure("http", coracle()) },
    {
      name: "client-node",
      rival: true,
      run: () => measure("http", clientNode),
    },
    {
      name: "client-go",
      rival: true,
      needs: "go",
      run: () => rival("go", "http"),
    },
    {
      name: "fabric8",
      rival: true,
      needs: "mvn",
      run: () => rival("mvn", "http"),
    },
    {
      name: "kube-rs",
      rival: true,
      needs: "cargo",
      run: () => rival("cargo", "http"),
    },
    { name: "lines counted", rival: true, run: countLines },
    { name: "coracle, TLS", rounds: 1, run: () => measure("https", coracle()) },
    {
      name: "client-node, TLS",
      rival: true,
      rounds: 1,
      run: () => measure("https", clientNode),
    },
    {
      name: "client-go, TLS",
      rival: true,
      rounds: 1,
      needs: "go",
      run: () => rival("go", "https"),
    },
  ],
};
