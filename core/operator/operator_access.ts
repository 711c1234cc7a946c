import { type Kind, untyped } from "../api/kind.ts";
import type { AccessVerb, KindAccess } from "../crd/rbac.ts";
import type { OperatorHandle } from "./development.ts";

const WATCH: readonly AccessVerb[] = ["get", "list", "watch"];
/** Verbs to change existing objects, by patch or with an optimistic lock. */
const CHANGE: readonly AccessVerb[] = ["update", "patch"];
/** Verbs to manage the objects that a reconciler creates. */
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
 * Access rights that an operator needs: to watch its primaries, to write their
 * finalizers and status, to manage the objects that it creates, and to record
 * Events.
 *
 * @param controllers The controllers of the operator.
 * @param managed Kinds that reconcilers write without watching them, which
 * cannot be derived from the controllers.
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
  // A repeated Event is read and counted up.
  access.push({ kind: EVENT, verbs: ["get", "create", "patch"] });
  return access;
}
