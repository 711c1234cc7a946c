import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { Worker } from "node:worker_threads";
import type { AdmissionHandlers } from "@coracle/operator/core";
import { admissionOf } from "../core/admission/admission_options.ts";
import { allow, deny } from "../core/admission/admission_result.ts";
import {
  admissionRoute,
  type HandlerName,
} from "../core/admission/admission_webhook.ts";
import {
  createAuthority,
  issueCertificate,
} from "../core/admission/certificates.ts";
import { WebhookListener } from "../core/admission/webhook_listener.ts";
import { untyped } from "../core/api/kind.ts";
import { Client } from "../core/client/client.ts";
import { loadConfig } from "../core/config/load_config.ts";
import { systemClock } from "../core/clock.ts";
import { Pod } from "../core/kinds/mod.ts";
import { silentLogger } from "../core/logger.ts";
import { MetricsRegistry } from "../core/operator/metrics_registry.ts";
import { PROJECT } from "../tests/support/child_process.ts";
import { coracle, Program } from "../tests/support/program.ts";
import { until } from "../tests/support/until.ts";
import { type Bench, type Measure, verify } from "./support/bench.ts";
import type { ReviewTimes, SentReviews } from "./support/review_sender.ts";
import { cpuTime, median, peakRss } from "./support/sampling.ts";
import { treeUsage } from "./support/tree_usage.ts";

/** Reviews in a second: many for one webhook of a cluster. */
const RATE = 500;
const SECONDS = 10;
const WARM_UP_SECONDS = 2;
const PATH = "/review";

const POD = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: {
    name: "web-7d4b9c6f5-x2x9z",
    namespace: "shop",
    uid: "5d1f6a3e-7c52-4a7e-9a55-0f3f5b0a7f11",
    labels: { app: "web", tier: "front", "pod-template-hash": "7d4b9c6f5" },
    managedFields: [{
      manager: "kube-controller-manager",
      operation: "Update",
      apiVersion: "v1",
      fieldsType: "FieldsV1",
      fieldsV1: {
        "f:spec": { "f:containers": { 'k:{"name":"web"}': { "f:image": {} } } },
      },
    }],
  },
  spec: {
    serviceAccountName: "web",
    containers: ["web", "proxy"].map((name) => ({
      name,
      image: `registry.example.com/shop/${name}:1.4.2`,
      ports: [{ name: "http", containerPort: 8080, protocol: "TCP" }],
      env: Array.from({ length: 10 }, (_, at) => ({
        name: `SETTING_${at}`,
        value: `value ${at}`,
      })),
      resources: { requests: { cpu: "100m", memory: "128Mi" } },
      securityContext: { runAsNonRoot: true },
    })),
    volumes: [{ name: "config", configMap: { name: "web" } }],
  },
};

const BODY = JSON.stringify({
  apiVersion: "admission.k8s.io/v1",
  kind: "AdmissionReview",
  request: {
    uid: "705ab4f5-6393-11e8-b7cc-42010a800002",
    kind: { group: "", version: "v1", kind: "Pod" },
    resource: { group: "", version: "v1", resource: "pods" },
    operation: "CREATE",
    namespace: "shop",
    name: POD.metadata.name,
    userInfo: { username: "ada", groups: ["system:authenticated"] },
    object: POD,
    oldObject: null,
    dryRun: false,
  },
});

const handlers: Record<HandlerName, AdmissionHandlers<Pod>> = {
  validate: {
    validate({ spec }) {
      for (const { image = "", securityContext } of spec?.containers ?? []) {
        if (!image.startsWith("registry.example.com/")) {
          return deny("images must come from the registry");
        }
        if (securityContext?.privileged) return deny("must not be privileged");
      }
      return allow({ warnings: [] });
    },
  },
  default: {
    default(pod) {
      if (pod.spec) pod.spec.automountServiceAccountToken ??= false;
      return pod;
    },
  },
};

/** Serves a handler on this thread, and measures the answers from another. */
async function measure(handler: HandlerName): Promise<readonly Measure[]> {
  const metrics = new MetricsRegistry();
  const admission = admissionOf(Pod, handlers[handler], {
    failurePolicy: "Fail",
  });
  const route = admissionRoute(admission, handler, {
    clock: systemClock,
    log: silentLogger,
    metrics,
    checksDefaults: false,
    reader: {
      read: () => Promise.resolve(undefined),
      readList: () => Promise.resolve([]),
    },
  });
  const listener = new WebhookListener(new Map([[PATH, route]]), {
    port: 0,
    host: "127.0.0.1",
    bodyLimit: 32 << 20,
    concurrency: 100,
    clock: systemClock,
    log: silentLogger,
    metrics,
  });
  const authority = createAuthority({ commonName: "bench" });
  await listener.start(
    issueCertificate(authority, {
      commonName: "localhost",
      usage: "server",
      hosts: ["localhost"],
    }),
  );
  const reviews: SentReviews = {
    port: listener.port as number,
    path: PATH,
    certificateAuthority: authority.certificate,
    body: BODY,
    rate: RATE,
    seconds: SECONDS,
    warmUp: WARM_UP_SECONDS,
  };
  const usage = threadTime();
  const sender = new Worker(
    new URL("./support/review_sender.ts", import.meta.url),
    { workerData: reviews },
  );
  const [times] = await once(sender, "message") as [ReviewTimes];
  const cpu = threadTime() - usage;
  await listener.stop();
  verify(times.length === RATE * SECONDS, "each review must be answered");
  const sorted = times.toSorted((a, b) => a - b);
  const part = (share: number) =>
    sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)] ?? 0;
  return [
    { unit: "ms p99", value: part(0.99) },
    { unit: "ms p50", value: part(0.5) },
    {
      unit: "µs CPU/review",
      value: cpu / (RATE * (SECONDS + WARM_UP_SECONDS)),
    },
    peakRss(),
  ];
}

