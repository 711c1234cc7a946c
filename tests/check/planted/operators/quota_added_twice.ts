/**
 * Bug: the quota of a team is changed by what is missing to what the status has, so
 * that it is added twice where the status was not written.
 */
import {
  defineKind,
  Operator,
  type OperatorOptions,
  setStatus,
} from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";

export const write = "POST http://quota.test/";

const Team = defineKind({
  group: "planted.coracle.dev",
  version: "v1",
  kind: "Team",
  spec: z.object({ quota: z.int().min(1).max(10) }),
  status: z.object({ quota: z.int() }).partial(),
});

async function add(team: string, count: number): Promise<void> {
  const { ok, status } = await fetch(`http://quota.test/${team}`, {
    method: "POST",
    body: JSON.stringify({ add: count }),
  });
  if (!ok) throw new Error(`The quota answers ${status}`);
}

export function operator(options: OperatorOptions = {}): Operator {
  const operator = new Operator(options);
  operator.register(Team, {
    async reconcile({ metadata: { name }, spec, status }, ctx) {
      const missing = spec.quota - (status?.quota ?? 0);
      if (missing !== 0) await add(name, missing);
      await ctx.apply(ConfigMap, {
        metadata: { name: `${name}-quota` },
        data: { quota: String(spec.quota) },
      });
      return setStatus({ quota: spec.quota });
    },
    async cleanup({ metadata: { name }, status }) {
      if (status?.quota) await add(name, -status.quota);
    },
  }, { owns: [ConfigMap], install: true });
  return operator;
}
