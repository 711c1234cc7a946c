/**
 * Bug: while the Secret that an object names is missing, the server is asked for it
 * each second, forever.
 */
import {
  defineKind,
  noUpdate,
  Operator,
  type OperatorOptions,
} from "@coracle/operator";
import { ConfigMap, Secret } from "@coracle/operator/kinds";
import { z } from "zod";

export const write = "get Secret";

const Feed = defineKind({
  group: "planted.coracle.dev",
  version: "v1",
  kind: "Feed",
  spec: z.object({
    url: z.string(),
    credentials: z.string().optional(),
  }),
});

export function operator(options: OperatorOptions = {}): Operator {
  const operator = new Operator(options);
  operator.register(Feed, {
    async reconcile({ metadata: { name, namespace }, spec }, ctx) {
      if (spec.credentials !== undefined) {
        const key = { name: spec.credentials, namespace };
        const secret = await ctx.client.find(Secret, key);
        if (secret === undefined) return noUpdate().rescheduleAfter("1s");
      }
      await ctx.apply(ConfigMap, {
        metadata: { name: `${name}-feed` },
        data: { url: spec.url },
      });
      return;
    },
  }, { owns: [ConfigMap], install: true });
  return operator;
}
