import { once } from "node:events";
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
import { systemClock } from "../core/clock.ts";
import { Pod } from "../core/kinds/mod.ts";
import { silentLogger } from "../core/logger.ts";
import { MetricsRegistry } from "../core/operator/metrics_registry.ts";
import { type Bench, type Measure, verify } from "./support/bench.ts";
import type { ReviewTimes, SentReviews } from "./support/review_sender.ts";
import { cpuTime, peakRss } from "./support/sampling.ts";

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

export const bench: Bench = {
  name: "admission",
  what: `${RATE} admission reviews of pods a second over TLS`,
  subjects: [
    { name: "validate", run: () => measure("validate") },
    { name: "default, with a patch", run: () => measure("default") },
  ],
};
