/**
 * Bug: an object whose resourceVersion is not greater than the last one, as text, is
 * taken for old, so that a change is ignored where the version gets another digit.
 */
import { defineKind, Operator, type OperatorOptions } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";

export const write = "ConfigMap default/sample-rules";

const Firewall = defineKind({
  group: "planted.coracle.dev",
  version: "v1",
  kind: "Firewall",
  spec: z.object({
    ports: z.array(z.int().min(1).max(65_535)).max(3).default([80]),
    mode: z.enum(["allow", "deny"]),
  }),
});

const seen = new Map<string, string>();

export function operator(options: OperatorOptions = {}): Operator {
  const operator = new Operator(options);
  operator.register(Firewall, {
    async reconcile({ metadata, spec }, ctx) {
      const { name, uid = "", resourceVersion = "" } = metadata;
      const last = seen.get(uid);
      if (last !== undefined && resourceVersion <= last) return;
      await ctx.apply(ConfigMap, {
        metadata: { name: `${name}-rules` },
        data: { rules: spec.ports.map((one) => `${spec.mode} ${one}`).join() },
      });
      seen.set(uid, resourceVersion);
    },
  }, { owns: [ConfigMap], install: true });
  return operator;
}
