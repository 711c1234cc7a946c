/**
 * Correct operator in which `npm run check:planted` plants bugs: owned parts, members
 * that come and go, and an account outside of the cluster.
 *
 * @module
 */
import {
  defineKind,
  Operator,
  type OperatorOptions,
  setStatus,
} from "@coracle/operator";
import { ConfigMap, Secret, Service } from "@coracle/operator/kinds";
import { conditionedStatus, setCondition } from "@coracle/operator/workflows";
import { randomBytes } from "node:crypto";
import { z } from "zod";

const BANK = "http://bank.test/accounts";
const MEMBER = "planted.coracle.dev/shop";

const Account = z.object({ id: z.string(), plan: z.string() });
type Account = z.infer<typeof Account>;

const Shop = defineKind({
  group: "planted.coracle.dev",
  version: "v1",
  kind: "Shop",
  spec: z.object({
    plan: z.enum(["small", "large"]),
    members: z.int().min(0).max(3).default(1),
    exposed: z.boolean().default(false),
  }),
  status: conditionedStatus(z.object({
    plan: z.string(),
    account: z.string(),
    members: z.int(),
    message: z.string(),
  })),
});

async function ask(path: string, init?: RequestInit): Promise<unknown> {
  const response = await fetch(`${BANK}${path}`, init);
  if (response.status === 404) return undefined;
  if (!response.ok) throw new Error(`The bank answers ${response.status}`);
  return await response.json();
}

async function accountOf(owner: string): Promise<Account | undefined> {
  const found = await ask(`?owner=${owner}`);
  return z.array(Account).parse(found)[0];
}

export function operator(options: OperatorOptions = {}): Operator {
  const operator = new Operator({
    leaderElection: { name: "shops" },
    ...options,
  });
  operator.register(Shop, {
    async reconcile(cached, ctx) {
      const shop = await ctx.client.find(Shop, ctx.key);
      // What others have to delete must not be made for an object that is gone, and
      // nothing may be deleted by a spec that is out of date.
      if (shop === undefined || shop.metadata.uid !== cached.metadata.uid) {
        return;
      }
      if (shop.metadata.deletionTimestamp) return;
      const { metadata, spec, status } = shop;
      const { name, namespace, generation, uid = "" } = metadata;

      const keys = { name: `${name}-keys`, namespace };
      const kept = await ctx.client.find(Secret, keys);
      const key = kept?.data?.["key"] ?? randomBytes(18).toString("base64");
      await ctx.apply(Secret, { metadata: keys, data: { key } });

      await ctx.apply(ConfigMap, {
        metadata: { name: `${name}-config` },
        data: { plan: spec.plan, members: String(spec.members) },
      });
      await ctx.apply(Service, {
        metadata: { name },
        spec: { selector: { shop: name }, ports: [{ port: 80 }] },
      });

      const poster = `${name}-poster`;
      if (spec.exposed) {
        await ctx.apply(ConfigMap, {
          metadata: { name: poster },
          data: { text: `Open: ${spec.plan}` },
        });
      } else if (await ctx.get(ConfigMap, poster)) {
        await ctx.delete(ConfigMap, poster);
      }

      for (let at = 0; at < spec.members; at++) {
        await ctx.apply(ConfigMap, {
          metadata: {
            name: `${name}-member-${at}`,
            labels: { [MEMBER]: name },
          },
          data: { at: String(at) },
        });
      }
      for (const { metadata } of await ctx.secondaries(ConfigMap)) {
        const at = Number(metadata.name.split("-member-")[1] ?? 0);
        if (at >= spec.members && metadata.labels?.[MEMBER] === name) {
          await ctx.delete(ConfigMap, metadata.name);
        }
      }

      let account = await accountOf(uid);
      const body = JSON.stringify({ owner: uid, plan: spec.plan });
      if (account === undefined) {
        const headers = { "idempotency-key": uid };
        account = Account.parse(
          await ask("", { method: "POST", headers, body }),
        );
      } else if (account.plan !== spec.plan) {
        await ask(`/${account.id}`, { method: "PUT", body });
      }

      const now = Date.now();
      const ready = { type: "Ready", status: "True", reason: "Done" } as const;
      return setStatus({
        plan: spec.plan,
        account: account.id,
        members: spec.members,
        message: spec.members === 0 ? "Nobody is there" : "",
        conditions: setCondition(status?.conditions, ready, {
          now,
          generation,
        }),
      });
    },

    async cleanup({ metadata: { uid = "" } }) {
      const account = await accountOf(uid);
      if (account) await ask(`/${account.id}`, { method: "DELETE" });
    },
  }, { owns: [ConfigMap, Secret, Service], install: true });
  return operator;
}
