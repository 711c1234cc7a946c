import { readdirSync } from "node:fs";
import process from "node:process";
import { untyped } from "../core/api/kind.ts";
import { Client } from "../core/client/client.ts";
import { configFromText } from "../core/config/load_config.ts";
import { silentLogger } from "../core/logger.ts";
import { Operator } from "../core/operator/operator.ts";
import { limitHeapGrowth } from "../core/operator/process_memory.ts";
import {
  type Bench,
  type Measure,
  MissingError,
  type Subject,
  verify,
} from "./support/bench.ts";
import { startRival } from "./support/built_rivals.ts";
import { manyKind } from "./support/many_kinds.ts";
import { cpuTime, memoryNow, peakOfStart } from "./support/sampling.ts";
import { type ChildServer, startChildServer } from "./support/child_server.ts";

const MIB = 2 ** 20;

/** Load of a subject. */
interface Load {
  readonly kinds: number;
  /** Objects of each kind. */
  readonly objects: number;
  /** Version of HTTP that the server offers. */
  readonly http: 1 | 2;
  /** Whether one `watchKinds` follows them all, by their metadata. */
  readonly follows?: boolean;
  /** Whether controllers keep the metadata only. */
  readonly metadataOnly?: boolean;
  /** Budget of the caches; that of the operator by default. */
  readonly budget?: string;
}

/** The load of most subjects, which share a server: it takes a minute to fill. */
const FULL = { kinds: 1_000, objects: 100, http: 2 } as const;
/** Variable with the kubeconfig of that server. */
const KUBECONFIG = "CORACLE_BENCH_KINDS";

type Server = Pick<ChildServer<string>, "ready" | "stop">;

/** The server of a load, whose line is its kubeconfig. */
async function serverOf({ kinds, objects, http }: Load): Promise<Server> {
  const shared = process.env[KUBECONFIG];
  if (shared && objects === FULL.objects) {
    return { ready: shared, stop: () => Promise.resolve() };
  }
  const program = "kinds_server_process.ts";
  return await startChildServer(program, kinds, objects, http);
}

/** Number of open descriptors. */
function descriptors(): number {
  return readdirSync("/proc/self/fd").length;
}

/** Memory that is held, after a turn in which finalizers run. */
async function held() {
  memoryNow();
  await new Promise((resolve) => setTimeout(resolve, 100));
  return memoryNow();
}

/** Operator whose first runs, or events, it awaits. */
async function run(load: Load): Promise<readonly Measure[]> {
  const { kinds, objects, follows = false, metadataOnly, budget } = load;
  limitHeapGrowth();
  const server = await serverOf(load);
  const client = new Client(await configFromText(server.ready));
  const operator = new Operator({
    client,
    logger: silentLogger,
    cache: { budget },
    syncTimeout: "10m",
  });
  await client.list(untyped(manyKind(0)), { limit: 1 });
  const before = await held();
  const open = descriptors();
  const [start, cpu] = [performance.now(), cpuTime()];
  let runs = 0;
  const all = Promise.withResolvers<void>();
  const reconcile = () => {
    if (++runs === kinds * objects) all.resolve();
  };
  if (follows) operator.watchKinds({ groups: [manyKind(0).group] }, reconcile);
  for (let index = 0; index < kinds && !follows; index++) {
    operator.register(untyped(manyKind(index)), { reconcile }, {
      cache: { metadataOnly },
    });
  }
  await operator.start();
  const synced = [performance.now() - start, cpuTime() - cpu] as const;
  if (objects > 0) await all.promise;
  const ran = [performance.now() - start, cpuTime() - cpu] as const;
  verify(runs === kinds * objects, "each object must run once");
  const after = await held();
  const peak = peakOfStart(after.rss);
  // The connection of the first read was open before.
  const sockets = descriptors() - open + 1;
  await operator.stop();
  await client.close();
  await server.stop();
  const grown = after.heap + after.external - before.heap - before.external;
  return [
    { unit: "MiB RSS", value: after.rss / MIB },
    { unit: "sockets", value: sockets },
    { unit: "s CPU to sync", value: synced[1] / 1e6 },
    { unit: "s to sync", value: synced[0] / 1e3 },
    { unit: "s CPU to the last run", value: ran[1] / 1e6 },
    { unit: "s to the last run", value: ran[0] / 1e3 },
    { unit: "KiB/kind", value: grown / kinds / 1024 },
    ...peak,
  ];
}

function subject(load: Load): Subject {
  const { kinds, objects, http, follows, metadataOnly, budget } = load;
  const form = follows
    ? "watchKinds"
    : metadataOnly
    ? "metadata"
    : budget ?? "";
  return {
    name: `${kinds} kinds of ${objects}, HTTP/${http === 1 ? "1.1" : "2"}${
      form && `, ${form}`
    }`,
    run: () => run(load),
    settings: `limitHeapGrowth(), ${
      follows ? "watchKinds with a handler" : "a controller a kind"
    }, ${budget ?? "no"} budget, objects of 650 bytes`,
  };
}

/** A controller of controller-runtime for each kind, which reads what it runs. */
async function runControllerRuntime(
  form: "unstructured" | "metadata",
): Promise<readonly Measure[]> {
  const server = await serverOf(FULL);
  const args = ["kinds", form, `${FULL.kinds}`, `${FULL.objects}`];
  const rival = startRival("go", ...args);
  rival.endInput(server.ready);
  const measures = await rival.next() as readonly Measure[];
  await server.stop();
  return measures;
}

function controllerRuntime(form: "unstructured" | "metadata"): Subject {
  return {
    name: `controller-runtime, 1000 kinds of 100, ${form}`,
    run: () => runControllerRuntime(form),
    rival: true,
    needs: "go",
    settings: `a controller a kind, ${
      form === "metadata" ? "PartialObjectMetadata" : "Unstructured, cached"
    }, each run reads its object, QPS -1; HTTP/2; memory after FreeOSMemory()`,
  };
}

export const bench: Bench = {
  name: "kinds",
  what: "an operator of many kinds, idle after its start; the server beside it",
  rounds: 3,
  subjects: process.platform === "linux"
    ? [
      subject({ kinds: 300, objects: 20, http: 1 }),
      subject({ kinds: 300, objects: 20, http: 2 }),
      subject({ kinds: 1_000, objects: 0, http: 2 }),
      subject(FULL),
      subject({ ...FULL, budget: "32MiB" }),
      subject({ ...FULL, metadataOnly: true }),
      subject({ ...FULL, follows: true }),
      controllerRuntime("unstructured"),
      controllerRuntime("metadata"),
    ]
    : [],
  async prepare() {
    if (process.platform !== "linux") throw new MissingError("no /proc");
    const server = await serverOf(FULL);
    return {
      env: { [KUBECONFIG]: server.ready },
      stop: () => server.stop(),
    };
  },
};
