import type { KubernetesObject } from "../../core/api/object.ts";
import { ConfigMap } from "../../core/kinds/core_v1.ts";
import { informerSource } from "../../sources/informer_source.ts";
import type { ExternalState } from "./external_dependent.ts";

/** The entry of the ConfigMap that holds the id. */
const ENTRY = "id";

/**
 * Keeps the id of an outside resource in a ConfigMap beside the primary, which
 * owns it.
 *
 * @param suffix What stands behind the primary's name in that of the ConfigMap.
 *
 * @example
 * ```ts
 * import { configMapState } from "@coracle/operator/workflows";
 *
 * const state = configMapState("-account");
 * if (state.sources?.length !== 1) throw new Error("Unexpected sources");
 * ```
 */
export function configMapState<P extends KubernetesObject>(
  suffix: string,
): ExternalState<P> {
  const source = informerSource<P, ConfigMap>(ConfigMap, {
    name: `state${suffix}`,
    startPriority: "loader",
  });
  const keyIn = (primary: P) => ({
    name: `${primary.metadata.name}${suffix}`,
    namespace: primary.metadata.namespace,
  });
  return {
    sources: [source],
    read: async (primary) =>
      (await source.get?.(keyIn(primary)))?.data?.[ENTRY],
    async write(primary, ctx, id) {
      await ctx.apply(ConfigMap, {
        metadata: keyIn(primary),
        data: { [ENTRY]: id },
      });
    },
    async clear(primary, ctx) {
      await ctx.delete(ConfigMap, keyIn(primary));
    },
  };
}
