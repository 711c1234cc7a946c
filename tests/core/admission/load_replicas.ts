/**
 * Validates a hundred requests a second by three replicas of an operator, while two of
 * them end at random moments and start again, and while their certificate authority is
 * rotated; prints what was refused.
 *
 * Usage: `node --conditions=@coracle/source tests/core/admission/load_replicas.ts
 * [--seconds N] [--signal SIGTERM]`; a minute and SIGTERM by default. After SIGKILL
 * what was in progress in the process is lost, which no operator can prevent.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { ROTATION_TIMES } from "../../../core/admission/certificate_rotation.ts";
import {
  SECRET,
  SecretCertificates,
} from "../../../core/admission/served_certificates.ts";
import { systemClock } from "../../../core/clock.ts";
import {
  ConfigMap,
  Service,
  ValidatingWebhookConfiguration,
} from "../../../core/kinds/mod.ts";
import { silentLogger } from "../../../core/logger.ts";
import { ApiServer } from "../../../dev/apiserver/server.ts";
import { childEnvironment } from "../../support/child_process.ts";
import { commandLine } from "../../support/command_line.ts";
import { ServiceFront } from "../../support/service_front.ts";
import { until } from "../../support/until.ts";
import type { ReplicaState } from "./load_replica.ts";

const PROGRAM = fileURLToPath(new URL("load_replica.ts", import.meta.url));
const RATE = 100;
const NAMESPACE = "default";
const NAME = "guard";
const DAY_MS = 24 * 3_600_000;
/** Time for which a Service leads to a replica that is not ready, in milliseconds. */
const LAG_MS = 1_000;
/** Longest time between two ends of a replica, in milliseconds. */
const LONGEST_PAUSE_MS = 3_000;

class Replica {
  state: ReplicaState = { ready: false, port: undefined };
  /** Time at which it was not ready any more. */
  #left = -Infinity;
  #child: ChildProcess;

  constructor(env: Readonly<Record<string, string>>) {
    const child = this.#child = spawn(process.execPath, [PROGRAM], {
      env: childEnvironment(env),
      stdio: ["ignore", "pipe", "inherit"],
    });
    createInterface({ input: child.stdout as NonNullable<typeof child.stdout> })
      .on("line", (line) => {
        const state = JSON.parse(line) as ReplicaState;
        if (this.state.ready && !state.ready) this.#left = performance.now();
        this.state = state;
      });
  }

  /** What the endpoints of a Service know of it. */
  get served(): ReplicaState {
    const { port, ready } = this.state;
    return { port, ready: ready || performance.now() - this.#left < LAG_MS };
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) {
      return;
    }
    const ended = once(this.#child, "exit");
    this.#child.kill(signal);
    await ended;
    this.state = { ready: false, port: undefined };
    this.#left = -Infinity;
  }
}

const { values, integer } = commandLine("load replicas", {
  seconds: { type: "string", default: "60" },
  signal: { type: "string", default: "SIGTERM" },
});
const seconds = integer("seconds", 20);
const signal = values.signal as NodeJS.Signals;

const folder = await mkdtemp(join(tmpdir(), "coracle-replicas-"));
const server = await ApiServer.start();
const { client } = server;
const key = { namespace: NAMESPACE, name: `${NAME}.${NAMESPACE}` };
const stop = new AbortController();

/** Makes an authority that is due, and the next, which waits for its time. */
async function oldAuthority(): Promise<void> {
  let now = Date.now() - 250 * DAY_MS;
  const certificates = new SecretCertificates({
    client,
    key,
    hosts: [`${NAME}.${NAMESPACE}.svc`],
    times: ROTATION_TIMES,
    clock: { ...systemClock, wallTime: () => now },
    log: silentLogger,
    isRegistered: () => Promise.resolve(false),
  });
  await certificates.read(stop.signal);
  now = Date.now();
  for (let step = 0; step < 2; step++) await certificates.read(stop.signal);
}

async function certificateNow(): Promise<string> {
  const { data = {} } = await client.get(SECRET, key);
  return data["tls.crt"] ?? "";
}

const kubeconfig = join(folder, "kubeconfig");
await writeFile(kubeconfig, server.kubeconfig, { mode: 0o600 });
await oldAuthority();
const first = await certificateNow();
const replicas: Replica[] = [];
const front = await ServiceFront.start(() =>
  replicas.map(({ served }) => served)
);
await client.create(Service, {
  metadata: { namespace: NAMESPACE, name: NAME },
  spec: { type: "ExternalName", externalName: "localhost" },
});
const env = {
  KUBECONFIG: kubeconfig,
  FRONT: String(front.port),
  /** From here on both authorities have been trusted for long enough. */
  PROMOTED: String(Date.now() + seconds * 400),
  /** From here on the authority before is forgotten. */
  FORGOTTEN: String(Date.now() + seconds * 700),
};
const start = async (at: number) => {
  const replica = replicas[at] = new Replica(env);
  await until("a replica is ready", () => replica.state.ready);
};
const failures: string[] = [];
let count = 0;
let ends = 0;
try {
  await Promise.all([start(0), start(1), start(2)]);
  await until("the webhook is registered", async () => {
    const found = await client.find(ValidatingWebhookConfiguration, {
      name: key.name,
    });
    return (found?.webhooks ?? []).length > 0;
  });
  const end = performance.now() + seconds * 1_000;
  const pending: Promise<unknown>[] = [];
  const load = (async () => {
    for (let at = 0; performance.now() < end; at++) {
      const metadata = { namespace: NAMESPACE, name: `a-${at}` };
      pending.push(
        client.create(ConfigMap, { metadata }, { dryRun: true })
          .catch(({ message }) => failures.push(String(message))),
      );
      count++;
      const due = end - seconds * 1_000 + (at + 1) * 1_000 / RATE;
      await new Promise((resolve) =>
        setTimeout(resolve, Math.max(due - performance.now(), 0))
      );
    }
    await Promise.all(pending);
  })();
  // The third stays: a PodDisruptionBudget keeps one.
  const chaos = [0, 1].map(async (at) => {
    while (performance.now() < end - 5_000) {
      const pause = Math.random() * LONGEST_PAUSE_MS;
      await new Promise((resolve) => setTimeout(resolve, pause));
      await replicas[at]?.end(signal);
      ends++;
      await start(at);
    }
  });
  await Promise.all([load, ...chaos]);
  const { data = {} } = await client.get(SECRET, key);
  const bundle = Buffer.from(data["ca.crt"] ?? "", "base64").toString();
  const rotated = await certificateNow() !== first;
  const trusted = bundle.split("BEGIN").length - 1;
  process.stdout.write(
    `${count} requests, ${ends} ends of replicas by ${signal}; certificate ${
      rotated ? "rotated" : "not rotated"
    }, ${trusted} trusted; ${failures.length} refused\n`,
  );
  for (const failure of failures.slice(0, 5)) {
    process.stdout.write(`${failure}\n`);
  }
  process.exitCode = failures.length > 0 || !rotated || trusted !== 1 ? 1 : 0;
} finally {
  for (const replica of replicas) await replica.end("SIGKILL");
  await front.stop();
  await server.stop();
  await rm(folder, { recursive: true, force: true });
}
