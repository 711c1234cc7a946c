import { Operator, type OperatorOptions, patchStatus } from "@coracle/operator";
import { ConfigMap, Pod, Secret, Service } from "@coracle/operator/kinds";
import { kubernetesDependent, Workflow } from "@coracle/operator/workflows";
import { watch } from "@coracle/operator";
import { Kiosk, Shop } from "./shop.ts";

/** What an operator does in another way. */
interface Change {
  readonly label?: string;
  readonly writesMore?: boolean;
  readonly writesLess?: boolean;
  readonly isReversed?: boolean;
  readonly number?: () => number;
  /** URL that each run asks first. */
  readonly asks?: string;
}

function shops(options: OperatorOptions, change: Change): Operator {
  const operator = new Operator(options);
  operator.register(Shop, {
    async reconcile(shop, ctx) {
      const { name, namespace = "" } = shop.metadata;
      if (change.asks !== undefined) await fetch(change.asks);
      const palette = await ctx.get(ConfigMap, "palette");
      const key = await ctx.get(Secret, "key");
      const { color, fails = 0 } = shop.spec;
      if (ctx.retry.attempt < fails) {
        throw new Error(`Cannot open ${name}: nobody is there`);
      }
      const number = change.number?.();
      const now = () => new Date(ctx.clock.wallTime()).toISOString();
      const steps = [
        () =>
          ctx.apply(ConfigMap, {
            metadata: { namespace, name },
            data: {
              color: change.label ?? color,
              base: palette?.data?.["base"] ?? "none",
              key: atob(key?.data?.["key"] ?? ""),
              ...number !== undefined && { number: String(number) },
            },
          }),
        () =>
          ctx.apply(Service, {
            metadata: { namespace, name },
            spec: { selector: { shop: name }, ports: [{ port: 80 }] },
          }),
      ];
      if (change.isReversed) steps.reverse();
      if (change.writesLess) steps.pop();
      if (change.writesMore) {
        steps.push(() =>
          ctx.apply(ConfigMap, {
            metadata: { namespace, name: `${name}-more` },
            data: { more: "yes" },
          })
        );
      }
      for (const step of steps) await step();
      const { items } = await ctx.client.list(Pod, {
        namespace,
        labelSelector: `shop=${name}`,
      });
      if (shop.status?.open !== true) {
        ctx.events.normal("Opened", `Opened at ${now()}`);
      }
      const since = shop.status?.since ?? now();
      return patchStatus({ open: true, since, visitors: items.length })
        .rescheduleAfter("20m");
    },
    async cleanup(shop, ctx) {
      await ctx.delete(Service, shop.metadata.name ?? "");
    },
  }, {
    name: "shop",
    owns: [ConfigMap, Service],
    watches: [
      watch(Secret, { references: () => ["key"].map((name) => ({ name })) }),
    ],
  });
  const goods = kubernetesDependent<Kiosk, ConfigMap>(ConfigMap, {
    desired: ({ metadata: { name, namespace }, spec }) => ({
      metadata: { name: `${name}-goods`, namespace },
      data: { goods: spec.goods },
    }),
  });
  const front = kubernetesDependent<Kiosk, Service>(Service, {
    desired: ({ metadata: { name, namespace } }) => ({
      metadata: { name: `${name}-front`, namespace },
      spec: { selector: { kiosk: name ?? "" }, ports: [{ port: 80 }] },
    }),
  });
  operator.register(Kiosk, {
    async reconcile(_kiosk, { workflow }) {
      if (change.asks !== undefined) await fetch(change.asks);
      return patchStatus({ ready: workflow?.done === true });
    },
  }, {
    name: "kiosk",
    workflow: new Workflow<Kiosk>()
      .add("goods", goods)
      .add("front", front, { dependsOn: ["goods"] }),
    maxInterval: "30m",
  });
  return operator;
}

/** As it was recorded. */
export function operator(options: OperatorOptions): Operator {
  return shops(options, {});
}

/** With another value in a field. */
export function otherValue(options: OperatorOptions): Operator {
  return shops(options, { label: "grey" });
}

export function moreWrites(options: OperatorOptions): Operator {
  return shops(options, { writesMore: true });
}

export function fewerWrites(options: OperatorOptions): Operator {
  return shops(options, { writesLess: true });
}

export function otherOrder(options: OperatorOptions): Operator {
  return shops(options, { isReversed: true });
}

/** With requests outside of the cluster. */
export function asking(options: OperatorOptions): Operator {
  return shops(options, { asks: "https://rates.example/" });
}

/** With a value that no object has. */
export function random(options: OperatorOptions): Operator {
  return shops(options, { number: () => Math.random() });
}

let count = 0;

/** With a state of its process. */
export function counter(options: OperatorOptions): Operator {
  return shops(options, { number: () => ++count });
}