/** Processor time of this thread, without that of the sender; else of all threads. */
function threadTime(): number {
  const { threadCpuUsage } = process as Partial<typeof process>;
  if (threadCpuUsage === undefined) return cpuTime();
  const { user, system } = threadCpuUsage();
  return user + system;
}

/** Edits of the operator file that `coracle dev --watch` runs. */
const EDITS = 7;
/** Pause between two requests, in milliseconds. */
const ASK_PAUSE_MS = 20;
/** Time without work after which what follows an edit is done, in milliseconds. */
const REST_MS = 500;

/** Operator file that denies, defaults and converts. */
const OPERATOR = `
import { defineKind, deny, Operator } from "@coracle/operator";
import { z } from "zod";

const Lamp = defineKind({
  group: "bench.coracle.dev",
  version: "v2",
  kind: "Lamp",
  spec: z.object({ power: z.string() }),
  versions: [{
    name: "v1",
    spec: z.object({ watts: z.int() }),
    up: ({ spec: { watts } }) => ({ spec: { power: watts + " W" } }),
    down: ({ spec: { power } }) => ({ spec: { watts: parseInt(power) || 0 } }),
  }],
});
const operator = new Operator();
operator.register(Lamp, { reconcile() {} }, {
  admission: {
    failurePolicy: "Fail",
    default(lamp) {
      lamp.metadata.labels = { ...lamp.metadata.labels, edit: "first" };
      return lamp;
    },
    validate: ({ spec }) => spec.power === "0 W" ? deny("first") : undefined,
  },
});
await operator.run();
`;

/**
 * Edits the file of an operator that `coracle dev --watch` runs, and asks for the
 * creation of an object of the old version until the new text denies it.
 */
async function measureEdits(): Promise<readonly Measure[]> {
  // Imports of the file resolve as in a project with the dependencies.
  const cache = join(PROJECT, ".cache");
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, "edits-"));
  const file = join(folder, "lamps.ts");
  const kubeconfig = join(folder, "kubeconfig");
  writeFileSync(file, OPERATOR);
  const dev = new Program(
    coracle("dev", "--watch", "--kubeconfig", kubeconfig, file),
    { env: { TMPDIR: folder } },
  );
  try {
    await dev.says(/Press Ctrl-C/, 120_000);
    const client = new Client(await loadConfig({ kubeconfig }));
    const kind = untyped({
      group: "bench.coracle.dev",
      version: "v1",
      kind: "Lamp",
    });
    const lamp = {
      metadata: { name: "a", namespace: "default" },
      spec: { watts: 0 },
    };
    let wrong = 0;
    let longest = 0;
    let work = 0;
    let answer = "";
    const denied = async (word: string) => {
      const from = performance.now();
      answer = await client.create(kind, lamp, { dryRun: true })
        .then(() => "allowed", String);
      longest = Math.max(longest, performance.now() - from);
      if (!/denied the request/.test(answer)) wrong++;
      return answer.includes(`request: ${word}`);
    };
    const rests = async () => {
      let [last, since] = [-1, performance.now()];
      return await until("the processes rest", () => {
        const { cpu } = treeUsage(dev.pid);
        if (cpu > last + 0.02) [last, since] = [cpu, performance.now()];
        return performance.now() - since > REST_MS;
      }, { within: 60_000, every: 50 });
    };
    const seconds: number[] = [];
    let from = treeUsage(dev.pid);
    for (let at = 0; at <= EDITS; at++) {
      await rests();
      if (at === 1) [from, wrong, longest] = [treeUsage(dev.pid), 0, 0];
      const { cpu: before } = treeUsage(dev.pid);
      const start = performance.now();
      writeFileSync(file, OPERATOR.replaceAll('"first"', `"edit-${at}"`));
      await until(`edit ${at} denies`, () => denied(`edit-${at}`), {
        within: 60_000,
        every: ASK_PAUSE_MS,
      }).catch((error: unknown) => {
        throw new Error(`${answer}: ${dev.describe()}`, { cause: error });
      });
      if (at === 0) continue;
      seconds.push((performance.now() - start) / 1_000);
      work += treeUsage(dev.pid).cpu - before;
    }
    await rests();
    const { cpu, rss, newest, count } = treeUsage(dev.pid);
    await client.close();
    verify(await dev.end("SIGTERM") === 0, dev.describe());
    return [
      { unit: "s median", value: median(seconds) },
      { unit: "s maximum", value: Math.max(...seconds) },
      { unit: "CPU s until the answer", value: work / EDITS },
      { unit: "CPU s/edit", value: (cpu - from.cpu) / EDITS },
      { unit: "requests not denied/edit", value: wrong / EDITS },
      { unit: "ms longest request", value: longest },
      { unit: "MiB of all processes", value: rss },
      { unit: "MiB of the waiting process", value: newest },
      { unit: "processes", value: count },
    ];
  } finally {
    await dev.kill();
    rmSync(folder, { recursive: true, force: true });
  }
}

export const bench: Bench = {
  name: "admission",
  what: `${RATE} admission reviews of pods a second over TLS`,
  subjects: [
    { name: "validate", run: () => measure("validate") },
    { name: "default, with a patch", run: () => measure("default") },
    { name: "edit under coracle dev", run: measureEdits, rounds: 1 },
  ],
};
