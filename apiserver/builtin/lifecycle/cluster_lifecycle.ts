import { userInfo } from "../../request/user.ts";
import type { UntypedObject } from "../../../core/api/object.ts";
import type {
  Namespace,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Secret,
  ServiceAccount,
  TypedLocalObjectReference,
} from "../../../core/kinds/core_v1.ts";
import { jsonEquals } from "../../../core/patch/json_value.ts";
import { timestamp } from "../../../core/api/timestamp.ts";
import {
  generationLifecycle,
  incrementGeneration,
  type Lifecycle,
  type Lifecycles,
} from "./lifecycle.ts";

const SERVICE_ACCOUNT: Lifecycle = {
  prepareForCreate: nameSecretsOnly,
  prepareForUpdate: nameSecretsOnly,
};

/** Reduces secret references to their names; secrets are in the namespace of the account. */
function nameSecretsOnly(object: UntypedObject): void {
  const { secrets } = object as unknown as ServiceAccount;
  if (secrets) object.secrets = secrets.map(({ name }) => ({ name }));
}

const NAMESPACE: Lifecycle = {
  prepareForCreate(object): void {
    const { metadata, spec = {} } = object as
      & Partial<Namespace>
      & UntypedObject;
    const finalizers = spec.finalizers ?? [];
    if (!finalizers.includes("kubernetes")) finalizers.push("kubernetes");
    object.spec = { ...spec, finalizers };
    object.status = { phase: "Active" };
    nameLabel(metadata);
  },
  prepareForUpdate(object, live, { subresource }): void {
    nameLabel(object.metadata);
    if (subresource !== undefined) return;
    // Only the `finalize` subresource may change the spec.
    object.spec = live.spec;
  },
};

function nameLabel(metadata: UntypedObject["metadata"]): void {
  if (!metadata.name) return;
  metadata.labels = {
    ...metadata.labels,
    "kubernetes.io/metadata.name": metadata.name,
  };
}

/** Synchronizes `podCIDRs` and the older field `podCIDR`. */
function linkRanges(object: UntypedObject): void {
  const { spec } = object as unknown as Node;
  if (!spec) return;
  if (spec.podCIDRs?.length) spec.podCIDR = spec.podCIDRs[0];
  else if (spec.podCIDR) spec.podCIDRs = [spec.podCIDR];
}

const NODE: Lifecycle = {
  prepareForCreate: linkRanges,
  prepareForUpdate: linkRanges,
};

const PERSISTENT_VOLUME: Lifecycle = {
  prepareForCreate(object, { now }): void {
    object.status = {
      phase: "Pending",
      lastPhaseTransitionTime: timestamp(now),
    };
  },
  prepareForUpdate(object, live, { subresource, now }): void {
    const { status } = object as unknown as PersistentVolume;
    const before = (live as unknown as PersistentVolume).status;
    if (subresource !== "status" || status === undefined) return;
    const time = before?.lastPhaseTransitionTime;
    if (status.phase === before?.phase) {
      if (time) status.lastPhaseTransitionTime ??= time;
    } else if ((status.lastPhaseTransitionTime ?? time) === time) {
      status.lastPhaseTransitionTime = timestamp(now);
    }
  },
};

const PERSISTENT_VOLUME_CLAIM: Lifecycle = {
  prepareForCreate(object): void {
    object.status = { phase: "Pending" };
    const claim = object as unknown as PersistentVolumeClaim;
    if (claim.spec?.dataSource && !isVolumeSource(claim.spec.dataSource)) {
      delete claim.spec.dataSource;
    }
    linkDataSources(claim);
  },
  prepareForUpdate(object): void {
    linkDataSources(object as unknown as PersistentVolumeClaim);
  },
};

/** Synchronizes `dataSourceRef` and the older field `dataSource`. */
function linkDataSources({ spec }: PersistentVolumeClaim): void {
  const source = spec?.dataSource;
  const reference = spec?.dataSourceRef;
  if (spec === undefined) return;
  if (source && !reference) spec.dataSourceRef = { ...source };
  else if (reference && !source && !reference.namespace) {
    const { apiGroup, kind, name } = reference;
    spec.dataSource = { apiGroup, kind, name };
  }
}

/** Whether `dataSource` may contain a reference: to a claim or a snapshot. */
function isVolumeSource(
  { apiGroup = "", kind }: TypedLocalObjectReference,
): boolean {
  return apiGroup === ""
    ? kind === "PersistentVolumeClaim"
    : apiGroup === "snapshot.storage.k8s.io" && kind === "VolumeSnapshot";
}

const INGRESS: Lifecycle = {
  prepareForCreate(object): void {
    object.status = { loadBalancer: {} };
  },
  ...generationLifecycle("spec"),
};

const ENDPOINT_SLICE: Lifecycle = {
  prepareForUpdate(object, live): void {
    const content = ({ metadata, ...rest }: UntypedObject) => ({
      ...rest,
      labels: metadata.labels ?? {},
    });
    if (!jsonEquals(content(object), content(live))) {
      incrementGeneration(object, live);
    }
  },
};

const SIGNING_REQUEST: Lifecycle = {
  prepareForCreate(object, { user }): void {
    const { username: _, uid: __, groups: ___, extra: ____, ...spec } = object
      .spec as Record<string, unknown>;
    object.spec = { ...spec, ...userInfo(user) };
    object.status = {};
    // kube-apiserver cannot track field ownership of the byte strings of this kind.
    delete object.metadata.managedFields;
  },
  prepareForUpdate({ metadata }): void {
    delete metadata.managedFields;
  },
};

const SECRET: Lifecycle = {
  prepareForUpdate(object, live): void {
    object.type ??= (live as unknown as Secret).type;
  },
};

/** Lifecycles of cluster, storage, networking and admission kinds. */
export const CLUSTER_LIFECYCLES: Lifecycles = [
  ["namespaces", NAMESPACE],
  ["nodes", NODE],
  ["secrets", SECRET],
  ["persistentvolumes", PERSISTENT_VOLUME],
  ["persistentvolumeclaims", PERSISTENT_VOLUME_CLAIM],
  ["resourcequotas", {
    prepareForCreate(object): void {
      object.status = {};
    },
  }],
  ["ingresses.networking.k8s.io", INGRESS],
  ["endpointslices.discovery.k8s.io", ENDPOINT_SLICE],
  ["certificatesigningrequests.certificates.k8s.io", SIGNING_REQUEST],
  ["serviceaccounts", SERVICE_ACCOUNT],
  ["volumeattachments.storage.k8s.io", {
    prepareForCreate(object): void {
      object.status = { attached: false };
    },
  }],
];
