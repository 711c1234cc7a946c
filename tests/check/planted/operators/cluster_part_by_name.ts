/**
 * Bug: a part without a namespace has the name of its object alone, so that objects
 * of one name in two namespaces share it.
 */
import { defineKind, Operator, type OperatorOptions } from "@coracle/operator";
import { ClusterRole, ServiceAccount } from "@coracle/operator/kinds";
import { z } from "zod";

export const write = "ClusterRole agent-sample";

const Agent = defineKind({
  group: "planted.coracle.dev",
  version: "v1",
  kind: "Agent",
  spec: z.object({
    access: z.enum(["read", "write"]).default("read"),
  }),
});

export function operator(options: OperatorOptions = {}): Operator {
  const operator = new Operator(options);
  operator.register(Agent, {
    async reconcile({ metadata: { name, namespace }, spec }, ctx) {
      await ctx.apply(ServiceAccount, { metadata: { name: `${name}-agent` } });
      await ctx.apply(ClusterRole, {
        metadata: {
          name: `agent-${name}`,
          labels: { "planted.coracle.dev/namespace": namespace ?? "" },
        },
        rules: [{
          apiGroups: [""],
          resources: ["pods"],
          verbs: spec.access === "read"
            ? ["get", "list", "watch"]
            : ["get", "list", "watch", "delete"],
        }],
      }, { owned: false });
    },
    async cleanup({ metadata: { name } }, ctx) {
      await ctx.client.delete(ClusterRole, { name: `agent-${name}` })
        .catch((error) => {
          if (!error.isNotFound) throw error;
        });
    },
  }, {
    owns: [ServiceAccount],
    install: true,
  });
  return operator;
}
