/**
 * Operator for the tests of worlds, as a user writes one: for each Copier it
 * applies a ConfigMap with values that the world decides, then a Secret, then the
 * status.
 */
import { createHash, randomUUID } from "node:crypto";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { patchStatus } from "../../../core/controller/result.ts";
import { defineKind } from "../../../core/crd/define_kind.ts";
import { ConfigMap, Secret } from "../../../core/kinds/core_v1.ts";
import { Operator } from "../../../core/operator/operator.ts";
import { state } from "./copier_state.ts";

const Copier = defineKind({
  group: "world.coracle.dev",
  version: "v1",
  kind: "Copier",
  spec: z.object({ text: z.string() }),
  status: z.object({ runs: z.number(), text: z.string() }).partial(),
});

const { COPIER_LEASE } = process.env;
const lease = { name: "copier", namespace: "default" };
const operator = new Operator(
  COPIER_LEASE === undefined
    ? {}
    : COPIER_LEASE === "sharding"
    ? { sharding: lease }
    : { leaderElection: lease },
);

const { COPIER_ADMITS } = process.env;
if (COPIER_ADMITS !== undefined) {
  operator.admit(Secret, { validate() {} }, { failurePolicy: "Fail" });
}

operator.register(Copier, {
  async reconcile(copier, ctx) {
    state.runs++;
    const { name } = copier.metadata;
    const { text } = copier.spec;
    await new Promise((resolve) => setTimeout(resolve, 100));
    await sleep(60_000);
    await ctx.apply(ConfigMap, {
      metadata: { name },
      data: { text },
    });
    await ctx.apply(Secret, {
      metadata: { name },
      stringData: { text },
    });
    if (text === "external") {
      // Work of other threads: the world stands still until it ends.
      const bytes = new Uint8Array(1_000_000);
      const digest = await crypto.subtle.digest("SHA-256", bytes);
      const stamp = [
        new Uint8Array(digest)[0],
        Date.now(),
        new Date().toISOString(),
        Math.random(),
        crypto.randomUUID(),
        randomUUID(),
        createHash("sha256").update(text).digest("hex"),
        performance.now(),
      ];
      await fetch("http://dns.example.com/records", {
        method: "POST",
        body: JSON.stringify(stamp),
      });
    }
    return patchStatus({ runs: state.runs, text });
  },
}, { install: true, owns: [ConfigMap] });

await operator.run();
