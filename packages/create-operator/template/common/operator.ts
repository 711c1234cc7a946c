import process from "node:process";
import { Operator, type OperatorOptions, patchStatus } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { Greeting } from "./greeting.ts";

const HOUR_MS = 3_600_000;

/** Creates the operator; tests and the command line pass their own options. */
export function operator(options: OperatorOptions = {}): Operator {
  const operator = new Operator({
    leaderElection: { name: "greeter" },
    probes: { port: Number(process.env["PORT"] ?? 8080) },
    ...options,
  });
  operator.register(Greeting, {
    async reconcile({ metadata, spec }, ctx) {
      const { name, namespace } = metadata;
      const created = Date.parse(metadata.creationTimestamp ?? "");
      const left = created + spec.validHours * HOUR_MS - ctx.clock.wallTime();
      if (left <= 0) {
        await ctx.delete(ConfigMap, { name, namespace });
        return patchStatus({ expired: true });
      }
      await ctx.apply(ConfigMap, {
        metadata: { name },
        data: { message: spec.message },
      });
      return patchStatus({ expired: false }).rescheduleAfter(left);
    },
  }, { owns: [ConfigMap] });
  return operator;
}

if (import.meta.main) await operator().run();
