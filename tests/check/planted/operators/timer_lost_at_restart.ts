/**
 * Bug: the end of a lease of an environment is a timer of the process, which a new
 * process does not set again, since the start is on record.
 */
import {
  defineKind,
  Operator,
  type OperatorOptions,
  patchStatus,
} from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";

export const write = "ConfigMap default/sample-environment";

const Environment = defineKind({
  group: "planted.coracle.dev",
  version: "v1",
  kind: "Environment",
  spec: z.object({
    size: z.enum(["small", "large"]),
    minutes: z.int().min(1).max(3).default(2),
  }),
  status: z.object({ phase: z.enum(["Running", "Ended"]) }).partial(),
});

export function operator(options: OperatorOptions = {}): Operator {
  const operator = new Operator(options);
  operator.register(Environment, {
    async reconcile({ metadata, spec, status }, ctx) {
      const { name, namespace } = metadata;
      const part = { name: `${name}-environment`, namespace };
      if (status?.phase === "Ended") return;
      await ctx.apply(ConfigMap, {
        metadata: part,
        data: { size: spec.size },
      });
      if (status?.phase === "Running") return;
      const { client } = ctx;
      setTimeout(async () => {
        await client.status.patch(Environment, { name, namespace }, {
          status: { phase: "Ended" },
        }).catch(() => {});
        await client.delete(ConfigMap, part).catch(() => {});
      }, spec.minutes * 60_000);
      return patchStatus({ phase: "Running" });
    },
  }, { owns: [ConfigMap], install: true });
  return operator;
}
