import { builtIn } from "../core/api/kind.ts";
import { labelRequirements } from "../core/api/label_selector.ts";
import type { KubernetesObject } from "../core/api/object.ts";
import { checkOptions, type OptionRules } from "../core/api/options.ts";
import { namingRule } from "../core/cache/watch/watch_failure.ts";
import { memberConfig } from "../core/config/member_config.ts";
import type {
  Cluster,
  ClusterSet,
  ClusterSetContext,
} from "../core/controller/clusters/cluster_set.ts";
import { abortable } from "../core/signals.ts";

interface Secret extends KubernetesObject {
  readonly data?: Readonly<Record<string, string>> | undefined;
}

const Secret = builtIn<Secret>("Secret", "Namespaced");

/** Key of a Secret that has its kubeconfig. */
const KEY = "kubeconfig";

type KubeconfigSecretsOptions = Parameters<typeof kubeconfigSecrets>[0];

const RULES: OptionRules<KubeconfigSecretsOptions> = {
  labelSelector: { type: "name", check: labelRequirements },
  namespace: "name?",
  key: "name?",
};

/** Secret with its cluster, while its version is the same. */
interface KnownSecret {
  readonly version: string | undefined;
  readonly cluster: Cluster;
}

/**
 * Set of the clusters of Secrets with a label in one namespace of the operator's own
 * cluster: one cluster for the current context of the kubeconfig of each Secret, which
 * has the name of the Secret. A Secret that is created or deleted makes its cluster join
 * or leave, and one that changes replaces its credentials.
 *
 * Such a kubeconfig must have all that it needs in itself: one that names a program
 * or a file of this process is refused, as who may write Secrets could otherwise run
 * programs here. Who may write Secrets with the label decides which servers the
 * operator connects to.
 *
 * @param options Which Secrets. The operator needs the rights to get, list and watch
 * the Secrets of their namespace.
 * @throws {TypeError | RangeError | SyntaxError} If an option is unknown or not valid.
 *
 * @example Reconcile ConfigMaps of the clusters of Secrets
 * ```ts
 * import { Operator } from "@coracle/operator";
 * import { ConfigMap } from "@coracle/operator/kinds";
 * import { kubeconfigSecrets } from "@coracle/operator/sources";
 *
 * const operator = new Operator();
 * operator.register(ConfigMap, {
 *   reconcile(map, ctx) {
 *     ctx.log.info("Seen", { cluster: ctx.cluster, name: map.metadata.name });
 *   },
 * }, {
 *   clusters: kubeconfigSecrets({ labelSelector: "example.com/cluster=member" }),
 * });
 * ```
 */
export function kubeconfigSecrets(options: {
  /** Label selector of the Secrets. */
  readonly labelSelector: string;
  /** Namespace of the Secrets. Defaults to that of the operator. */
  readonly namespace?: string | undefined;
  /**
   * Key of a Secret that has the kubeconfig, such as `value` for those that Cluster
   * API writes.
   *
   * @default {"kubeconfig"}
   */
  readonly key?: string | undefined;
}): ClusterSet {
  checkOptions(options, RULES, "kubeconfigSecrets()");
  const { namespace } = options;
  return Object.assign(
    (context: ClusterSetContext) => follow(options, context),
    { reads: { kind: Secret, namespace } },
  );
}

async function* follow(
  { labelSelector, namespace, key = KEY }: KubeconfigSecretsOptions,
  context: ClusterSetContext,
): AsyncGenerator<readonly Cluster[], void, undefined> {
  const { client, informers, signal } = context;
  const place = namespace ?? context.namespace;
  if (place === undefined) {
    throw new TypeError(
      'Cannot follow the Secrets of clusters: neither the kubeconfig\'s context nor the service account names a namespace, so set "namespace"',
    );
  }
  try {
    await client.list(Secret, {
      namespace: place,
      labelSelector,
      limit: 1,
      signal,
    });
  } catch (error) {
    throw namingRule(error, Secret, place);
  }
  const lease = informers.acquire(Secret, {
    namespaces: [place],
    labelSelector,
  });
  const { informer } = lease;
  let changed = Promise.withResolvers<void>();
  try {
    informer.addHandler(() => changed.resolve(), { name: "clusters" });
    await abortable(informer.synced, signal);
    let known: ReadonlyMap<string, KnownSecret> = new Map();
    while (true) {
      // A change while the Secrets are read causes another round.
      changed = Promise.withResolvers();
      known = await readSecrets(informer.list(), key, known, context);
      yield Array.from(known.values(), ({ cluster }) => cluster);
      await abortable(changed.promise, signal);
    }
  } finally {
    await lease.release();
  }
}

async function readSecrets(
  secrets: readonly Secret[],
  key: string,
  known: ReadonlyMap<string, KnownSecret>,
  { clock, log }: ClusterSetContext,
): Promise<ReadonlyMap<string, KnownSecret>> {
  const read = new Map<string, KnownSecret>();
  for (const { metadata, data } of secrets) {
    const { name, namespace, resourceVersion: version } = metadata;
    const before = known.get(name);
    if (before !== undefined && before.version === version) {
      read.set(name, before);
      continue;
    }
    const source = `Secret ${namespace}/${name}`;
    let target: Cluster["target"];
    try {
      const text = textOf(data?.[key], `${source}, ${key}`);
      target = await memberConfig(text, {
        source,
        folder: undefined,
        clock,
        logger: log,
      });
    } catch (error) {
      target = error as Error;
    }
    read.set(name, { version, cluster: { name, target } });
  }
  return read;
}

/** Decodes a value of a Secret; the error does not quote it. */
function textOf(value: string | undefined, place: string): string {
  if (value === undefined) {
    throw new TypeError(`Cannot read ${place}: the Secret has no such key`);
  }
  try {
    const bytes = Uint8Array.from(atob(value), (char) => char.charCodeAt(0));
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new TypeError(`Cannot read ${place}: it must be text in UTF-8`);
  }
}
