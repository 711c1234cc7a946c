import {
  type Context,
  Operator,
  type OperatorOptions,
  patchStatus,
  watch,
} from "@coracle/operator";
import { ConfigMap, Namespace, Service } from "@coracle/operator/kinds";
import { pollingSource, timerSource } from "@coracle/operator/sources";
import { Kiosk, Shop } from "./shop.ts";

/** Rates that a source reads outside of the cluster; the test changes them. */
export const rates: Map<string, readonly { readonly rate: number }[]> =
  new Map();

/** Waits on the clock of a run, until it is aborted. */
function wait(ctx: Context<Shop>, milliseconds: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = ctx.clock.setTimer(resolve, milliseconds);
    ctx.signal.addEventListener("abort", () => {
      timer.cancel();
      reject(ctx.signal.reason);
    });
  });
}

/** Two controllers that use most of what a run can do. */
function varied(options: OperatorOptions, goods: string): Operator {
  const operator = new Operator(options);
  const polled = pollingSource<Shop, { readonly rate: number }>({
    name: "rates",
    interval: "2m",
    fetch: () => new Map(rates),
  });
  const hourly = timerSource<Shop>("again");
  operator.register(Shop, {
    async reconcile(shop, ctx) {
      const { name = "", namespace = "" } = shop.metadata;
      const counts = { namespace, name: "counts" };
      // In parallel, and in an order that the server decides.
      const [space, found, others] = await Promise.all([
        ctx.client.get(Namespace, { name: namespace }),
        ctx.client.find(ConfigMap, counts),
        ctx.list(Kiosk, namespace),
      ]);
      const rate = (await ctx.secondary(polled))?.rate ?? 0;
      if (found === undefined) {
        await ctx.client.create(ConfigMap, { metadata: counts, data: {} })
          .catch((error) => {
            if (!error.isAlreadyExists) throw error;
          });
      }
      // Conflicts with runs of other shops.
      await ctx.modify(ConfigMap, counts, (one) => {
        one.data = { ...one.data, [name]: `${others.length} at ${rate}` };
      });
      await ctx.patch(ConfigMap, counts, [
        { op: "add", path: "/metadata/labels", value: { by: name } },
      ], { type: "json" });
      await wait(ctx, 300);
      hourly.schedule(ctx.key, { after: "7m" });
      if (shop.spec.color === "slow") {
        await wait(ctx, 60_000);
      }
      const parts = await ctx.secondaries(ConfigMap);
      if (parts.length === 0) {
        await ctx.create(ConfigMap, {
          metadata: { namespace, generateName: `${name}-` },
          data: { goods, space: space.metadata.uid ?? "" },
        });
      }
      await Promise.all(["a", "b"].map((part) =>
        ctx.apply(Service, {
          metadata: { namespace, name: `${name}-${part}` },
          spec: { ports: [{ port: 80 }], selector: { shop: name } },
        })
      ));
      ctx.events.normal("Counted", `${parts.length} of ${ctx.cause.type}`);
      const since = new Date(ctx.clock.wallTime()).toISOString();
      const visitors = ctx.primaries.list(namespace).length;
      const result = patchStatus({ open: true, since, visitors });
      return ctx.retry.attempt > 0 ? result.rescheduleAfter("5m") : result;
    },
    async cleanup(shop, ctx) {
      const { name = "" } = shop.metadata;
      if (ctx.retry.attempt === 0) throw new Error(`Cannot close ${name} yet`);
      for (const part of ["a", "b"]) {
        await ctx.delete(Service, `${name}-${part}`);
      }
    },
  }, {
    name: "varied",
    owns: [ConfigMap, Service],
    watches: [
      watch(Kiosk, { references: () => [{ name: "kiosk-0" }] }),
    ],
    sources: [polled, hourly],
    timeout: "20s",
    concurrency: 4,
    maxInterval: "10m",
  });
  operator.register(Kiosk, {
    async reconcile(kiosk, ctx) {
      const { name = "", namespace = "" } = kiosk.metadata;
      await ctx.addFinalizer("replay.coracle.dev/own");
      const shops = await ctx.client.list(Shop, { namespace, limit: 2 });
      const known = await ctx.get(ConfigMap, "counts");
      await ctx.apply(ConfigMap, {
        metadata: { namespace, name },
        data: { shops: `${shops.items.length} ${known?.data?.["shop-1"]}` },
      });
      return patchStatus({ ready: true });
    },
  }, {
    name: "kiosks",
    watches: [
      watch(ConfigMap, { references: () => [{ name: "counts" }] }),
    ],
  });
  return operator;
}

export function operator(options: OperatorOptions): Operator {
  return varied(options, "tea");
}

/** With another value in the objects that a run creates. */
export function otherGoods(options: OperatorOptions): Operator {
  return varied(options, "coffee");
}
