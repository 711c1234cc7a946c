import type { Kind } from "@coracle/operator/client";
import type { OperatorHandle } from "@coracle/operator/core";
import {
  builtIn,
  CRD_KIND,
  isBuiltIn,
  isDefinedKind,
  Lease,
  LEASE_VERBS,
} from "@coracle/operator/internal";
import type { AccessVerb, KindAccess } from "./rbac.ts";

const WATCH: readonly AccessVerb[] = ["get", "list", "watch"];
/** Verbs to change existing objects, by patch or with an optimistic lock. */
const CHANGE: readonly AccessVerb[] = ["update", "patch"];
const PATCH: readonly AccessVerb[] = ["patch"];
/** Verbs to manage the objects that a reconciler creates. */
const MANAGE: readonly AccessVerb[] = [...WATCH, "create", ...CHANGE, "delete"];

const MIGRATION = builtIn(
  "StorageVersionMigration",
  "Cluster",
  "storagemigration.k8s.io",
);
const RBAC_GROUP = "rbac.authorization.k8s.io";
const EVENT = builtIn("Event", "Namespaced");
const ROLES = [
  builtIn("Role", "Namespaced", RBAC_GROUP),
  builtIn("ClusterRole", "Cluster", RBAC_GROUP),
];

/** Settings and access that {@linkcode operatorAccess} cannot derive. */
export interface AccessOptions {
  /** Namespace in which the operator runs. */
  readonly namespace: string;
  /** Kinds that reconcilers write without watching them. */
  readonly managed?: readonly Kind[] | undefined;
  /** Whether reconcilers are known to write objects of further kinds. */
  readonly writesOthers?: boolean | undefined;
}

/** Access of an operator that writes into definitions how they are converted. */
export function conversionAccess(name: string): KindAccess {
  return { kind: CRD_KIND, verbs: ["get", "patch"], names: [name] };
}

/**
 * Access rights that an operator needs: to watch its primaries, to write their
 * finalizers and status where it does, to manage the objects that it creates,
 * to hold its Leases, to register its webhooks, to review those who read its
 * metrics, and to record Events. Of a controller whose primaries are in other
 * clusters it is the right to read what those clusters come from; the rights in each
 * of them are those of its kubeconfig.
 *
 * The status and the fields of a built-in kind belong to its own controllers,
 * so only the finalizer of its objects may be written.
 *
 * @param options Settings that cannot be derived from the operator.
 */
export function operatorAccess(
  operator: Pick<OperatorHandle, "controllers" | "settings">,
  options: AccessOptions,
): readonly KindAccess[] {
  const { namespace } = options;
  const { controllers, settings } = operator;
  const placesOf = (namespaces: OperatorHandle["settings"]["namespaces"]) =>
    namespaces === "current" ? [namespace] : namespaces;
  const access: KindAccess[] = [];
  const ofControllers = controllers.flatMap((controller) => {
    if (controller.clusters !== undefined) {
      const { reads } = controller.clusters;
      return reads === undefined ? [] : [{
        kind: reads.kind,
        verbs: WATCH,
        namespaces: [reads.namespace ?? namespace],
      }];
    }
    // A cluster-scoped object may have secondaries in any namespace.
    const namespaces = controller.kind.scope === "Cluster" && !controller.isJob
      ? "all"
      : placesOf(controller.settings.namespaces ?? settings.namespaces);
    const { stateKind: state } = controller;
    if (state !== undefined) {
      access.push({
        kind: state.kind,
        verbs: ["get", "create", "patch"],
        namespaces: [state.namespace ?? namespace],
      });
    }
    return [
      ...controllerAccess(controller, options),
      ...selectionAccess(controller, placesOf(settings.namespaces)),
    ].map((one) => ({ namespaces, ...one }));
  });
  access.push(...ofControllers);
  // The UID of a namespace that every cluster has tells clusters apart.
  if (settings.cache?.snapshot !== undefined) {
    access.push({
      kind: builtIn("Namespace", "Cluster"),
      verbs: ["get"],
      names: ["kube-system"],
    });
  }
  for (const use of ["leaderElection", "sharding"] as const) {
    const lease = settings[use];
    if (lease === undefined) continue;
    const namespaces = [lease.namespace ?? namespace];
    access.push({ kind: Lease, verbs: LEASE_VERBS[use], namespaces });
  }
  if (settings.probes?.metrics.secure) access.push(...REVIEWS);
  return [
    ...access,
    ...webhookAccess(settings, namespace),
    ...policyAccess(settings),
  ];
}

/** Access to ask the API server who sent a request, and what they may do. */
const REVIEWS: readonly KindAccess[] = [
  {
    kind: builtIn("TokenReview", "Cluster", "authentication.k8s.io"),
    verbs: ["create"],
  },
  {
    kind: builtIn("SubjectAccessReview", "Cluster", "authorization.k8s.io"),
    verbs: ["create"],
  },
];

