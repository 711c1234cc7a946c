/**
 * Bug: the password of a database is copied when its user is made, and not again
 * when it changes.
 */
import { defineKind, Operator, type OperatorOptions } from "@coracle/operator";
import { ConfigMap, Secret } from "@coracle/operator/kinds";
import { z } from "zod";

export const write = "Secret default/sample-login";

const User = defineKind({
  group: "planted.coracle.dev",
  version: "v1",
  kind: "DatabaseUser",
  spec: z.object({
    database: z.string(),
    role: z.enum(["reader", "writer"]).default("reader"),
  }),
});

export function operator(options: OperatorOptions = {}): Operator {
  const operator = new Operator(options);
  operator.register(User, {
    async reconcile({ metadata: { name, namespace }, spec }, ctx) {
      const source = await ctx.client.find(Secret, {
        name: spec.database,
        namespace,
      });
      const login = `${name}-login`;
      if (source && await ctx.get(Secret, login) === undefined) {
        await ctx.apply(Secret, {
          metadata: { name: login },
          data: { ...source.data },
        });
      }
      await ctx.apply(ConfigMap, {
        metadata: { name: `${name}-grants` },
        data: { role: spec.role, database: spec.database },
      });
    },
  }, { owns: [Secret, ConfigMap], install: true });
  return operator;
}
