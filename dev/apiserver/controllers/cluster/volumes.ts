import { Quantity } from "@coracle/operator/client";
import {
  PersistentVolume,
  PersistentVolumeClaim,
  type PersistentVolumeClaimCondition,
  Pod,
} from "@coracle/operator/kinds";
import { type ControllerApi, matcher } from "../controller_api.ts";
import type { ControllerDefinition } from "../controller_loop.ts";
import { isFinished } from "../workloads/pods.ts";

const NAME = "persistentvolume-binder-controller";
const BOUND_BY = "pv.kubernetes.io/bound-by-controller";
const COMPLETED = "pv.kubernetes.io/bind-completed";

/** Controller of the phases of PersistentVolumes. */
export const VOLUMES: ControllerDefinition = {
  name: NAME,
  kind: PersistentVolume,
  watches: [{
    kind: PersistentVolumeClaim,
    *keys({ object: { namespace, name } }, api) {
      for (const { metadata, spec } of api.list(PersistentVolume, undefined)) {
        const { claimRef } = spec ?? {};
        if (claimRef?.namespace === namespace && claimRef.name === name) {
          yield metadata.name;
        }
      }
    },
  }],
  async sync(object, api) {
    const volume = object as PersistentVolume;
    const { claimRef } = volume.spec ?? {};
    const claim = claimRef?.name === undefined ? undefined : api.get(
      PersistentVolumeClaim,
      { namespace: claimRef.namespace, name: claimRef.name },
    );
    const isGone = claimRef?.uid !== undefined &&
      claim?.metadata.uid !== claimRef.uid;
    const phase = isGone
      ? "Released"
      : claim?.spec?.volumeName === volume.metadata.name
      ? "Bound"
      : "Available";
    if (volume.status?.phase === phase) return;
    await api.setStatus(PersistentVolume, volume, {
      ...volume.status,
      phase,
      lastPhaseTransitionTime: api.time,
    });
  },
};

/** Controller that binds PersistentVolumeClaims; creates no volumes. */
export const CLAIMS: ControllerDefinition = {
  name: NAME,
  kind: PersistentVolumeClaim,
  watches: [{
    kind: PersistentVolume,
    *keys(_, api) {
      const claims = api.list(PersistentVolumeClaim, undefined);
      for (const { metadata, status } of claims) {
        if (status?.phase === "Bound") continue;
        yield `${metadata.namespace}/${metadata.name}`;
      }
    },
  }],
  async sync(object, api) {
    const claim = object as PersistentVolumeClaim;
    const { metadata, spec = {}, status } = claim;
    if (metadata.deletionTimestamp !== undefined) return;
    const volume = spec.volumeName
      ? api.get(PersistentVolume, { name: spec.volumeName })
      : volumeFor(claim, api);
    if (volume !== undefined) await bind(claim, volume, api);
    else if (spec.volumeName && status?.phase === "Bound") {
      await api.setStatus(PersistentVolumeClaim, claim, {
        ...status,
        phase: "Lost",
      });
    }
  },
};

function sizeOf(quantities: Record<string, string> | undefined): bigint {
  return Quantity.parse(quantities?.["storage"] ?? "0").nano;
}

function isFor(
  { spec }: PersistentVolume,
  { metadata }: PersistentVolumeClaim,
): boolean {
  const { namespace, name, uid } = spec?.claimRef ?? {};
  return namespace === metadata.namespace && name === metadata.name &&
    (uid === undefined || uid === metadata.uid);
}

/** Volume that is reserved for a claim, or the smallest suitable one. */
function volumeFor(
  claim: PersistentVolumeClaim,
  api: ControllerApi,
): PersistentVolume | undefined {
  const { spec = {} } = claim;
  const matches = matcher(spec.selector);
  const suits = ({ metadata, spec: volume = {}, status }: PersistentVolume) =>
    (volume.claimRef === undefined && status?.phase !== "Released") &&
    metadata.deletionTimestamp === undefined &&
    (volume.storageClassName ?? "") === (spec.storageClassName ?? "") &&
    (volume.volumeAttributesClassName ?? "") ===
      (spec.volumeAttributesClassName ?? "") &&
    (volume.volumeMode ?? "Filesystem") === (spec.volumeMode ?? "Filesystem") &&
    (spec.accessModes ?? []).every((mode) =>
      volume.accessModes?.includes(mode)
    ) &&
    sizeOf(volume.capacity) >= sizeOf(spec.resources?.requests) &&
    (spec.selector === undefined || matches(metadata.labels));
  const volumes = api.list(PersistentVolume, undefined);
  return volumes.find((volume) => isFor(volume, claim)) ??
    volumes.filter(suits).sort((a, b) =>
      sizeOf(a.spec?.capacity) < sizeOf(b.spec?.capacity) ? -1 : 1
    )[0];
}

