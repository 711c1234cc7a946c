import { openHttpTransport } from "../core/client/transport/open_transport.ts";
import { type Bench, type Measure, verify } from "./support/bench.ts";
import {
  clientNode,
  coracle,
  type StartFollower,
} from "./support/followers.ts";
import type { Toolchain } from "./support/built_rivals.ts";
import { rivalSync } from "./support/rival_follower.ts";
import { type PodServer, startPodServer } from "./support/pod_server.ts";
import { loadRival } from "./support/rival.ts";
import { watchUsage } from "./support/watch_usage.ts";

const OBJECTS = 50_000;

/** Work of a subject with a server. */
type Load = (server: PodServer) => Promise<unknown>;

const openTransport = (server: PodServer) =>
  openHttpTransport({
    server: server.url,
    certificateAuthority: server.authority,
  });
const loadOwn: Load = async (server) => (await openTransport(server)).close();
const loadClientNode: Load = () => loadRival("@kubernetes/client-node");

/**
 * Measures work with a server. Modules are loaded before, since `startup`
 * measures that.
 */
async function withServer(
  load: Load,
  work: (server: PodServer) => Promise<() => Promise<void>>,
): Promise<readonly Measure[]> {
  const server = await startPodServer({
    objects: OBJECTS,
    events: 0,
    scheme: "https",
  });
  await load(server);
  const usage = watchUsage();
  const stop = await work(server);
  const measures = usage.measures(OBJECTS, "object");
  await stop();
  await server.stop();
  return measures;
}

function sync(
  start: StartFollower,
  load: Load,
): Promise<readonly Measure[]> {
  return withServer(load, async (server) => {
    const follower = await start(server);
    verify(follower.size === OBJECTS, "every Pod must be there");
    return () => follower.stop();
  });
}

/** Rival in another language, in a process that measures itself. */
async function rival(toolchain: Toolchain): Promise<readonly Measure[]> {
  let measures: readonly Measure[] = [];
  await withServer(() => Promise.resolve(), async (server) => {
    const followed = await rivalSync(toolchain, server);
    verify(followed.size === OBJECTS, "every Pod must be there");
    measures = followed.measures;
    return () => Promise.resolve();
  });
  return measures;
}

/** Subject: reads the bytes of one list only. */
function download(): Promise<readonly Measure[]> {
  return withServer(loadOwn, async (server) => {
    const transport = await openTransport(server);
    const { body } = await transport.send({
      method: "GET",
      path: "/api/v1/pods",
      headers: {},
    });
    let bytes = 0;
    for await (const chunk of body) bytes += chunk.length;
    verify(bytes > OBJECTS * 5_000, "the list must come");
    return () => transport.close();
  });
}

export const bench: Bench = {
  name: "sync",
  what: `${OBJECTS} Pods into a cache over TLS, from another process`,
  rounds: 3,
  subjects: [
    { name: "coracle, stream", run: () => sync(coracle(), loadOwn) },
    {
      name: "coracle, pages",
      run: () => sync(coracle({ watchList: false }), loadOwn),
    },
    {
      name: "client-node",
      rival: true,
      run: () => sync(clientNode, loadClientNode),
    },
    { name: "client-go", rival: true, needs: "go", run: () => rival("go") },
    { name: "fabric8", rival: true, needs: "mvn", run: () => rival("mvn") },
    { name: "kube-rs", rival: true, needs: "cargo", run: () => rival("cargo") },
    { name: "plain download", rival: true, run: download },
  ],
};
