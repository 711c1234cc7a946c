/**
 * Validates a hundred requests a second by three replicas of an operator, while two of
 * them end at random moments and start again, and while their certificate authority is
 * rotated; prints what was refused, and why:
 *
 * - requests in progress at the moment at which a replica was killed (SIGKILL), which
 *   no operator can save;
 * - connections that the Service led to a killed replica, in the second before its
 *   endpoint goes, as a kube-proxy does;
 * - requests without an answer in time, while the event loops of this process and of a
 *   replica were late for most of that time: the machine was too busy;
 * - others, which must not occur. A time-out is one of them if the event loops
 *   were in time.
 *
 * Usage: `node --conditions=@coracle/source tests/core/admission/load_replicas.ts
 * [--seconds N] [--signal SIGTERM]`; a minute and SIGTERM by default.
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
import { ApiServer } from "@coracle/dev/apiserver";
import { silentLogger, systemClock } from "@coracle/operator/client";
import {
  ConfigMap,
  Service,
  ValidatingWebhookConfiguration,
} from "@coracle/operator/kinds";
import { ROTATION_TIMES } from "../../../core/admission/certificate_rotation.ts";
import {
  SECRET,
  SecretCertificates,
} from "../../../core/admission/served_certificates.ts";
import { childEnvironment } from "../../support/child_process.ts";
import { commandLine } from "../../support/command_line.ts";
import { ServiceFront } from "../../support/service_front.ts";
import { until } from "../../support/until.ts";
import { followLag, type Lag, latePart } from "../../support/loop_lag.ts";
import type { ReplicaLine, ReplicaState } from "./load_replica.ts";

const PROGRAM = fileURLToPath(new URL("load_replica.ts", import.meta.url));
const RATE = 100;
const NAMESPACE = "default";
const NAME = "guard";
const DAY_MS = 24 * 3_600_000;
/** Time for which a Service leads to a replica that is not ready, in milliseconds. */
const LAG_MS = 1_000;
/** Time limit for the start of a process on a busy machine, in milliseconds. */
const START_LIMIT_MS = 180_000;
/** Longest time between two ends of a replica, in milliseconds. */
const LONGEST_PAUSE_MS = 3_000;

/** Part of the time of a request in which late event loops explain a time-out. */
const BUSY_PART = 0.5;

/** Times between which a process was killed. */
interface Kill {
  readonly from: number;
  readonly to: number;
}

class Replica {
  state: ReplicaState = { ready: false, port: undefined };
  /** Times at which its event loop was late. */
  readonly lags: Lag[] = [];
  /** Time at which it was not ready any more. */
  #left = -Infinity;
  #child: ChildProcess;

