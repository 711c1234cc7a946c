import { matchesLabels, type UntypedObject } from "@coracle/operator/client";
import { labelRequirements, parseApiVersion } from "@coracle/operator/internal";
import { settle } from "../settle.ts";
import { objectIn } from "../storage/object_view.ts";
import { storageKey } from "../storage/stored_object.ts";
import type { Attributes } from "./admission.ts";
import { PolicyError } from "./policy_environment.ts";
import type { PolicyBinding, PolicyHook } from "./hooks.ts";

/** Error of a policy whose kind of parameters is not served. */
export class UnknownParams extends PolicyError {}

/**
 * Parameters of a binding; the policy is evaluated once for each.
 *
 * @throws {PolicyError} If they cannot be found.
 */
export async function paramsOf(
  { spec: { paramKind } }: PolicyHook,
  { spec: { paramRef } }: PolicyBinding,
  attributes: Attributes,
): Promise<readonly (UntypedObject | undefined)[]> {
  if (paramKind === undefined || paramRef === undefined) return [undefined];
  const { resources, store } = attributes.request.context;
  const { apiVersion = "", kind = "" } = paramKind;
  const { group, version } = parseApiVersion(apiVersion);
  const definition = resources.findKind(group, kind);
  const served = definition?.versions.find((one) =>
    one.name === version && one.served
  );
  if (definition === undefined || served === undefined) {
    throw new UnknownParams(
      `failed to find resource referenced by paramKind: '${group}/${version}, Kind=${kind}'`,
    );
  }
  const { name, selector, parameterNotFoundAction } = paramRef;
  let namespace = paramRef.namespace || undefined;
  if (definition.scope === "Cluster") {
    if (namespace !== undefined) {
      throw new PolicyError(
        "paramRef.namespace must not be provided for a cluster-scoped `paramKind`",
      );
    }
  } else {
    namespace ??= attributes.namespace || undefined;
    if (namespace === undefined) {
      throw new PolicyError(
        "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources",
      );
    }
  }
  const collection = store.collectionOf(definition);
  const wanted = labelRequirements(selector ?? {});
  const named = name &&
    collection.get(storageKey({ namespace: namespace ?? "", name }));
  const found = name
    ? named ? [named] : []
    : collection.scan({ namespace }).filter(({ labels }) =>
      matchesLabels(wanted, labels)
    );
  if (found.length === 0 && parameterNotFoundAction === "Deny") {
    throw new PolicyError(
      "no params found for policy binding with `Deny` parameterNotFoundAction",
    );
  }
  const view = { definition, version: served };
  return await settle(() => found.map((stored) => objectIn(stored, view)));
}
