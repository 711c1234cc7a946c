import assert from "node:assert/strict";
import { test } from "node:test";
import { Client } from "../../../core/client/client.ts";
import { systemClock } from "../../../core/clock.ts";
import { Fence } from "../../../core/operator/fence.ts";
import { Lease } from "../../../core/operator/lease_lock.ts";
import { VirtualClock } from "../../../dev/testing/virtual_clock.ts";
import { ScriptedStream } from "../../support/scripted_stream.ts";
import { ScriptedTransport } from "../../support/scripted_transport.ts";
import { withSlowProxy } from "../../support/slow_proxy.ts";
import { growthOf } from "../../support/growth.ts";
import { LeakGuard } from "../../support/leaks.ts";

const KEY = { namespace: "default", name: "a" };

/** Fence before a server that answers on request of the test. */
class FenceFixture {
  readonly clock: VirtualClock = new VirtualClock();
  readonly server: ScriptedTransport = new ScriptedTransport(({ signal }) =>
    new Promise((resolve, reject) => {
      signal?.addEventListener("abort", () => reject(signal.reason));
      this.asked.push(() => resolve({ body: { metadata: KEY } }));
    })
  );
  readonly fence: Fence;
  readonly #guard: LeakGuard = new LeakGuard();
  /** Requests that the server has not answered. */
  readonly asked: (() => void)[] = [];
  isHeld = true;
  #term = new AbortController();

  constructor() {
    const isHeld = () => this.isHeld;
    const lease = {
      get isHeld(): boolean {
        return isHeld();
      },
      signal: this.#term.signal,
      role: "the leader",
    };
    const client = new Client({ transport: this.server }, {
      clock: this.clock,
    });
    this.fence = new Fence({ client, lease, clock: this.clock });
  }

  loseLease(): void {
    this.isHeld = false;
    this.#term.abort(new Error("It is no longer the leader"));
  }

  /** Starts a write and records its result. */
  write(signal?: AbortSignal): { ended: string | undefined } {
    const result: { ended: string | undefined } = { ended: undefined };
    this.fence.client.patch(Lease, KEY, {}, { signal }).then(
      () => result.ended = "well",
      (error: unknown) => result.ended = String(error),
    );
    return result;
  }

  /** Asserts that no ended write has left a listener or a timer. */
  check(): void {
    this.#guard.check(this.clock);
  }

  /** Whether no write is in progress. */
  async isSettled(): Promise<boolean> {
    let settled = false;
    void this.fence.settled().then(() => settled = true);
    await this.clock.settle();
    return settled;
  }
}

test("Fence always allows reads, and writes only within the mandate", async () => {
  const fixture = new FenceFixture();
  const first = fixture.write();
  await fixture.clock.settle();
  fixture.asked.pop()?.();
  await fixture.clock.settle();
  assert.equal(first.ended, "well");
  fixture.isHeld = false;
  const second = fixture.write();
  const read = fixture.fence.client.get(Lease, KEY);
  await fixture.clock.settle();
  assert.match(
    second.ended ?? "",
    /is not the leader, or cannot be sure of it/,
  );
  assert.equal(fixture.asked.length, 1);
  fixture.asked.pop()?.();
  await read;
});

test("Fence opens streams into pods within the mandate only", async () => {
  const fixture = new FenceFixture();
  const stream = new ScriptedStream();
  fixture.server.stream = () => stream;
  const options = { command: ["date"] };
  await fixture.fence.client.exec(KEY, options);
  assert.equal(fixture.server.streamRequests.length, 1);
  assert.equal(await fixture.isSettled(), true, "it is open");
  fixture.isHeld = false;
  await assert.rejects(
    fixture.fence.client.exec(KEY, options),
    /Cannot run "date" in Pod default\/a: this replica is not the leader/,
  );
  assert.equal(fixture.server.streamRequests.length, 1);
  stream.messages.end();
});

test("Fence checks the mandate again before another attempt", async () => {
  const fixture = new FenceFixture();
  fixture.server.script = () => ({
    status: 429,
    headers: { "retry-after": "1" },
  });
  const write = fixture.write();
  await fixture.clock.settle();
  fixture.isHeld = false;
  await fixture.clock.advance(2_000);
  assert.match(write.ended ?? "", /is not the leader, or cannot be sure of it/);
  assert.equal(fixture.server.requests.length, 1);
});

test("Fence aborts writes in progress when the mandate ends", async () => {
  const fixture = new FenceFixture();
  const write = fixture.write();
  await fixture.clock.settle();
  fixture.loseLease();
  await fixture.clock.settle();
  assert.match(write.ended ?? "", /no longer the leader/);
  assert.equal(await fixture.isSettled(), true);
});

test("Fence waits for the response to a write of an aborted run", async () => {
  const fixture = new FenceFixture();
  const run = new AbortController();
  const write = fixture.write(run.signal);
  await fixture.clock.settle();
  run.abort(new Error("The run was aborted"));
  await fixture.clock.settle();
  assert.match(write.ended ?? "", /The run was aborted/);
  assert.equal(await fixture.isSettled(), false, "it may arrive still");
  fixture.asked.pop()?.();
  assert.equal(await fixture.isSettled(), true);
  assert.equal(fixture.server.cancelled, 1, "nobody reads the answer");
  fixture.check();
});

test("Fence aborts a write of an aborted run that gets no response", async () => {
  const fixture = new FenceFixture();
  const run = new AbortController();
  fixture.write(run.signal);
  await fixture.clock.settle();
  run.abort(new Error("The run was aborted"));
  await fixture.clock.advance(4_900);
  assert.equal(await fixture.isSettled(), false);
  await fixture.clock.advance(100);
  assert.equal(await fixture.isSettled(), true);
});

test("Fence sends nothing for a run that was aborted before", async () => {
  const fixture = new FenceFixture();
  const write = fixture.write(AbortSignal.abort(new Error("Too late")));
  await fixture.clock.settle();
  assert.match(write.ended ?? "", /Too late/);
  assert.equal(fixture.asked.length, 0);
});

test("Fence rejects a write whose connection opens after the lease is lost", () =>
  withSlowProxy(async (proxy, proxyUrl) => {
    const client = new Client({ server: "http://server.invalid", proxyUrl });
    // A process that was suspended notices the loss later than the connection,
    // so the signal does not abort.
    const { signal } = new AbortController();
    const lease = { isHeld: true, signal, role: "the leader" };
    const fence = new Fence({ client, lease, clock: systemClock });
    const refused = assert.rejects(
      fence.client.patch(Lease, KEY, {}),
      /is not the leader, or cannot be sure of it/,
    );
    try {
      await proxy.waiting();
      lease.isHeld = false;
      proxy.open();
      await refused;
      await fence.settled();
      assert.equal(proxy.received, "");
    } finally {
      await client.close();
    }
  }));

test("Fence keeps nothing of a write that has ended, well or not", async () => {
  const fixture = new FenceFixture();
  const found = await growthOf(5, async () => {
    const abort = new AbortController();
    const writes = [fixture.write(), fixture.write(abort.signal)];
    await fixture.clock.settle();
    abort.abort(new Error("Its run ends"));
    for (const answer of fixture.asked.splice(0)) answer();
    await fixture.clock.settle();
    assert.ok(writes.every(({ ended }) => ended !== undefined));
  });
  assert.deepEqual(found, []);
  fixture.check();
});
