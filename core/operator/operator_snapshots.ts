import { ApiError } from "../api/api_error.ts";
import { untyped } from "../api/kind.ts";
import type { SnapshotFolder } from "../cache/snapshot/snapshot_folder.ts";
import type { SnapshotSettings } from "../cache/snapshot/snapshot_options.ts";
import type { Client } from "../client/client.ts";
import { loadModule, outsideWork } from "../clock.ts";
import type { OperatorSettings } from "./operator_options.ts";

const Namespace = untyped({
  ...{ group: "", version: "v1", kind: "Namespace" },
  ...{ plural: "namespaces", scope: "Cluster" },
});

/** Namespace that every cluster has, and whose UID no other cluster has. */
const IDENTITY = "kube-system";

/**
 * Opens the folder of the snapshots; undefined if none is wanted, or if it cannot be
 * used, which is logged: the operator then starts as without snapshots.
 *
 * @param signal Signal that ends the wait for the server.
 * @throws The reason of the signal, if it aborts.
 */
export async function openSnapshots(
  { cache, clock, logger: log, metrics }: Pick<
    OperatorSettings,
    "cache" | "clock" | "logger" | "metrics"
  >,
  client: Client,
  signal?: AbortSignal,
): Promise<SnapshotFolder | undefined> {
  const settings = cache.snapshot as SnapshotSettings | undefined;
  if (settings === undefined) return undefined;
  try {
    const cluster = await clusterIdentity(client, signal);
    const { SnapshotFolder } = await loadModule(
      import("../cache/snapshot/snapshot_folder.ts"),
    );
    return await outsideWork(
      SnapshotFolder.open({ settings, cluster, clock, log, metrics }),
    );
  } catch (error) {
    signal?.throwIfAborted();
    log.error("The caches start without snapshots, and none are written", {
      error,
    });
    return undefined;
  }
}

/**
 * Whether after a warm start only those objects run that changed or were waiting.
 * With several replicas, another one may have run them since, with other failures.
 */
export function skipsRuns(
  { cache, leaderElection, sharding }: Pick<
    OperatorSettings,
    "cache" | "leaderElection" | "sharding"
  >,
): boolean {
  const settings = cache.snapshot as SnapshotSettings | undefined;
  return settings?.resync === false && leaderElection === undefined &&
    sharding === undefined;
}

/** Identity of the cluster, so that snapshots of another one are never used. */
async function clusterIdentity(
  client: Client,
  signal: AbortSignal | undefined,
): Promise<string> {
  const key = { name: IDENTITY };
  try {
    const { metadata } = await client.get(Namespace, key, { signal });
    return metadata.uid ?? "";
  } catch (error) {
    if (!ApiError.is(error) || !error.isForbidden) throw error;
    throw new Error(
      `Cannot tell the cluster from others: the right is missing, so give the operator's account a ClusterRole with { apiGroups: [""], resources: ["namespaces"], resourceNames: ["${IDENTITY}"], verbs: ["get"] }: received ${error.message}`,
      { cause: error },
    );
  }
}
