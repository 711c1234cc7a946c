import { timestamp, type UntypedObject } from "@coracle/operator/client";
import {
  type CrdCondition,
  type CrdNames,
  type CrdObject,
  jsonEquals,
} from "@coracle/operator/internal";
import { approvalCondition } from "./api_approval.ts";

type Names = Partial<CrdNames>;

/** Names that other CRDs of the group have accepted. */
interface TakenNames {
  readonly resources: ReadonlySet<string>;
  readonly kinds: ReadonlySet<string>;
}

/**
 * Computes the status of a CRD: accepted names and the conditions
 * `NamesAccepted`, `Established` and, in a group of Kubernetes,
 * `KubernetesAPIApprovalPolicyConformant`. An established CRD remains established.
 *
 * @param object CRD.
 * @param others All CRDs; those of other groups are ignored.
 * @param now Transition time in milliseconds since the epoch.
 * @returns New status; the current status object if nothing changes.
 */
export function nextCrdStatus(
  object: UntypedObject,
  others: Iterable<UntypedObject>,
  now: number,
): unknown {
  const crd = object as unknown as CrdObject;
  const taken = takenNames(crd, others as Iterable<unknown>);
  const { names, conflict } = acceptNames(crd, taken);
  const accepted: CrdCondition = conflict === undefined
    ? {
      type: "NamesAccepted",
      status: "True",
      reason: "NoConflicts",
      message: "no conflicts found",
    }
    : { type: "NamesAccepted", status: "False", ...conflict };
  const conditions = [...crd.status?.conditions ?? []];
  const approval = approvalCondition(crd);
  if (approval !== undefined) setCondition(conditions, approval, now);
  setCondition(conditions, accepted, now);
  if (established(conditions)?.status !== "True") {
    setCondition(
      conditions,
      conflict === undefined
        ? {
          type: "Established",
          status: "True",
          reason: "InitialNamesAccepted",
          message: "the initial names have been accepted",
        }
        : {
          type: "Established",
          status: "False",
          reason: "NotAccepted",
          message: "not all names are accepted",
        },
      now,
    );
  }
  const next = {
    ...crd.status,
    acceptedNames: names,
    conditions,
    storedVersions: storedVersions(crd),
  };
  return jsonEquals(next, crd.status) ? crd.status : next;
}

function established(
  conditions: readonly CrdCondition[],
): CrdCondition | undefined {
  return conditions.find(({ type }) => type === "Established");
}

/** Sets a condition; the transition time changes only with the status. */
function setCondition(
  conditions: CrdCondition[],
  condition: CrdCondition,
  now: number,
): void {
  const index = conditions.findIndex(({ type }) => type === condition.type);
  const present = conditions[index];
  const lastTransitionTime = present?.status === condition.status
    ? present.lastTransitionTime
    : timestamp(now);
  const next = { ...condition, lastTransitionTime };
  if (index < 0) conditions.push(next);
  else conditions[index] = next;
}

/** All versions that are or were the storage version, oldest first. */
function storedVersions({ spec, status }: CrdObject): readonly string[] {
  const stored = status?.storedVersions ?? [];
  const storage = spec.versions.find((version) => version.storage)?.name;
  return storage === undefined || stored.includes(storage)
    ? stored
    : [...stored, storage];
}

function takenNames(crd: CrdObject, others: Iterable<unknown>): TakenNames {
  const resources = new Set<string>();
  const kinds = new Set<string>();
  for (const other of others as Iterable<CrdObject>) {
    if (
      other.spec.group !== crd.spec.group ||
      other.metadata.name === crd.metadata.name
    ) continue;
    const names: Names = other.status?.acceptedNames ?? {};
    for (
      const name of [names.plural, names.singular, ...names.shortNames ?? []]
    ) {
      if (name) resources.add(name);
    }
    for (const kind of [names.kind, names.listKind]) {
      if (kind) kinds.add(kind);
    }
  }
  return { resources, kinds };
}

interface Acceptance {
  readonly names: Names;
  readonly conflict?: { readonly reason: string; readonly message: string };
}

/** Accepts the names that no other CRD has accepted. */
function acceptNames(crd: CrdObject, taken: TakenNames): Acceptance {
  const wanted = crd.spec.names;
  const held: Names = crd.status?.acceptedNames ?? {};
  const names: Record<string, unknown> = {};
  let conflict: Acceptance["conflict"];
  const single = [
    ["plural", "PluralConflict", taken.resources],
    ["singular", "SingularConflict", taken.resources],
    ["shortNames", "ShortNamesConflict", taken.resources],
    ["kind", "KindConflict", taken.kinds],
    ["listKind", "ListKindConflict", taken.kinds],
  ] as const;
  for (const [name, reason, used] of single) {
    const requested = [wanted[name] ?? []].flat();
    const own = [held[name] ?? []].flat();
    const clashes = requested.filter((name) =>
      !own.includes(name) && used.has(name)
    );
    if (clashes.length === 0) {
      if (wanted[name] !== undefined) names[name] = wanted[name];
      continue;
    }
    if (held[name] !== undefined) names[name] = held[name];
    const texts = clashes.map((name) =>
      `${JSON.stringify(name)} is already in use`
    );
    conflict = {
      reason,
      message: texts.length === 1 ? texts[0] ?? "" : `[${texts.join(", ")}]`,
    };
  }
  if (wanted.categories !== undefined) names.categories = wanted.categories;
  return { names, ...(conflict ? { conflict } : {}) };
}
