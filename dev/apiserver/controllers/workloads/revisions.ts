import type {
  KubernetesObject,
  LabelSelector,
  ResolvedKind,
} from "@coracle/operator/client";
import { jsonEquals } from "@coracle/operator/internal";
import {
  ControllerRevision,
  type PodTemplateSpec,
} from "@coracle/operator/kinds";
import { StatusError } from "../../status.ts";
import { type ControllerApi, controllerReference } from "../controller_api.ts";
import { revisionHash } from "../../hashes.ts";
import { byAge } from "./pods.ts";

/** Workload whose templates are kept in ControllerRevisions. */
export interface Revised extends KubernetesObject {
  spec?: {
    selector: LabelSelector;
    template: PodTemplateSpec;
    revisionHistoryLimit?: number | undefined;
  } | undefined;
  status?: { collisionCount?: number | undefined } | undefined;
}

/** Revisions of a workload, oldest first, and the revision of its current template. */
export interface Revisions {
  readonly all: readonly ControllerRevision[];
  readonly newest: ControllerRevision;
}

/** Template in a revision. */
export function templateOf({ data }: ControllerRevision): PodTemplateSpec {
  const { spec } = data as unknown as { spec: { template: object } };
  const { $patch: _, ...template } = spec.template as
    & PodTemplateSpec
    & { $patch?: string };
  return template;
}

/**
 * Finds the revision of the current template and makes it the newest one, or
 * creates it.
 *
 * @param labels Further labels of a revision with a hash.
 */
export async function syncRevisions(
  api: ControllerApi,
  kind: ResolvedKind,
  owner: Revised,
  labels: (hash: string) => Record<string, string>,
): Promise<Revisions> {
  const { metadata: { name, namespace, annotations }, spec, status } = owner;
  const template = spec?.template;
  const claimed = await api.claim(
    ControllerRevision,
    kind,
    owner,
    spec?.selector,
  );
  const all = claimed.sort((a, b) =>
    (a.revision ?? 0) - (b.revision ?? 0) || byAge(a, b)
  );
  const data = { spec: { template: { ...template, $patch: "replace" } } };
  const revision = (all.at(-1)?.revision ?? 0) + 1;
  const equal = all.findLast((one) => jsonEquals(one.data, data));
  if (equal !== undefined) {
    if (equal === all.at(-1)) return { all, newest: equal };
    const newest = await api.update(ControllerRevision, equal, (draft) => {
      draft.revision = revision;
    }) ?? equal;
    return { all: [...all.filter((one) => one !== equal), newest], newest };
  }
  const base = status?.collisionCount ?? 0;
  for (let collisions = base;; collisions++) {
    const hash = revisionHash(data, collisions);
    try {
      const newest = await api.create(ControllerRevision, {
        metadata: {
          name: `${name}-${hash}`,
          namespace,
          labels: { ...template?.metadata?.labels, ...labels(hash) },
          ...(annotations && { annotations: { ...annotations } }),
          ownerReferences: [controllerReference(kind, owner)],
        },
        data,
        revision,
      });
      return { all: [...all, newest], newest };
    } catch (error) {
      const isTaken = error instanceof StatusError && error.status.code === 409;
      if (!isTaken || collisions - base > 8) throw error;
    }
  }
}

/** Deletes the oldest revisions beyond the limit that no pod uses. */
export async function cutRevisions(
  api: ControllerApi,
  { spec }: Revised,
  revisions: readonly ControllerRevision[],
  isLive: (revision: ControllerRevision) => boolean,
): Promise<void> {
  const unused = revisions.filter((revision) => !isLive(revision));
  const limit = spec?.revisionHistoryLimit ?? 10;
  for (const revision of unused.slice(0, Math.max(0, unused.length - limit))) {
    await api.delete(ControllerRevision, revision);
  }
}
