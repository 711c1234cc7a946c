import type {
  Container,
  Pod,
  PodSpec,
  ServiceAccount,
  Toleration,
  Volume,
} from "../../../core/kinds/core_v1.ts";
import type { PriorityClass } from "../../../core/kinds/scheduling_v1.ts";
import type { HookContext } from "../../registry.ts";
import { forbidden } from "../../status.ts";
import { suffixOf } from "./lifecycle.ts";

const SERVICE_ACCOUNTS = { group: "", plural: "serviceaccounts" } as const;
const PRIORITY_CLASSES = {
  group: "scheduling.k8s.io",
  plural: "priorityclasses",
} as const;

/** Mount path of the service account credentials in a Pod. */
const TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount";

/** Values of the built-in priority classes. */
const SYSTEM_PRIORITIES: Readonly<Record<string, number>> = {
  "system-cluster-critical": 2_000_000_000,
  "system-node-critical": 2_000_001_000,
};

/**
 * Admits a new Pod as a default cluster does: sets the service account with its
 * token volume, the tolerations of failing nodes and the priority.
 *
 * @throws {StatusError} 403 if the service account or priority class does not
 * exist.
 */
export function admitPod(pod: Pod, context: HookContext): void {
  setServiceAccount(pod, context);
  tolerateFailingNodes(pod.spec);
  setPriority(pod, context);
}

/** Admits a changed Pod: restores the fields that admission set on create. */
export function readmitPod({ spec }: Pod, live: Pod): void {
  tolerateFailingNodes(spec);
  const { priority, preemptionPolicy } = live.spec;
  if (priority !== undefined) spec.priority ??= priority;
  if (preemptionPolicy !== undefined) {
    spec.preemptionPolicy ??= preemptionPolicy;
  }
}

function setServiceAccount(pod: Pod, context: HookContext): void {
  const { spec, metadata } = pod;
  const name = spec.serviceAccountName || "default";
  spec.serviceAccountName = name;
  spec.serviceAccount = name;
  const { namespace = "" } = metadata;
  const account = context.find(SERVICE_ACCOUNTS, { namespace, name }) as
    | ServiceAccount
    | undefined;
  // The default account may be created shortly after its namespace.
  if (account === undefined && name !== "default") {
    throw forbidden(
      { group: "", kind: "pods", name: metadata.name },
      `error looking up service account ${namespace}/${name}: serviceaccount ${
        JSON.stringify(name)
      } not found`,
    );
  }
  const mounts = spec.automountServiceAccountToken ??
    account?.automountServiceAccountToken ?? true;
  if (mounts) mountToken(pod);
  if (account?.imagePullSecrets) {
    spec.imagePullSecrets ??= structuredClone(account.imagePullSecrets);
  }
}

function mountToken({ spec, metadata }: Pod): void {
  const volume: Volume = {
    name: `kube-api-access-${suffixOf(metadata.uid ?? "")}`,
    projected: {
      sources: [
        { serviceAccountToken: { expirationSeconds: 3607, path: "token" } },
        {
          configMap: {
            name: "kube-root-ca.crt",
            items: [{ key: "ca.crt", path: "ca.crt" }],
          },
        },
        {
          downwardAPI: {
            items: [{
              path: "namespace",
              fieldRef: { apiVersion: "v1", fieldPath: "metadata.namespace" },
            }],
          },
        },
      ],
      defaultMode: 0o644,
    },
  };
  let mounted = false;
  for (const container of containersOf(spec)) {
    const mounts = container.volumeMounts ?? [];
    if (mounts.some(({ mountPath }) => mountPath === TOKEN_PATH)) continue;
    container.volumeMounts = [
      ...mounts,
      { name: volume.name, readOnly: true, mountPath: TOKEN_PATH },
    ];
    mounted = true;
  }
  if (mounted) spec.volumes = [...spec.volumes ?? [], volume];
}

function containersOf(spec: PodSpec): Container[] {
  return [...spec.initContainers ?? [], ...spec.containers ?? []];
}

/** Adds tolerations that keep a Pod on a failing node for five minutes, unless it has its own. */
function tolerateFailingNodes(spec: PodSpec): void {
  for (const state of ["not-ready", "unreachable"]) {
    const key = `node.kubernetes.io/${state}`;
    const tolerated = (spec.tolerations ?? []).some((toleration) =>
      (toleration.key === key || toleration.key === undefined) &&
      (toleration.effect === "NoExecute" || toleration.effect === undefined)
    );
    if (tolerated) continue;
    const toleration: Toleration = {
      key,
      operator: "Exists",
      effect: "NoExecute",
      tolerationSeconds: 300,
    };
    spec.tolerations = [...spec.tolerations ?? [], toleration];
  }
}

function setPriority({ spec, metadata }: Pod, context: HookContext): void {
  const name = spec.priorityClassName;
  const priority = name === undefined
    ? defaultPriority(context)
    : context.find(PRIORITY_CLASSES, { name }) as PriorityClass | undefined;
  const system = SYSTEM_PRIORITIES[name ?? ""];
  if (name !== undefined && priority === undefined && system === undefined) {
    throw forbidden(
      { group: "", kind: "pods", name: metadata.name },
      `no PriorityClass with name ${name} was found`,
    );
  }
  if (priority) spec.priorityClassName = priority.metadata.name;
  spec.priority = priority?.value ?? system ?? 0;
  spec.preemptionPolicy ??= priority?.preemptionPolicy ??
    "PreemptLowerPriority";
}

function defaultPriority(context: HookContext): PriorityClass | undefined {
  let found: PriorityClass | undefined;
  for (const object of context.list(PRIORITY_CLASSES)) {
    const candidate = object as unknown as PriorityClass;
    if (!candidate.globalDefault) continue;
    if (!found || candidate.value < found.value) found = candidate;
  }
  return found;
}
