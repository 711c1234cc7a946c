/**
 * Operator that writes its identity repeatedly while it leads. A gadget can
 * block its event loop once.
 */
import process from "node:process";
import { milliseconds, Operator, patchStatus } from "@coracle/operator/core";
import { blockThread } from "../support/block_thread.ts";
import { Gadget } from "../support/operator_fixture.ts";

const { IDENTITY = "", LEASE = "3s" } = process.env;
let hasBlocked = false;

const operator = new Operator({
  leaderElection: {
    name: "lock",
    namespace: "default",
    identity: IDENTITY,
    leaseDuration: milliseconds(LEASE),
    renewDeadline: "2s",
    retryPeriod: "400ms",
  },
});

operator.register(Gadget, {
  reconcile(gadget) {
    const [, duration] = /^block (\d+)$/.exec(gadget.spec.value) ?? [];
    if (duration !== undefined && !hasBlocked) {
      hasBlocked = true;
      // The second leader is blocked for longer: the first one waits for a whole
      // lease once it continues.
      const factor = IDENTITY === "b" ? 1.5 : 1;
      blockThread(Number(duration) * factor);
    }
    const count = (gadget.status?.count ?? 0) + 1;
    return patchStatus({ value: IDENTITY, count });
  },
}, {
  maxInterval: "100ms",
  retry: { initial: "100ms", maxAttempts: Infinity },
});

await operator.run();
