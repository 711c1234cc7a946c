/** An operator that writes who it is, again and again, while it leads. */
import process from "node:process";
import { patchStatus } from "../../core/controller/result.ts";
import { silentLogger } from "../../core/logger.ts";
import { Operator } from "../../core/operator/operator.ts";
import { Gadget } from "../support/operator_case.ts";

const identity = process.env["IDENTITY"] ?? "";

const operator = new Operator({
  logger: silentLogger,
  leaderElection: {
    name: "lock",
    namespace: "default",
    identity,
    leaseDuration: "3s",
    renewDeadline: "2s",
    retryPeriod: "400ms",
  },
});

operator.register(Gadget, {
  reconcile: (gadget) =>
    patchStatus({ value: identity, count: (gadget.status?.count ?? 0) + 1 }),
}, {
  maxInterval: "100ms",
  retry: { initial: "100ms", maxAttempts: Infinity },
});

await operator.run();