  constructor(env: Readonly<Record<string, string>>) {
    const child = this.#child = spawn(process.execPath, [PROGRAM], {
      env: childEnvironment(env),
      stdio: ["ignore", "pipe", "inherit", "ipc"],
    });
    createInterface({ input: child.stdout as NonNullable<typeof child.stdout> })
      .on("line", (line) => {
        const state = JSON.parse(line) as ReplicaLine;
        if ("came" in state) {
          // Before that, no request is led to it.
          if (this.state.ready) this.lags.push(state);
          return;
        }
        if (this.state.ready && !state.ready) this.#left = performance.now();
        this.state = state;
      });
  }

  /** Sets how far its wall time is ahead, in milliseconds. */
  tell(ahead: number): void {
    if (this.#child.connected) this.#child.send(ahead, () => {});
  }

  /** What the endpoints of a Service know of it. */
  get served(): ReplicaState {
    const { port, ready } = this.state;
    return { port, ready: ready || performance.now() - this.#left < LAG_MS };
  }

  /** Ends the process. A killed one keeps its endpoint for a while. */
  async end(signal: NodeJS.Signals): Promise<Kill | undefined> {
    const child = this.#child;
    if (child.exitCode !== null || child.signalCode !== null) return undefined;
    const ended = once(child, "exit");
    const from = performance.now();
    child.kill(signal);
    await ended;
    const to = performance.now();
    const { ready, port } = this.state;
    if (ready) this.#left = to;
    this.state = { ready: false, port };
    return signal === "SIGKILL" ? { from, to } : undefined;
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
/** Replicas that have ended, whose endpoints may still be there. */
const former: Replica[] = [];
const front = await ServiceFront.start(() =>
  [...replicas, ...former].map(({ served }) => served)
);
await client.create(Service, {
  metadata: { namespace: NAMESPACE, name: NAME },
  spec: { type: "ExternalName", externalName: "localhost" },
});
/** How far the wall time of the replicas is ahead, in milliseconds. */
let ahead = 0;
const start = async (at: number) => {
  const replica = replicas[at] = new Replica({
    KUBECONFIG: kubeconfig,
    FRONT: String(front.port),
    AHEAD: String(ahead),
  });
  await until("a replica is ready", () => replica.state.ready, {
    within: START_LIMIT_MS,
  });
};
interface Failure {
  readonly began: number;
  readonly failed: number;
  readonly message: string;
}
const failures: Failure[] = [];
const kills: Kill[] = [];
/** Times at which the event loop of this process was late. */
const lags: Lag[] = [];
const endLag = followLag((lag) => void lags.push(lag));

/**
 * Part of a time in which the event loops of this process and of the replica that was
 * late most could not do their part of a request.
 */
function busyPart({ began, failed }: Failure): number {
  // The lags are in the time of the day, which processes share.
  const from = performance.timeOrigin + began;
  const to = performance.timeOrigin + failed;
  const all = [...replicas, ...former].map(({ lags }) =>
    latePart(lags, { from, to })
  );
  return latePart(lags, { from, to }) + Math.max(...all);
}
let count = 0;
let ends = 0;

/** Sorts the failures by their reasons. Each connection explains one. */
function classified() {
  const { unanswered } = front;
  let cut = 0;
  let led = 0;
  let busy = 0;
  const others: Failure[] = [];
  for (const failure of failures) {
    const { began, failed } = failure;
    const at = unanswered.findIndex((time) => began <= time && time <= failed);
    if (at !== -1) {
      unanswered.splice(at, 1);
      led++;
    } else if (kills.some(({ from, to }) => began <= to && from <= failed)) {
      cut++;
    } else if (
      failure.message.includes("deadline exceeded") &&
      busyPart(failure) >= BUSY_PART
    ) {
      busy++;
    } else others.push(failure);
  }
  return { cut, unanswered: led, busy, others };
}

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
      const began = performance.now();
      pending.push(
        client.create(ConfigMap, { metadata }, { dryRun: true })
          .catch(({ message }) => {
            failures.push({ began, failed: performance.now(), message });
          }),
      );
      count++;
      const due = end - seconds * 1_000 + (at + 1) * 1_000 / RATE;
      await new Promise((resolve) =>
        setTimeout(resolve, Math.max(due - performance.now(), 0))
      );
    }
    await Promise.all(pending);
  })();
  // From 40 % on both authorities have been trusted for long enough, and from 70 % on
  // the one before is forgotten. Only from now on, however long the start took.
  const { overlap, farewell } = ROTATION_TIMES;
  for (
    const [part, by] of [[400, overlap + 60_000], [700, farewell]] as const
  ) {
    setTimeout(() => {
      ahead += by;
      for (const replica of replicas) replica.tell(ahead);
    }, seconds * part).unref();
  }
  // The third stays: a PodDisruptionBudget keeps one.
  const chaos = [0, 1].map(async (at) => {
    while (performance.now() < end - 5_000) {
      const pause = Math.random() * LONGEST_PAUSE_MS;
      await new Promise((resolve) => setTimeout(resolve, pause));
      const replica = replicas[at]!;
      const kill = await replica.end(signal);
      if (kill !== undefined) kills.push(kill);
      former.push(replica);
      ends++;
      await start(at);
    }
  });
  await Promise.all([load, ...chaos]);
  const { data = {} } = await client.get(SECRET, key);
  const bundle = Buffer.from(data["ca.crt"] ?? "", "base64").toString();
  const rotated = await certificateNow() !== first;
  const trusted = bundle.split("BEGIN").length - 1;
  const { cut, unanswered, busy, others } = classified();
  const late = [lags, ...[...replicas, ...former].map(({ lags }) => lags)];
  const longest = late.flat().map(({ due, came }) => came - due);
  process.stdout.write(
    `${count} requests, ${ends} ends of replicas by ${signal}; certificate ${
      rotated ? "rotated" : "not rotated"
    }, ${trusted} trusted
refused: ${cut} in progress in a killed replica, ${unanswered} led to one that was killed, ${busy} too late on a busy machine, ${others.length} for another reason
event loops were late by at most ${Math.max(0, ...longest)} ms
`,
  );
  for (const failure of others.slice(0, 5)) {
    const part = Math.round(busyPart(failure) * 100);
    process.stdout.write(
      `${failure.message} (event loops late for ${part} % of the time)\n`,
    );
  }
  process.exitCode = others.length > 0 || !rotated || trusted !== 1 ? 1 : 0;
} finally {
  endLag();
  for (const replica of replicas) await replica.end("SIGKILL");
  await front.stop();
  await server.stop();
  await rm(folder, { recursive: true, force: true });
}
