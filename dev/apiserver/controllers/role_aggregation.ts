import { jsonEquals } from "@coracle/operator/internal";
import type { ClusterRole } from "@coracle/operator/kinds";
import { aggregated, RBAC_GROUP } from "../access/bootstrap_roles.ts";
import type { ApiContext } from "../api_context.ts";
import type { StoredObject } from "../storage/stored_object.ts";
import { updateStored } from "./internal_request.ts";
import { WorkQueue } from "./work_queue.ts";

const FAILURE = "Cannot aggregate a ClusterRole";

const ROLES = { group: RBAC_GROUP, plural: "clusterroles" };

/**
 * Starts the controller of aggregated ClusterRoles, which writes into them the
 * rules of the ClusterRoles that they select.
 */
export function startRoleAggregation(context: ApiContext): WorkQueue<string> {
  const { store } = context;
  const queue = new WorkQueue<string>(context, FAILURE, () => update(context));
  store.listen((_change, { resource: { group, plural } }) => {
    if (group === ROLES.group && plural === ROLES.plural) queue.add("all");
  });
  return queue;
}

function update(context: ApiContext): void {
  const stored = [...context.store.collection(ROLES).values()];
  const roles = stored.map((one) => one.parse() as ClusterRole);
  for (const [index, role] of roles.entries()) {
    if (role.aggregationRule === undefined) continue;
    const rules = aggregated(role, roles);
    if (jsonEquals(rules, role.rules ?? [])) continue;
    try {
      updateStored(context, stored[index] as StoredObject, {
        manager: "clusterrole-aggregation-controller",
        next: (live) => ({ ...live, rules }),
      });
    } catch (error) {
      context.logger.warn(FAILURE, { name: role.metadata?.name, error });
    }
  }
}
