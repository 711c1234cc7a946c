import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { VirtualClock, withTestCluster } from "@coracle/dev";
import {
  type Context,
  defineKind,
  Operator,
  type OperatorOptions,
} from "@coracle/operator/core";
import { ConfigMap, type KubernetesObject } from "@coracle/operator/kinds";
import { watch } from "@coracle/operator/sources";
import { removesDefinitions } from "../support/remove_objects.ts";

const group = { group: "sample.coracle.dev", version: "v1" };
const spec = z.object({ note: z.string() });
const Reader = defineKind({ ...group, kind: "Reader", spec });
const Writer = defineKind({ ...group, kind: "Writer", spec });
removesDefinitions(Reader, Writer);

type Noted = KubernetesObject & { readonly spec: { readonly note: string } };

function operator(options: OperatorOptions): Operator {
  const operator = new Operator(options);
  // Each controller gets a copy of the source.
  const watches = [watch(ConfigMap, { readOnly: false })];
  for (const kind of [Reader, Writer]) {
    operator.register(kind, {
      async reconcile({ metadata, spec }: Noted, ctx: Context<Noted>) {
        await ctx.apply(ConfigMap, {
          metadata: {
            name: "shared",
            ownerReferences: [{
              apiVersion: "sample.coracle.dev/v1",
              kind: kind.kind,
              name: metadata.name,
              uid: metadata.uid ?? "",
            }],
          },
          data: { [kind.kind]: spec.note },
        }, { owned: false });
      },
    }, { watches });
  }
  return operator;
}

test(
  "An object of two kinds has the fields of both, and goes with the last owner",
  withTestCluster(
    { kinds: [Reader, Writer], operator, clock: new VirtualClock() },
    async (cluster) => {
      const { client, namespace } = cluster;
      const key = { namespace, name: "shared" };
      const shared = () => client.find(ConfigMap, key);
      const one = { metadata: { namespace, name: "a" }, spec: { note: "x" } };
      await client.create(Reader, one);
      await client.create(Writer, one);
      await cluster.until(async () =>
        Object.keys((await shared())?.data ?? {}).length === 2
      );
      await client.patch(ConfigMap, key, { data: { Reader: "wrong" } });
      await cluster.until(async () =>
        (await shared())?.data?.["Reader"] === "x"
      );
      await client.delete(Reader, one.metadata);
      await cluster.until(async () =>
        (await shared())?.metadata.ownerReferences?.length === 1
      );
      assert.equal((await shared())?.data?.["Writer"], "x");
      await client.delete(Writer, one.metadata);
      await cluster.until(async () => await shared() === undefined);
    },
  ),
);
