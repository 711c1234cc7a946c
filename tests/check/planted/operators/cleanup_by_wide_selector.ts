/**
 * Bug: the parts of an object that is deleted are found by the name of the
 * application alone, so that those of all objects go with it.
 */
import {
  defineKind,
  Operator,
  type OperatorOptions,
  setStatus,
} from "@coracle/operator";
import { ConfigMap, Secret } from "@coracle/operator/kinds";
import { z } from "zod";

export const write = "ConfigMap default/sample";

const APP = "app.kubernetes.io/name";

const Queue = defineKind({
  group: "planted.coracle.dev",
  version: "v1",
  kind: "Queue",
  spec: z.object({
    topics: z.int().min(1).max(3).default(2),
    durable: z.boolean().default(true),
  }),
  status: z.object({ topics: z.int() }).partial(),
});

export function operator(options: OperatorOptions = {}): Operator {
  const operator = new Operator(options);
  operator.register(Queue, {
    async reconcile({ metadata: { name, namespace }, spec }, ctx) {
      const labels = { [APP]: "queue", "app.kubernetes.io/instance": name };
      for (let at = 0; at < spec.topics; at++) {
        await ctx.apply(ConfigMap, {
          metadata: { name: `${name}-topic-${at}`, namespace, labels },
          data: { durable: String(spec.durable) },
        }, { owned: false });
      }
      const { items } = await ctx.client.list(ConfigMap, {
        namespace,
        labelSelector: `${APP}=queue,app.kubernetes.io/instance=${name}`,
      });
      for (const { metadata: { name: topic } } of items) {
        const at = Number(topic.split("-topic-")[1]);
        if (at >= spec.topics) {
          await ctx.client.delete(ConfigMap, { name: topic, namespace });
        }
      }
      await ctx.apply(Secret, {
        metadata: { name, labels },
        stringData: { url: `amqp://${name}` },
      });
      return setStatus({ topics: spec.topics });
    },
    async cleanup({ metadata: { namespace } }, ctx) {
      const { items } = await ctx.client.list(ConfigMap, {
        namespace,
        labelSelector: `${APP}=queue`,
      });
      for (const { metadata: { name } } of items) {
        await ctx.client.delete(ConfigMap, { name, namespace });
      }
    },
  }, { owns: [Secret], install: true });
  return operator;
}
