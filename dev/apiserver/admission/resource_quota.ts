import type { Pod } from "@coracle/operator/kinds";
import type { QuotaState } from "./quota_tracker.ts";
import { type AdmissionPlugin, type Attributes, refusal } from "./admission.ts";
import { type Amounts, amountsOf, difference, sum } from "./pod_resources.ts";
import {
  hasDeadline,
  inScopes,
  isIgnored,
  missingResources,
  usageOf,
} from "./quota_usage.ts";

/** Plug-in that refuses requests which exceed a ResourceQuota of their namespace. */
export const RESOURCE_QUOTA: AdmissionPlugin = {
  name: "ResourceQuota",
  validate(attributes): void {
    const { request, object, hooks } = attributes;
    const { definition, context } = request;
    const quotas = context.quotas.of(request.namespace);
    if (quotas.length === 0 || object === undefined) return;
    if (isIgnored(definition) || !handles(attributes)) return;
    const isPod = definition.group === "" && definition.plural === "pods";
    const matching = quotas.filter(({ quota }) =>
      inScopes(quota, definition, () => object)
    );
    for (const { quota } of isPod ? matching : []) {
      const hard = Object.keys(quota.status?.hard ?? {});
      const missing = missingResources(object as unknown as Pod, hard);
      if (missing === undefined) continue;
      throw refusal(
        attributes,
        `failed quota: ${quota.metadata?.name}: ${missing}`,
      );
    }
    const delta = deltaOf(attributes, hooks.now);
    const { oldObject } = attributes;
    for (const state of matching) {
      // An object that enters the scopes of a quota counts as a new one.
      const enters = oldObject !== undefined &&
        !inScopes(state.quota, definition, () => oldObject);
      const added = enters
        ? deltaOf({ ...attributes, operation: "CREATE" }, hooks.now)
        : delta;
      checkQuota(attributes, state, added);
    }
  },
};

/** Whether a request can change the usage of quotas. */
function handles(
  { request, operation, object, oldObject }: Attributes,
): boolean {
  const { definition, subresource } = request;
  const { group, plural } = definition;
  const kind = group === "" ? plural : "";
  if (operation === "CREATE") return subresource === undefined;
  switch (kind) {
    case "pods":
      return subresource === undefined
        ? hasDeadline(object) !== hasDeadline(oldObject)
        : subresource.name === "resize";
    case "services":
      return subresource === undefined;
    case "persistentvolumeclaims":
      return subresource === undefined || subresource.name === "status";
    default:
      return false;
  }
}

/** Additional usage of a request; positive amounts only. */
function deltaOf(
  { request, object, oldObject, operation }: Attributes,
  now: number,
): Amounts {
  const { definition } = request;
  const usage = usageOf(definition, () => object ?? never(), now);
  if (operation === "UPDATE" && oldObject) {
    const before = usageOf(definition, () => oldObject, now);
    for (const [name, amount] of usage) {
      const previous = before.get(name);
      if (previous) usage.set(name, difference(amount, previous));
    }
  }
  return new Map([...usage].filter(([, { nano }]) => nano > 0n));
}

function never(): never {
  throw new TypeError("Cannot measure the usage: the request has no object");
}

function checkQuota(
  attributes: Attributes,
  { quota, used }: QuotaState,
  delta: Amounts,
): void {
  const hard = amountsOf(quota.status?.hard);
  const exceeded = [...delta.keys()].filter((name) => {
    const limit = hard.get(name);
    const more = delta.get(name);
    return limit && more && sum(used.get(name), more).compare(limit) > 0;
  }).sort();
  if (exceeded.length === 0) return;
  const shown = (amounts: Amounts) =>
    exceeded.map((name) => `${name}=${amounts.get(name) ?? "0"}`).join(",");
  throw refusal(
    attributes,
    `exceeded quota: ${quota.metadata?.name}, requested: ${
      shown(delta)
    }, used: ${shown(used)}, limited: ${shown(hard)}`,
  );
}