async function bind(
  claim: PersistentVolumeClaim,
  volume: PersistentVolume,
  api: ControllerApi,
): Promise<void> {
  const { name, namespace, uid, resourceVersion } = claim.metadata;
  const { claimRef } = volume.spec ?? {};
  if (claimRef !== undefined && !isFor(volume, claim)) return;
  if (claimRef?.uid === undefined) {
    await api.update(PersistentVolume, volume, (draft) => {
      draft.spec = {
        ...draft.spec,
        claimRef: {
          kind: "PersistentVolumeClaim",
          apiVersion: "v1",
          namespace,
          name,
          uid,
          resourceVersion,
        },
      };
      if (claimRef !== undefined) return;
      draft.metadata.annotations = {
        ...draft.metadata.annotations,
        [BOUND_BY]: "yes",
      };
    });
  }
  const bound =
    claim.metadata.annotations?.[COMPLETED] && claim.spec?.volumeName
      ? claim
      : await api.update(PersistentVolumeClaim, claim, (draft) => {
        const isChosen = draft.spec?.volumeName === undefined;
        draft.spec = { ...draft.spec, volumeName: volume.metadata.name };
        draft.metadata.annotations = {
          ...draft.metadata.annotations,
          [COMPLETED]: "yes",
          ...(isChosen && { [BOUND_BY]: "yes" }),
        };
      });
  if (bound === undefined || bound.status?.phase === "Bound") return;
  await api.setStatus(PersistentVolumeClaim, bound, {
    ...bound.status,
    phase: "Bound",
    accessModes: volume.spec?.accessModes,
    capacity: volume.spec?.capacity,
    currentVolumeAttributesClassName: volume.spec?.volumeAttributesClassName,
  });
}

/** Controller that removes the finalizer of deleted volumes to which no claim is bound. */
export const VOLUME_PROTECTION: ControllerDefinition = {
  name: "persistentvolume-protection-controller",
  kind: PersistentVolume,
  concerns: ({ terminating }) => terminating,
  async sync(object, api) {
    const volume = object as PersistentVolume;
    if (volume.status?.phase === "Bound") return;
    const finalizer = "kubernetes.io/pv-protection";
    await api.removeFinalizer(PersistentVolume, volume, finalizer);
  },
};

/**
 * Controller that removes the finalizer of deleted claims that no pod uses and,
 * from 1.37 on (gate PersistentVolumeClaimUnusedSinceTime), tells by a condition
 * of bound claims whether pods refer to them.
 */
export const CLAIM_PROTECTION: ControllerDefinition = {
  name: "persistentvolumeclaim-protection-controller",
  kind: PersistentVolumeClaim,
  watches: [{
    kind: Pod,
    *keys({ object: { namespace } }, { context: { store, release } }) {
      const claims = store.collection(PersistentVolumeClaim);
      for (const { terminating, key } of claims.scan({ namespace })) {
        if (terminating || release.marksUnusedClaims) yield key;
      }
    },
  }],
  async sync(object, api) {
    const claim = object as PersistentVolumeClaim;
    const { namespace, name, deletionTimestamp } = object.metadata;
    if (deletionTimestamp === undefined) {
      const isBound = claim.status?.phase === "Bound";
      if (isBound && api.context.release.marksUnusedClaims) {
        await markUse(claim, api);
      }
      return;
    }
    if (api.list(Pod, namespace).some((pod) => mounts(pod, name))) return;
    const finalizer = "kubernetes.io/pvc-protection";
    await api.removeFinalizer(PersistentVolumeClaim, claim, finalizer);
  },
};

/** Whether the pod uses the claim and has not terminated. */
function mounts(pod: Pod, claim: string): boolean {
  return !isFinished(pod) &&
    pod.spec.volumes?.some(({ persistentVolumeClaim }) =>
        persistentVolumeClaim?.claimName === claim
      ) === true;
}

/** Writes the condition that tells since when pods refer to the claim, or none does. */
async function markUse(
  claim: PersistentVolumeClaim,
  api: ControllerApi,
): Promise<void> {
  const { namespace } = claim.metadata;
  const isUsed = api.list(Pod, namespace).some((pod) => refersTo(pod, claim));
  const { conditions = [] } = claim.status ?? {};
  const before = conditions.find(({ type }) => type === "Unused");
  if (before && (before.status === "True") !== isUsed) return;
  const unused: PersistentVolumeClaimCondition = {
    type: "Unused",
    status: isUsed ? "False" : "True",
    // Go writes a time that is not set.
    lastProbeTime: null as never,
    lastTransitionTime: api.time,
    reason: isUsed ? "PodUsingPVC" : "NoPodsUsingPVC",
    message: isUsed
      ? "A pod is currently referencing this PVC"
      : "No pods are currently referencing this PVC",
  };
  await api.setStatus(PersistentVolumeClaim, claim, {
    ...claim.status,
    conditions: before
      ? conditions.map((one) => one === before ? unused : one)
      : [...conditions, unused],
  });
}

/** Whether the pod names the claim, or has it for an ephemeral volume, and has not terminated. */
function refersTo(pod: Pod, { metadata }: PersistentVolumeClaim): boolean {
  if (isFinished(pod)) return false;
  const isOwn = metadata.ownerReferences?.some(({ controller, uid }) =>
    controller === true && uid === pod.metadata.uid
  );
  return pod.spec.volumes?.some(({ name, persistentVolumeClaim, ephemeral }) =>
    persistentVolumeClaim?.claimName === metadata.name ||
    ephemeral && isOwn && `${pod.metadata.name}-${name}` === metadata.name
  ) === true;
}
