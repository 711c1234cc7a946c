import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ApiServer } from "@coracle/dev/apiserver";
import { type Client, Operator, silentLogger } from "@coracle/operator/core";
import { Pod } from "@coracle/operator/kinds";
import {
  applySet,
  Failed,
  lintStatus,
  pruneSet,
  Stalled,
  type StepContext,
  summarized,
  waitFor,
} from "@coracle/operator/workflows";
import { eventSchedule } from "../../../workflows/conditions/reconcile_result.ts";
import { Kubectl, NO_KUBECTL } from "../../support/kubectl.ts";
import { Release } from "../../support/release_kind.ts";
import { until } from "../../support/until.ts";

const KEY = { namespace: "default", name: "web" };

/** Each version has a pod of its own. */
function podOf(version: string): { namespace: string; name: string } {
  return { ...KEY, name: `web-${version}` };
}

/** Rolls a release out, waits for its health and removes the previous one. */
async function rollOut(pass: StepContext<Release>): Promise<void> {
  const { object, ctx, waitSignal: signal } = pass;
  const { version } = object.spec;
  if (version === "lost") {
    throw new Stalled("NoSuchVersion", `nobody has version ${version}`);
  }
  const pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: podOf(version),
    spec: { containers: [{ name: "web", image: `web:${version}` }] },
  };
  const owner = { group: "sample.coracle.dev", name: object.metadata.name };
  await applySet(ctx.client, [pod], { owner, signal });
  try {
    await waitFor(ctx.client, [pod], { signal, timeout: "1m" });
  } catch (error) {
    if (signal.aborted) throw error;
    throw new Failed("UpgradeFailed", (error as Error).message);
  }
  const before = object.status?.revision;
  if (before !== undefined && before !== version) {
    const old = { apiVersion: "v1", kind: "Pod", ...podOf(before) };
    await pruneSet(ctx.client, [old], { owner, signal });
  }
  object.status!.revision = version;
}

/** Writes the status of the pod of a version, as a kubelet does. */
async function report(
  client: Client,
  version: string,
  ok: boolean,
): Promise<void> {
  const pod = podOf(version);
  await until(`a pod of ${version}`, () => client.find(Pod, pod));
  await client.status.patch(Pod, pod, {
    status: {
      phase: "Running",
      conditions: [{ type: "Ready", status: ok ? "True" : "False" }],
      containerStatuses: [{
        name: "web",
        image: `web:${version}`,
        imageID: "",
        ready: ok,
        restartCount: 0,
        state: ok
          ? { running: {} }
          : { waiting: { reason: "CrashLoopBackOff" } },
      }],
    },
  });
}

/** A cluster in which releases are rolled out, and kubectl for it. */
async function withReleases(
  body: (kubectl: Kubectl, client: Client) => Promise<void>,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "coracle-readiness-"));
  const server = await ApiServer.start({ port: 0 });
  const operator = new Operator({
    client: server.client,
    logger: silentLogger,
  });
  const reconciler = summarized<Release>(
    Release,
    { schedule: () => eventSchedule() },
    [rollOut],
  );
  try {
    const kubeconfig = join(folder, "kubeconfig");
    await writeFile(kubeconfig, server.kubeconfig, { mode: 0o600 });
    operator.register(Release, reconciler, {
      install: true,
    });
    await operator.start();
    const kubectl = new Kubectl(kubeconfig, KEY.namespace, { cache: folder });
    await body(kubectl, server.client);
  } finally {
    await operator.stop();
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

test(
  "kubectl wait and get follow an upgrade, a failure, a stall and a recovery",
  { skip: NO_KUBECTL, timeout: 90_000 },
  () =>
    withReleases(async (kubectl, client) => {
      const isReady = "wait release/web --for=condition=Ready";
      const shows = (ready: string, reason: string) =>
        until(`${ready} ${reason}`, async () => {
          const table = await kubectl.run("get release web");
          const [head, row] = table.split("\n");
          assert.match(head ?? "", /^NAME\s+READY\s+REASON\s+AGE\s*$/);
          return new RegExp(`^web\\s+${ready}\\s+${reason}\\s+\\d+s\\s*$`)
            .test(row ?? "");
        });
      const asks = (version: string) =>
        kubectl.run(
          "patch release web --type=merge -p",
          JSON.stringify({ spec: { version } }),
        );
      await kubectl.feed(
        JSON.stringify({
          apiVersion: "sample.coracle.dev/v1",
          kind: "Release",
          metadata: { name: KEY.name },
          spec: { version: "1" },
        }),
        "apply -f -",
      );
      await shows("Unknown", "Progressing");
      await kubectl.fails(`${isReady} --timeout=300ms`);
      const waiting = kubectl.run(`${isReady} --timeout=20s`);
      await report(client, "1", true);
      assert.match(await waiting, /web condition met/);
      await shows("True", "Succeeded");

      // An upgrade: not ready from the moment at which it is asked for.
      await asks("2");
      await kubectl.fails(`${isReady} --timeout=300ms`);
      await shows("Unknown", "Progressing");
      await report(client, "2", true);
      await kubectl.run(`${isReady} --timeout=20s`);

      // One that fails, and is given up for another one.
      await asks("3");
      await report(client, "3", false);
      await shows("False", "UpgradeFailed");
      await kubectl.fails(`${isReady} --timeout=300ms`);
      await asks("4");
      await shows("Unknown", "Progressing");
      await report(client, "4", true);
      await kubectl.run(`${isReady} --timeout=20s`);
      await shows("True", "Succeeded");

      // A stall, and its recovery.
      await asks("lost");
      await kubectl.run(
        "wait release/web --for=condition=Stalled --timeout=20s",
      );
      await shows("False", "NoSuchVersion");
      await kubectl.fails(`${isReady} --timeout=300ms`);
      await asks("5");
      await report(client, "5", true);
      await kubectl.run(`${isReady} --timeout=20s`);
      await shows("True", "Succeeded");
      const object = await client.get(Release, KEY);
      assert.equal(object.status?.revision, "5");
      assert.deepEqual(lintStatus(object), []);
    }),
);