/** Access to the objects of the kinds that a selector selects, in their groups. */
function selectionAccess(
  { watchedSelection }: OperatorHandle["controllers"][number],
  ofOperator: KindAccess["namespaces"],
): readonly KindAccess[] {
  if (watchedSelection === undefined) return [];
  const { selector, isReconciled, namespaces = ofOperator } = watchedSelection;
  // No rule can name the groups below a domain.
  const groups = selector.groups?.some((group) => group.startsWith("*"))
    ? ["*"]
    : selector.groups ?? ["*"];
  return groups.flatMap((group) => {
    const kind = {
      ...{ group, version: "", kind: "*", plural: "*" },
      scope: "Namespaced",
    } as const;
    const places = namespaces === "current" ? ofOperator : namespaces;
    const all: KindAccess[] = [{ kind, verbs: WATCH, namespaces: places }];
    if (isReconciled) {
      all.push(
        { kind, verbs: CHANGE, namespaces: places },
        { kind, subresource: "status", verbs: PATCH, namespaces: places },
      );
    }
    return all;
  });
}

const ADMISSION_GROUP = "admissionregistration.k8s.io";

/** Verbs to apply objects and to delete them. */
const APPLY: readonly AccessVerb[] = ["get", "create", "patch", "delete"];

/** Access to apply the policies of an operator with their bindings. */
function policyAccess(
  { policies = [] }: OperatorHandle["settings"],
): readonly KindAccess[] {
  const access: KindAccess[] = policies.flatMap(({ policy, binding }) =>
    [policy, binding].map(({ kind = "", metadata }) => ({
      kind: {
        ...builtIn(kind, "Cluster", ADMISSION_GROUP),
        plural: `${kind.toLowerCase()}s`.replace(/ys$/, "ies"),
      },
      verbs: APPLY,
      names: [metadata.name],
    }))
  );
  // The API server lets only those write a policy who may read its parameters.
  for (const { params } of policies) {
    if (params !== undefined) access.push({ kind: params, verbs: ["get"] });
  }
  return access;
}

/** Access to register the webhooks of an operator, and to keep their certificates. */
function webhookAccess(
  { webhooks }: OperatorHandle["settings"],
  namespace: string,
): readonly KindAccess[] {
  if (webhooks === undefined) return [];
  const { service, name } = "serve" in webhooks
    ? { service: undefined, name: undefined }
    : webhooks;
  const place = service?.namespace ?? namespace;
  const known = name ?? (service && `${service.name}.${place}`);
  const names = known === undefined ? undefined : [known];
  const access: KindAccess[] = [
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
  ].map((name) => ({
    kind: builtIn(name, "Cluster", ADMISSION_GROUP),
    verbs: APPLY,
    names,
  }));
  if ("serve" in webhooks || webhooks.certificates !== "self") return access;
  access.push({
    kind: builtIn("Secret", "Namespaced"),
    verbs: ["get", "create", "update", "delete"],
    namespaces: [place],
    names,
  });
  return access;
}

/** Whether objects of a kind have a status; true if that is unknown. */
export function hasStatus(kind: Kind): boolean {
  return !isDefinedKind(kind) || kind.statusSchema !== undefined;
}

function controllerAccess(
  controller: OperatorHandle["controllers"][number],
  { managed = [], writesOthers = false }: AccessOptions,
): readonly KindAccess[] {
  const { kind, isJob = false, secondaryKinds, readOnlyKinds, settings } =
    controller;
  const written = [...secondaryKinds, ...managed];
  const isOwn = !isJob && !isBuiltIn(kind);
  const change = isOwn ? CHANGE : settings.usesFinalizer ? PATCH : [];
  const access: KindAccess[] = isJob
    ? []
    : [{ kind, verbs: [...WATCH, ...change] }];
  if (isOwn && (settings.hasStatus ?? hasStatus(kind))) {
    access.push({ kind, subresource: "status", verbs: ["get", ...CHANGE] });
  }
  // Owner references that block deletion need this right on the owner.
  if (!isJob && (written.length > 0 || writesOthers)) {
    access.push({ kind, subresource: "finalizers", verbs: ["update"] });
  }
  if (settings.install) {
    access.push({ kind: CRD_KIND, verbs: [...WATCH, "create", "patch"] });
  } else if (isDefinedKind(kind) && kind.conversion !== undefined) {
    access.push(conversionAccess(`${kind.plural}.${kind.group}`));
  }
  if (settings.migrateStorage) {
    const names = [`${kind.plural}.${kind.group}`];
    access.push(
      { kind: CRD_KIND, verbs: ["get"], names },
      { kind: CRD_KIND, subresource: "status", verbs: PATCH, names },
      { kind, verbs: ["get", "list", "patch"] },
      { kind: MIGRATION, verbs: ["get", "create", "delete"] },
    );
  }
  access.push(
    ...written.map((kind) => ({ kind, verbs: MANAGE })),
    ...readOnlyKinds.map((kind) => ({ kind, verbs: WATCH })),
    ...roleAccess(written),
    // A repeated Event is read and counted up. Those of cluster-scoped objects
    // are in the default namespace.
    {
      kind: EVENT,
      verbs: ["get", "create", "patch"],
      ...kind.scope === "Cluster" && { namespaces: ["default"] },
    },
  );
  return access;
}

/** Access for granting rights that the operator itself does not have. */
export function roleAccess(written: readonly Kind[]): readonly KindAccess[] {
  const names = written.filter(({ group }) => group === RBAC_GROUP)
    .map(({ kind }) => kind);
  const verbs: AccessVerb[] = [];
  if (names.some((name) => name.endsWith("Binding"))) verbs.push("bind");
  if (names.some((name) => name.endsWith("Role"))) verbs.push("escalate");
  return verbs.length === 0 ? [] : ROLES.map((kind) => ({ kind, verbs }));
}
