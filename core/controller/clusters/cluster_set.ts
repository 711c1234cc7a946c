import type { Kind } from "../../api/kind.ts";
import { checkOptions, type OptionRules, typeText } from "../../api/options.ts";
import type { InformerPool } from "../../cache/informer/informer_pool.ts";
import type { Client } from "../../client/client.ts";
import { clientSettings } from "../../client/client_options.ts";
import type { Transport } from "../../client/transport/transport.ts";
import type { Clock } from "../../clock.ts";
import type { ClusterConfig } from "../../config/cluster_config.ts";
import type { Logger } from "../../logger.ts";

/** A cluster of a set; the controller reconciles the objects of all of them. */
export interface Cluster {
  /**
   * Name of the cluster, unique in its set: up to 253 lower-case letters, digits,
   * dashes and dots. It is in `ctx.cluster`, in logs and in the keys of objects.
   */
  readonly name: string;
  /**
   * Configuration of the cluster, such as one from `loadConfig`; or a transport,
   * which stays open when the cluster leaves; or the error that prevents both. With
   * an error, a known cluster stays as it is, and the health of the controller
   * reports a new one.
   */
  readonly target:
    | ClusterConfig
    | {
      /** Transport that all requests are sent over. */
      readonly transport: Transport;
      /** Namespace of its client. */
      readonly namespace?: string | undefined;
    }
    | Error;
}

/** What a {@linkcode ClusterSet} may use. */
export interface ClusterSetContext {
  /** Client of the operator's own cluster. */
  readonly client: Client;
  /** Caches of the operator's own cluster. */
  readonly informers: InformerPool;
  /** Namespace in which the operator runs; undefined if it is not known. */
  readonly namespace: string | undefined;
  /** Clock of the operator. */
  readonly clock: Clock;
  /** Logger of the operator. */
  readonly log: Logger;
  /** Signal that aborts when the set is no longer needed. */
  readonly signal: AbortSignal;
}

/**
 * Source of the clusters of a controller. Each value of the iteration is the whole set
 * at that time: clusters that it has and the last one had not join, and those that it
 * lacks leave. When the iteration ends, the last set stays; when it fails, the last set
 * stays and the source is called again after a pause.
 */
export interface ClusterSet {
  (context: ClusterSetContext): AsyncIterable<readonly Cluster[]>;
  /**
   * Objects of the operator's own cluster that the source reads, in a namespace that
   * defaults to that of the operator: `coracle manifests` grants the right to do so.
   */
  readonly reads?:
    | { readonly kind: Kind; readonly namespace?: string | undefined }
    | undefined;
}

/** Most clusters that a set may have. */
const MAX_CLUSTERS = 10_000;

/** Name of an object of Kubernetes, such as that of a Secret. */
const CLUSTER_NAME = /^[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?$/;

/** Whether a cluster can have a name. */
export function isClusterName(name: string): boolean {
  return CLUSTER_NAME.test(name);
}

const RULES: OptionRules<Cluster> = { name: "string", target: "object" };

/**
 * Checks a set of clusters, from the program or from outside of it.
 *
 * @throws {TypeError | RangeError} If it is no set; the error shows no secret.
 */
export function checkClusters(
  clusters: readonly Cluster[],
  subject: string,
): readonly Cluster[] {
  if (!Array.isArray(clusters)) {
    throw new TypeError(
      `Cannot use the clusters of ${subject}: a set of clusters must be an array: received ${
        typeText(clusters)
      }`,
    );
  }
  if (clusters.length > MAX_CLUSTERS) {
    throw new RangeError(
      `Cannot use the clusters of ${subject}: there must be at most ${MAX_CLUSTERS}: received ${clusters.length}`,
    );
  }
  const names = new Set<string>();
  for (const cluster of clusters) {
    checkOptions(cluster, RULES, `a cluster of ${subject}`);
    const { name, target } = cluster;
    if (!isClusterName(name)) {
      throw new TypeError(
        `Cannot use the clusters of ${subject}: the name of a cluster has up to 253 lower-case letters, digits, dashes and dots: received ${
          JSON.stringify(name.slice(0, 300))
        }`,
      );
    }
    if (names.has(name)) {
      throw new TypeError(
        `Cannot use the clusters of ${subject}: the names of clusters must differ: received "${name}" twice`,
      );
    }
    names.add(name);
    if (!(target instanceof Error)) clientSettings(target, {});
  }
  return clusters;
}

/** Source of the clusters that an option gives. */
export function clusterSource(
  given: readonly Cluster[] | ClusterSet,
): ClusterSet {
  if (typeof given === "function") return given;
  return async function* () {
    yield await Promise.resolve(given);
  };
}
