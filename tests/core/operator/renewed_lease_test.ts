import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { type LogFields, silentLogger } from "@coracle/operator/client";
import {
  type LeaseFailure,
  RenewedLease,
  type RenewedLeaseDeps,
} from "../../../core/operator/renewed_lease.ts";

/** Lease on a server that the test lets fail. */
class ProbedLease extends RenewedLease<RenewedLeaseDeps> {
  readonly role = "the leader";
  isDown = false;

  protected renew(sentAt: number): Promise<void> {
    if (this.isDown) return Promise.reject(new Error("As asked"));
    this.renewedAt = sentAt;
    return Promise.resolve();
  }

  protected release(): Promise<void> {
    return Promise.resolve();
  }

  protected onLose(): void {}
}

test("A lease that fails for its duration is an error, once in each outage", async () => {
  const clock = new VirtualClock();
  const errors: LogFields[] = [];
  const lease = new ProbedLease({
    identity: "a",
    times: {
      leaseDuration: 15_000,
      renewDeadline: 10_000,
      retryPeriod: 2_000,
    },
    clock,
    log: {
      ...silentLogger,
      error: (_text, fields = {}) => void errors.push(fields),
    },
  });
  const failure = (): LeaseFailure | undefined => lease.failure;
  lease.start();
  await clock.advance(5_000);
  assert.equal(failure(), undefined);
  for (const outage of [1, 2]) {
    lease.isDown = true;
    await clock.advance(14_000);
    assert.equal(errors.length, outage - 1);
    const { duration = 0, message } = failure() ?? {};
    // The time since its first failure, not since the last.
    assert.ok(duration >= 12_000 && duration <= 14_000, `${duration}`);
    assert.equal(message, "As asked");
    await clock.advance(60_000);
    assert.equal(errors.length, outage);
    assert.ok(Number(errors.at(-1)?.["failingFor"]) >= 15_000);
    lease.isDown = false;
    await clock.advance(5_000);
    assert.equal(failure(), undefined);
    assert.equal(lease.isHeld, true);
  }
  await lease.stop();
});
