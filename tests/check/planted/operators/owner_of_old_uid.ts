/**
 * Bug: owner references have the UID that a name had first, so that the parts of an
 * object that is made again belong to one that is gone.
 */
import { defineKind, Operator, type OperatorOptions } from "@coracle/operator";
import { ConfigMap, Service } from "@coracle/operator/kinds";
import { z } from "zod";

export const write = "ConfigMap default/sample-settings";

const Cache = defineKind({
  group: "planted.coracle.dev",
  version: "v1",
  kind: "Cache",
  spec: z.object({
    port: z.int().min(1).max(65_535).default(6_379),
    policy: z.enum(["lru", "lfu"]).default("lru"),
  }),
});

/** References by the names of the objects, which are made once. */
const owners = new Map<string, readonly [Record<string, unknown>]>();

export function operator(options: OperatorOptions = {}): Operator {
  const operator = new Operator(options);
  operator.register(Cache, {
    async reconcile({ metadata: { name, namespace, uid }, spec }, ctx) {
      const key = `${namespace}/${name}`;
      const known = owners.get(key) ?? [{
        apiVersion: "planted.coracle.dev/v1",
        kind: "Cache",
        name,
        uid,
        controller: true,
      }];
      owners.set(key, known);
      const ownerReferences = known as never;
      await ctx.apply(ConfigMap, {
        metadata: { name: `${name}-settings`, ownerReferences },
        data: { policy: spec.policy },
      }, { owned: false });
      await ctx.apply(Service, {
        metadata: { name, ownerReferences },
        spec: { selector: { cache: name }, ports: [{ port: spec.port }] },
      }, { owned: false });
    },
  }, { install: true });
  return operator;
}
