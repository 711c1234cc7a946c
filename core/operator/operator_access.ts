import { type Kind, untyped } from "../api/kind.ts";
import type { AccessVerb, KindAccess } from "../crd/rbac.ts";
import type { OperatorHandle } from "./development.ts";

const WATCH: readonly AccessVerb[] = ["get", "list", "watch"];
/** To change what is there, by patches and under an optimistic lock. */
const CHANGE: readonly AccessVerb[] = ["update", "patch"];
/** How objects that a reconciler makes are kept as they should be. */
const MANAGE: readonly AccessVerb[] = [...WATCH, "create", ...CHANGE, "delete"];

const EVENT = untyped({
  group: "",
  version: "v1",
  kind: "Event",
  plural: "events",
  scope: "Namespaced",
});
const DEFINITION = untyped({
  group: "apiextensions.k8s.io",
  version: "v1",
  kind: "CustomResourceDefinition",
  plural: "customresourcedefinitions",
  scope: "Cluster",
});

/**
 * What an operator needs to be allowed: to watch its primaries, to write their
 * finalizers and status, to keep the objects it makes, and to tell what it does
 * by Events.
 *
 * @param controllers What the operator reconciles and watches.
 * @param managed Kinds that reconcilers write without watching them, which
 * nothing but their code tells.
 */
export function operatorAccess(
  controllers: OperatorHandle["controllers"],
  managed: readonly Kind[] = [],
): readonly KindAccess[] {
  const access: KindAccess[] = [];
  for (const controller of controllers) {
    const { kind, secondaryKinds, readOnlyKinds, settings } = controller;
    access.push(
      { kind, verbs: [...WATCH, ...CHANGE] },
      { kind, subresource: "status", verbs: ["get", ...CHANGE] },
      // Owner references that block deletion need this right on the owner.
      { kind, subresource: "finalizers", verbs: ["update"] },
    );
    if (settings.install) {
      access.push({ kind: DEFINITION, verbs: [...WATCH, "create", "patch"] });
    }
    for (const secondary of secondaryKinds) {
      access.push({ kind: secondary, verbs: MANAGE });
    }
    for (const watched of readOnlyKinds) {
      access.push({ kind: watched, verbs: WATCH });
    }
  }
  for (const kind of managed) access.push({ kind, verbs: MANAGE });
  // Those that were told before are found again and counted.
  access.push({ kind: EVENT, verbs: ["get", "create", "patch"] });
  return access;
}
