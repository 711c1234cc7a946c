import type { ClusterRole } from "../../core/kinds/rbac_v1.ts";
import { jsonEquals } from "../../core/patch/json_value.ts";
import { aggregated, RBAC_GROUP } from "../access/bootstrap_roles.ts";
import type { ApiContext } from "../api_context.ts";
import { updateObject } from "../write/update.ts";
import { internalRequest, internalWrite } from "./internal_request.ts";
import { WorkQueue } from "./work_queue.ts";

const ROLES = { group: RBAC_GROUP, plural: "clusterroles" };

/**
 * Controller of aggregated ClusterRoles: writes into them the rules of the
 * ClusterRoles that they select.
 */
export class RoleAggregation {
  readonly #context: ApiContext;
  readonly #queue: WorkQueue<undefined> = new WorkQueue(() => this.#update());

  /** Creates the controller; it observes the store from now on. */
  constructor(context: ApiContext) {
    this.#context = context;
    context.store.listen((_change, { resource }) => {
      if (resource.group !== RBAC_GROUP || resource.plural !== ROLES.plural) {
        return;
      }
      this.#queue.add("", undefined);
    });
  }

  #update(): void {
    const { store, resources, logger } = this.#context;
    const definition = resources.find(ROLES.group, ROLES.plural);
    if (definition === undefined) return;
    const roles = [...store.collection(ROLES).values()].map((stored) =>
      stored.parse()
    );
    for (const role of roles as ClusterRole[]) {
      if (role.aggregationRule === undefined) continue;
      const rules = aggregated(role, roles as ClusterRole[]);
      if (jsonEquals(rules, role.rules ?? [])) continue;
      const name = role.metadata?.name ?? "";
      try {
        updateObject(
          internalRequest(this.#context, definition, { namespace: "", name }),
          {
            options: internalWrite("clusterrole-aggregation-controller"),
            next: (live) => ({ ...live, rules }),
          },
        );
      } catch (error) {
        logger.warn("Cannot aggregate a ClusterRole", { name, error });
      }
    }
  }

  stop(): void {
    this.#queue.stop();
  }
}
