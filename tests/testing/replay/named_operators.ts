import { Operator, type OperatorOptions, patchStatus } from "@coracle/operator";
import { ConfigMap, Secret } from "@coracle/operator/kinds";
import { Shop } from "./shop.ts";

/** Names of objects that are values of a Secret as well. */
export const NAMES = {
  namespace: "default",
  user: "postgres",
  shop: "web-shop",
  label: "coracle.dev/owner",
};

function named(options: OperatorOptions, color: string): Operator {
  const operator = new Operator(options);
  operator.register(Shop, {
    async reconcile(shop, ctx) {
      const { name = "", namespace = "" } = shop.metadata;
      const { data = {} } = await ctx.get(Secret, "names") ?? {};
      // One name is known from the code, one from the Secret, one from the shop.
      const user = atob(data["user"] ?? "");
      const found = await ctx.get(ConfigMap, NAMES.user);
      await ctx.client.find(ConfigMap, { namespace, name: user });
      await ctx.client.list(ConfigMap, {
        namespace,
        labelSelector: `${NAMES.label}=${user}`,
      });
      await ctx.apply(ConfigMap, {
        metadata: { namespace, name, labels: { [NAMES.label]: user } },
        data: { namespace: NAMES.namespace, base: found?.data?.["base"] ?? "" },
      });
      await ctx.apply(ConfigMap, {
        metadata: { namespace, name: `${user}-${name}` },
        data: { color, text: `${user} of ${name} in ${namespace}` },
      });
      ctx.events.normal("Named", `${name} has ${user}`);
      if (ctx.retry.attempt < (shop.spec.fails ?? 0)) {
        throw new Error(`Cannot open ${name}: ${user} is not there`);
      }
      return patchStatus({ open: true }).rescheduleAfter("20m");
    },
    cleanup: async (shop, ctx) => {
      await ctx.delete(ConfigMap, `${NAMES.user}-${shop.metadata.name}`);
    },
  }, { name: "named", owns: [ConfigMap, Secret] });
  return operator;
}

export function operator(options: OperatorOptions): Operator {
  return named(options, "blue");
}

/** With another value in a field beside those with names. */
export function otherValue(options: OperatorOptions): Operator {
  return named(options, "grey");
}
