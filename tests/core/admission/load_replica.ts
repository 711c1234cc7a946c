/** Replica of an operator that validates ConfigMaps, for `load_replicas.ts`. */
import process from "node:process";
import type { Clock } from "@coracle/operator/client";
import { replaceHost } from "../../../core/client/host.ts";
import { systemClock } from "../../../core/clock.ts";
import { ConfigMap } from "../../../core/kinds/mod.ts";
import { Operator } from "../../../core/operator/operator.ts";
import { jsonLogger } from "../../../core/logger.ts";
import { followLag, type Lag } from "../../support/loop_lag.ts";

/** What a replica says, a line each: its state after a change, and a late event loop. */
export type ReplicaLine = ReplicaState | Lag;

/** State of a replica. */
export interface ReplicaState {
  readonly ready: boolean;
  readonly port: number | undefined;
}

const { FRONT = "", AHEAD = "" } = process.env;
/** Interval of the checks of webhooks. */
const CHECK_MS = 60_000;

/** How far its wall time is ahead of the time, in milliseconds. */
let ahead = Number(AHEAD);
process.on("message", (told) => void (ahead = Number(told)));

const clock: Clock = {
  ...systemClock,
  wallTime: () => Date.now() + ahead,
  setTimer: (callback, delay) =>
    systemClock.setTimer(callback, delay === CHECK_MS ? 1_000 : delay),
};
replaceHost({ addressOf: () => "127.0.0.1" });
const operator = new Operator({
  clock,
  logger: jsonLogger({ level: "error" }),
  // Named, so that the operator's own namespace is admitted.
  namespaces: ["default"],
  webhooks: {
    port: 0,
    host: "127.0.0.1",
    service: { namespace: "default", name: "guard", port: Number(FRONT) },
  },
});
operator.admit(ConfigMap, { validate() {} }, { failurePolicy: "Fail" });

let said = "";
const say = () => {
  const { ready, webhooks } = operator.health();
  const state: ReplicaState = { ready, port: webhooks?.port };
  const text = JSON.stringify(state);
  if (text === said) return;
  said = text;
  process.stdout.write(`${text}\n`);
};
const timer = setInterval(say, 20);
const endLag = followLag((lag) =>
  void process.stdout.write(`${JSON.stringify(lag)}\n`)
);
await operator.run();
clearInterval(timer);
endLag();
process.disconnect();
