import {
  CoreV1Api,
  KubeConfig,
  makeInformer,
  type V1ConfigMap,
} from "@kubernetes/client-node";
import { ApiServer } from "../../dev/apiserver/server.ts";
import { ConfigMap } from "../../core/kinds/core_v1.ts";
import { FaultGate } from "./fault_gate.ts";
import { type FaultRow, OLDER } from "./fault_rows.ts";

/**
 * How an informer ends up: equal to the server; ended, with its `error` event; or
 * behind the server without a word.
 */
export type PeerResult = "equal" | "ended" | "behind" | "not tried";

/** Real time for an informer to recover: its dead streams end after 30 s. */
const LIMIT_MS = 45_000;
const NAMESPACE = "default";

/**
 * Lets the informer of `@kubernetes/client-node` meet a fault, on real time. Its
 * `error` event is counted, and nobody starts it again.
 */
export async function runPeerCell(
  { effects, times }: FaultRow,
  operation: "list" | "watch",
): Promise<PeerResult> {
  const effect = effects[operation];
  if (typeof effect !== "function") return "not tried";
  const server = await ApiServer.start({ port: false, seed: 1 });
  const gate = await FaultGate.start(server);
  const at = (name: string) => ({ namespace: NAMESPACE, name });
  let older = "";
  for (const name of ["a", "b", "c"]) {
    const { metadata } = await server.client.create(ConfigMap, {
      metadata: at(name),
    });
    if (name === "a") older = metadata.resourceVersion ?? "";
  }
  const config = new KubeConfig();
  config.loadFromClusterAndUser(
    { name: "gate", server: gate.url, skipTLSVerify: true },
    { name: "user", token: "old" },
  );
  const api = config.makeApiClient(CoreV1Api);
  const informer = makeInformer<V1ConfigMap>(
    config,
    `/api/v1/namespaces/${NAMESPACE}/configmaps`,
    () => api.listNamespacedConfigMap({ namespace: NAMESPACE }),
  );
  const followed = new Map<string, string>();
  const note = ({ metadata }: V1ConfigMap) =>
    void followed.set(metadata?.name ?? "", metadata?.resourceVersion ?? "");
  informer.on("add", note);
  informer.on("update", note);
  informer.on("delete", ({ metadata }) => {
    followed.delete(metadata?.name ?? "");
  });
  let errors = 0;
  informer.on("error", () => {
    errors++;
  });
  let changes = 0;
  const change = () =>
    server.client.create(ConfigMap, { metadata: at(`new-${++changes}`) });
  gate.arm(
    operation,
    (exchange) =>
      effect({
        ...exchange,
        forward: ({ target = exchange.target, ...options } = {}) =>
          exchange.forward({
            ...options,
            target: target.replace(OLDER, older),
          }),
      }),
    { times, onHit: () => void change().catch(() => {}) },
  );
  /** Whether the informer shows the state of the server in time. */
  const isEqual = async () => {
    for (const end = Date.now() + LIMIT_MS; Date.now() < end;) {
      const { items } = await server.client.list(ConfigMap, {
        namespace: NAMESPACE,
      });
      const isSame = gate.hits > 0 && items.length === followed.size &&
        items.every(({ metadata }) =>
          followed.get(metadata.name) === metadata.resourceVersion
        );
      if (isSame) return true;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    return false;
  };
  try {
    informer.start().catch(() => {
      errors++;
    });
    let equal = await isEqual();
    if (equal) {
      await change();
      equal = await isEqual();
    }
    if (equal) return "equal";
    return errors > 0 ? "ended" : "behind";
  } finally {
    await informer.stop().catch(() => {});
    await gate.stop();
    await server.stop();
  }
}
