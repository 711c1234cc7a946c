import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import type { CheckOptions } from "@coracle/dev";
import { operator as acmeIssuer } from "../../examples/gallery/acme_issuer.ts";
import { AcmeServer } from "../../examples/gallery/acme_server.ts";
import { operator as storeCluster } from "../../examples/gallery/store_cluster.ts";
import { operator as cronJobs } from "../../examples/gallery/cron_job.ts";
import { checkOperator } from "../../dev/testing/check/check_operator.ts";
import { partOfRounds } from "../support/part_of_rounds.ts";

/** Plans that run for each operator; `coracle check` runs all of them. */
const PLANS = partOfRounds(3);

const object = (kind: string, spec: object, group = "gallery") => ({
  apiVersion: `${group}.coracle.dev/v1`,
  kind,
  metadata: { name: "sample", namespace: "default" },
  spec,
});
const job = {
  spec: {
    template: {
      spec: {
        restartPolicy: "Never",
        containers: [{ name: "main", image: "busybox" }],
      },
    },
  },
};
const cronJob = (schedule: string) =>
  object("CronJob", { schedule, jobTemplate: job }, "tutorial");
const store = (members: number) =>
  object("StoreCluster", {
    members,
    image: "store",
    admin: "http://store.test",
  });
const certificate = (...dnsNames: string[]) =>
  object("AcmeCertificate", { dnsNames, secretName: "shop-tls" });
const namespace = (name: string, labels = {}) => ({
  apiVersion: "v1",
  kind: "Namespace",
  metadata: { name, labels },
});
const texts = (text: string, annotations = {}) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "texts", namespace: "default", annotations },
  data: { text },
});
const REFLECTION = "reflector.v1.k8s.emberstack.com/reflection";
const reflected = texts("one", {
  [`${REFLECTION}-allowed`]: "true",
  [`${REFLECTION}-auto-enabled`]: "true",
});
const envFrom = [{ configMapRef: { name: "texts" } }];
const reloaded = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: {
    name: "web",
    namespace: "default",
    annotations: { "reloader.stakater.com/auto": "true" },
  },
  spec: {
    selector: { matchLabels: { app: "web" } },
    template: {
      metadata: { labels: { app: "web" } },
      spec: { containers: [{ name: "web", image: "web", envFrom }] },
    },
  },
};
const member = (team: string) => ({ "gallery.coracle.dev/team": team });

const acme = new AcmeServer();
acme.now = () => Date.now();
/** Answers as the incarnation of the issuer that was made last. */
const checkedIssuer: CheckOptions["operator"] = (options) => {
  const made = acmeIssuer(options, fetch, "http://acme.test/directory");
  acme.ask = (_name, token) => made.challenges.answer(token);
  return made;
};

const CHECKS: Readonly<Record<string, Partial<CheckOptions>>> = {
  cron_job: {
    // Renewals of a lease would take most of the time.
    operator: (options) =>
      cronJobs({ ...options, leaderElection: undefined, probes: undefined }),
    workload: [
      { apply: cronJob("0 0 * * *") },
      { apply: cronJob("often") },
      { delete: cronJob("often") },
    ],
  },
  memcached: {
    workload: [
      { apply: object("Memcached", { size: 1 }) },
      { apply: object("Memcached", { size: 2 }) },
      { delete: object("Memcached", {}) },
    ],
  },
  namespace_policies: {
    workload: [
      { apply: namespace("shop", member("payments")) },
      { apply: namespace("shop", member("sales")) },
      { apply: namespace("shop") },
    ],
  },
  pull_secret: {
    workload: [
      { apply: namespace("registry") },
      {
        apply: {
          apiVersion: "v1",
          kind: "Secret",
          metadata: { namespace: "registry", name: "registry" },
          data: {},
        },
      },
      { apply: namespace("shop") },
    ],
  },
  rabbitmq_cluster: {
    workload: [
      { apply: object("RabbitmqCluster", { image: "rabbitmq" }) },
      { apply: object("RabbitmqCluster", { image: "rabbitmq", replicas: 3 }) },
    ],
  },
  reflector: { workload: [{ apply: namespace("shop") }, { apply: reflected }] },
  reloader: {
    workload: [
      { apply: texts("one") },
      { apply: reloaded },
      { apply: texts("two") },
    ],
  },
  store_cluster: {
    operator: (options) => storeCluster(options),
    externals: () => Promise.resolve(Response.json({ partitions: 0 })),
    workload: [{ apply: store(4) }, { apply: store(3) }],
  },
  acme_issuer: {
    operator: checkedIssuer,
    externals: async (request) =>
      await acme.fetch(request.url, {
        method: request.method,
        body: await request.text(),
      }),
    // As in acme_issuer.check.ts: a run that is repeated sends its requests again.
    ignore: ["POST http://acme.test/"],
    workload: [
      { apply: certificate("shop.test") },
      { apply: certificate("shop.test", "www.shop.test") },
    ],
  },
};

const isNode = !("Deno" in globalThis) && process.versions["bun"] === undefined;
const skip = isNode ? false : "a seed has the same trace on each runtime";

for (const [name, options] of Object.entries(CHECKS)) {
  test(
    `The operator ${name} of the gallery passes a check`,
    { skip },
    async () => {
      const { findings, plans } = await checkOperator({
        operator: new URL(`../../examples/gallery/${name}.ts`, import.meta.url),
        only: ["crash", "conflict", "stale"],
        plans: PLANS,
        ...options,
      });
      assert.deepEqual(
        findings.map(({ title, plan }) => `${title} (${plan})`),
        [],
      );
      assert.equal(plans, PLANS);
    },
  );
}
